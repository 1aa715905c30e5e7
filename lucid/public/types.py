"""Types of public signatures, for annotations and stubs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy.typing as npt

if TYPE_CHECKING:
    from lucid.tensors.tensor import Tensor

TensorLike: TypeAlias = Union["Tensor", npt.ArrayLike, Sequence["TensorLike"]]
DTypeLike: TypeAlias = npt.DTypeLike | type[Any]
Axis: TypeAlias = int | Sequence[int] | None
