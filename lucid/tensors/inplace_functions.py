"""In-place methods of Tensor as functions: `lucid.relu_(x)` is `x.relu_()`.

`@public(inplace_function=True)` declares those that PyTorch has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lucid.errors import ArgumentError
from lucid.ops.core.arguments import clear_errors
from lucid.support.caches import once
from lucid.tape.node import Traced
from lucid.tensors.tensor import Tensor


@once
def __getattr__(name: str) -> Callable[..., Any]:
    """Return the in-place method `name` of Tensor as a function."""
    if not name.endswith("_") or name.startswith("_") or not hasattr(Tensor, name):
        raise AttributeError(f"module 'lucid.tensors.inplace_functions' has no attribute {name!r}")
    method = getattr(Tensor, name)

    def write(input: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(input, Traced):
            facts = f"{type(input).__name__} cannot be written to; pass a Tensor"
            raise ArgumentError(f"{name}: {facts}")
        return method(input, *args, **kwargs)

    write.__name__ = write.__qualname__ = name
    write.__doc__ = f"Apply `Tensor.{name}` to `input`: the result is stored in the tensor itself."
    write.__wrapped__ = method  # type: ignore[attr-defined]  # it has the same signature
    return clear_errors(write)
