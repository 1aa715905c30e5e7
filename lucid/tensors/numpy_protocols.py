"""NumPy's protocols: ufuncs and NumPy functions of tensors are recorded like Lucid's own.

`UFUNCS` maps every supported ufunc to its counterpart, `lucid.numpy.dispatch.FUNCTIONS` every other
function. Anything else raises an error, because a silent conversion would lose the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.errors import DTypeError, GraphError, LucidError
from lucid.ir.source import at_line
from lucid.ir.types import SHORT_NAMES
from lucid.ops.core.promote import as_tensor, cast, to_floating
from lucid.ops.elementwise import (
    arithmetic,
    blending,
    complexes,
    conditional,
    digits,
    exponential,
    logarithms,
    logic,
    power,
    rounding,
    trigonometric,
)
from lucid.ops.linalg import contraction
from lucid.ops.reduce import cumulative, extrema, reduction
from lucid.tape.node import Traced, wrap
from lucid.tensors import inplace as in_place
from lucid.tensors import mutation


def fabs(x: Any) -> Any:
    return arithmetic.abs(to_floating(x))


def rint(x: Any) -> Any:
    return rounding.round(to_floating(x))


def divmod(x: Any, y: Any) -> Any:
    return rounding.floor_divide(x, y), rounding.remainder(x, y)


def modf(x: Any) -> Any:
    x = to_floating(x)
    whole = rounding.trunc(x)
    return x - whole, whole


def vecdot(x: Any, y: Any) -> Any:
    return reduction.sum(complexes.conj(as_tensor(x)) * y, -1)


UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    np.absolute: arithmetic.abs,
    np.add: arithmetic.add,
    np.arccos: trigonometric.acos,
    np.arccosh: trigonometric.acosh,
    np.arcsin: trigonometric.asin,
    np.arcsinh: trigonometric.asinh,
    np.arctan: trigonometric.atan,
    np.arctan2: trigonometric.atan2,
    np.arctanh: trigonometric.atanh,
    np.bitwise_and: logic.bitwise_and,
    np.bitwise_or: logic.bitwise_or,
    np.bitwise_xor: logic.bitwise_xor,
    np.cbrt: exponential.cbrt,
    np.ceil: rounding.ceil,
    np.conjugate: complexes.conj,
    np.copysign: arithmetic.copysign,
    np.cos: trigonometric.cos,
    np.cosh: trigonometric.cosh,
    np.deg2rad: trigonometric.deg2rad,
    np.degrees: trigonometric.rad2deg,
    np.divide: arithmetic.divide,
    np.divmod: divmod,
    np.equal: logic.eq,
    np.exp: exponential.exp,
    np.exp2: exponential.exp2,
    np.expm1: exponential.expm1,
    np.fabs: fabs,
    np.float_power: power.float_power,
    np.floor: rounding.floor,
    np.floor_divide: rounding.floor_divide,
    np.fmax: blending.fmax,
    np.fmin: blending.fmin,
    np.fmod: rounding.fmod,
    np.frexp: digits.frexp,
    np.gcd: digits.gcd,
    np.greater: logic.gt,
    np.greater_equal: logic.ge,
    np.heaviside: blending.heaviside,
    np.hypot: trigonometric.hypot,
    np.invert: logic.bitwise_not,
    np.isfinite: logic.isfinite,
    np.isinf: logic.isinf,
    np.isnan: logic.isnan,
    np.lcm: digits.lcm,
    np.ldexp: digits.ldexp,
    np.left_shift: logic.left_shift,
    np.less: logic.lt,
    np.less_equal: logic.le,
    np.log: exponential.log,
    np.log10: exponential.log10,
    np.log1p: exponential.log1p,
    np.log2: exponential.log2,
    np.logaddexp: exponential.logaddexp,
    np.logaddexp2: logarithms.logaddexp2,
    np.logical_and: logic.logical_and,
    np.logical_not: logic.logical_not,
    np.logical_or: logic.logical_or,
    np.logical_xor: logic.logical_xor,
    np.matmul: contraction.matmul,
    np.maximum: conditional.maximum,
    np.minimum: conditional.minimum,
    np.modf: modf,
    np.multiply: arithmetic.multiply,
    np.negative: arithmetic.negative,
    np.nextafter: digits.nextafter,
    np.not_equal: logic.ne,
    np.positive: arithmetic.positive,
    np.power: power.pow,
    np.rad2deg: trigonometric.rad2deg,
    np.radians: trigonometric.deg2rad,
    np.reciprocal: power.reciprocal,
    np.remainder: rounding.remainder,
    np.right_shift: logic.right_shift,
    np.rint: rint,
    np.sign: rounding.sign,
    np.signbit: digits.signbit,
    np.sin: trigonometric.sin,
    np.sinh: trigonometric.sinh,
    np.sqrt: exponential.sqrt,
    np.square: power.square,
    np.subtract: arithmetic.subtract,
    np.tan: trigonometric.tan,
    np.tanh: trigonometric.tanh,
    np.trunc: rounding.trunc,
    np.vecdot: vecdot,
}

REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: reduction.sum,
    np.multiply: reduction.prod,
    np.maximum: extrema.amax,
    np.minimum: extrema.amin,
    np.logical_and: reduction.all,
    np.logical_or: reduction.any,
    np.logaddexp: reduction.logsumexp,
}

ACCUMULATIONS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: cumulative.cumsum,
    np.multiply: cumulative.cumprod,
    np.maximum: lambda x, axis: cumulative.cummax(x, axis).values,
    np.minimum: lambda x, axis: cumulative.cummin(x, axis).values,
    np.logaddexp: cumulative.logcumsumexp,
}


def apply_ufunc(x: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`__array_ufunc__`: call the counterpart of a ufunc or of one of its methods."""
    out = kwargs.pop("out", None)
    if kwargs.pop("where", True) is not True:
        raise unsupported(
            f"np.{ufunc.__name__}", "where= is not supported for tensors; use lucid.where"
        )
    function = _ufunc_method(ufunc, method)
    if function is None:
        what = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
        raise no_counterpart(what)
    if out is not None:
        return _call_with_out(out, ufunc, method, function, inputs, kwargs)
    return _call(f"np.{ufunc.__name__}", function, inputs, kwargs)


def _ufunc_method(ufunc: np.ufunc, method: str) -> Callable[..., Any] | None:
    """Return the counterpart of a ufunc's method, with NumPy's signature, or None."""
    if method == "__call__":
        return _with_dtype(UFUNCS[ufunc]) if ufunc in UFUNCS else None
    if method == "reduce" and ufunc in REDUCTIONS:
        return _reduce(REDUCTIONS[ufunc])
    if method == "accumulate" and ufunc in ACCUMULATIONS:
        return _accumulate(ACCUMULATIONS[ufunc])
    if method == "outer" and ufunc in UFUNCS and ufunc.nin == 2:
        return _outer(UFUNCS[ufunc])
    if method == "at" and ufunc in (np.add, np.subtract):
        return _at(1 if ufunc is np.add else -1)
    return None


def _with_dtype(function: Any) -> Any:
    def call(*xs: Any, dtype: Any = None) -> Any:
        return function(*(xs if dtype is None else [cast(as_tensor(x), dtype) for x in xs]))

    return call


def _reduce(function: Any) -> Any:
    def reduce(array: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False) -> Any:
        array = as_tensor(array) if dtype is None else cast(as_tensor(array), dtype)
        return function(array, axis=axis, keepdims=keepdims)

    return reduce


def _accumulate(function: Any) -> Any:
    def accumulate(array: Any, axis: int = 0, dtype: Any = None) -> Any:
        return function(as_tensor(array) if dtype is None else cast(as_tensor(array), dtype), axis)

    return accumulate


def _outer(function: Any) -> Any:
    def outer(x: Any, y: Any) -> Any:
        x, y = as_tensor(x), as_tensor(y)
        return function(x.reshape(x.shape + (1,) * y.ndim), y)

    return outer


def _at(sign: int) -> Any:
    def at(x: Any, indices: Any, values: Any) -> None:
        from lucid.func import vjp

        if not isinstance(x, Traced):
            raise unsupported(
                "ufunc.at", "an ndarray cannot store the sum with a tensor; make it a tensor"
            )
        part, add = vjp(lambda zeros: zeros[indices], wrap(np.zeros(x.shape, x.dtype)))
        mutation.assign(
            x, x + sign * add(cast(as_tensor(values), x.dtype).expand(part.shape))[0], "at"
        )

    return at


def _call_with_out(
    out: Any, ufunc: np.ufunc, method: str, function: Any, inputs: tuple[Any, ...], kwargs: Any
) -> Any:
    """Store a result in `out`: a tensor, or an ndarray if no history would be lost."""
    (target,) = out if len(out) == 1 else (None,)
    if isinstance(target, Traced):
        old = in_place.before_write(target)
        inputs = tuple([old if x is target else x for x in inputs])
        result = _call(f"np.{ufunc.__name__}", function, inputs, kwargs)
        in_place.save_overwritten(target, old, result)
        return mutation.assign(target, result, f"np.{ufunc.__name__}(out=)")
    if target is None or any(is_tracked(x) for x in inputs):
        raise unsupported(
            f"np.{ufunc.__name__}",
            "out= is an ndarray, which cannot store a tracked result; "
            "omit it, or pass detach().numpy() of the tensor",
        )
    arrays = [x.array() if isinstance(x, Traced) else x for x in inputs]  # type: ignore[attr-defined]
    return getattr(ufunc, method)(*arrays, out=target, **kwargs)


def is_tracked(x: Any) -> bool:
    return isinstance(x, Traced) and (x.value is None or mutation.flags_of(x) != 0)


def apply_function(function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """`__array_function__`: call the counterpart of a NumPy function."""
    from lucid.numpy.dispatch import FUNCTIONS

    if not all(issubclass(t, (Traced, np.ndarray, np.generic)) for t in types):
        return NotImplemented
    counterpart = FUNCTIONS.get(function)
    name = _name(function)
    if counterpart is None:
        raise no_counterpart(name)
    if kwargs.get("out", counterpart) is None:
        kwargs = {key: value for key, value in kwargs.items() if key != "out"}
    return _call(name, counterpart, args, kwargs)


def _call(name: str, function: Any, args: Any, kwargs: Any) -> Any:
    """Return `function(*args, **kwargs)`; errors about its arguments start with `name`."""
    try:
        return function(*args, **kwargs)
    except LucidError:
        raise
    except TypeError as error:
        text = str(error)
        if "keyword argument" in text or "positional argument" in text:
            facts = text.partition(") ")[2] or text.partition("() ")[2] or text
            raise unsupported(name, f"for tensors it {facts}") from None
        raise


def _name(function: Any) -> str:
    module = getattr(function, "__module__", "numpy").replace("numpy", "np", 1)
    return f"{module}.{getattr(function, '__name__', function)}"


def unsupported(name: str, why: str) -> DTypeError:
    return DTypeError(f"{name}: {why}{at_line()}")


def no_counterpart(name: str) -> DTypeError:
    return unsupported(
        name,
        "not supported for tensors, and a conversion would lose the gradient; pass "
        "np.asarray(t) or t.detach().numpy() to use a constant",
    )


# Conversion to and from arrays


def to_array(x: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """`__array__`: return the value, read-only while a graph may still need it, or a copy."""
    value = x.numpy()
    if dtype is None or np.dtype(dtype) == value.dtype:
        return value.copy() if copy else value
    if copy is False:
        raise ValueError(
            f"numpy: an array of dtype {np.dtype(dtype)} from a tensor of dtype {value.dtype} "
            f"needs a copy{at_line()}"
        )
    return value.astype(dtype)


def from_numpy(ndarray: np.ndarray) -> Any:
    """Return a tensor that shares the memory of an ndarray.

    >>> import lucid, numpy as np
    >>> a = np.zeros(2, "float32")
    >>> t = lucid.from_numpy(a)
    >>> a[0] = 7
    >>> t
    Tensor([7., 0.])
    """
    if not isinstance(ndarray, np.ndarray):
        raise unsupported(
            "from_numpy", f"{type(ndarray).__name__} is not an ndarray; use as_tensor"
        )
    if ndarray.dtype not in SHORT_NAMES or not ndarray.dtype.isnative:
        raise unsupported(
            "from_numpy", f"an array of dtype {ndarray.dtype} cannot be shared; use as_tensor"
        )
    return wrap(ndarray.view(np.ndarray) if type(ndarray) is not np.ndarray else ndarray)


def to_dlpack(x: Any, **options: Any) -> Any:
    """`__dlpack__`: share the memory of an untracked tensor with another library."""
    value = x.array("__dlpack__")
    if mutation.flags_of(x):
        raise GraphError(
            "__dlpack__: a tensor that requires a gradient cannot be shared, because writes to it "
            f"would not be recorded; use detach(){at_line()}"
        )
    options = {key: value for key, value in options.items() if value is not None}
    if not value.flags.writeable and "copy" not in options and "max_version" not in options:
        value = value.copy()
    try:
        return value.__dlpack__(**options)
    except (BufferError, RuntimeError) as error:
        raise GraphError(f"__dlpack__: {error}{at_line()}") from None


def from_dlpack(ext_tensor: Any) -> Any:
    """Return a tensor that shares the memory of another library's array through DLPack.

    >>> import lucid, numpy as np
    >>> lucid.from_dlpack(np.arange(3.0)).dtype
    dtype('float64')
    """
    if isinstance(ext_tensor, Traced):
        return ext_tensor.detach()  # type: ignore[attr-defined]
    if not hasattr(ext_tensor, "__dlpack__"):
        facts = f"{type(ext_tensor).__name__} has no __dlpack__; use as_tensor"
        raise unsupported("from_dlpack", facts)
    array = np.from_dlpack(ext_tensor)
    if array.dtype not in SHORT_NAMES:
        raise unsupported("from_dlpack", f"an array of dtype {array.dtype} cannot be a tensor")
    return wrap(array)
