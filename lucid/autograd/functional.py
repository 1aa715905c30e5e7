"""Derivatives of functions at given inputs, like `torch.autograd.functional`.

`inputs` is a tensor or a tuple of tensors, and results have the same structure. They are detached
unless `create_graph`. `strict` raises an error if an output does not depend on one of the inputs,
instead of returning zeros. All rows of a Jacobian are always computed at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lucid import func as F
from lucid.autograd.engine import grad as gradient
from lucid.autograd.modes import enable_grad
from lucid.errors import ArgumentError, GraphError, ShapeError
from lucid.func.jacobians import hessian as hessian_of
from lucid.func.jacobians import jacfwd, jacrev
from lucid.ir.pytree import flatten, unflatten
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor
from lucid.ops.shape.creation import ones_like
from lucid.public.lazy import attach
from lucid.tensors.tensor import Tensor

Inputs = Any  # a tensor or a tuple of tensors
STRATEGIES = {"reverse-mode": jacrev, "forward-mode": jacfwd}


class Point:
    """A function and the inputs at which it is differentiated."""

    def __init__(self, name: str, f: Callable[..., Any], inputs: Inputs, create_graph: bool):
        self.name, self.f, self.create_graph = name, f, create_graph
        self.is_tuple = isinstance(inputs, (tuple, list))
        self.inputs = tuple([as_tensor(x) for x in (inputs if self.is_tuple else (inputs,))])
        self.argnums: Any = tuple(range(len(self.inputs))) if self.is_tuple else 0
        if not callable(f) or not self.inputs:
            raise ArgumentError(f"{name}: needs a function and at least one input")

    def detached(self, result: Any) -> Any:
        """Return a result, detached unless `create_graph`."""
        leaves, tree = flatten(result)
        kept = [x if self.create_graph or not isinstance(x, Tensor) else x.detach() for x in leaves]
        return unflatten(tree, kept)

    def like_inputs(self, parts: Any) -> Any:
        return tuple(parts) if self.is_tuple else parts[0]

    def vectors(self, v: Any, like: tuple[Any, ...], what: str) -> tuple[Any, ...]:
        """Return the given vectors, or ones if `like` is a single number."""
        if v is None:
            if len(like) != 1 or like[0].numel() != 1:
                raise ArgumentError(f"{self.name}: v is missing, and {what} is not a single number")
            return (ones_like(like[0]),)
        given = tuple([as_tensor(x) for x in (v if isinstance(v, (tuple, list)) else (v,))])
        shapes = [x.shape for x in given]
        if shapes != [x.shape for x in like]:
            facts = f"v of shapes {shapes} for {what} of {[x.shape for x in like]}"
            raise ShapeError(f"{self.name}: {facts}")
        return given

    def check_dependence(self, f: Callable[..., Any], what: str) -> None:
        """Raise an error if a result does not depend on one of the inputs."""
        with enable_grad():
            inputs = [x.detach().requires_grad_(True) for x in self.inputs]
            outputs = flatten(f(*inputs))[0]
            for i, y in enumerate(outputs):
                found = [None] * len(inputs)
                if y.requires_grad:
                    found = gradient(y.sum(), inputs, retain_graph=True, allow_unused=True)
                for j, g in enumerate(found):
                    if g is None:
                        facts = f"{what} {i} does not depend on input {j}, and strict=True"
                        raise GraphError(f"{self.name}: {facts}")

    def check_gradient(self) -> None:
        every = tuple(range(len(self.inputs)))
        self.check_dependence(self.f, "output")
        self.check_dependence(F.grad(self.f, every), "the gradient by input")

    def outputs(self, y: Any) -> tuple[Any, ...]:
        return tuple(y) if isinstance(y, (tuple, list)) else (y,)


@public_function("autograd.functional")
def jacobian(
    func: Callable[..., Any],
    inputs: Inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of a function at `inputs`; for tuples, nested as [output][input].

    >>> import lucid
    >>> lucid.autograd.functional.jacobian(lambda x: x * x, lucid.tensor([1.0, 2.0]))
    Tensor([[2., 0.],
            [0., 4.]])
    """
    at = Point("jacobian", func, inputs, create_graph)
    if strategy not in STRATEGIES:
        facts = f"strategy {strategy!r} is unknown; use one of {', '.join(STRATEGIES)}"
        raise ArgumentError(f"jacobian: {facts}")
    if strict:
        at.check_dependence(func, "output")
    return at.detached(STRATEGIES[strategy](func, at.argnums)(*at.inputs))


@public_function("autograd.functional")
def hessian(
    func: Callable[..., Any],
    inputs: Inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of a scalar function; for tuples, nested as [input][input].

    >>> import lucid
    >>> lucid.autograd.functional.hessian(lambda x: (x ** 3).sum(), lucid.tensor([1.0, 2.0]))
    Tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    at = Point("hessian", func, inputs, create_graph)
    if strict:
        at.check_gradient()
    return at.detached(hessian_of(func, at.argnums)(*at.inputs))


@public_function("autograd.functional")
def vjp(
    func: Callable[..., Any],
    inputs: Inputs,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Any:
    """Return (output, vᵀJ): the value, and the vector-Jacobian product with `v`."""
    at = Point("vjp", func, inputs, create_graph)
    if strict:
        at.check_dependence(func, "output")
    y, pull = F.vjp(func, *at.inputs)
    given = at.vectors(v, at.outputs(y), "the output")
    pulled = pull(*given) if isinstance(y, (tuple, list)) else pull(given[0])
    return at.detached((y, at.like_inputs(pulled)))


@public_function("autograd.functional")
def jvp(
    func: Callable[..., Any],
    inputs: Inputs,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Any:
    """Return (output, J v): the value, and the Jacobian-vector product with `v`."""
    at = Point("jvp", func, inputs, create_graph)
    if strict:
        at.check_dependence(func, "output")
    return at.detached(F.jvp(func, at.inputs, at.vectors(v, at.inputs, "the input")))


@public_function("autograd.functional")
def hvp(
    func: Callable[..., Any],
    inputs: Inputs,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Any:
    """Return (output, H v): the value of a scalar function, and its Hessian-vector product."""
    at = Point("hvp", func, inputs, create_graph)
    if strict:
        at.check_gradient()
    given = at.vectors(v, at.inputs, "the input")
    every = tuple(range(len(at.inputs)))
    (_, y), (pushed, _) = F.jvp(F.grad_and_value(func, every), at.inputs, given)
    return at.detached((y, at.like_inputs(pushed)))


@public_function("autograd.functional")
def vhp(
    func: Callable[..., Any],
    inputs: Inputs,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Any:
    """Return (output, vᵀH): the vector-Hessian product, by two reverse passes."""
    at = Point("vhp", func, inputs, create_graph)
    if strict:
        at.check_gradient()
    given = at.vectors(v, at.inputs, "the input")
    every = tuple(range(len(at.inputs)))
    _, pull, y = F.vjp(F.grad_and_value(func, every), *at.inputs, has_aux=True)
    return at.detached((y, at.like_inputs(pull(*given))))


_, __dir__, __all__ = attach(__name__)
