"""Random numbers from a state: PyTorch's functions, with keys drawn from a Generator.

A Generator is a seed and a count; its next key is the seed's key with the count folded in. So every
stream is determined by the seed and the number of draws before, on every machine. Both stand in one
tensor: a jitted function that draws reads it and writes it back, like any other state.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, ShapeError
from lucid.func.batching import draw_key
from lucid.ir.source import at_line
from lucid.ir.types import dtype_of
from lucid.ops.core.arguments import explained, placed
from lucid.ops.core.axes import shape_of
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import minimum, where
from lucid.ops.elementwise.exponential import log, log1p
from lucid.ops.index.searching import searchsorted
from lucid.ops.random import keyed as pure
from lucid.ops.random.keyed import (
    FOLD,
    UINT32,
    RandomBits,
    fold_in,
    key,
    permutation,
    random_bits,
    split,
    uniform,
)
from lucid.ops.random.keyed import (
    bernoulli as keyed_bernoulli,
)
from lucid.ops.random.keyed import (
    normal as keyed_normal,
)
from lucid.ops.reduce.cumulative import cumsum
from lucid.ops.reduce.sorting import argsort
from lucid.ops.shape.copying import COPY
from lucid.ops.shape.creation import given
from lucid.tape.bind import bind
from lucid.tape.modes import local
from lucid.tape.node import is_recording, wrap
from lucid.tensors.mutation import assign
from lucid.tensors.tensor import Tensor

__all__ = [
    "Generator",
    "bernoulli",
    "default_generator",
    "fold_in",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "key",
    "keyed_bernoulli",
    "keyed_normal",
    "manual_seed",
    "multinomial",
    "normal",
    "permutation",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "random_bits",
    "randperm",
    "seed",
    "set_rng_state",
    "split",
    "uniform",
]


class Generator:
    """A stream of keys from one seed.

    >>> import lucid
    >>> g = lucid.random.Generator(3)
    >>> a = lucid.random.rand(2, generator=g)
    >>> bool((lucid.random.rand(2, generator=g.manual_seed(3)) == a).all())
    True
    """

    def __init__(self, seed: int = 0) -> None:
        self._lock = threading.RLock()
        self._state = Tensor(words_of(seed))

    def manual_seed(self, seed: int) -> Generator:
        """Start again from a seed."""
        return self._become(bind(COPY, wrap(words_of(seed))))

    def initial_seed(self) -> int:
        """The seed that the stream started from."""
        low, high = self._state[:2].tolist()
        return low | high << 32

    def seed(self) -> int:
        """Start again from a seed taken from the operating system, and return it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self.initial_seed()

    def get_state(self) -> Any:
        """The seed and the count of draws, as a tensor of four words."""
        with self._lock:
            return bind(COPY, self._state)

    def set_state(self, state: Any) -> None:
        """Go on from a state that `get_state` gave."""
        state = as_tensor(state)
        if state.dtype != UINT32 or state.shape != (4,):
            facts = f"a state is u32[4], as get_state gives, not {state.type}"
            raise ShapeError(f"set_state: {facts}{at_line()}")
        self._become(bind(COPY, state))

    def _become(self, state: Any) -> Generator:
        with self._lock:
            if is_recording():
                local.recorder.hold(self._lock)
            assign(self._state, state, "set_state")
        return self

    def split(self, n: int = 2) -> list[Generator]:
        """`n` streams that are independent of this one and of each other."""
        return [Generator(low | high << 32) for low, high in split(self.next_key(), n).tolist()]

    def fork(self) -> Generator:
        """A stream that is independent of this one."""
        return self.split(1)[0]

    def next_key(self) -> Any:
        """A key that this stream has not given before; inside vmap as its `randomness` says."""
        return draw_key(self._draw) if local.maps else self._draw()

    def _draw(self) -> Any:
        state = self._state
        with self._lock:
            if is_recording():
                local.recorder.hold(self._lock)
                drawn = bind(KEY, state[:2], state[2:])
                assign(state, after_draw(state), "draw")
                return drawn
            words = state.value
            drawn = KEY.eval(words[:2], words[2:])
            count = words.item(2) + 1
            words[2] = count & 0xFFFFFFFF
            if count >> 32:
                words[3] = (words.item(3) + 256) & 0xFFFFFFFF
        return wrap(drawn)


KEY = RandomBits((2,))
ONE_MORE = np.array([0, 0, 1, 0], UINT32)
AND_CARRY = np.array([0, 0, 1, 256], UINT32)


def words_of(seed: int) -> np.ndarray:
    """The state of a new stream: the seed, and the counter of its first key.

    The count stands in the lower word of the counter and the upper 24 bits of the other, above the
    number that separates folding into a key from drawing.
    """
    try:
        seed = int(seed) % (1 << 64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"manual_seed: a seed is an integer, not {seed!r}{at_line()}") from None
    return np.array([seed & 0xFFFFFFFF, seed >> 32, 0, FOLD], UINT32)


def after_draw(state: Any) -> Any:
    """The state with one more draw counted."""
    full = state[2:3].expand(4) == 0xFFFFFFFF
    return state + where(full, wrap(AND_CARRY), wrap(ONE_MORE))


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Start the default stream again from a seed.

    >>> import lucid
    >>> _ = lucid.manual_seed(0)
    >>> a = lucid.randn(3)
    >>> _ = lucid.manual_seed(0)
    >>> bool((lucid.randn(3) == a).all())
    True
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start the default stream from a seed of the operating system, and return it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default stream."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """The state of the default stream."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Go on with the default stream from a state that `get_rng_state` gave."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Draws inside the block leave the default stream as it was before.

    >>> import lucid
    >>> _ = lucid.manual_seed(0)
    >>> with lucid.random.fork_rng():
    ...     _ = lucid.randn(3)
    >>> a = lucid.randn(3)
    >>> _ = lucid.manual_seed(0)
    >>> bool((lucid.randn(3) == a).all())
    True
    """
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)


def next_key(generator: Generator | None) -> Any:
    return (default_generator if generator is None else generator).next_key()


def _finish(x: Any, requires_grad: bool) -> Any:
    return x.requires_grad_(True) if requires_grad else x


@placed
@explained
def rand(
    *sizes: Any,
    size: Any = None,
    generator: Any = None,
    dtype: Any = None,
    requires_grad: bool = False,
) -> Any:
    """Numbers uniform in [0, 1)."""
    x = uniform(next_key(generator), shape_of("rand", given(sizes, size)), dtype=dtype)
    return _finish(x, requires_grad)


@placed
@explained
def randn(
    *sizes: Any,
    size: Any = None,
    generator: Any = None,
    dtype: Any = None,
    requires_grad: bool = False,
) -> Any:
    """Numbers from the normal distribution with mean 0 and standard deviation 1."""
    x = keyed_normal(next_key(generator), shape_of("randn", given(sizes, size)), dtype=dtype)
    return _finish(x, requires_grad)


@placed
@explained
def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    requires_grad: bool = False,
) -> Any:
    """Numbers from normal distributions; the shape is `size`, or that of `mean` and `std`."""
    if size is None:
        size = np.broadcast_shapes(getattr(mean, "shape", ()), getattr(std, "shape", ()))
    return _finish(randn(*size, generator=generator, dtype=dtype) * std + mean, requires_grad)


@placed
@explained
def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    requires_grad: bool = False,
) -> Any:
    """Integers uniform in [low, high): `randint(high, size)` or `randint(low, high, size)`."""
    if size is None:
        if not isinstance(high, (tuple, list)):
            raise ShapeError(f"randint: give a size, as in randint(0, 10, (3,)){at_line()}")
        low, high, size = 0, low, high
    x = pure.randint(next_key(generator), tuple(size), low, high, dtype_of(dtype or "int64"))
    return _finish(x, requires_grad)


@placed
@explained
def randperm(
    n: int, *, generator: Any = None, dtype: Any = None, requires_grad: bool = False
) -> Any:
    """The numbers 0 to n-1 in random order."""
    return _finish(cast(permutation(next_key(generator), n), dtype or "int64"), requires_grad)


@explained
def bernoulli(input: Any, p: Any = None, *, generator: Any = None) -> Any:
    """1 with probability `input` (or `p`), else 0, in the shape and dtype of `input`."""
    x = as_tensor(input)
    chance = x.detach() if p is None else p
    drawn = keyed_bernoulli(next_key(generator), chance, x.shape)
    return cast(drawn, x.dtype)


@placed
@explained
def rand_like(
    input: Any, *, generator: Any = None, dtype: Any = None, requires_grad: bool = False
) -> Any:
    """Numbers uniform in [0, 1) in the shape and dtype of `input`."""
    dtype = dtype or input.dtype
    return rand(input.shape, generator=generator, dtype=dtype, requires_grad=requires_grad)


@placed
@explained
def randn_like(
    input: Any, *, generator: Any = None, dtype: Any = None, requires_grad: bool = False
) -> Any:
    """Normally distributed numbers in the shape and dtype of `input`."""
    dtype = dtype or input.dtype
    return randn(input.shape, generator=generator, dtype=dtype, requires_grad=requires_grad)


@placed
@explained
def randint_like(
    input: Any,
    low: int,
    high: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    requires_grad: bool = False,
) -> Any:
    """Integers uniform in [low, high), or [0, low), in the shape and dtype of `input`."""
    low, high = (0, low) if high is None else (low, high)
    drawn = randint(low, high, input.shape, generator=generator, dtype=dtype or input.dtype)
    return _finish(drawn, requires_grad)


@explained
def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Any:
    """Indices drawn with probabilities proportional to the last axis of `input`.

    With replacement, where the sums of the weights pass uniform numbers. Without, Gumbel's trick:
    the k greatest of log p + noise are k fair draws.
    """
    weights = cast(as_tensor(input).detach(), "float64")
    if weights.value is not None:
        check_weights(weights, num_samples, replacement)
    rows = weights.shape[:-1]
    if replacement:
        unit = rand(*rows, num_samples, generator=generator, dtype="float64")
        sums = cumsum(weights, -1)
        total = sums[..., -1:]
        below = minimum(unit * total, total * (1 - 2.0**-52))
        return searchsorted(sums, below, right=True)
    unit = rand(*weights.shape, generator=generator, dtype="float64")
    scores = log(weights) - log(1e-300 - log1p(-unit))
    return argsort(-scores, -1, stable=True)[..., :num_samples].clone()


def check_weights(weights: Any, num_samples: int, replacement: bool) -> None:
    """Refuse weights from which nothing, or not enough, can be drawn."""
    if bool((weights < 0).any()) or bool((weights.sum(-1) <= 0).any()):
        raise ShapeError(f"multinomial: probabilities are not negative, not all 0{at_line()}")
    if not replacement and bool(((weights > 0).sum(-1) < num_samples).any()):
        facts = f"{num_samples} samples without replacement of fewer that are possible"
        raise ShapeError(f"multinomial: {facts}{at_line()}")


DRAWS = {
    "beta", "binomial", "categorical", "cauchy", "dirichlet", "exponential", "gamma", "geometric",
    "gumbel", "laplace", "log_normal", "poisson", "truncated_normal",
}  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*globals(), *DRAWS})


def __getattr__(name: str) -> Any:
    """The draws of random/distributions.py, which use loops and custom rules, on demand."""
    if name in DRAWS:
        from lucid.random import distributions as drawing

        return getattr(drawing, name)
    raise AttributeError(f"module 'lucid.random' has no attribute {name!r}")
