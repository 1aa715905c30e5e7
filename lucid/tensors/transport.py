"""Tensors in pickles: a leaf travels as its array, requires_grad, gradient and attributes.

    a view                       arrives with memory of its own, and with its own elements alone
    one tensor in two places     arrives as one tensor in two places
    hooks                        stay behind, with a warning; so does the graph of a gradient
    a result that requires grad  is refused, as is a value that a running transform differentiates

Files are another matter: `lucid.load` reads no pickles, because loading one can run any code.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from lucid.errors import GraphError
from lucid.tape.conversion import needs_grad
from lucid.tape.modes import local
from lucid.tape.node import Traced, wrap


def reduce_tensor(x: Any) -> tuple[Any, ...]:
    """Return what a pickle holds of a tensor, for `__reduce_ex__`."""
    check_portable(x)
    cell = None if x.node is None else x.node.cell
    grad = None if cell is None or cell.grad is None else cell.grad.detach()
    if cell is not None and (cell.hooks or cell.post_accumulate_hooks or cell.state):
        warnings.warn(
            "pickle: the hooks of a tensor stay in this process; register them again where it is "
            "loaded",
            UserWarning,
            stacklevel=3,
        )
    array = x.array("pickle")
    return rebuild_tensor, (type(x), array, x.requires_grad, grad, attributes(x))


def check_portable(x: Any) -> None:
    """Raise an error for a tensor whose history a pickle would lose."""
    if x.requires_grad and not x.is_leaf:
        raise GraphError(
            f"pickle: {x.type} is the result of {x.node.op.name}, and graphs stay in their "
            "process; detach() it first"
        )
    if local.transforms and needs_grad(x):
        raise GraphError(
            f"pickle: {x.type} is differentiated by the running transform, and a copy of it would "
            "be a constant; detach() it if that is intended"
        )


def attributes(x: Any) -> dict[str, Any]:
    """Return the attributes that a subclass of Tensor adds."""
    state = object.__getstate__(x)
    own, slots = state if isinstance(state, tuple) else (state, {})
    added = {name: value for name, value in slots.items() if name not in Traced.__slots__}
    return {**(own or {}), **added}


def rebuild_tensor(
    cls: Any, array: np.ndarray, requires_grad: bool, grad: Any, attributes: dict[str, Any]
) -> Any:
    """Return the tensor of a pickle; an array that is read-only or mapped from a file is copied."""
    is_own = type(array) is np.ndarray and array.flags.writeable
    made = wrap(array if is_own else np.array(array, subok=False))
    x = object.__new__(cls)
    x.value, x.node, x.storage, x.origin = made.value, made.node, None, None
    for name, value in attributes.items():
        setattr(x, name, value)
    if requires_grad:
        x.requires_grad_(True)
    if grad is not None:
        x.grad = grad
    return x
