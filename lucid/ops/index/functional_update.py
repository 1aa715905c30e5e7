"""`x.at[index]`: updated copies of a tensor, as in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lucid.errors import ArgumentError
from lucid.ops.core.promote import as_tensor, cast_like
from lucid.ops.index.lookup import scatter_add
from lucid.ops.index.scatter_reduce import scatter_reduce
from lucid.ops.index.subscript import getitem, setitem
from lucid.ops.shape.creation import arange


class IndexUpdate:
    """`x.at`: `x.at[index]` has the updates.

    >>> import lucid
    >>> x = lucid.zeros(3)
    >>> x.at[0].set(5.0), x.at[lucid.tensor([1, 1])].add(1.0), x
    (Tensor([5., 0., 0.]), Tensor([0., 2., 0.]), Tensor([0., 0., 0.]))
    """

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __getitem__(self, index: Any) -> UpdateAt:
        return UpdateAt(self.tensor, index)


class UpdateAt:
    """Updates of a tensor at an index; each returns a new tensor.

    A repeated index is applied each time, except in `set`, `power` and `apply`.
    """

    __slots__ = ("index", "tensor")

    def __init__(self, tensor: Any, index: Any) -> None:
        self.tensor, self.index = tensor, index

    def get(self, **options: Any) -> Any:
        """Return the elements at the index."""
        check_options(options)
        return getitem(self.tensor, self.index)

    def set(self, values: Any, **options: Any) -> Any:
        """Return a copy with the elements at the index replaced by `values`."""
        check_options(options)
        return setitem(self.tensor, self.index, values)

    def add(self, values: Any, **options: Any) -> Any:
        """Return a copy with `values` added."""
        check_options(options)
        return self.scatter(values, scatter_add)

    def subtract(self, values: Any, **options: Any) -> Any:
        """Return a copy with `values` subtracted."""
        return self.add(-as_tensor(values), **options)

    def multiply(self, values: Any, **options: Any) -> Any:
        """Return a copy multiplied by `values`."""
        return self.reduce(values, "prod", options)

    mul = multiply

    def divide(self, values: Any, **options: Any) -> Any:
        """Return a copy divided by `values`."""
        return self.multiply(1.0 / as_tensor(values), **options)

    def min(self, values: Any, **options: Any) -> Any:
        """Return a copy with the minimum of the elements and `values`."""
        return self.reduce(values, "amin", options)

    def max(self, values: Any, **options: Any) -> Any:
        """Return a copy with the maximum of the elements and `values`."""
        return self.reduce(values, "amax", options)

    def power(self, values: Any, **options: Any) -> Any:
        """Return a copy with the elements raised to the power `values`."""
        return self.set(self.get() ** values, **options)

    def apply(self, f: Callable[[Any], Any], **options: Any) -> Any:
        """Return a copy with the elements replaced by `f` of them."""
        return self.set(f(self.get()), **options)

    def reduce(self, values: Any, how: str, options: dict[str, Any]) -> Any:
        check_options(options)
        return self.scatter(values, lambda x, dim, i, v: scatter_reduce(x, dim, i, v, how))

    def scatter(self, values: Any, scatter: Callable[..., Any]) -> Any:
        """Return the tensor after a scatter of `values` to the flat positions of the index."""
        x = self.tensor
        positions = getitem(arange(x.numel()).reshape(x.shape), self.index)
        values = cast_like(x, "at", values).expand(positions.shape)
        flat = scatter(x.reshape(-1), 0, positions.reshape(-1), values.reshape(-1))
        return flat.reshape(x.shape)


def check_options(options: dict[str, Any]) -> None:
    """Accept JAX's hints about indices; raise an error for other modes for indices out of range."""
    promises = {"indices_are_sorted", "unique_indices", "wrap_negative_indices"}
    unknown = {name for name in options if name not in promises and name != "mode"}
    mode = options.get("mode")
    if unknown or mode not in (None, "promise_in_bounds"):
        named = ", ".join(sorted(unknown)) or f"mode={mode!r}"
        raise ArgumentError(f"at: {named} is not supported; an index out of range is an error")
