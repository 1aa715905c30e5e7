"""Distribution: parameters that broadcast to a batch, draws, and densities of events.

A draw has shape sample_shape + batch_shape + event_shape; `log_prob` takes such values and gives a
number for every event. Outside the support it is -inf.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.autograd import no_grad
from lucid.errors import ArgumentError, LucidError, ShapeError
from lucid.ir.source import at_line
from lucid.ir.types import broadcast_shapes
from lucid.ops.core.promote import as_tensor, cast, get_default_dtype
from lucid.ops.elementwise.conditional import where
from lucid.ops.elementwise.exponential import exp, logaddexp, sqrt
from lucid.tape.node import Traced, is_recording

Check = tuple[str, Callable[[Any], Any]]
Checks = tuple[tuple[str, Check], ...]
positive: Check = ("positive", lambda x: x > 0)
not_negative: Check = ("not negative", lambda x: x >= 0)
natural: Check = ("a whole number from 0 on", lambda x: (x >= 0) & (x == x.floor()))
chance: Check = ("in [0, 1]", lambda x: (x >= 0) & (x <= 1))
chances: Check = ("not negative, with a sum of 1", lambda x: (x >= 0) & (
    (x.sum(-1, keepdim=True) - 1).abs() < 1e-5))  # fmt: skip
finite: Check = ("a number", lambda x: x == x)


class Distribution:
    """The base of all distributions.

    has_rsample              whether gradients pass through draws to the parameters
    has_enumerate_support    whether there is a list of all values
    checks                   what parameters must be, by name
    """

    has_rsample = False
    has_enumerate_support = False
    checks: Checks = ()
    validated_by_default = True

    def __init__(
        self,
        batch_shape: tuple[int, ...] = (),
        event_shape: tuple[int, ...] = (),
        validate_args: bool | None = None,
    ) -> None:
        self.batch_shape, self.event_shape = tuple(batch_shape), tuple(event_shape)
        self.given: dict[str, Any] = {}
        self.validate_args = validate_args

    def take(self, validate_args: bool | None, event_axes: int = 0, **params: Any) -> None:
        """Broadcast parameters against each other, check them, and keep them by name."""
        found = {name: floating(x, params.values()) for name, x in params.items()}
        for name, x in found.items():
            if x.ndim < event_axes:
                raise ShapeError(
                    f"{type(self).__name__}: {name} has shape {x.shape}; a draw has "
                    f"{event_axes} axes, and so has it at least{at_line()}"
                )
        shapes = [x.shape[: x.ndim - event_axes] for x in found.values()]
        try:
            batch = broadcast_shapes(*shapes)
        except ShapeError:
            given = " and ".join(f"{name} of shape {x.shape}" for name, x in found.items())
            facts = f"{given} do not broadcast"
            raise ShapeError(f"{type(self).__name__}: {facts}{at_line()}") from None
        first = next(iter(found.values()))
        event = first.shape[first.ndim - event_axes :]
        self.given = {name: x.expand(batch + event) for name, x in found.items()}
        self.__dict__.update(self.given)
        self.batch_shape, self.event_shape = batch, event
        self.validate_args = validate_args
        if self.validates(validate_args):
            self.check()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Check the parameters of distributions that do not say whether, or do not."""
        if value not in (True, False):
            raise ArgumentError(f"set_default_validate_args: {value!r} is no bool{at_line()}")
        Distribution.validated_by_default = bool(value)

    def validates(self, validate_args: bool | None) -> bool:
        return self.validated_by_default if validate_args is None else bool(validate_args)

    def check(self) -> None:
        for name, x in self.given.items():
            what, holds = dict(self.checks).get(name, finite)
            if x.value is None or is_recording():
                continue
            with no_grad():
                if not bool(holds(x.detach()).all()):
                    raise ArgumentError(
                        f"{type(self).__name__}: {name} is {what}, not {x.tolist()!r:.80}"
                        f"{at_line()}"
                    )

    def shape(self, sample_shape: Any) -> tuple[int, ...]:
        """The shape of a draw."""
        sample_shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return sample_shape + self.batch_shape + self.event_shape

    # Draws

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        """Numbers of a whole shape."""
        raise self.lacks("draw")

    def sample(self, sample_shape: Any = (), *, generator: Any = None) -> Any:
        """Draws without derivatives."""
        with no_grad():
            return self.draw(self.shape(sample_shape), generator).detach()

    def sample_n(self, n: int) -> Any:
        """`n` draws."""
        return self.sample((n,))

    def rsample(self, sample_shape: Any = (), *, generator: Any = None) -> Any:
        """Draws through which gradients pass to the parameters."""
        if not self.has_rsample:
            raise LucidError(
                f"{type(self).__name__}: no gradient passes through its draws; use sample and "
                f"log_prob{at_line()}"
            )
        return self.draw(self.shape(sample_shape), generator)

    @property
    def support(self) -> Any:
        """The constraint that all draws satisfy."""
        from lucid.distributions.supports import support_of

        return support_of(self)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values of a discrete distribution, in a new first axis."""
        raise self.lacks("finite support")

    def enumerated(self, values: Any, expand: bool) -> Any:
        """Values in a new first axis before the batch, repeated along it if wanted."""
        rest = values.shape[1:]
        values = values.reshape((values.shape[0], *[1] * len(self.batch_shape), *rest))
        return values.expand((values.shape[0], *self.batch_shape, *rest)) if expand else values

    # Densities and moments

    def lacks(self, what: str) -> LucidError:
        return LucidError(f"{type(self).__name__}: there is no formula for its {what}{at_line()}")

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, of every event."""
        raise self.lacks("log_prob")

    def cdf(self, value: Any) -> Any:
        """The probability of all that is not greater."""
        raise self.lacks("cdf")

    def icdf(self, value: Any) -> Any:
        """The number below which a draw lies with this probability."""
        raise self.lacks("icdf")

    def entropy(self) -> Any:
        """The mean of -log_prob."""
        raise self.lacks("entropy")

    @property
    def mean(self) -> Any:
        """The mean of the draws."""
        raise self.lacks("mean")

    @property
    def variance(self) -> Any:
        """The variance of the draws."""
        raise self.lacks("variance")

    @property
    def mode(self) -> Any:
        """The most probable value."""
        raise self.lacks("mode")

    @property
    def stddev(self) -> Any:
        """The root of the variance."""
        return sqrt(self.variance)

    def perplexity(self) -> Any:
        """e to the entropy."""
        return exp(self.entropy())

    def expand(self, batch_shape: Any) -> Any:
        """The same distribution over a larger batch."""
        batch, old = tuple(batch_shape), len(self.batch_shape)
        params = {name: x.expand(batch + x.shape[old:]) for name, x in self.given.items()}
        return type(self)(**params, **self.options())

    def options(self) -> dict[str, Any]:
        """What `__init__` takes beside the parameters."""
        return {"validate_args": self.validate_args}

    def __repr__(self) -> str:
        shown = [
            f"{name}: {x.item() if x.numel() == 1 and x.value is not None else x.shape}"
            for name, x in self.given.items()
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def floating(x: Any, others: Any) -> Any:
    """A parameter as a tensor of the floating dtype that all have in common."""
    dtypes = [y.dtype for y in others if isinstance(y, (Traced, np.ndarray))]
    dtypes = [d for d in dtypes if d.kind == "f"] or [get_default_dtype()]
    return cast(as_tensor(x), np.result_type(*dtypes))


def one_of(name: str, probs: Any, logits: Any) -> dict[str, Any]:
    """The one of two parameters that is given."""
    if (probs is None) == (logits is None):
        raise ArgumentError(f"{name}: give probs or logits, one of them{at_line()}")
    return {"probs": probs} if logits is None else {"logits": logits}


def softplus(x: Any) -> Any:
    return logaddexp(x, x * 0.0)


def inside(condition: Any, x: Any) -> Any:
    """`x` where a condition holds, -inf elsewhere."""
    return where(condition, x, -math.inf)


def tensor_like(value: Any, like: Any) -> Any:
    """A value as a floating tensor."""
    value = as_tensor(value)
    return value if value.dtype.kind == "f" else cast(value, like.dtype)
