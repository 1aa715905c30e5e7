"""NumPy's protocols: ufuncs and NumPy functions of tensors are recorded like Lucid's own.

`lucid.numpy` finds the counterpart of a ufunc or of another NumPy function. One without a
counterpart raises an error, because a silent conversion would lose the gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import DTypeError, GraphError, LucidError
from lucid.ir.types import SHORT_NAMES
from lucid.public.declare import public
from lucid.tape import writes
from lucid.tape.conversion import check_array_conversion
from lucid.tape.node import Traced
from lucid.tape.views import share_array
from lucid.tensors import inplace as in_place
from lucid.tensors import mutation


def apply_ufunc(x: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`__array_ufunc__`: call the counterpart of a ufunc or of one of its methods."""
    out = kwargs.pop("out", None)
    if kwargs.pop("where", True) is not True:
        raise unsupported(
            f"np.{ufunc.__name__}", "where= is not supported for tensors; use lucid.where"
        )
    from lucid.numpy.ufuncs import ufunc_method

    function = ufunc_method(ufunc, method)
    if function is None:
        what = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
        raise no_counterpart(what)
    if out is not None:
        return _call_with_out(out, ufunc, method, function, inputs, kwargs)
    return _call(f"np.{ufunc.__name__}", function, inputs, kwargs)


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
    return isinstance(x, Traced) and (x.value is None or writes.flags_of(x) != 0)


def apply_function(function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """`__array_function__`: call the counterpart of a NumPy function."""
    from lucid.numpy.dispatch import find_counterpart

    if not all(issubclass(t, (Traced, np.ndarray, np.generic)) for t in types):
        return NotImplemented
    counterpart = find_counterpart(function)
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
    return DTypeError(f"{name}: {why}")


def no_counterpart(name: str) -> DTypeError:
    return unsupported(
        name,
        "not supported for tensors, and a conversion would lose the gradient; pass "
        "t.detach().numpy() to use a constant",
    )


# Conversion to and from arrays


def to_array(x: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """`__array__`: return the value, read-only while a graph may still need it, or a copy.

    A value that requires a gradient raises an error, because the ndarray would be a constant.
    """
    check_array_conversion(x)
    value = x.numpy()
    if dtype is None or np.dtype(dtype) == value.dtype:
        return value.copy() if copy else value
    if copy is False:
        raise ValueError(
            f"numpy: an array of dtype {np.dtype(dtype)} from a tensor of dtype {value.dtype} "
            f"needs a copy"
        )
    return value.astype(dtype)


@public()
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
    return share_array(ndarray.view(np.ndarray) if type(ndarray) is not np.ndarray else ndarray)


def to_dlpack(x: Any, **options: Any) -> Any:
    """`__dlpack__`: share the memory of an untracked tensor with another library."""
    if writes.flags_of(x):
        raise GraphError(
            "__dlpack__: a tensor that requires a gradient cannot be shared, because writes to it "
            "would not be recorded; use detach()"
        )
    value = x.numpy()
    options = {key: value for key, value in options.items() if value is not None}
    if not value.flags.writeable and "copy" not in options and "max_version" not in options:
        value = value.copy()
    try:
        return value.__dlpack__(**options)
    except (BufferError, RuntimeError) as error:
        raise GraphError(f"__dlpack__: {error}") from None


@public()
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
    return share_array(array)
