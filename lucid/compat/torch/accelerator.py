"""torch.accelerator, when there is no accelerator."""

from lucid.compat.torch.cuda import device_count, is_available, nothing

__all__ = ["current_accelerator", "device_count", "is_available", "synchronize"]


def current_accelerator(check_available: bool = False) -> None:
    """None: there is no accelerator."""


synchronize = nothing
