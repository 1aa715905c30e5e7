"""torch.autograd: Lucid's, with PyTorch's rules for `grad` and for outputs that are not scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lucid
from lucid import autograd as _ours
from lucid.autograd import Function, gradcheck, gradgradcheck
from lucid.autograd.engine import as_list
from lucid.errors import GraphError
from lucid.func import vmap

__all__ = ["Function", "Variable", "backward", "grad", "gradcheck", "gradgradcheck"]


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)


def _listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (tuple, list)) else [x]


def check_scalars(what: str, outputs: Sequence[Any], grad_outputs: Sequence[Any]) -> None:
    """Raise for an output with several elements and no cotangent, as PyTorch does."""
    for i, y in enumerate(outputs):
        given = grad_outputs[i] if i < len(grad_outputs) else None
        if given is None and isinstance(y, lucid.Tensor) and y.numel() != 1:
            facts = f"grad can be implicitly created only for scalar outputs, not {tuple(y.shape)}"
            raise GraphError(f"{what}: {facts}; pass the cotangent, or sum() it")


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Return a tuple with the gradient of every input, for a bare tensor too."""
    outs, seeds = as_list(outputs), [] if grad_outputs is None else _listed(grad_outputs)
    check_scalars("autograd.grad", outs, seeds)
    if is_grads_batched:
        return vmap(lambda *cts: grad(outs, inputs, cts, True, create_graph, allow_unused))(*seeds)
    unused = materialize_grads if allow_unused is None else allow_unused
    xs = as_list(inputs)
    found = _ours.grad(
        outs, xs, seeds or None, retain_graph=retain_graph, create_graph=create_graph,
        allow_unused=unused,
    )  # fmt: skip
    if not materialize_grads:
        return tuple(found)
    zeros = [lucid.zeros(x.shape, dtype=x.dtype) if g is None else g for x, g in zip(xs, found)]
    return tuple(zeros)


def backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> None:
    """Accumulate gradients; a tensor with several elements needs a cotangent."""
    outs, seeds = as_list(tensors), [] if grad_tensors is None else _listed(grad_tensors)
    check_scalars("autograd.backward", outs, seeds)
    _ours.backward(outs, seeds or None, *args, **kwargs)


def Variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
    """Return the tensor itself; tensors have been variables since PyTorch 0.4."""
    return data.requires_grad_(True) if requires_grad else data
