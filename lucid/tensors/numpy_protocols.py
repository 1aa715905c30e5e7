"""NumPy's protocols: ufuncs and NumPy functions of tensors are recorded like Lucid's own.

`lucid.numpy` finds the counterpart of a ufunc or of another NumPy function. One without a
counterpart raises an error, because a silent conversion would lose the gradient.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, GraphError, LucidError
from lucid.ir.types import SHORT_NAMES
from lucid.ops.core.arguments import check_device
from lucid.ops.core.promote import holds_tensors
from lucid.public.declare import public
from lucid.support.locks import import_module
from lucid.tape import writes
from lucid.tape.conversion import check_array_conversion, needs_grad
from lucid.tape.node import Traced
from lucid.tape.views import share_array
from lucid.tensors import inplace as in_place
from lucid.tensors import mutation


def apply_ufunc(x: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`__array_ufunc__`: call the counterpart of a ufunc or of one of its methods."""
    if any([y.__class__ is not x.__class__ and holds_tensors(y) for y in inputs]):
        return NotImplemented
    return call_ufunc(ufunc, method, *inputs, **kwargs)


def call_ufunc(ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Call the counterpart of a ufunc, or of one of its methods, with the arguments of NumPy's."""
    from lucid.numpy.protocols.ufuncs import ufunc_method

    name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    out = kwargs.pop("out", None)
    if len(inputs) > ufunc.nin and method == "__call__" and out is None:
        inputs, out = inputs[: ufunc.nin], inputs[ufunc.nin :]
    targets = out if isinstance(out, tuple) else (out,)
    where = kwargs.pop("where", True) if method == "__call__" else True
    if method == "__call__" and len(inputs) > 1:
        inputs = numpy_promotion(inputs)
    function = ufunc_method(ufunc, method)
    if function is None:
        raise no_counterpart(name)
    if where is True:
        function = functools.partial(_call, name, function)
        return store(name, function, inputs, kwargs, targets)
    if len(targets) != 1 or targets[0] is None:
        raise unsupported(name, "where= without out= would leave elements undefined; pass out=")

    def chosen(*xs: Any, **options: Any) -> Any:
        from lucid.ops.elementwise.conditional import where as choose

        *xs, old = xs  # type: ignore[assignment]
        return choose(where, _call(name, function, xs, options), old)

    with_old = (*inputs, targets[0])
    return store(name, lambda args, options: chosen(*args, **options), with_old, kwargs, targets)


def numpy_promotion(xs: Any) -> Any:
    """Return operands as NumPy promotes them: tensors without axes are not weaker than others.

    In Lucid's own functions and operators they are, as in PyTorch.
    """
    found = [(x.dtype, len(x.shape)) for x in xs if isinstance(x, (Traced, np.ndarray))]
    if len({dtype for dtype, _ in found}) < 2 or all(ndim for _, ndim in found):
        return xs
    from lucid.ops.core.promote import as_tensor, cast

    dtype = np.result_type(*[dtype for dtype, _ in found])
    if dtype.kind in "fc" and any(given.kind in "biu" for given, _ in found):
        return xs  # integers take the dtype of floats, as everywhere in Lucid
    arrays = (Traced, np.ndarray)
    return tuple([cast(as_tensor(x), dtype) if isinstance(x, arrays) else x for x in xs])


def store(name: str, function: Any, inputs: Any, kwargs: Any, targets: tuple[Any, ...]) -> Any:
    """Return `function(inputs, kwargs)`, stored in the targets where there are any.

    A target is a tensor, or an ndarray if no history would be lost.
    """
    if all(target is None for target in targets):
        return function(inputs, kwargs)
    tensors = [target for target in targets if isinstance(target, Traced)]
    before = [in_place.before_write(target) for target in tensors]
    old = {id(target): value for target, value in zip(tensors, before)}
    inputs = tuple([old.get(id(x), x) for x in inputs])
    results = function(inputs, kwargs)
    found = results if isinstance(results, tuple) else (results,)
    stored = [
        y if target is None else _store(name, target, old.get(id(target)), y)
        for y, target in zip(found, targets)
    ]
    return tuple(stored) if isinstance(results, tuple) else stored[0]


def _store(name: str, target: Any, old: Any, result: Any) -> Any:
    if isinstance(target, Traced):
        in_place.save_overwritten(target, old, result)
        return mutation.assign(target, result, f"{name}(out=)")
    if is_tracked(result):
        raise unsupported(
            name,
            "out= is an ndarray, which cannot store a tracked result; "
            "omit it, or pass detach().numpy() of the tensor",
        )
    np.copyto(target, result.array() if isinstance(result, Traced) else result, "same_kind")  # type: ignore[attr-defined]
    return target


def is_tracked(x: Any) -> bool:
    return isinstance(x, Traced) and (x.raw is None or writes.flags_of(x) != 0)


def apply_function(function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """`__array_function__`: call the counterpart of a NumPy function."""
    from lucid.numpy.protocols.dispatch import find_counterpart

    if not all(issubclass(t, (Traced, np.ndarray, np.generic)) for t in types):
        return NotImplemented
    if function in WRITERS or (function is np.broadcast_arrays and any(x is None for x in args)):
        return call_on_arrays(function, args, kwargs)
    counterpart = find_counterpart(function)
    if counterpart is None:
        raise no_counterpart(_name(function))
    return call_counterpart(function, counterpart, args, kwargs)


# They write to files; nothing is computed from what they return.
WRITERS = {np.save, np.savez, np.savez_compressed, np.savetxt}


def call_on_arrays(function: Any, args: Any, kwargs: Any) -> Any:
    """Call a function of NumPy on the arrays of tensors that require no gradient."""
    if any(needs_grad(x) for x in (*args, *kwargs.values())):
        facts = "a tensor requires a gradient, and what is written is a constant"
        raise GraphError(f"{_name(function)}: {facts}; pass its detach()")
    given = [to_array(x) if isinstance(x, Traced) else x for x in args]
    named = {k: to_array(x) if isinstance(x, Traced) else x for k, x in kwargs.items()}
    return function(*given, **named)


def call_counterpart(function: Any, counterpart: Any, args: Any, kwargs: Any) -> Any:
    """Call the counterpart of a NumPy function, which knows nothing of device=, like= and out=."""
    name = _name(function)
    if kwargs.keys() & {"device", "like", "out"}:
        kwargs = dict(kwargs)
        kwargs.pop("like", None)
        device, out = kwargs.pop("device", None), kwargs.pop("out", None)
        if device is not None:
            check_device(name, device)
        if out is not None:
            call = functools.partial(_call, name, counterpart)
            return store(name, call, args, kwargs, out if isinstance(out, tuple) else (out,))
    if kwargs:
        kwargs = renamed(function, counterpart, kwargs)
    return _call(name, counterpart, args, kwargs)


def renamed(function: Any, counterpart: Any, kwargs: Any) -> Any:
    """Return keyword arguments with the names of the counterpart's parameters at their places.

    An adapter of lucid.numpy has NumPy's names; a function of Lucid has its own (input, dim).
    """
    try:
        theirs = list(inspect.signature(function).parameters)
        ours = list(inspect.signature(counterpart).parameters)
    except ValueError:
        return kwargs
    if theirs[0] in ours or "args" in ours:
        return kwargs
    names = dict(zip(theirs, ours))
    return {names.get(key, key): value for key, value in kwargs.items()}


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


def array_namespace(api_version: str | None = None) -> Any:
    """`__array_namespace__`: the module with the functions of the array API standard."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        facts = f"api_version {api_version!r} is not supported; 2024.12 is the latest that is"
        raise ArgumentError(f"__array_namespace__: {facts}")
    return import_module("lucid.numpy")


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
            "needs a copy"
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
    if isinstance(ndarray, Traced):
        return ndarray  # a function of NumPy may have returned a tensor
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
