"""Predicates of tensors and dtypes whose results are Python values, not tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor, parse_dtype, result_type
from lucid.public.declare import public
from lucid.tape.node import Traced

KINDS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


@public()
def is_tensor(obj: Any) -> bool:
    """True if `obj` is a tensor."""
    return isinstance(obj, Traced)


@public("Tensor", name="nelement")
@public("lucid", "Tensor")
def numel(input: Any) -> int:
    """Return the number of elements."""
    return math.prod(as_tensor(input).shape)


@public("lucid", "Tensor")
def is_floating_point(input: Any) -> bool:
    """True if the dtype of `input` is floating."""
    return as_tensor(input).dtype.kind == "f"


@public("lucid", "Tensor")
def is_complex(input: Any) -> bool:
    """True if the dtype of `input` is complex."""
    return as_tensor(input).dtype.kind == "c"


@public("lucid", "Tensor")
def is_signed(input: Any) -> bool:
    """True if the dtype of `input` can hold negative numbers."""
    return as_tensor(input).dtype.kind in "ifc"


@public("lucid", "Tensor")
def is_same_size(input: Any, other: Any) -> bool:
    """True if two tensors have the same shape."""
    return as_tensor(input).shape == as_tensor(other).shape


@public("lucid", "Tensor")
def is_nonzero(input: Any) -> bool:
    """True if the only element of a tensor is not zero."""
    x = as_tensor(input)
    if math.prod(x.shape) != 1:
        raise ShapeError(f"is_nonzero: a tensor of shape {x.shape} is not one number")
    return bool(x.reshape(()))


@public("lucid", "Tensor")
def is_conj(input: Any) -> bool:
    """False: conjugates are computed, not stored as a flag."""
    as_tensor(input)
    return False


@public("lucid", "Tensor")
def is_neg(input: Any) -> bool:
    """False: negatives are computed, not stored as a flag."""
    as_tensor(input)
    return False


@public("lucid", "Tensor")
def is_inference(input: Any) -> bool:
    """False: tensors made in inference mode are ordinary tensors without a graph."""
    as_tensor(input)
    return False


@public("lucid", "Tensor")
def resolve_conj(input: Any) -> Any:
    """Return `input` itself: conjugates are computed, not stored as a flag."""
    return as_tensor(input)


@public("lucid", "Tensor")
def resolve_neg(input: Any) -> Any:
    """Return `input` itself: negatives are computed, not stored as a flag."""
    return as_tensor(input)


@public()
def detach(input: Any) -> Any:
    """Return `input` detached from its graph; it shares memory but no gradient flows through it."""
    return as_tensor(input).detach()


@public_function()
def promote_types(type1: Any, type2: Any) -> np.dtype:
    """Return the dtype to which tensors of two dtypes are promoted.

    >>> import lucid
    >>> lucid.promote_types("int32", "float16")
    dtype('float16')
    """
    return result_type(parse_dtype(type1), parse_dtype(type2))


@public_function()
def can_cast(from_: Any, to: Any) -> bool:
    """True if PyTorch's casting rules allow storing one dtype in a tensor of another.

    >>> import lucid
    >>> lucid.can_cast("float64", "float32"), lucid.can_cast("float32", "int64")
    (True, False)
    """
    source, target = parse_dtype(from_), parse_dtype(to)
    return KINDS[source.kind] <= KINDS[target.kind]
