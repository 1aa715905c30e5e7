"""torch.onnx: a stand-in, for programs that export only on request."""

from typing import Any

from lucid.errors import ArgumentError


def export(model: Any, *args: Any, **kwargs: Any) -> None:
    """Raise an error: PyTorch's exporter reads PyTorch's own graphs."""
    raise ArgumentError(
        "onnx.export: not available; save(model.state_dict(), path) has the weights"
    )
