"""What a tensor or a dtype is: questions whose answer is a Python value, not a tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.ir.source import at_line
from lucid.ops.core.arguments import explained
from lucid.ops.core.promote import as_tensor, result_type, wanted_dtype
from lucid.tape.node import Traced

KINDS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def is_tensor(obj: Any) -> bool:
    """True for tensors."""
    return isinstance(obj, Traced)


def numel(input: Any) -> int:
    """The number of elements."""
    return math.prod(as_tensor(input).shape)


def is_floating_point(input: Any) -> bool:
    """True for floating dtypes."""
    return as_tensor(input).dtype.kind == "f"


def is_complex(input: Any) -> bool:
    """True for complex dtypes."""
    return as_tensor(input).dtype.kind == "c"


def is_signed(input: Any) -> bool:
    """True for dtypes that hold negative numbers."""
    return as_tensor(input).dtype.kind in "ifc"


def is_same_size(input: Any, other: Any) -> bool:
    """True if two tensors have the same shape."""
    return as_tensor(input).shape == as_tensor(other).shape


def is_nonzero(input: Any) -> bool:
    """Whether the one element of a tensor is not zero."""
    x = as_tensor(input)
    if math.prod(x.shape) != 1:
        raise ShapeError(f"is_nonzero: a tensor of shape {x.shape} is not one number{at_line()}")
    return bool(x.reshape(()))


def is_conj(input: Any) -> bool:
    """False: a conjugate is computed, not a flag."""
    as_tensor(input)
    return False


def is_neg(input: Any) -> bool:
    """False: a negative is computed, not a flag."""
    as_tensor(input)
    return False


def is_inference(input: Any) -> bool:
    """False: tensors made in inference mode are ordinary ones without a graph."""
    as_tensor(input)
    return False


def resolve_conj(input: Any) -> Any:
    """`input` itself: its conjugate is computed, not a flag."""
    return as_tensor(input)


def resolve_neg(input: Any) -> Any:
    """`input` itself: its negative is computed, not a flag."""
    return as_tensor(input)


def detach(input: Any) -> Any:
    """`input` without its history: the same memory, through which no gradient flows."""
    return as_tensor(input).detach()


@explained
def promote_types(type1: Any, type2: Any) -> np.dtype:
    """The dtype that arithmetic on tensors of two dtypes gives.

    >>> import lucid
    >>> lucid.promote_types("int32", "float16")
    dtype('float16')
    """
    return result_type(wanted_dtype(type1), wanted_dtype(type2))


@explained
def can_cast(from_: Any, to: Any) -> bool:
    """Whether PyTorch's rules let values of one dtype be stored in a tensor of another.

    >>> import lucid
    >>> lucid.can_cast("float64", "float32"), lucid.can_cast("float32", "int64")
    (True, False)
    """
    source, target = wanted_dtype(from_), wanted_dtype(to)
    return KINDS[source.kind] <= KINDS[target.kind]
