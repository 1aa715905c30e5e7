"""Linear layers, embeddings and reshaping layers."""

from __future__ import annotations

import math
from typing import Any

import lucid.nn.functional as F
from lucid.autograd import no_grad
from lucid.errors import ArgumentError
from lucid.nn import init
from lucid.nn.layers.function_layer import FunctionLayer
from lucid.nn.module import Module
from lucid.nn.parameter import Parameter
from lucid.nn.registered import registered
from lucid.ops.core.arguments import accepts_device
from lucid.ops.shape.creation import empty
from lucid.ops.shape.shaping import flatten, unflatten
from lucid.public.declare import public


@public("nn")
class Identity(Module):
    """Return the input unchanged; all arguments are ignored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


@public("nn")
class Linear(Module):
    """x Wᵀ + b.

    >>> import lucid
    >>> lucid.nn.Linear(3, 2)
    Linear(in_features=3, out_features=2, bias=True)
    """

    weight: Parameter = registered()
    bias: Any = registered()

    @accepts_device
    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(empty(out_features, in_features, dtype=dtype))
        added = Parameter(empty(out_features, dtype=dtype)) if bias else None
        self.register_parameter("bias", added)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize all parameters."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(max(self.in_features, 1))
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


@public("nn")
class Bilinear(Module):
    """x₁ᵀ A x₂ + b."""

    @accepts_device
    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ArgumentError(f"Bilinear: in1_features must be positive, not {in1_features}")
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in1_features, in2_features, dtype=dtype))
        added = Parameter(empty(out_features, dtype=dtype)) if bias else None
        self.register_parameter("bias", added)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize all parameters."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}"
        return f"{sizes}, out_features={self.out_features}, bias={self.bias is not None}"


class EmbeddingBase(Module):
    """The table of embeddings, with an optional padding row."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: Any, weight: Any, dtype: Any
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ArgumentError(
                f"{type(self).__name__}: padding_idx {padding_idx} is out of range for "
                f"{num_embeddings} rows"
            )
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        if weight is None:
            self.weight = Parameter(empty(num_embeddings, embedding_dim, dtype=dtype))
            self.reset_parameters()
        elif tuple(weight.shape) != (num_embeddings, embedding_dim):
            raise ArgumentError(
                f"{type(self).__name__}: a weight of shape {weight.shape} for {num_embeddings} "
                f"rows of {embedding_dim}"
            )
        else:
            self.weight = Parameter(weight)

    def reset_parameters(self) -> None:
        """Reinitialize the table; the padding row is 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0.0

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **options: Any) -> Any:
        """Return a layer with a given table, which is not trained if `freeze`."""
        made: Any = cls
        rows, columns = embeddings.shape
        layer = made(rows, columns, _weight=embeddings, **options)
        layer.weight.requires_grad_(not freeze)
        return layer

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


@public("nn")
class Embedding(EmbeddingBase):
    """Look up the rows of a table."""

    @accepts_device
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, dtype)
        self.weight.requires_grad_(not _freeze)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse

    def forward(self, input: Any) -> Any:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip


@public("nn")
class EmbeddingBag(EmbeddingBase):
    """Sums, means or maxima over bags of rows of a table."""

    @accepts_device
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, dtype)
        self.max_norm, self.norm_type, self.mode = max_norm, norm_type, mode
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip


@public("nn")
class Flatten(FunctionLayer, function=flatten, start_dim=1, end_dim=-1):
    """Flatten the axes from `start_dim` to `end_dim` into one."""


@public("nn")
class Unflatten(Module):
    """Split one axis into several."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Any) -> Any:
        return unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


@public("nn")
class CosineSimilarity(FunctionLayer, function=F.cosine_similarity, dim=1, eps=1e-8):
    """The cosine of the angle between vectors along an axis."""


@public("nn")
class PairwiseDistance(FunctionLayer, function=F.pairwise_distance, p=2.0, eps=1e-6, keepdim=False):
    """The distance between pairs of vectors."""
