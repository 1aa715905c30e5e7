"""torch.cuda, without a GPU: questions are answered, commands to all devices do nothing."""

from __future__ import annotations

from typing import Any

from lucid.compat.torch import amp
from lucid.errors import ArgumentError

__all__ = ["amp"]


def is_available() -> bool:
    """False: all tensors are on the CPU."""
    return False


def device_count() -> int:
    """0: all tensors are on the CPU."""
    return 0


def is_initialized() -> bool:
    """False: there is nothing to initialize."""
    return False


def is_bf16_supported(*args: Any, **kwargs: Any) -> bool:
    """False: there is no GPU."""
    return False


def nothing(*args: Any, **kwargs: Any) -> None:
    """Do nothing, for commands to all devices, of which there are none."""


manual_seed = manual_seed_all = empty_cache = synchronize = reset_peak_memory_stats = nothing


def memory_allocated(*args: Any) -> int:
    """0: no memory of a GPU is used."""
    return 0


max_memory_allocated = memory_reserved = memory_allocated


def current_device() -> int:
    """Raise an error: there is no GPU."""
    raise ArgumentError("cuda: there is no GPU; all tensors are on the CPU")


def set_device(device: Any) -> None:
    """Raise an error: there is no GPU."""
    current_device()


def get_device_name(device: Any = None) -> str:
    """Raise an error: there is no GPU."""
    return str(current_device())
