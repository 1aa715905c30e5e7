"""Type promotion: what users pass becomes tensors and Literals of one dtype.

The rules are PyTorch's: kinds are ordered bool < integer < floating < complex; a tensor with axes
outranks a 0-d tensor, which outranks a Python scalar, unless the lower-ranked is of a higher kind.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.graph import Literal
from lucid.ir.types import DTYPES, SHORT_NAMES, dtype_of
from lucid.ops.core.arguments import check_device
from lucid.ops.core.errstate import quiet
from lucid.public.declare import public
from lucid.support.caches import memoize
from lucid.tape.bind import bind
from lucid.tape.node import Node, Traced, wrap
from lucid.tape.views import share_array

_BOOL, _INT = np.dtype("bool"), np.dtype("int64")
_KIND = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
_WIDE = {"f": np.dtype("float64"), "c": np.dtype("complex128")}
_SCALARS = (bool, int, float, complex)
_NUMBER_OPS = ("Add", "Sub", "Mul", "Div", "Neg", "Pow", "Abs", "FloorDivide", "Remainder", "Cast")
_NUMBER_TESTS = ("Eq", "Ne", "Lt", "Le", "Gt", "Ge")
_NUMBER_LIMIT = 64  # a longer computation of a Python number is that of a tensor


class Default:
    """The default dtype, on which cached programs depend."""

    floating = np.dtype("float32")


@public()
def get_default_dtype() -> np.dtype:
    """Return the dtype that Python floats become: float32 unless set otherwise."""
    return Default.floating


@public()
def set_default_dtype(d: Any) -> None:
    """Set the dtype that Python floats become."""
    dtype = dtype_of(d)
    if dtype.kind != "f":
        raise DTypeError(f"set_default_dtype: {dtype} is not a floating dtype")
    Default.floating = dtype


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """Return the complex dtype whose parts have a floating dtype (at least float32)."""
    return np.dtype("complex128" if dtype.itemsize == 8 else "complex64")


def default_dtype(scalar: Any) -> np.dtype:
    """Return the dtype of a Python scalar on its own."""
    if isinstance(scalar, bool):
        return _BOOL
    if isinstance(scalar, int):
        return _INT
    return complex_dtype(Default.floating) if isinstance(scalar, complex) else Default.floating


def default_of_kind(dtype: np.dtype) -> np.dtype:
    """Return the dtype of a Python number of the kind that a dtype has."""
    if dtype.kind == "f":
        return Default.floating
    return complex_dtype(Default.floating) if dtype.kind == "c" else dtype


def is_number(node: Node, ops: tuple[str, ...] = _NUMBER_OPS) -> bool:
    """True if a Node stands for a Python number, or for what operators make of a few of them."""
    seen, stack = {id(node)}, [node]
    while stack:
        top = stack.pop()
        if top.op is None:
            if not top.is_number:
                return False
            continue
        nodes = [x for x in top.inputs if not isinstance(x, Literal)]
        if top.op.__class__.__name__ not in ops or len(seen) > _NUMBER_LIMIT:
            return False
        for x in nodes:
            if not isinstance(x, Node):
                return False
            if id(x) not in seen:
                seen.add(id(x))
                stack.append(x)
    return True


def parse_dtype(spec: Any) -> np.dtype:
    """Return the dtype a user specified; like `dtype_of`, but accepts unhashable arguments."""
    try:
        return dtype_of(spec)
    except TypeError as error:
        if isinstance(error, DTypeError):
            raise
        raise DTypeError(f"{spec!r} is not a dtype") from None


def as_ndarray(data: Any, dtype: Any = None) -> np.ndarray:
    """Convert nested lists, scalars, arrays or tensors to a native ndarray of a supported dtype.

    A tensor that requires a gradient raises an error, because the ndarray would be a constant.
    """
    if isinstance(data, Traced):
        data = np.asarray(data)
    wanted = None if dtype is None else parse_dtype(dtype)
    if isinstance(data, (np.ndarray, np.generic)):
        if data.__class__ is not np.ndarray:
            check_unmasked(data)
        array = np.asarray(data)
    else:
        array = _from_python(data, wanted)
    if wanted is not None and array.dtype.kind in "biufc":
        return _astype(array, wanted)
    if array.dtype not in SHORT_NAMES:
        raise DTypeError(
            f"tensor: an array of dtype {array.dtype} cannot be a tensor; convert it to one of "
            f"{', '.join(map(str, SHORT_NAMES))}"
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array


def check_unmasked(data: Any) -> None:
    """Raise an error for a masked array with masked elements, which would come back as numbers."""
    mask = getattr(data, "mask", None) if hasattr(data, "filled") else None
    if mask is not None and np.any(mask):
        raise DTypeError(
            f"tensor: a masked array with {int(np.sum(mask))} masked elements cannot be a tensor, "
            "which has no mask; use a.filled(value), or lucid.where with ~a.mask"
        )


def holds_tensors(x: Any) -> bool:
    """True for containers of arrays that may be tensors: xarray's, pint's and others like them.

    They implement NumPy's protocol for ufuncs, so an operation with a tensor is theirs. Objects of
    pandas implement it too, but hold no tensors: they are read as arrays.
    """
    cls = x.__class__
    if getattr(cls, "__array_ufunc__", None) is None or isinstance(x, (Traced, np.ndarray)):
        return False
    return not (isinstance(x, np.generic) or cls.__module__.startswith("pandas"))


@quiet
def _astype(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert to a dtype; values beyond its range become inf."""
    return array.astype(dtype, copy=False)


def _from_python(data: Any, wanted: np.dtype | None) -> np.ndarray:
    if hasattr(data, "__array__"):
        return np.asarray(data)
    try:
        array = np.array(data)
    except OverflowError:
        raise DTypeError("tensor: an integer does not fit into 64 bits") from None
    except ValueError:
        raise ShapeError("tensor: rows of different lengths do not make an array") from None
    if array.dtype == object and _element_type(data) == "int":
        raise DTypeError("tensor: an integer does not fit into 64 bits")
    if array.dtype == object or array.dtype.kind not in "biufc":
        raise DTypeError(f"tensor: {type(data).__name__} of {_element_type(data)} is not numeric")
    if wanted is None and array.dtype.kind in "fc" and not _contains_arrays(data):
        wide = Default.floating if array.dtype.kind == "f" else complex_dtype(Default.floating)
        array = _astype(array, wide)
    if wanted is None and array.size == 0 and not _contains_arrays(data):
        array = array.astype(Default.floating)
    return array


def _element_type(data: Any) -> str:
    while isinstance(data, (list, tuple)) and data:
        data = next((x for x in data if not isinstance(x, (int, float, complex))), data[0])
    return type(data).__name__


def _contains_arrays(data: Any) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (np.ndarray, np.generic, Traced))


@public("extend")
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """Convert `data` to a tensor: tensors are returned as they are, arrays share memory.

    >>> import lucid
    >>> lucid.as_tensor([1.0, 2.0])
    Tensor([1., 2.])
    """
    if device is not None:
        check_device("as_tensor", device)
    if isinstance(data, Traced):
        return data if dtype is None else cast(data, dtype)
    if contains_tensors(data):
        return _stack(data, result_type(*_leaves(data)) if dtype is None else parse_dtype(dtype))
    return share_array(as_ndarray(data, dtype))


def contains_tensors(data: Any) -> bool:
    """True for nested lists and tuples with a tensor in them."""
    if not isinstance(data, (list, tuple)):
        return False
    return any([isinstance(x, Traced) or contains_tensors(x) for x in data])


def _leaves(data: Any) -> list[Any]:
    """Return what nested lists and tuples contain."""
    return (
        [x for part in data for x in _leaves(part)] if isinstance(data, (list, tuple)) else [data]
    )


def _stack(rows: Any, dtype: np.dtype) -> Any:
    """Stack nested lists with tensors, recorded; Python numbers are rounded once, to `dtype`."""
    from lucid.ops.shape.joining import stack

    parts = [_stack(x, dtype) if contains_tensors(x) else as_tensor(x, dtype) for x in rows]
    shapes = sorted({part.shape for part in parts})
    if len(shapes) > 1:
        facts = " and ".join(map(str, shapes))
        raise ShapeError(f"tensor: rows of shapes {facts} do not make an array")
    return stack(parts)


def cast(x: Any, dtype: Any) -> Any:
    """Cast `x` to a dtype, recording the op; return `x` itself if it already has that dtype."""
    before = x.dtype
    if dtype is before:
        return x
    dtype = parse_dtype(dtype)
    if before == dtype:
        return x
    if dtype in _WIDE.values() and x.node is not None and before.kind in "fc":
        if not x.shape and before not in _WIDE.values() and is_number(x.node):
            x = exact_number(x.node)
    elif before.kind in "iu" and dtype.kind in "iu" and x.node is not None and is_number(x.node):
        check_number_fits(x, dtype)
    return x if x.dtype == dtype else bind(cast_to(dtype), x)


def check_number_fits(x: Any, dtype: np.dtype) -> None:
    """Raise an error if a Python integer is out of the range of a dtype, as for a constant."""
    old, new = np.iinfo(x.dtype), np.iinfo(dtype)
    low, high = max(int(old.min), int(new.min)), min(int(old.max), int(new.max))
    if x < low or x > high:
        raise DTypeError(f"the scalar {int(x)} does not fit into {dtype}")


def exact_number(node: Node) -> Any:
    """Return what a Node for which `is_number` holds computes of Python numbers, in 64 bits."""
    if node.op is None:
        x = wrap(node.saved, node) if node.is_number is True else node.is_number
        return _widened(x)
    xs = [
        Literal(x.value, _WIDE.get(x.dtype.kind, x.dtype)) if isinstance(x, Literal) else
        exact_number(x)
        for x in node.inputs
    ]  # fmt: skip
    if node.op.__class__.__name__ == "Cast":
        dtype = DTYPES[node.op.dtype]  # type: ignore[attr-defined]
        return cast(xs[0], _WIDE.get(dtype.kind, dtype))
    return bind(node.op, *xs)


def as_read(x: Any) -> Any:
    """Return a tensor as Python reads it: what is computed of Python numbers alone, in 64 bits."""
    if x.node is None or x.shape or not is_number(x.node, (*_NUMBER_OPS, *_NUMBER_TESTS)):
        return x
    return exact_number(x.node)


def _widened(x: Any) -> Any:
    return cast(x, _WIDE[x.dtype.kind]) if x.dtype.kind in _WIDE else x


@memoize(maxsize=128)
def cast_to(dtype: np.dtype) -> Any:
    from lucid.ops.elementwise.arithmetic import Cast

    return Cast(SHORT_NAMES[dtype])


@memoize(maxsize=4096)
def _promote_dtypes(a: np.dtype, b: np.dtype) -> np.dtype:
    if a == b:
        return a
    ka, kb = _KIND[a.kind], _KIND[b.kind]
    if ka < 2 <= kb:
        return b
    if kb < 2 <= ka:
        return a
    if {ka, kb} == {2, 3}:
        real, cplx = (a, b) if ka == 2 else (b, a)
        return np.dtype("complex128") if real.itemsize == 8 else cplx
    return np.promote_types(a, b)


@public()
def result_type(*xs: Any) -> np.dtype:
    """Return the dtype to which these tensors, arrays, dtypes and scalars are promoted.

    >>> import lucid
    >>> lucid.result_type(lucid.ones(3), 1.5), lucid.result_type(lucid.arange(3), 1.5)
    (dtype('float32'), dtype('float32'))
    """
    ranked: list[np.dtype | None] = [None, None, None]
    for x in xs:
        if isinstance(x, _SCALARS) and not isinstance(x, np.generic):
            rank, dtype = 2, default_dtype(x)
        elif isinstance(x, np.dtype):
            rank, dtype = 0, x
        else:
            x = x if isinstance(x, (Traced, Literal)) else as_tensor(x)
            rank, dtype = (0 if x.shape else 1), x.dtype
            if rank and isinstance(x, Traced) and x.node is not None and is_number(x.node):
                rank, dtype = 2, default_of_kind(dtype)
        previous = ranked[rank]
        ranked[rank] = dtype if previous is None else _promote_dtypes(previous, dtype)
    strong, weak = ranked[:2]
    if strong is not None and weak is not None and _is_numpy_only(strong, weak):
        ranked[0] = _promote_dtypes(strong, weak)
    result: np.dtype | None = None
    for dtype_or_none in ranked:
        if dtype_or_none is None:
            continue
        if result is None:
            result = dtype_or_none
        elif _KIND[dtype_or_none.kind] > _KIND[result.kind]:
            result = _raise_kind(result, dtype_or_none)
    assert result is not None
    return result


def _is_numpy_only(a: np.dtype, b: np.dtype) -> bool:
    """True for integers that PyTorch has no arithmetic for: they are promoted as in NumPy."""
    return (
        a.kind in "iu"
        and b.kind in "iu"
        and "u" in (a.kind * (a.itemsize > 1), b.kind * (b.itemsize > 1))
    )


def _raise_kind(dtype: np.dtype, higher: np.dtype) -> np.dtype:
    """Promote `dtype` for a lower-ranked operand of a higher kind, keeping the width of floats."""
    if higher.kind == "c" and dtype.kind == "f":
        return complex_dtype(dtype)
    return higher


def as_operand(x: Any) -> Any:
    """Return Python scalars as they are, everything else as a tensor.

    NumPy's scalars are arrays without axes, also np.float64, which is a subclass of float.
    """
    if isinstance(x, Traced):
        return x
    if isinstance(x, _SCALARS) and not isinstance(x, np.generic):
        return x
    return as_tensor(x)


@public("extend")
def promote(*xs: Any, floating: bool = False) -> list[Any]:
    """Promote operands to tensors and Literals of one dtype.

    `floating` promotes integers to the default floating dtype.
    """
    xs = tuple([as_operand(x) for x in xs])
    dtype = result_type(*xs)
    if floating and dtype.kind not in "fc":
        dtype = Default.floating
    if not any(isinstance(x, Traced) for x in xs):
        xs = (as_tensor(xs[0]), *xs[1:])
    return [cast(x, dtype) if isinstance(x, Traced) else literal(x, dtype) for x in xs]


def promote_tensors(*xs: Any, floating: bool = False) -> list[Any]:
    """`promote` to tensors only; scalars are rounded once, directly to the common dtype."""
    parts = promote(*xs, floating=floating)
    return [as_tensor(x.value, x.dtype) if isinstance(x, Literal) else x for x in parts]


def cast_like(x: Any, name: str, values: Any) -> Any:
    """Cast the values to be written into `x` to its dtype; raise an error if information is lost.

    Complex numbers do not fit into a real tensor, nor floats into an integer one, unless a single
    Python number is whole. An assignment (`x[0] = 1.5`) truncates, as in NumPy and PyTorch.
    Python numbers are rounded once, so they reach a float64 tensor without passing through float32.
    """
    kind = values_kind(values)
    if x.dtype.kind != "c" and kind == "c":
        facts = f"complex values for a tensor of dtype {x.dtype}"
        raise DTypeError(f"{name}: {facts}; take .real first")
    if kind == "f" and x.dtype.kind in "biu" and name != "setitem":
        if not (isinstance(values, float) and values.is_integer()):
            facts = f"floating values for a tensor of dtype {x.dtype}"
            raise DTypeError(f"{name}: {facts}; cast one of them first")
    return as_tensor(values, x.dtype)


def values_kind(values: Any) -> str:
    """Return the kind of the dtype that values have: "b", "i", "u", "f" or "c"."""
    if isinstance(values, (int, float)):
        return "f" if isinstance(values, float) else "i"
    return as_tensor(values).dtype.kind


def literal(value: Any, dtype: np.dtype) -> Literal:
    """Return a Python scalar as a Literal of a dtype, checking that it fits."""
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        if not bounds.min <= value <= bounds.max:
            raise DTypeError(f"the scalar {value} does not fit into {dtype}")
        value = int(value)
    elif dtype.kind == "f" and not isinstance(value, complex):
        value = _round_to(value, dtype)
    elif dtype.kind == "c":
        value = complex(value)
    elif dtype.kind == "b":
        value = bool(value)
    return Literal(value, dtype)


def _round_to(value: Any, dtype: np.dtype) -> float:
    """Return a real number as a float; inf if it exceeds the range of the dtype, as in PyTorch."""
    try:
        value = float(value)
    except OverflowError:
        size = f"an integer of {value.bit_length()} bits"
        raise DTypeError(f"{size} does not fit into {dtype}") from None
    if -60000.0 < value < 60000.0 or dtype.itemsize == 8:
        return value
    with np.errstate(over="ignore"):
        rounded = dtype.type(value).item()
    return rounded if math.isinf(rounded) else value


@public("extend")
def to_floating(x: Any) -> Any:
    """Convert `x` to a tensor of a floating or complex dtype."""
    if isinstance(x, Traced) and x.raw is not None and x.raw.dtype.kind in "fc":
        return x
    x = as_tensor(x)
    return x if x.dtype.kind in "fc" else cast(x, Default.floating)
