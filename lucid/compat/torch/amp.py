"""torch.amp on the CPU: a switched-off autocast, and a GradScaler that scales by 1."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

from lucid.errors import ArgumentError


class autocast(ContextDecorator):
    """A context that changes nothing; a request for mixed precision is an error."""

    def __init__(self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True) -> None:
        if enabled and dtype is not None:
            raise ArgumentError("autocast: mixed precision is not supported; pass enabled=False")

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class GradScaler:
    """Scales by 1, which float32 needs: `scale(loss).backward()`, `step(optimizer)`, `update()`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def scale(self, outputs: Any) -> Any:
        """Return the outputs."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Do nothing."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Take a step of the optimizer."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Do nothing."""

    def get_scale(self) -> float:
        """1.0."""
        return 1.0

    def state_dict(self) -> dict[str, Any]:
        """Return an empty dictionary."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Do nothing."""
