"""Transforms of draws, and the distributions that they make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lucid.distributions.continuous import Normal
from lucid.distributions.distribution import Distribution, inside, softplus, tensor_like
from lucid.ops.arithmetic import abs
from lucid.ops.conditional import where
from lucid.ops.exponential import exp, expm1, log, sigmoid
from lucid.ops.logarithms import logit
from lucid.ops.promote import as_tensor
from lucid.ops.trigonometric import atanh, tanh


class Transform:
    """A monotone function of one number with its inverse; `sign` is -1 where it falls."""

    sign: Any = 1.0

    def __call__(self, x: Any) -> Any:
        """y for x."""
        raise NotImplementedError

    def inv(self, y: Any) -> Any:
        """x for y."""
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log |dy/dx|."""
        raise NotImplementedError

    def reaches(self, y: Any) -> Any:
        """Whether y is the image of some x."""
        return y == y

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ExpTransform(Transform):
    """y = e^x."""

    def __call__(self, x: Any) -> Any:
        return exp(x)

    def inv(self, y: Any) -> Any:
        return log(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x

    def reaches(self, y: Any) -> Any:
        return y > 0


class AffineTransform(Transform):
    """y = loc + scale x."""

    def __init__(self, loc: Any, scale: Any) -> None:
        self.loc, self.scale = loc, scale

    @property
    def sign(self) -> Any:  # type: ignore[override]
        """The sign of the scale."""
        return as_tensor(self.scale).sign()

    def __call__(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def inv(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return log(abs(x * 0.0 + self.scale))


class SigmoidTransform(Transform):
    """y = 1 / (1 + e^-x)."""

    def __call__(self, x: Any) -> Any:
        return sigmoid(x)

    def inv(self, y: Any) -> Any:
        return logit(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x) - softplus(x)

    def reaches(self, y: Any) -> Any:
        return (y > 0) & (y < 1)


class TanhTransform(Transform):
    """y = tanh x."""

    def __call__(self, x: Any) -> Any:
        return tanh(x)

    def inv(self, y: Any) -> Any:
        return atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2 * (math.log(2) - x - softplus(-2 * x))

    def reaches(self, y: Any) -> Any:
        return (y > -1) & (y < 1)


class SoftplusTransform(Transform):
    """y = log(1 + e^x)."""

    def __call__(self, x: Any) -> Any:
        return softplus(x)

    def inv(self, y: Any) -> Any:
        return y + log(-expm1(-y))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x)

    def reaches(self, y: Any) -> Any:
        return y > 0


class PowerTransform(Transform):
    """y = x^exponent for positive x."""

    def __init__(self, exponent: Any) -> None:
        self.exponent = exponent

    @property
    def sign(self) -> Any:  # type: ignore[override]
        """The sign of the exponent."""
        return as_tensor(self.exponent).sign()

    def __call__(self, x: Any) -> Any:
        return x**self.exponent

    def inv(self, y: Any) -> Any:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return log(abs(self.exponent * y / x))

    def reaches(self, y: Any) -> Any:
        return y > 0


class ComposeTransform(Transform):
    """Transforms one after the other."""

    def __init__(self, parts: Sequence[Transform]) -> None:
        self.parts = list(parts)

    @property
    def sign(self) -> Any:  # type: ignore[override]
        """The product of the signs."""
        found: Any = 1.0
        for part in self.parts:
            found = found * part.sign
        return found

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def inv(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        total: Any = x * 0.0
        for part in self.parts:
            image = part(x)
            total = total + part.log_abs_det_jacobian(x, image)
            x = image
        return total

    def reaches(self, y: Any) -> Any:
        found = y == y
        for part in reversed(self.parts):
            fits = part.reaches(y)
            found = found & fits
            y = part.inv(where(fits, y, 0.5))
        return found


class TransformedDistribution(Distribution):
    """The distribution of transforms of the draws of another."""

    def __init__(
        self, base_distribution: Any, transforms: Any, validate_args: bool | None = None
    ) -> None:
        parts = [transforms] if isinstance(transforms, Transform) else list(transforms)
        self.base_dist, self.transforms = base_distribution, parts
        self.whole = ComposeTransform(parts)
        super().__init__(
            base_distribution.batch_shape, base_distribution.event_shape, validate_args
        )
        self.has_rsample = base_distribution.has_rsample

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        return self.whole(self.base_dist.draw(shape, generator))

    def log_prob(self, value: Any) -> Any:
        y = tensor_like(value, as_tensor(0.0))
        fits = self.whole.reaches(y)
        y = where(fits, y, 0.5)
        x = self.whole.inv(y)
        slope = self.whole.log_abs_det_jacobian(x, y)
        events = tuple(range(-len(self.event_shape), 0))
        slope = slope.sum(events) if events else slope
        return inside(fits.all(events) if events else fits, self.base_dist.log_prob(x) - slope)

    def cdf(self, value: Any) -> Any:
        below = self.base_dist.cdf(self.whole.inv(tensor_like(value, as_tensor(0.0))))
        return where(as_tensor(self.whole.sign) < 0, 1 - below, below)

    def icdf(self, value: Any) -> Any:
        p = tensor_like(value, as_tensor(0.0))
        return self.whole(self.base_dist.icdf(where(as_tensor(self.whole.sign) < 0, 1 - p, p)))

    def expand(self, batch_shape: Any) -> Any:
        """The same distribution over a larger batch."""
        return TransformedDistribution(self.base_dist.expand(batch_shape), self.transforms)

    def __repr__(self) -> str:
        return f"TransformedDistribution({self.base_dist!r}, {self.transforms})"


class LogNormal(TransformedDistribution):
    """The distribution of e^x for normal x."""

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        super().__init__(base, ExpTransform(), validate_args)
        self.loc, self.scale, self.given = base.loc, base.scale, base.given

    def expand(self, batch_shape: Any) -> Any:
        """The same distribution over a larger batch."""
        return LogNormal(self.loc.expand(tuple(batch_shape)), self.scale.expand(tuple(batch_shape)))

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc

    @property
    def mean(self) -> Any:
        """e^(loc + scale²/2)."""
        return exp(self.loc + self.scale**2 / 2)

    @property
    def mode(self) -> Any:
        """e^(loc - scale²)."""
        return exp(self.loc - self.scale**2)

    @property
    def variance(self) -> Any:
        """(e^(scale²) - 1) e^(2 loc + scale²)."""
        return expm1(self.scale**2) * exp(2 * self.loc + self.scale**2)

    __repr__ = Distribution.__repr__
