"""torch.nn.parallel on one device: the module itself."""

from __future__ import annotations

from typing import Any

from lucid import nn


class DataParallel(nn.Module):
    """A module that calls the one it wraps; there is one device."""

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ):
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the wrapped module."""
        return self.module(*args, **kwargs)


def data_parallel(module: Any, inputs: Any, device_ids: Any = None, **options: Any) -> Any:
    """Call the module; there is one device."""
    return module(*inputs) if isinstance(inputs, tuple) else module(inputs)
