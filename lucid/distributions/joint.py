"""Joint distributions: MultivariateNormal, Independent, MixtureSameFamily."""

from __future__ import annotations

import math
from typing import Any

from lucid import linalg
from lucid.distributions.discrete import Categorical, one_hot_vector
from lucid.distributions.distribution import Distribution, as_float, tensor_like
from lucid.errors import ArgumentError
from lucid.ir.types import broadcast_shapes
from lucid.ops.elementwise.exponential import log
from lucid.ops.linalg.contraction import matmul
from lucid.ops.random.keyed import normal
from lucid.ops.reduce.reduction import logsumexp
from lucid.ops.shape.diagonals import diagonal
from lucid.ops.shape.shaping import squeeze, unsqueeze
from lucid.public.declare import public
from lucid.random.draws import next_key


def one_matrix(name: str, covariance: Any, precision: Any, tril: Any) -> Any:
    """Return the one of three matrices that is given."""
    given = [x for x in (covariance, precision, tril) if x is not None]
    if len(given) != 1:
        names = "covariance_matrix, precision_matrix and scale_tril"
        raise ArgumentError(f"{name}: give exactly one of {names}")
    return given[0]


def cholesky_factor(matrix: Any, is_precision: bool, is_factor: bool) -> Any:
    """Return the Cholesky factor of a covariance, which is given in one of three ways."""
    if is_factor:
        return matrix
    return linalg.cholesky(linalg.inv(matrix) if is_precision else matrix)


@public("distributions")
class MultivariateNormal(Distribution):
    """Normal vectors with mean `loc` and a covariance, precision, or Cholesky factor."""

    has_rsample = True

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = one_matrix("MultivariateNormal", covariance_matrix, precision_matrix, scale_tril)
        loc, matrix = as_float(loc, (loc, given)), as_float(given, (loc, given))
        n = loc.shape[-1] if loc.ndim else 0
        if matrix.ndim < 2 or matrix.shape[-2:] != (n, n):
            raise ArgumentError(
                f"MultivariateNormal: a matrix of shape {matrix.shape} for a mean of shape "
                f"{loc.shape}"
            )
        tril = cholesky_factor(matrix, precision_matrix is not None, scale_tril is not None)
        batch = broadcast_shapes(loc.shape[:-1], tril.shape[:-2])
        super().__init__(batch, (n,), validate_args)
        self.loc, self.scale_tril = loc.expand((*batch, n)), tril.expand((*batch, n, n))
        self.params = {"loc": self.loc, "scale_tril": self.scale_tril}

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        noise = normal(next_key(generator), shape, dtype=self.loc.dtype)
        return self.loc + squeeze(matmul(self.scale_tril, unsqueeze(noise, -1)), -1)

    def half_log_det(self) -> Any:
        return log(diagonal(self.scale_tril, dim1=-2, dim2=-1)).sum(-1)

    def log_prob(self, value: Any) -> Any:
        difference = unsqueeze(tensor_like(value, self.loc) - self.loc, -1)
        tril = self.scale_tril.expand((*difference.shape[:-2], *self.scale_tril.shape[-2:]))
        z = linalg.solve_triangular(tril, difference, upper=False)
        n = self.event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + (z * z).sum((-2, -1))) - self.half_log_det()

    def entropy(self) -> Any:
        return 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self.half_log_det()

    @property
    def covariance_matrix(self) -> Any:
        """The covariance matrix."""
        return matmul(self.scale_tril, self.scale_tril.mT)

    @property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return linalg.inv(self.covariance_matrix)

    mean = property(lambda self: self.loc, doc="loc.")
    mode = property(lambda self: self.loc, doc="loc.")

    @property
    def variance(self) -> Any:
        """The diagonal of the covariance."""
        return (self.scale_tril**2).sum(-1)


@public("distributions")
class Independent(Distribution):
    """A distribution with its last batch axes reinterpreted as event axes."""

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        base, k = base_distribution, reinterpreted_batch_ndims
        if not 0 <= k <= len(base.batch_shape):
            raise ArgumentError(
                f"Independent: cannot reinterpret {k} axes of batch shape {base.batch_shape}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base, k
        cut = len(base.batch_shape) - k
        event = base.batch_shape[cut:] + base.event_shape
        super().__init__(base.batch_shape[:cut], event, validate_args)
        self.has_rsample = base.has_rsample

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return self.base_dist.draw(shape, generator)

    def sum_event_dims(self, x: Any) -> Any:
        k = self.reinterpreted_batch_ndims
        return x.sum(tuple(range(-k, 0))) if k else x

    def log_prob(self, value: Any) -> Any:
        return self.sum_event_dims(self.base_dist.log_prob(value))

    def entropy(self) -> Any:
        return self.sum_event_dims(self.base_dist.entropy())

    mean = property(lambda self: self.base_dist.mean, doc="The mean of the base distribution.")
    mode = property(lambda self: self.base_dist.mode, doc="The mode of the base distribution.")

    @property
    def variance(self) -> Any:
        """The variance of the base distribution."""
        return self.base_dist.variance

    def expand(self, batch_shape: Any) -> Any:
        """Return the distribution with its parameters expanded to `batch_shape`."""
        own = self.event_shape[: self.reinterpreted_batch_ndims]
        base = self.base_dist.expand((*batch_shape, *own))
        return Independent(base, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


@public("distributions")
class MixtureSameFamily(Distribution):
    """A mixture of the components along the last batch axis, chosen by a Categorical."""

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        mixture, component = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical) or not component.batch_shape or (
            component.batch_shape[-1] != mixture.num_events
        ):  # fmt: skip
            raise ArgumentError(
                "MixtureSameFamily: the last batch axis of the components "
                f"{component.batch_shape} must match the events of a Categorical"
            )
        self.mixture_distribution, self.component_distribution = mixture, component
        super().__init__(component.batch_shape[:-1], component.event_shape, validate_args)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        before = shape[: len(shape) - len(self.event_shape)]
        n = self.mixture_distribution.num_events
        index = self.mixture_distribution.draw(before, generator)
        found = self.component_distribution.draw((*before, n, *self.event_shape), generator)
        return self.weighted_sum(one_hot_vector(index, n, found.dtype), found)

    def weighted_sum(self, weights: Any, values: Any) -> Any:
        """Return the weighted sum over components."""
        events = len(self.event_shape)
        weights = weights.reshape((*weights.shape, *[1] * events))
        return (weights * values).sum(-1 - events)

    def log_prob(self, value: Any) -> Any:
        value = tensor_like(value, self.component_distribution.mean)
        parts = self.component_distribution.log_prob(unsqueeze(value, -1 - len(self.event_shape)))
        return logsumexp(parts + self.mixture_distribution.logits, -1)

    def cdf(self, value: Any) -> Any:
        value = tensor_like(value, self.component_distribution.mean)
        parts = self.component_distribution.cdf(unsqueeze(value, -1))
        return (parts * self.mixture_distribution.probs).sum(-1)

    @property
    def mean(self) -> Any:
        """The weighted mean of the component means."""
        return self.weighted_sum(self.mixture_distribution.probs, self.component_distribution.mean)

    @property
    def variance(self) -> Any:
        """The mean of the component variances plus the variance of their means."""
        weights, component = self.mixture_distribution.probs, self.component_distribution
        difference = component.mean - unsqueeze(self.mean, -1 - len(self.event_shape))
        return self.weighted_sum(weights, component.variance + difference**2)

    def expand(self, batch_shape: Any) -> Any:
        """Return the distribution with its parameters expanded to `batch_shape`."""
        n = self.mixture_distribution.num_events
        component = self.component_distribution.expand((*batch_shape, n))
        return MixtureSameFamily(self.mixture_distribution.expand(batch_shape), component)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self.mixture_distribution!r}, {self.component_distribution!r})"
