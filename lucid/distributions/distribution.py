"""Distribution: batched parameters, sampling, and densities of events.

A draw has shape sample_shape + batch_shape + event_shape; `log_prob` takes such values and returns
a number for every event, -inf outside the support.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.autograd import no_grad
from lucid.errors import ArgumentError, LucidError, ShapeError
from lucid.ir.types import broadcast_shapes
from lucid.ops.core.constructors import ClearConstructor
from lucid.ops.core.promote import as_tensor, cast, get_default_dtype
from lucid.ops.elementwise.conditional import where
from lucid.ops.elementwise.exponential import exp, logaddexp, sqrt
from lucid.public.declare import public
from lucid.tape.node import Traced, is_recording

Check = tuple[str, Callable[[Any], Any]]
Checks = tuple[tuple[str, Check], ...]
positive: Check = ("positive", lambda x: x > 0)
nonnegative: Check = ("non-negative", lambda x: x >= 0)
nonnegative_integer: Check = ("a non-negative integer", lambda x: (x >= 0) & (x == x.floor()))
unit_interval: Check = ("in [0, 1]", lambda x: (x >= 0) & (x <= 1))
simplex: Check = ("non-negative with a sum of 1", lambda x: (x >= 0) & (
    (x.sum(-1, keepdim=True) - 1).abs() < 1e-5))  # fmt: skip
not_nan: Check = ("a number", lambda x: x == x)


@public("distributions")
class Distribution(ClearConstructor):
    """Base class of all distributions.

    has_rsample              True if draws are reparameterized (differentiable in the parameters)
    has_enumerate_support    True if `enumerate_support` is implemented
    checks                   conditions on the parameters, by name
    """

    has_rsample = False
    has_enumerate_support = False
    checks: Checks = ()
    validate_by_default = True

    def __init__(
        self,
        batch_shape: tuple[int, ...] = (),
        event_shape: tuple[int, ...] = (),
        validate_args: bool | None = None,
    ) -> None:
        self.batch_shape, self.event_shape = tuple(batch_shape), tuple(event_shape)
        self.params: dict[str, Any] = {}
        self.validate_args = validate_args

    def set_parameters(
        self, validate_args: bool | None, event_axes: int = 0, **params: Any
    ) -> None:
        """Broadcast the parameters to a common shape, validate them, and set attributes."""
        found = {name: as_float(x, params.values()) for name, x in params.items()}
        for name, x in found.items():
            if x.ndim < event_axes:
                raise ShapeError(
                    f"{type(self).__name__}: {name} has shape {x.shape}; it must have at least "
                    f"{event_axes} axes"
                )
        shapes = [x.shape[: x.ndim - event_axes] for x in found.values()]
        try:
            batch = broadcast_shapes(*shapes)
        except ShapeError:
            given = " and ".join(f"{name} of shape {x.shape}" for name, x in found.items())
            raise ShapeError(f"{type(self).__name__}: {given} do not broadcast") from None
        first = next(iter(found.values()))
        event = first.shape[first.ndim - event_axes :]
        self.params = {name: x.expand(batch + event) for name, x in found.items()}
        self.__dict__.update(self.params)
        self.batch_shape, self.event_shape = batch, event
        self.validate_args = validate_args
        if self.should_validate(validate_args):
            self.check()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether parameters are validated if `validate_args` is not given."""
        if value not in (True, False):
            raise ArgumentError(f"set_default_validate_args: {value!r} is not a bool")
        Distribution.validate_by_default = bool(value)

    def should_validate(self, validate_args: bool | None) -> bool:
        return self.validate_by_default if validate_args is None else bool(validate_args)

    def check(self) -> None:
        for name, x in self.params.items():
            what, holds = dict(self.checks).get(name, not_nan)
            if x.raw is None or is_recording():
                continue
            with no_grad():
                if not bool(holds(x.detach()).all()):
                    raise ArgumentError(
                        f"{type(self).__name__}: {name} must be {what}, not {x.tolist()!r:.80}"
                    )

    def shape(self, sample_shape: Any) -> tuple[int, ...]:
        """Return the shape of a draw."""
        sample_shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return sample_shape + self.batch_shape + self.event_shape

    # Sampling

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        """Return draws of shape `shape`, which includes batch and event axes."""
        raise self.no_formula("draw")

    def sample(self, sample_shape: Any = (), *, generator: Any = None) -> Any:
        """Return draws that are not differentiable."""
        with no_grad():
            return self.draw(self.shape(sample_shape), generator).detach()

    def sample_n(self, n: int) -> Any:
        """Return `n` draws."""
        return self.sample((n,))

    def rsample(self, sample_shape: Any = (), *, generator: Any = None) -> Any:
        """Return reparameterized draws, differentiable in the parameters."""
        if not self.has_rsample:
            raise LucidError(
                f"{type(self).__name__}: rsample is not supported; use sample and log_prob"
            )
        return self.draw(self.shape(sample_shape), generator)

    @property
    def support(self) -> Any:
        """The constraint that draws satisfy."""
        from lucid.distributions.supports import support_of

        return support_of(self)

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all values of a discrete distribution along a new first axis."""
        raise self.no_formula("finite support")

    def expand_support(self, values: Any, expand: bool) -> Any:
        """Return values along a new first axis, expanded over the batch if `expand`."""
        rest = values.shape[1:]
        values = values.reshape((values.shape[0], *[1] * len(self.batch_shape), *rest))
        return values.expand((values.shape[0], *self.batch_shape, *rest)) if expand else values

    # Densities and moments

    def no_formula(self, what: str) -> LucidError:
        return LucidError(f"{type(self).__name__}: there is no formula for {what}")

    def log_prob(self, value: Any) -> Any:
        """Return the log density, or log probability, of every event."""
        raise self.no_formula("log_prob")

    def cdf(self, value: Any) -> Any:
        """Return the cumulative distribution function, P(X <= value)."""
        raise self.no_formula("cdf")

    def icdf(self, value: Any) -> Any:
        """Return the quantile function, the inverse of `cdf`."""
        raise self.no_formula("icdf")

    def entropy(self) -> Any:
        """Return the entropy, the mean of -log_prob."""
        raise self.no_formula("entropy")

    @property
    def mean(self) -> Any:
        """The mean of the draws."""
        raise self.no_formula("mean")

    @property
    def variance(self) -> Any:
        """The variance of the draws."""
        raise self.no_formula("variance")

    @property
    def mode(self) -> Any:
        """The most probable value."""
        raise self.no_formula("mode")

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return sqrt(self.variance)

    def perplexity(self) -> Any:
        """Return the exponential of the entropy."""
        return exp(self.entropy())

    def expand(self, batch_shape: Any) -> Any:
        """Return the distribution with its parameters expanded to `batch_shape`."""
        batch, old = tuple(batch_shape), len(self.batch_shape)
        params = {name: x.expand(batch + x.shape[old:]) for name, x in self.params.items()}
        return type(self)(**params, **self.options())

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of `__init__` other than the parameters."""
        return {"validate_args": self.validate_args}

    def __repr__(self) -> str:
        shown = [
            f"{name}: {x.item() if x.numel() == 1 and x.raw is not None else x.shape}"
            for name, x in self.params.items()
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def as_float(x: Any, others: Any) -> Any:
    """Return a parameter as a tensor of the common floating dtype."""
    dtypes = [y.dtype for y in others if isinstance(y, (Traced, np.ndarray))]
    dtypes = [d for d in dtypes if d.kind == "f"] or [get_default_dtype()]
    return cast(as_tensor(x), np.result_type(*dtypes))


def probs_or_logits(name: str, probs: Any, logits: Any) -> dict[str, Any]:
    """Return the one of `probs` and `logits` that is given, by name."""
    if (probs is None) == (logits is None):
        raise ArgumentError(f"{name}: give either probs or logits")
    return {"probs": probs} if logits is None else {"logits": logits}


def softplus(x: Any) -> Any:
    return logaddexp(x, x * 0.0)


def where_supported(condition: Any, x: Any) -> Any:
    """Return `x` where the condition is True, and -inf elsewhere."""
    return where(condition, x, -math.inf)


def tensor_like(value: Any, like: Any) -> Any:
    """Return a value as a floating tensor."""
    value = as_tensor(value)
    return value if value.dtype.kind == "f" else cast(value, like.dtype)
