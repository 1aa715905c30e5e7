"""autograd's operators: each takes a function and `argnum`, a position or a sequence of them."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from lucid import func
from lucid.compat.autograd import core
from lucid.compat.autograd.core import in_float64, vspace
from lucid.errors import GraphError


def unary_to_nary(operator: Callable[..., Any]) -> Callable[..., Any]:
    """Extend an operator on functions of one argument to functions of many, by `argnum`."""

    @functools.wraps(operator)
    def of_function(fun: Callable[..., Any], argnum: Any = 0, *given: Any, **options: Any) -> Any:
        name = getattr(fun, "__name__", "[unknown name]")

        def operated(*args: Any, **kwargs: Any) -> Any:
            def unary(x: Any) -> Any:
                full = list(args)
                for i, value in [(argnum, x)] if isinstance(argnum, int) else zip(argnum, x):
                    full[i] = value
                return fun(*full, **kwargs)

            unary.__name__ = name
            single = isinstance(argnum, int)
            x = args[argnum] if single else tuple(args[i] for i in argnum)
            return operator(unary, x, *given, **options)

        operated.__name__ = f"{operator.__name__}_of_{name}_wrt_argnum_{argnum}"
        operated.__doc__ = f"{operator.__name__} of {name} with respect to argument {argnum}."
        return operated

    return of_function


make_vjp = unary_to_nary(core.make_vjp)
make_jvp = unary_to_nary(core.make_jvp)


def _scalar_vjp(what: str, fun: Any, x: Any) -> tuple[Any, Any]:
    """Return (value, gradient) of a function that returns one real number."""
    vjp, value = core.make_vjp(fun, x)
    if vspace(value).size != 1:
        raise TypeError(
            f"{what} only applies to real scalar-output functions. "
            "Try jacobian, elementwise_grad or holomorphic_grad."
        )
    return value, vjp(vspace(value).ones())


@unary_to_nary
def grad(fun: Any, x: Any) -> Any:
    """Return the gradient of a function that returns one real number."""
    return _scalar_vjp("Grad", fun, x)[1]


@unary_to_nary
def value_and_grad(fun: Any, x: Any) -> Any:
    """Return (value, gradient), as scipy.optimize takes them with jac=True."""
    return _scalar_vjp("value_and_grad", fun, x)


@unary_to_nary
def elementwise_grad(fun: Any, x: Any) -> Any:
    """Return the sums of the columns of the Jacobian: the derivative of an elementwise function."""
    vjp, value = core.make_vjp(fun, x)
    if vspace(value).iscomplex:
        raise TypeError("Elementwise_grad only applies to real-output functions.")
    return vjp(vspace(value).ones())


@unary_to_nary
def deriv(fun: Any, x: Any) -> Any:
    """Return the derivative of an elementwise function by forward mode."""
    return core.make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def jacobian(fun: Any, x: Any) -> Any:
    """Return the Jacobian, with the axes of the value before those of the argument."""
    core.check(x)
    try:
        return func.jacobian(lambda x: in_float64(fun(x)))(in_float64(x))
    except GraphError:  # a primitive made of NumPy code has no batch rule, so compute row by row
        vjp, value = core.make_vjp(fun, x)
        rows = [vjp(unit) for unit in vspace(value).standard_basis()]
        return np.reshape(np.stack(rows), vspace(value).shape + vspace(x).shape)


@unary_to_nary
def holomorphic_grad(fun: Any, x: Any) -> Any:
    """Return the derivative of a holomorphic function."""
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=3)
    return grad(lambda x: np.real(fun(x)))(x)


def grad_named(fun: Any, argname: str) -> Any:
    """Return the gradient with respect to an argument given by name."""
    return grad(fun, list(inspect.signature(fun).parameters).index(argname))


@unary_to_nary
def hessian(fun: Any, x: Any) -> Any:
    """Return the Hessian, the Jacobian of the Jacobian."""
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def make_hvp(fun: Any, x: Any) -> Any:
    """Return (product, gradient); product(v) is the Hessian times v."""
    return core.make_vjp(grad(fun), x)


def hessian_tensor_product(fun: Any, argnum: int = 0) -> Any:
    """Return the function of (*args, tensor) that multiplies the Hessian by the tensor."""
    gradient = grad(fun, argnum)

    def dotted(*args: Any, **kwargs: Any) -> Any:
        *args, vector = args  # type: ignore[assignment]
        return np.tensordot(gradient(*args, **kwargs), vector, np.ndim(vector))

    return grad(dotted, argnum)


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Any, argnum: int = 0) -> Any:
    """Return the function of (*args, tensor) that multiplies the tensor by the Jacobian."""

    def dotted(*args: Any, **kwargs: Any) -> Any:
        *args, vector = args  # type: ignore[assignment]
        return np.tensordot(vector, fun(*args, **kwargs), axes=np.ndim(vector))

    return jacobian(dotted, argnum)


vector_jacobian_product = tensor_jacobian_product


@unary_to_nary
def make_jvp_reversemode(fun: Any, x: Any) -> Any:
    """Return the function that multiplies the Jacobian by a tangent, by reverse mode twice."""
    vjp, value = core.make_vjp(fun, x)
    return core.make_vjp(vjp, vspace(value).zeros())[0]


def half_square(x: Any) -> Any:
    return 0.5 * np.sum(x**2, axis=-1)


def make_ggnvp(f: Any, g: Any = half_square, f_argnum: int = 0) -> Any:
    """Return a function that multiplies by the generalized Gauss-Newton matrix of g(f(x))."""

    @unary_to_nary
    def make(f: Any, x: Any) -> Any:
        pull, value = core.make_vjp(f, x)
        product, slope = core.make_vjp(grad(g), value)
        push, _ = core.make_vjp(pull, vspace(slope).zeros())
        return lambda v: pull(product(push(v)))

    return make(f, f_argnum)


@unary_to_nary
def grad_and_aux(fun: Any, x: Any) -> Any:
    """Return the gradient of the first result of a function, and its second result."""
    vjp, (value, aux) = core.make_vjp(lambda x: tuple(fun(x)), x)
    return vjp((vspace(value).ones(), vspace(aux).zeros())), aux


def checkpoint(fun: Any) -> Any:
    """Return the function with intermediate values recomputed in reverse mode instead of saved."""
    return func.checkpoint(fun)
