"""Transforms of vectors and matrices, and the registries biject_to and transform_to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lucid import linalg
from lucid.distributions import constraints
from lucid.distributions.continuous import Normal
from lucid.distributions.distribution import softplus
from lucid.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    SigmoidTransform,
    Transform,
    TransformedDistribution,
    sum_rightmost,
)
from lucid.errors import ArgumentError, LucidError
from lucid.ops.elementwise.arithmetic import abs
from lucid.ops.elementwise.conditional import clamp
from lucid.ops.elementwise.exponential import exp, log, log1p, sigmoid, sqrt
from lucid.ops.elementwise.trigonometric import tanh
from lucid.ops.nn.softmax import softmax
from lucid.ops.reduce.cumulative import cumprod, cumsum
from lucid.ops.shape.creation import eye, zeros
from lucid.ops.shape.diagonals import diag_embed, diagonal, tril
from lucid.ops.shape.joining import cat, pad, stack
from lucid.public.declare import public
from lucid.tape.node import wrap


class NotInvertible(Transform):
    """A transform that is not one-to-one, so it has no density."""

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        raise LucidError(
            f"{type(self).__name__}: it is not one-to-one, so log |dy/dx| is undefined"
        )


@public("distributions")
class AbsTransform(NotInvertible):
    """y = |x|; `inv` returns the non-negative x."""

    def __call__(self, x: Any) -> Any:
        return abs(x)

    def inv(self, y: Any) -> Any:
        return y


@public("distributions")
class SoftmaxTransform(NotInvertible):
    """Softmax over the last axis; `inv` is the logarithm."""

    event_dim = codomain_dim = 1

    def __call__(self, x: Any) -> Any:
        return softmax(x, -1)

    def inv(self, y: Any) -> Any:
        return log(y)


@public("distributions")
class CumulativeDistributionTransform(Transform):
    """y = P(X ≤ x), the cdf of a distribution."""

    def __init__(self, distribution: Any) -> None:
        self.distribution = distribution

    def __call__(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def inv(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)

    def in_codomain(self, y: Any) -> Any:
        return (y >= 0) & (y <= 1)


@public("distributions")
class StickBreakingTransform(Transform):
    """Maps n numbers to n + 1 positive numbers that sum to 1, by stick breaking."""

    event_dim = codomain_dim = 1

    def shifted(self, x: Any) -> Any:
        """Return x minus the log of the number of remaining pieces, so that 0 gives equal parts."""
        n = x.shape[-1]
        return x - wrap(np.log(np.arange(n, 0, -1)).astype(x.dtype))

    def __call__(self, x: Any) -> Any:
        z = sigmoid(self.shifted(x))
        left = cumprod(1 - z, -1)
        return pad(z, (0, 1), value=1.0) * pad(left, (1, 0), value=1.0)

    def inv(self, y: Any) -> Any:
        n = y.shape[-1] - 1
        first = y[..., :-1]
        left = clamp(1 - cumsum(first, -1), min=float(np.finfo(y.dtype).tiny))
        return log(first) - log(left) + wrap(np.log(np.arange(n, 0, -1)).astype(y.dtype))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        z = self.shifted(x)
        return (-z - softplus(-z) + log(y[..., :-1])).sum(-1)

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] + 1)


@public("distributions")
class LowerCholeskyTransform(NotInvertible):
    """Maps matrices to lower triangular ones with a positive diagonal."""

    event_dim = codomain_dim = 2

    def __call__(self, x: Any) -> Any:
        return tril(x, -1) + diag_embed(exp(diagonal(x, dim1=-2, dim2=-1)))

    def inv(self, y: Any) -> Any:
        return tril(y, -1) + diag_embed(log(diagonal(y, dim1=-2, dim2=-1)))


@public("distributions")
class PositiveDefiniteTransform(LowerCholeskyTransform):
    """Maps matrices to positive definite ones."""

    def __call__(self, x: Any) -> Any:
        lower = super().__call__(x)
        return lower @ lower.mT

    def inv(self, y: Any) -> Any:
        return super().inv(linalg.cholesky(y))


@public("distributions")
class CorrCholeskyTransform(Transform):
    """Maps n (n - 1) / 2 numbers to the Cholesky factor of an n × n correlation matrix."""

    event_dim, codomain_dim = 1, 2

    def size(self, length: int) -> int:
        n = round((1 + math.sqrt(1 + 8 * length)) / 2)
        if n * (n - 1) // 2 != length:
            facts = f"{length} numbers do not fill the triangle below a diagonal"
            raise ArgumentError(f"CorrCholeskyTransform: {facts}")
        return n

    def below(self, n: int) -> Any:
        return wrap(np.ravel_multi_index(np.tril_indices(n, -1), (n, n)))

    def __call__(self, x: Any) -> Any:
        n = self.size(x.shape[-1])
        r = clamp(tanh(x), -1 + float(np.finfo(x.dtype).eps), 1 - float(np.finfo(x.dtype).eps))
        flat = zeros(*x.shape[:-1], n * n, dtype=x.dtype).index_copy(-1, self.below(n), r)
        r = flat.reshape(*x.shape[:-1], n, n)
        left = cumprod(sqrt(1 - r * r), -1)[..., :-1]
        return (r + eye(n, dtype=x.dtype)) * pad(left, (1, 0), value=1.0)

    def inv(self, y: Any) -> Any:
        n = y.shape[-1]
        left = pad((1 - cumsum(y * y, -1))[..., :-1], (1, 0), value=1.0)
        t = self.vector(y, n) / sqrt(self.vector(left, n))
        return (log1p(t) - log1p(-t)) / 2

    def vector(self, y: Any, n: int) -> Any:
        return y.reshape(*y.shape[:-2], n * n).index_select(-1, self.below(n))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        n = y.shape[-1]
        rows, columns = np.tril_indices(n, -2)
        places = wrap(np.ravel_multi_index((rows, columns), (n, n)))
        left = (1 - cumsum(y * y, -1)).reshape(*y.shape[:-2], n * n).index_select(-1, places)
        slopes = 2 * (math.log(2) - x - softplus(-2 * x)).sum(-1)
        return 0.5 * log(left).sum(-1) + slopes

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        n = self.size(shape[-1])
        return (*shape[:-1], n, n)


@public("distributions")
class ReshapeTransform(Transform):
    """Reshapes the last axes."""

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int]) -> None:
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            facts = f"{self.in_shape} and {self.out_shape} have different numbers of elements"
            raise ArgumentError(f"ReshapeTransform: {facts}")
        self.event_dim, self.codomain_dim = len(self.in_shape), len(self.out_shape)

    def __call__(self, x: Any) -> Any:
        return x.reshape(x.shape[: x.ndim - self.event_dim] + self.out_shape)

    def inv(self, y: Any) -> Any:
        return y.reshape(y.shape[: y.ndim - self.codomain_dim] + self.in_shape)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return zeros(*x.shape[: x.ndim - self.event_dim], dtype=x.dtype)

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[: len(shape) - self.event_dim] + self.out_shape


@public("distributions")
class IndependentTransform(Transform):
    """A transform with its last batch axes reinterpreted as event axes."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int) -> None:
        self.base_transform, self.extra = base_transform, reinterpreted_batch_ndims
        self.event_dim = base_transform.event_dim + self.extra
        self.codomain_dim = base_transform.codomain_dim + self.extra

    def __call__(self, x: Any) -> Any:
        return self.base_transform(x)

    def inv(self, y: Any) -> Any:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.extra)

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return self.base_transform.forward_shape(shape)

    def in_codomain(self, y: Any) -> Any:
        return self.base_transform.in_codomain(y)


@public("distributions")
class StackTransform(Transform):
    """Applies one transform to each element along an axis."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0) -> None:
        self.transforms, self.dim = list(tseq), dim

    def map_parts(self, method: Callable[..., Any], *xs: Any) -> Any:
        parts = [x.unbind(self.dim) for x in xs]
        if len(parts[0]) != len(self.transforms):
            facts = f"{len(self.transforms)} transforms for {len(parts[0])} elements"
            raise ArgumentError(f"StackTransform: {facts}")
        return stack([method(t, *ys) for t, *ys in zip(self.transforms, *parts)], self.dim)

    def __call__(self, x: Any) -> Any:
        return self.map_parts(lambda t, x: t(x), x)

    def inv(self, y: Any) -> Any:
        return self.map_parts(lambda t, y: t.inv(y), y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.map_parts(lambda t, x, y: t.log_abs_det_jacobian(x, y), x, y)


@public("distributions")
class CatTransform(StackTransform):
    """Applies one transform to each section of an axis, with these `lengths` (1 by default)."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(tseq, dim)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            facts = f"{len(self.lengths)} lengths for {len(self.transforms)} transforms"
            raise ArgumentError(f"CatTransform: {facts}")

    def map_parts(self, method: Callable[..., Any], *xs: Any) -> Any:
        parts = [x.split(self.lengths, self.dim) for x in xs]
        return cat([method(t, *ys) for t, *ys in zip(self.transforms, *parts)], self.dim)


@public("distributions")
class LogisticNormal(TransformedDistribution):
    """The distribution of stick-breaking transforms of normal vectors."""

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)
        self.loc, self.scale = base.loc, base.scale

    def expand(self, batch_shape: Any) -> Any:
        """Return the distribution with its parameters expanded to `batch_shape`."""
        shape = (*batch_shape, self.event_shape[0] - 1)
        return LogisticNormal(self.loc.expand(shape), self.scale.expand(shape))


identity_transform = public("distributions")(ComposeTransform([]))


class ConstraintRegistry:
    """Transforms from unconstrained numbers to a constraint, by its class."""

    def __init__(self, name: str) -> None:
        self.name, self.makers = name, dict[type, Any]()

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Register a function that returns the transform for a constraint."""
        if factory is None:
            return lambda made: self.register(constraint, made)
        kind = constraint if isinstance(constraint, type) else type(constraint)
        self.makers[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Transform:
        for kind in type(constraint).__mro__:
            if kind in self.makers:
                return self.makers[kind](constraint)
        raise LucidError(f"{self.name}: no transform is registered for {constraint!r}")


biject_to = public("distributions")(ConstraintRegistry("biject_to"))
transform_to = public("distributions")(ConstraintRegistry("transform_to"))


def to_interval(c: Any) -> Transform:
    low, high = c.lower_bound, c.upper_bound
    if c.is_discrete:
        raise LucidError(f"transform_to: no transform reaches the integers {c!r}")
    if is_unbounded(high):
        is_positive = isinstance(low, (int, float)) and low == 0
        grown = ExpTransform()
        return grown if is_positive else ComposeTransform([grown, AffineTransform(low, 1.0)])
    if is_unbounded(low):
        return ComposeTransform([ExpTransform(), AffineTransform(high, -1.0)])
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])


def is_unbounded(bound: Any) -> bool:
    """True if a bound is infinite."""
    return isinstance(bound, (int, float)) and math.isinf(bound)


def independent_factory(registry: ConstraintRegistry) -> Callable[[Any], Transform]:
    return lambda c: IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims)


for registry in (biject_to, transform_to):
    registry.register(constraints.Real, lambda c: identity_transform)
    registry.register(constraints.Interval, to_interval)
    registry.register(constraints.Independent, independent_factory(registry))
    registry.register(constraints.LowerCholesky, lambda c: LowerCholeskyTransform())
    registry.register(constraints.CorrCholesky, lambda c: CorrCholeskyTransform())
    registry.register(constraints.PositiveDefinite, lambda c: PositiveDefiniteTransform())
biject_to.register(constraints.Simplex, lambda c: StickBreakingTransform())
transform_to.register(constraints.Simplex, lambda c: SoftmaxTransform())
