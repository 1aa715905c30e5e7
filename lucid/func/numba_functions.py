"""from_numba: turn a Numba function into an operation that supports every transform."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lucid.errors import ArgumentError
from lucid.func.custom_rules.arguments import bind_positional
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_operand, as_tensor, cast, parse_dtype, result_type
from lucid.ops.higher_order.numba_function import NumbaFunction, dispatcher_of
from lucid.ops.higher_order.numba_ops import FromNumba, NumbaArrays
from lucid.tape.bind import bind


@public_function("func")
def from_numba(
    f: Callable[..., Any] | None = None,
    derivative: Any = None,
    *,
    shape: Callable[..., Any] | None = None,
    vjp: Callable[..., Any] | None = None,
    jvp: Callable[..., Any] | None = None,
    dtype: Any = None,
) -> Any:
    """Return an operation on tensors that runs a Numba function.

    f             a function of numbers, applied elementwise, or with shape= a function of arrays,
                  which returns its results or writes them into additional arguments
    derivative    for a function of numbers: the partial derivative for each argument, as a Lucid
                  or Numba function of all arguments (None: zero); by default `f` is run on tensors
    shape         for a function of arrays: maps the shapes of the arguments to that of the result,
                  a tuple, or a list of tuples for several results
    vjp           (ct, y, *xs) -> the cotangents of all arguments
    jvp           (tangents, y, *xs) -> the tangent of the result
    dtype         the dtype of the results; by default inferred by Numba and the operands

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
    out_dtype = None if dtype is None else parse_dtype(dtype)
    if shape is None:
        if vjp is not None or jvp is not None:
            raise ArgumentError(
                "from_numba: vjp= and jvp= require shape=, for functions of arrays; use "
                "derivative= for a function of numbers"
            )
        partials = partial_functions(dispatcher, derivative)
        return elementwise_function(NumbaFunction(dispatcher, partials, dtype=out_dtype))
    if derivative is not None or (vjp is not None and jvp is not None):
        raise ArgumentError(
            "from_numba: give either vjp= or jvp= for a function of arrays; the other is derived"
        )
    rules = {name: rule for name, rule in (("vjp", vjp), ("jvp", jvp)) if rule is not None}
    return array_function(NumbaFunction(dispatcher, shape=shape, dtype=out_dtype, rules=rules))


def partial_functions(dispatcher: Any, derivative: Any) -> tuple[Any, ...] | None:
    """Return the partial derivative for each argument, as functions of tensors."""
    if derivative is None:
        return None
    operands = derivative if isinstance(derivative, (tuple, list)) else (derivative,)
    n = dispatcher.py_func.__code__.co_argcount
    if len(operands) != n:
        raise ArgumentError(
            f"from_numba: {len(operands)} derivatives for {n} arguments; use None for zero"
        )
    return tuple([from_numba(rule) if hasattr(rule, "py_func") else rule for rule in operands])


def elementwise_function(function: NumbaFunction) -> Callable[..., Any]:
    op, python = FromNumba(function), function.dispatcher.py_func

    @functools.wraps(python)
    def call(*args: Any, **kwargs: Any) -> Any:
        operands = [as_operand(x) for x in bind_positional(python, args, kwargs)]
        floating = [x for x in operands if as_tensor(x).dtype.kind in "fc"]
        dtype = result_type(*floating) if floating else None
        return bind(op, *[cast_floating(x, dtype) for x in operands])

    return call


def cast_floating(x: Any, dtype: Any) -> Any:
    """Return an operand as a tensor, cast to `dtype` if it is floating."""
    if isinstance(x, (float, complex)):
        return as_tensor(x, dtype)
    x = as_tensor(x)
    return cast(x, dtype) if x.dtype.kind in "fc" else x


def array_function(function: NumbaFunction) -> Callable[..., Any]:
    op = NumbaArrays(function)

    @functools.wraps(function.dispatcher.py_func)
    def call(*args: Any) -> Any:
        if len(args) > function.n_parameters:
            raise ArgumentError(
                f"{function.name}: {len(args)} arguments for {function.n_parameters}"
            )
        ys = bind(op, *[as_tensor(x) for x in args])
        return ys[0] if len(ys) == 1 else ys

    return call
