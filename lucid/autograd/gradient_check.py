"""gradcheck: compare derivatives with central differences, in float64 for any input dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lucid.autograd.engine import grad
from lucid.errors import GraphError
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.types import is_differentiable
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor
from lucid.public.declare import public
from lucid.tape.modes import local
from lucid.tape.node import Traced, wrap


@public("autograd")
class GradcheckError(GraphError):
    """Analytical and numerical derivatives differ."""


@public_function("autograd")
def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    *,
    nondet_tol: float = 0.0,
    check_forward_ad: bool = False,
    check_batched_grad: bool = False,
) -> bool:
    """True if the derivatives of `func` agree with central differences at `inputs`.

    Checks every floating tensor among the inputs that requires a gradient (every floating tensor
    if none does); everything else is passed through. Outputs may be tensors of any shape, or
    pytrees of them.

    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0], requires_grad=True)
    >>> lucid.autograd.gradcheck(lambda x: (x * x).sum(), x)
    True
    """
    try:
        check(func, inputs, eps, atol, rtol, check_forward_ad, check_batched_grad, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


@public_function("autograd")
def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """`gradcheck` of the gradient of `func`: check its second derivatives."""
    leaves, structure, checked = prepare(inputs)
    probe = outputs_of(func, unflatten(structure, leaves))
    rng = np.random.default_rng(0)
    if grad_outputs is None:
        seeds = [wrap(np.asarray(rng.standard_normal(y.shape), y.dtype)) for y in probe]
    else:
        given = grad_outputs if isinstance(grad_outputs, (list, tuple)) else [grad_outputs]
        seeds = [as_tensor(g).to(y.dtype) for g, y in zip(given, probe, strict=True)]

    def first(*args: Any) -> Any:
        current = flatten(args)[0]
        targets = [current[i] for i in checked]
        outs = outputs_of(func, args)
        live = [(y, s) for y, s in zip(outs, seeds) if y.requires_grad]
        return grad(
            [y for y, _ in live],
            targets,
            [s for _, s in live],
            create_graph=True,
            materialize_grads=True,
        )

    tree = unflatten(structure, leaves)
    return gradcheck(first, tree, eps, atol, rtol, raise_exception)


def prepare(inputs: Any) -> tuple[list[Any], Any, list[int]]:
    """Return the inputs in float64, their structure, and the positions of those to check."""
    if isinstance(inputs, Traced) or not isinstance(inputs, (tuple, list)):
        inputs = (inputs,)
    leaves, structure = flatten(tuple(inputs))
    floating = [
        i for i, x in enumerate(leaves) if isinstance(x, Traced) and is_differentiable(x.dtype)
    ]
    checked = [i for i in floating if leaves[i].requires_grad] or floating
    if not checked:
        raise GraphError("gradcheck: no input is a floating tensor")
    for i in floating:
        wide = "complex128" if leaves[i].dtype.kind == "c" else "float64"
        leaves[i] = wrap(np.array(leaves[i].array("gradcheck"), wide, order="C"))
        if i in checked:
            leaves[i].requires_grad_(True)
    return leaves, structure, checked


def outputs_of(func: Callable[..., Any], args: Any) -> list[Any]:
    outs = [y for y in flatten(func(*args))[0] if isinstance(y, Traced)]
    return [y for y in outs if is_differentiable(y.dtype)]


def check(
    func: Callable[..., Any],
    inputs: Any,
    eps: float,
    atol: float,
    rtol: float,
    forward: bool,
    batched: bool,
    nondet_tol: float,
) -> None:
    leaves, structure, checked = prepare(inputs)
    args = unflatten(structure, leaves)
    outs = outputs_of(func, args)
    if not outs:
        raise GraphError("gradcheck: the function returned no floating tensor")
    for o, y in enumerate(outs):
        analytical = analytical_jacobian(y, [leaves[i] for i in checked])
        for position, i in enumerate(checked):
            numerical = numerical_jacobian(func, args, leaves[i], o, eps)
            compare(analytical[position], numerical, o, i, atol, rtol, "backward")
    if forward:
        check_forward(func, leaves, structure, checked, eps, atol, rtol)
    if batched:
        check_batched(outs, [leaves[i] for i in checked], atol, rtol)


def analytical_jacobian(y: Any, targets: Sequence[Any]) -> list[np.ndarray]:
    """Return the transposed Jacobian of `y`, one column per element; for complex `y` two.

    The two columns are the cotangents 1 and i."""
    parts = [1.0] if y.dtype.kind == "f" else [1.0, 1.0j]
    columns: list[list[np.ndarray]] = [[] for _ in targets]
    for part in parts:
        for k in range(y.array().size):
            seed = np.zeros(y.array().size, y.dtype)
            seed[k] = part
            seed = seed.reshape(y.shape)
            if y.requires_grad:
                gs = grad(y, list(targets), wrap(seed), retain_graph=True, materialize_grads=True)
            else:
                gs = [wrap(np.zeros(x.shape, x.dtype)) for x in targets]
            for column, g in zip(columns, gs):
                column.append(as_real_vector(g.array()))
    return [
        np.stack(column, -1) if column else np.zeros((as_real_vector(x.array()).size, 0))
        for column, x in zip(columns, targets)
    ]


def as_real_vector(value: np.ndarray) -> np.ndarray:
    """Return real and imaginary parts as one real vector."""
    flat = value.reshape(-1)
    return np.concatenate([flat.real, flat.imag]) if value.dtype.kind == "c" else flat


def numerical_jacobian(
    func: Callable[..., Any], args: Any, x: Any, output: int, eps: float
) -> np.ndarray:
    """Return the transposed Jacobian by central differences, perturbing `x` in place."""
    flat = x.value.reshape(-1)
    rows = []
    steps = [eps] if x.dtype.kind == "f" else [eps, eps * 1j]
    before = local.grad
    local.grad = True
    try:
        for step in steps:
            for k in range(flat.size):
                kept = flat[k]
                flat[k] = kept + step
                above = as_real_vector(np.array(outputs_of(func, args)[output].array()))
                flat[k] = kept - step
                below = as_real_vector(np.array(outputs_of(func, args)[output].array()))
                flat[k] = kept
                rows.append((above - below) / (2 * eps))
    finally:
        local.grad = before
    return np.stack(rows) if rows else np.zeros((0, 0))


def compare(
    a: np.ndarray, n: np.ndarray, output: int, position: int, atol: float, rtol: float, mode: str
) -> None:
    if a.size == 0 and n.size == 0:
        return
    if a.shape == n.shape and np.allclose(a, n, rtol, atol, equal_nan=True):
        return
    worst = np.unravel_index(np.argmax(np.abs(a - n)), a.shape) if a.shape == n.shape else ()
    raise GradcheckError(
        f"gradcheck: the {mode} derivative of output {output} for input {position} "
        "differs from central "
        f"differences: {a[worst] if worst else a.shape} against {n[worst] if worst else n.shape}"
        f"{f' at element {tuple(map(int, worst))}' if worst else ''}"
    )


def check_forward(
    func: Any,
    leaves: Sequence[Any],
    structure: Any,
    checked: Sequence[int],
    eps: float,
    atol: float,
    rtol: float,
) -> None:
    from lucid.func import jvp

    def chosen(*values: Any) -> Any:
        full = list(leaves)
        for i, value in zip(checked, values):
            full[i] = value
        return outputs_of(func, unflatten(structure, full))

    args = unflatten(structure, list(leaves))
    primals = [wrap(leaves[i].value) for i in checked]
    for position, i in enumerate(checked):
        numerical = [
            numerical_jacobian(func, args, leaves[i], o, eps) for o in range(len(chosen(*primals)))
        ]
        for k in range(numerical[0].shape[0]):
            size = primals[position].value.size
            tangents = [wrap(np.zeros(x.shape, x.dtype)) for x in primals]
            tangents[position].value.reshape(-1)[k % size] = 1.0 if k < size else 1.0j
            _, ts = jvp(chosen, tuple(primals), tuple(tangents))
            for o, t in enumerate(ts):
                compare(as_real_vector(t.array()), numerical[o][k], o, i, atol, rtol, "forward")


def check_batched(outs: Sequence[Any], targets: Sequence[Any], atol: float, rtol: float) -> None:
    from lucid.func import vmap

    rng = np.random.default_rng(0)
    for o, y in enumerate(outs):
        seeds = np.asarray(rng.standard_normal((3, *y.shape)), y.dtype)

        def pull(seed: Any, y: Any = y) -> Any:
            return grad(y, list(targets), seed, retain_graph=True, materialize_grads=True)

        together = vmap(pull)(wrap(seeds))
        for k in range(3):
            alone = pull(wrap(seeds[k]))
            for i, (many, one) in enumerate(zip(together, alone)):
                compare(
                    as_real_vector(many.array()[k]),
                    as_real_vector(one.array()),
                    o,
                    i,
                    atol,
                    rtol,
                    "batched",
                )
