"""Invertible transforms of draws, and TransformedDistribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lucid.distributions.continuous import Normal
from lucid.distributions.distribution import Distribution, softplus, tensor_like, where_supported
from lucid.distributions.joint import Independent
from lucid.ops.core.constructors import ClearConstructor
from lucid.ops.core.promote import as_tensor
from lucid.ops.elementwise.arithmetic import abs
from lucid.ops.elementwise.conditional import where
from lucid.ops.elementwise.exponential import exp, expm1, log, sigmoid
from lucid.ops.elementwise.logarithms import logit
from lucid.ops.elementwise.trigonometric import atanh, tanh
from lucid.public.declare import public
from lucid.public.lazy import defined_in


def sum_rightmost(x: Any, n: int) -> Any:
    """Return the sum over the last `n` axes."""
    return x.sum(tuple(range(-n, 0))) if n else x


def all_rightmost(x: Any, n: int) -> Any:
    """Return whether all elements along the last `n` axes are True."""
    return x.all(tuple(range(-n, 0))) if n else x


def replace_unreachable(fits: Any, y: Any) -> Any:
    """Return `y` where it is reachable, and 0.5, which every transform reaches, elsewhere."""
    return where(fits.reshape(fits.shape + (1,) * (y.ndim - fits.ndim)), y, 0.5)


@public("distributions")
class Transform(ClearConstructor):
    """An invertible function; `sign` is 1 if it is increasing and -1 if it is decreasing.

    event_dim, codomain_dim    the number of event axes of its arguments and results
    """

    sign: Any = 1.0
    event_dim: int = 0
    codomain_dim: int = 0

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of y for the shape of x."""
        return shape

    def __call__(self, x: Any) -> Any:
        """Return y for x."""
        raise NotImplementedError

    def inv(self, y: Any) -> Any:
        """Return x for y."""
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return log |dy/dx| of every event."""
        raise NotImplementedError

    def in_codomain(self, y: Any) -> Any:
        """Return whether every number (or event) y is the image of some x."""
        return y == y

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@public("distributions")
class ExpTransform(Transform):
    """y = e^x."""

    def __call__(self, x: Any) -> Any:
        return exp(x)

    def inv(self, y: Any) -> Any:
        return log(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x

    def in_codomain(self, y: Any) -> Any:
        return y > 0


@public("distributions")
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


@public("distributions")
class SigmoidTransform(Transform):
    """y = 1 / (1 + e^-x)."""

    def __call__(self, x: Any) -> Any:
        return sigmoid(x)

    def inv(self, y: Any) -> Any:
        return logit(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x) - softplus(x)

    def in_codomain(self, y: Any) -> Any:
        return (y > 0) & (y < 1)


@public("distributions")
class TanhTransform(Transform):
    """y = tanh x."""

    def __call__(self, x: Any) -> Any:
        return tanh(x)

    def inv(self, y: Any) -> Any:
        return atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2 * (math.log(2) - x - softplus(-2 * x))

    def in_codomain(self, y: Any) -> Any:
        return (y > -1) & (y < 1)


@public("distributions")
class SoftplusTransform(Transform):
    """y = log(1 + e^x)."""

    def __call__(self, x: Any) -> Any:
        return softplus(x)

    def inv(self, y: Any) -> Any:
        return y + log(-expm1(-y))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x)

    def in_codomain(self, y: Any) -> Any:
        return y > 0


@public("distributions")
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

    def in_codomain(self, y: Any) -> Any:
        return y > 0


@public("distributions")
class ComposeTransform(Transform):
    """The composition of transforms, applied in order."""

    def __init__(self, parts: Sequence[Transform]) -> None:
        self.parts = list(parts)
        self.codomain_dim = 0
        for part in self.parts:
            gained = part.codomain_dim - part.event_dim
            self.codomain_dim = max(self.codomain_dim + gained, part.codomain_dim)
        self.event_dim = self.codomain_dim
        for part in reversed(self.parts):
            lost = part.event_dim - part.codomain_dim
            self.event_dim = max(self.event_dim + lost, part.event_dim)

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

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
        total: Any = sum_rightmost(x * 0.0, self.event_dim)
        events = self.event_dim
        for part in self.parts:
            image = part(x)
            slope = part.log_abs_det_jacobian(x, image)
            total = total + sum_rightmost(slope, events - part.event_dim)
            events += part.codomain_dim - part.event_dim
            x = image
        return total

    def in_codomain(self, y: Any) -> Any:
        events = self.codomain_dim
        found = all_rightmost(y == y, events)
        for part in reversed(self.parts):
            fits = part.in_codomain(y)
            found = found & all_rightmost(fits, events - (y.ndim - fits.ndim))
            y = part.inv(replace_unreachable(fits, y))
            events += part.event_dim - part.codomain_dim
        return found


@public("distributions")
class TransformedDistribution(Distribution):
    """The distribution of transformed draws of a base distribution."""

    def __init__(
        self, base_distribution: Any, transforms: Any, validate_args: bool | None = None
    ) -> None:
        parts = [transforms] if isinstance(transforms, Transform) else list(transforms)
        self.transform, base = ComposeTransform(parts), base_distribution
        missing = self.transform.event_dim - len(base.event_shape)
        base = Independent(base, missing) if missing > 0 else base
        self.base_dist, self.transforms = base, parts
        shape = self.transform.forward_shape(base.batch_shape + base.event_shape)
        cut = len(shape) - (self.transform.codomain_dim + max(-missing, 0))
        super().__init__(shape[:cut], shape[cut:], validate_args)
        self.has_rsample = base.has_rsample

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        base = self.base_dist
        outer = shape[: len(shape) - len(self.batch_shape) - len(self.event_shape)]
        return self.transform(base.draw(outer + base.batch_shape + base.event_shape, generator))

    def log_prob(self, value: Any) -> Any:
        y = tensor_like(value, as_tensor(0.0))
        fits = self.transform.in_codomain(y)
        y = replace_unreachable(fits, y)
        x = self.transform.inv(y)
        slope = self.transform.log_abs_det_jacobian(x, y)
        slope = sum_rightmost(slope, len(self.base_dist.event_shape) - self.transform.event_dim)
        fits = all_rightmost(fits, len(self.event_shape) - self.transform.codomain_dim)
        return where_supported(fits, self.base_dist.log_prob(x) - slope)

    def cdf(self, value: Any) -> Any:
        below = self.base_dist.cdf(self.transform.inv(tensor_like(value, as_tensor(0.0))))
        return where(as_tensor(self.transform.sign) < 0, 1 - below, below)

    def icdf(self, value: Any) -> Any:
        p = tensor_like(value, as_tensor(0.0))
        return self.transform(
            self.base_dist.icdf(where(as_tensor(self.transform.sign) < 0, 1 - p, p))
        )

    def expand(self, batch_shape: Any) -> Any:
        """Return the distribution with its parameters expanded to `batch_shape`."""
        return TransformedDistribution(self.base_dist.expand(batch_shape), self.transforms)

    def __repr__(self) -> str:
        return f"TransformedDistribution({self.base_dist!r}, {self.transforms})"


@public("distributions")
class LogNormal(TransformedDistribution):
    """The distribution of e^x for normal x."""

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        super().__init__(base, ExpTransform(), validate_args)
        self.loc, self.scale, self.params = base.loc, base.scale, base.params

    def expand(self, batch_shape: Any) -> Any:
        """Return the distribution with its parameters expanded to `batch_shape`."""
        return LogNormal(self.loc.expand(tuple(batch_shape)), self.scale.expand(tuple(batch_shape)))

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc

    mean = property(lambda self: exp(self.loc + self.scale**2 / 2), doc="e^(loc + scale²/2).")
    mode = property(lambda self: exp(self.loc - self.scale**2), doc="e^(loc - scale²).")

    @property
    def variance(self) -> Any:
        """(e^(scale²) - 1) e^(2 loc + scale²)."""
        return expm1(self.scale**2) * exp(2 * self.loc + self.scale**2)

    __repr__ = Distribution.__repr__


def __getattr__(name: str) -> Any:
    """Import the transforms of vectors and matrices, which depend on this module, on demand."""
    from lucid.distributions import event_transforms

    if name.endswith("ransform") and hasattr(event_transforms, name):
        return getattr(event_transforms, name)
    raise AttributeError(f"module 'lucid.distributions.transforms' has no attribute {name!r}")


__dir__, __all__ = defined_in(__name__, "all_rightmost", "replace_unreachable", "sum_rightmost")
