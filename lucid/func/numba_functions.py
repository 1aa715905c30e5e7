"""from_numba: a function that a user wrote for Numba becomes an operation with every transform."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lucid.errors import ArgumentError
from lucid.func.custom_rules import positional
from lucid.ir.source import at_line
from lucid.ops.core.arguments import explained
from lucid.ops.core.promote import as_tensor, cast, operand, result_type, wanted_dtype
from lucid.ops.higher_order.numba_function import NumbaFunction
from lucid.ops.higher_order.numba_ops import FromNumba, NumbaArrays
from lucid.tape.bind import bind


@explained
def from_numba(
    f: Callable[..., Any] | None = None,
    derivative: Any = None,
    *,
    shape: Callable[..., Any] | None = None,
    vjp: Callable[..., Any] | None = None,
    jvp: Callable[..., Any] | None = None,
    dtype: Any = None,
) -> Any:
    """An operation on tensors from a function that Numba compiles.

    f             of numbers, applied to every element; with shape=, of arrays. It returns results,
                  or writes them into further arguments
    derivative    of a function of numbers: for each argument a function of all of them, of Lucid or
                  of Numba (None: zero). Where it is not given, `f` itself is run on tensors
    shape         of a function of arrays: shapes of the arguments -> that of the result, a tuple,
                  or a list of tuples for several results
    vjp           (ct, y, *xs) -> the cotangent of every argument
    jvp           (tangents, y, *xs) -> the tangent of the result
    dtype         of the results; otherwise as Numba finds it, floating ones as the operands

    >>> import lucid, math
    >>> wave = lucid.func.from_numba(lambda x: math.sin(3 * x))
    >>> wave(lucid.zeros(2)), lucid.func.grad(wave)(lucid.tensor(0.0))
    (Tensor([0., 0.]), Tensor(3.))
    """
    if f is None:
        return functools.partial(
            from_numba, derivative=derivative, shape=shape, vjp=vjp, jvp=jvp, dtype=dtype
        )
    dispatcher = dispatcher_of(f)
    known = None if dtype is None else wanted_dtype(dtype)
    if shape is None:
        if vjp is not None or jvp is not None:
            raise ArgumentError(
                "from_numba: vjp= and jvp= are for functions of arrays, which have shape=; give "
                f"derivative= for a function of numbers{at_line()}"
            )
        partials = partial_functions(dispatcher, derivative)
        return elementwise(NumbaFunction(dispatcher, partials, dtype=known))
    if derivative is not None or (vjp is not None and jvp is not None):
        raise ArgumentError(
            f"from_numba: a function of arrays takes vjp= or jvp=, from which the other follows"
            f"{at_line()}"
        )
    rules = {name: rule for name, rule in (("vjp", vjp), ("jvp", jvp)) if rule is not None}
    return of_arrays(NumbaFunction(dispatcher, shape=shape, dtype=known, rules=rules))


def dispatcher_of(f: Any) -> Any:
    """The function as Numba knows it; a Python function is compiled."""
    if hasattr(f, "py_func") and hasattr(f, "overloads"):
        return f
    f = getattr(f, "py_func", f)
    if not hasattr(f, "__code__"):
        raise ArgumentError(f"from_numba: a function of Numba's or of Python, not {f!r}{at_line()}")
    import numba

    return numba.njit(f, error_model="numpy")


def partial_functions(dispatcher: Any, derivative: Any) -> tuple[Any, ...] | None:
    """The partial derivative for each argument, as functions of tensors."""
    if derivative is None:
        return None
    given = derivative if isinstance(derivative, (tuple, list)) else (derivative,)
    n = dispatcher.py_func.__code__.co_argcount
    if len(given) != n:
        raise ArgumentError(
            f"from_numba: {len(given)} derivatives for {n} arguments; None stands for zero"
            f"{at_line()}"
        )
    return tuple([from_numba(rule) if hasattr(rule, "py_func") else rule for rule in given])


def elementwise(function: NumbaFunction) -> Callable[..., Any]:
    op, python = FromNumba(function), function.dispatcher.py_func

    @functools.wraps(python)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = [operand(x) for x in positional(python, args, kwargs)]
        floating = [x for x in given if as_tensor(x).dtype.kind in "fc"]
        dtype = result_type(*floating) if floating else None
        return bind(op, *[at_dtype(x, dtype) for x in given])

    return call


def at_dtype(x: Any, dtype: Any) -> Any:
    """An operand as a tensor, a floating one at the dtype of all of them."""
    if isinstance(x, (float, complex)):
        return as_tensor(x, dtype)
    x = as_tensor(x)
    return cast(x, dtype) if x.dtype.kind in "fc" else x


def of_arrays(function: NumbaFunction) -> Callable[..., Any]:
    op = NumbaArrays(function)

    @functools.wraps(function.dispatcher.py_func)
    def call(*args: Any) -> Any:
        if len(args) > function.n_parameters:
            raise ArgumentError(
                f"{function.name}: {len(args)} arguments for {function.n_parameters}{at_line()}"
            )
        ys = bind(op, *[as_tensor(x) for x in args])
        return ys[0] if len(ys) == 1 else ys

    return call
