"""Low-rank multivariate normal, Wishart and LKJCholesky distributions."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

import numpy as np

from lucid import linalg
from lucid.distributions.distribution import Distribution, as_float, positive, tensor_like
from lucid.distributions.joint import cholesky_factor, one_matrix
from lucid.errors import ArgumentError
from lucid.ir.types import broadcast_shapes
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.exponential import log, sqrt
from lucid.ops.linalg.contraction import matmul
from lucid.ops.random.keyed import normal
from lucid.ops.shape.creation import arange, eye
from lucid.ops.shape.diagonals import diag_embed, diagonal, tril
from lucid.ops.shape.shaping import squeeze, unsqueeze
from lucid.ops.special.error_and_gamma import digamma, lgamma, mvlgamma
from lucid.public.declare import public
from lucid.random import distributions as sampling
from lucid.random.draws import next_key
from lucid.tape.node import wrap

LOG_2PI = math.log(2 * math.pi)


def log_det_from_tril(factor: Any) -> Any:
    """Return log |L Lᵀ| for a triangular L."""
    return 2 * log(diagonal(factor, dim1=-2, dim2=-1)).sum(-1)


def solve_lower(factor: Any, x: Any) -> Any:
    """Return L⁻¹ x for vectors x."""
    tril_ = factor.expand((*x.shape[:-1], *factor.shape[-2:]))
    return squeeze(linalg.solve_triangular(tril_, unsqueeze(x, -1), upper=False), -1)


@public("distributions")
class LowRankMultivariateNormal(Distribution):
    """Normal vectors with covariance W Wᵀ + diag(d): W is `cov_factor`, d is `cov_diag`.

    For n numbers and k columns, a density costs n k² instead of n³ (Woodbury's identity).
    """

    has_rsample = True
    checks = (("cov_diag", positive),)

    def __init__(
        self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None
    ) -> None:
        given = (loc, cov_factor, cov_diag)
        loc, factor, diag = (as_float(x, given) for x in given)
        n = loc.shape[-1] if loc.ndim else -1
        if factor.ndim < 2 or factor.shape[-2] != n or not diag.ndim or diag.shape[-1] != n:
            raise ArgumentError(
                f"LowRankMultivariateNormal: loc {loc.shape}, cov_factor {factor.shape} and "
                f"cov_diag {diag.shape} must end in n, (n, k) and n"
            )
        batch = broadcast_shapes(loc.shape[:-1], factor.shape[:-2], diag.shape[:-1])
        super().__init__(batch, (n,), validate_args)
        self.loc, self.cov_diag = loc.expand((*batch, n)), diag.expand((*batch, n))
        self.cov_factor = factor.expand((*batch, *factor.shape[-2:]))
        self.params = {"loc": self.loc, "cov_factor": self.cov_factor, "cov_diag": self.cov_diag}
        if self.should_validate(validate_args):
            self.check()
        scaled = self.cov_factor / unsqueeze(self.cov_diag, -1)
        small = matmul(self.cov_factor.mT, scaled) + eye(factor.shape[-1], dtype=loc.dtype)
        self.capacitance_tril = linalg.cholesky(small)

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        dtype, k = self.loc.dtype, self.cov_factor.shape[-1]
        own = normal(next_key(generator), shape, dtype=dtype)
        shared = normal(next_key(generator), (*shape[:-1], k, 1), dtype=dtype)
        return self.loc + squeeze(matmul(self.cov_factor, shared), -1) + sqrt(self.cov_diag) * own

    def log_det(self) -> Any:
        return log_det_from_tril(self.capacitance_tril) + log(self.cov_diag).sum(-1)

    def log_prob(self, value: Any) -> Any:
        difference = tensor_like(value, self.loc) - self.loc
        scaled = difference / self.cov_diag
        shared = squeeze(matmul(self.cov_factor.mT, unsqueeze(scaled, -1)), -1)
        inner = solve_lower(self.capacitance_tril, shared)
        distance = (difference * scaled).sum(-1) - (inner * inner).sum(-1)
        return -0.5 * (self.event_shape[0] * LOG_2PI + self.log_det() + distance)

    def entropy(self) -> Any:
        return 0.5 * (self.event_shape[0] * (1 + LOG_2PI) + self.log_det())

    @property
    def covariance_matrix(self) -> Any:
        """W Wᵀ + diag(d)."""
        return matmul(self.cov_factor, self.cov_factor.mT) + diag_embed(self.cov_diag)

    @property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance matrix."""
        return linalg.inv(self.covariance_matrix)

    @property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance matrix."""
        return linalg.cholesky(self.covariance_matrix)

    mean = property(lambda self: self.loc, doc="loc.")
    mode = property(lambda self: self.loc, doc="loc.")

    @property
    def variance(self) -> Any:
        """The diagonal of the covariance matrix."""
        return (self.cov_factor**2).sum(-1) + self.cov_diag


@public("distributions")
class Wishart(Distribution):
    """The distribution of X Xᵀ for `df` normal vectors of covariance V (or V⁻¹, or its factor)."""

    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = one_matrix("Wishart", covariance_matrix, precision_matrix, scale_tril)
        df, matrix = as_float(df, (df, given)), as_float(given, (df, given))
        if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
            raise ArgumentError(f"Wishart: the matrix has shape {matrix.shape}, not (..., n, n)")
        factor = cholesky_factor(matrix, precision_matrix is not None, scale_tril is not None)
        n = matrix.shape[-1]
        batch = broadcast_shapes(df.shape, matrix.shape[:-2])
        super().__init__(batch, (n, n), validate_args)
        self.df, self.scale_tril = df.expand(batch), factor.expand((*batch, n, n))
        self.params = {"df": self.df, "scale_tril": self.scale_tril}
        enough = ("greater than the number of rows minus 1", partial(operator.lt, n - 1))
        self.checks = (("df", enough),)
        if self.should_validate(validate_args):
            self.check()

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        """Return L A Aᵀ Lᵀ, where A is triangular with chi diagonal and normal below (Bartlett)."""
        n, dtype = self.event_shape[0], self.scale_tril.dtype
        freedom = (unsqueeze(self.df, -1) - arange(n, dtype=dtype)) / 2
        squares = 2 * sampling.gamma(freedom, 1.0, shape[:-1], generator=generator)
        below = tril(normal(next_key(generator), shape, dtype=dtype), -1)
        factor = matmul(self.scale_tril, below + diag_embed(sqrt(squares)))
        return matmul(factor, factor.mT)

    def log_prob(self, value: Any) -> Any:
        x, n, df = tensor_like(value, self.scale_tril), self.event_shape[0], self.df
        factor = self.scale_tril.expand(x.shape)
        inner = linalg.solve_triangular(factor, linalg.cholesky(x), upper=False)
        norm = df * n / 2 * math.log(2) + df / 2 * log_det_from_tril(self.scale_tril)
        density = (df - n - 1) / 2 * log_det_from_tril(linalg.cholesky(x)) - (inner**2).sum(
            (-2, -1)
        ) / 2
        return density - norm - mvlgamma(df / 2, n)

    def mean_log_det(self) -> Any:
        """Return the mean of log |X|."""
        n = self.event_shape[0]
        halves = (unsqueeze(self.df, -1) - arange(n, dtype=self.df.dtype)) / 2
        return digamma(halves).sum(-1) + n * math.log(2) + log_det_from_tril(self.scale_tril)

    def entropy(self) -> Any:
        n, df = self.event_shape[0], self.df
        norm = (
            df * n / 2 * math.log(2)
            + df / 2 * log_det_from_tril(self.scale_tril)
            + mvlgamma(df / 2, n)
        )
        return norm - (df - n - 1) / 2 * self.mean_log_det() + df * n / 2

    @property
    def covariance_matrix(self) -> Any:
        """V."""
        return matmul(self.scale_tril, self.scale_tril.mT)

    @property
    def precision_matrix(self) -> Any:
        """V⁻¹."""
        return linalg.inv(self.covariance_matrix)

    def df_as_matrix(self) -> Any:
        return self.df.reshape(*self.df.shape, 1, 1)

    mean = property(lambda self: self.df_as_matrix() * self.covariance_matrix, doc="df V.")

    @property
    def mode(self) -> Any:
        """(df - n - 1) V if df > n + 1, else nan."""
        factor = self.df_as_matrix() - self.event_shape[0] - 1
        return where(factor > 0, factor * self.covariance_matrix, math.nan)

    @property
    def variance(self) -> Any:
        """df (Vᵢⱼ² + Vᵢᵢ Vⱼⱼ)."""
        V = self.covariance_matrix
        diag = diagonal(V, dim1=-2, dim2=-1)
        return self.df_as_matrix() * (V**2 + unsqueeze(diag, -1) * unsqueeze(diag, -2))


@public("distributions")
class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices R, of density ∝ |R|^(concentration - 1).

    (Lewandowski, Kurowicka and Joe, Generating random correlation matrices, 2009.)
    """

    checks = (("concentration", positive),)
    concentration: Any

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if not isinstance(dim, int) or dim < 2:
            raise ArgumentError(f"LKJCholesky: dim must be an integer >= 2, not {dim!r}")
        self.dim = dim
        self.set_parameters(validate_args, concentration=concentration)
        self.event_shape = (dim, dim)

    def options(self) -> dict[str, Any]:
        return {"dim": self.dim, **super().options()}

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        """Return rows that are random directions with beta-distributed squared norms."""
        n, dtype = self.dim, self.concentration.dtype
        before = wrap(np.maximum(np.arange(n) - 1.0, 0.0).astype(dtype))
        rest = unsqueeze(self.concentration + (n - 2) / 2, -1) - before / 2
        share = sampling.beta((before + 1) / 2, rest, shape[:-1], generator=generator)
        direction = tril(normal(next_key(generator), shape, dtype=dtype), -1)
        length = sqrt(clamp((direction**2).sum(-1, keepdim=True), min=float(np.finfo(dtype).tiny)))
        rows = sqrt(unsqueeze(share, -1)) * direction / length
        left = clamp(1 - (rows**2).sum(-1), min=float(np.finfo(dtype).tiny))
        return rows + diag_embed(sqrt(left))

    def log_prob(self, value: Any) -> Any:
        value, n = tensor_like(value, self.concentration), self.dim
        diag = diagonal(value, dim1=-2, dim2=-1)[..., 1:]
        order = wrap(np.arange(n - 2.0, -1.0, -1.0).astype(diag.dtype))
        powers = 2 * unsqueeze(self.concentration - 1, -1) + order
        alpha = self.concentration + (n - 1) / 2
        norm = (n - 1) / 2 * math.log(math.pi) + mvlgamma(alpha - 0.5, n - 1)
        return (powers * log(diag)).sum(-1) - (norm - (n - 1) * lgamma(alpha))
