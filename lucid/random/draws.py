"""Generators, and draws from the uniform, the normal and a few discrete distributions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, GraphError, ShapeError
from lucid.func.mapping.levels import stream_of
from lucid.ir.types import dtype_of
from lucid.ops.core.arguments import (
    check_device,
    concrete_array,
    creation_function,
    is_device,
    public_function,
)
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import minimum, where
from lucid.ops.elementwise.exponential import log, log1p
from lucid.ops.index.searching import searchsorted
from lucid.ops.random import keyed as pure
from lucid.ops.random.keyed import (
    FOLD,
    UINT32,
    RandomBits,
    permutation,
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
from lucid.ops.shape.creation import checked_size, merge_sizes
from lucid.ops.shape.joining import cat
from lucid.public.declare import public
from lucid.support.locks import new_lock
from lucid.tape.bind import bind
from lucid.tape.modes import current, local
from lucid.tape.node import Traced, is_recording, wrap
from lucid.tape.recording.recorder import Unrecorded
from lucid.tape.scopes import in_own_scope
from lucid.tensors.mutation import assign
from lucid.tensors.tensor import Tensor


@public("lucid", "random")
class Generator:
    """A stream of keys from one seed.

    >>> import lucid
    >>> g = lucid.random.Generator(3)
    >>> a = lucid.random.rand(2, generator=g)
    >>> bool((lucid.random.rand(2, generator=g.manual_seed(3)) == a).all())
    True
    """

    def __init__(self, seed: int = 0, *, device: Any = None) -> None:
        if is_device(seed):  # Generator("cpu"), which is PyTorch's form
            seed, device = 0, seed
        if device is not None:
            check_device("Generator", device)
        self._lock = new_lock()
        self._state = Tensor(initial_state(seed))

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream from a seed."""
        return self._assign_state(bind(COPY, wrap(initial_state(seed))))

    def initial_seed(self) -> int:
        """Return the seed that the stream started from."""
        low, high = self._state[:2].tolist()
        return low | high << 32

    def seed(self) -> int:
        """Restart the stream from a seed of the operating system, and return the seed."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self.initial_seed()

    def get_state(self) -> Any:
        """Return the seed and the counter as a tensor of four words."""
        with self._lock:
            return bind(COPY, self._state)

    def set_state(self, state: Any) -> None:
        """Continue from a state returned by `get_state`."""
        state = as_tensor(state)
        if state.dtype != UINT32 or state.shape != (4,):
            facts = f"the state must be u32[4], as get_state returns, not {state.type}"
            raise ShapeError(f"set_state: {facts}")
        self._assign_state(bind(COPY, state))

    def _assign_state(self, state: Any) -> Generator:
        if is_recording():
            local.recorder.add_lock(self._lock)
        with self._lock:
            assign(self._state, state, "set_state")
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"state": self.get_state()}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self._lock, self._state = new_lock(), saved["state"]

    def split(self, n: int = 2) -> list[Generator]:
        """Return `n` streams that are independent of this one and of each other."""
        return [Generator(low | high << 32) for low, high in split(self.next_key(), n).tolist()]

    def fork(self) -> Generator:
        """Return a stream that is independent of this one."""
        return self.split(1)[0]

    def next_key(self) -> Any:
        """Return the next key of the stream; inside vmap according to `randomness`."""
        modes = current()
        if modes.staging is not None and modes.staging.is_cached:
            raise GraphError(
                "random numbers are drawn in a custom rule, which is traced once for many calls; "
                "draw them in the function, or pass them to it"
            )
        return stream_of(self).draw() if modes.maps else self.draw()

    def substream(self, key: Any) -> Generator:
        """Return a stream of keys that starts from a key."""
        stream = Generator.__new__(Generator)
        stream._lock = new_lock()
        stream._state = cat([key, wrap(FIRST_COUNT.copy())])
        return stream

    def draw(self) -> Any:
        state = self._state
        if is_recording() or state.raw is None:
            return self._draw_recorded()
        with self._lock:
            words = state.value
            drawn = KEY.eval(words[:2], words[2:])
            count = words.item(2) + 1
            words[2] = count & 0xFFFFFFFF
            if count >> 32:
                words[3] = (words.item(3) + 256) & 0xFFFFFFFF
        return wrap(drawn)

    def named_tensors(self, known: Any = None) -> Iterator[tuple[str, Any]]:
        """Iterate over the state, with its name."""
        yield "Generator.state", self._state

    @in_own_scope
    def _draw_recorded(self) -> Any:
        """`draw` as operations on the tape, which write the state as they would any tensor."""
        if is_recording():
            local.recorder.add_lock(self._lock)
        with self._lock:
            state = self._state
            drawn = bind(KEY, state[:2], state[2:])
            assign(state, next_state(state), "draw")
        return drawn


KEY = RandomBits((2,))
FIRST_COUNT = np.array([0, FOLD], UINT32)
COUNT_INCREMENT = np.array([0, 0, 1, 0], UINT32)
COUNT_INCREMENT_WITH_CARRY = np.array([0, 0, 1, 256], UINT32)


def initial_state(seed: int) -> np.ndarray:
    """Return the state of a new stream: the seed and the initial counter.

    The count is in the low word of the counter and the upper 24 bits of the high word, above the
    constant that separates folding into a key from drawing.
    """
    try:
        seed = int(seed) % (1 << 64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"manual_seed: the seed must be an integer, not {seed!r}") from None
    return np.array([seed & 0xFFFFFFFF, seed >> 32, 0, FOLD], UINT32)


def next_state(state: Any) -> Any:
    """Return the state after one more draw."""
    full = state[2:3].expand(4) == 0xFFFFFFFF
    return state + where(full, wrap(COUNT_INCREMENT_WITH_CARRY), wrap(COUNT_INCREMENT))


with Unrecorded():  # this module may be imported while a function is recorded
    default_generator = public("random")(Generator())


@public("lucid", "random")
def manual_seed(seed: int) -> Generator:
    """Restart the default stream from a seed.

    >>> import lucid
    >>> _ = lucid.manual_seed(0)
    >>> a = lucid.randn(3)
    >>> _ = lucid.manual_seed(0)
    >>> bool((lucid.randn(3) == a).all())
    True
    """
    return default_generator.manual_seed(seed)


@public("lucid", "random")
def seed() -> int:
    """Restart the default stream from a seed of the operating system, and return the seed."""
    return default_generator.seed()


@public("lucid", "random")
def initial_seed() -> int:
    """Return the seed of the default stream."""
    return default_generator.initial_seed()


@public("lucid", "random")
def get_rng_state() -> Any:
    """Return the state of the default stream."""
    return default_generator.get_state()


@public("lucid", "random")
def set_rng_state(new_state: Any) -> None:
    """Continue the default stream from a state returned by `get_rng_state`."""
    default_generator.set_state(new_state)


@public("random")
@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Restore the default stream at the end of the block.

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


@creation_function("lucid", "random")
def rand(*sizes: Any, size: Any = None, generator: Any = None, dtype: Any = None) -> Any:
    """Return numbers uniform in [0, 1)."""
    shape = checked_size("rand", merge_sizes("rand", sizes, size))
    return uniform(next_key(generator), shape, dtype=dtype)


@creation_function("lucid", "random")
def randn(*sizes: Any, size: Any = None, generator: Any = None, dtype: Any = None) -> Any:
    """Return numbers from the normal distribution with mean 0 and standard deviation 1."""
    shape = checked_size("randn", merge_sizes("randn", sizes, size))
    return keyed_normal(next_key(generator), shape, dtype=dtype)


def check_values(name: str, what: str, x: Any, low: float, high: float) -> None:
    """Raise ArgumentError if a value, where it is known, is out of range."""
    known = concrete_array(x) if isinstance(x, Traced) else np.asarray(x)
    if known is not None and known.size and not ((known >= low) & (known <= high)).all():
        raise ArgumentError(f"{name}: {what} is not between {low:g} and {high:g}")


@creation_function("lucid", "random")
def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None
) -> Any:
    """Return normally distributed numbers, with shape `size` or that of `mean` and `std`."""
    if size is None:
        size = np.broadcast_shapes(getattr(mean, "shape", ()), getattr(std, "shape", ()))
    check_values("normal", "std", std, 0.0, np.inf)
    return randn(*size, generator=generator, dtype=dtype) * std + mean


@creation_function("lucid", "random")
def randint(
    low: int, high: Any = None, size: Any = None, *, generator: Any = None, dtype: Any = None
) -> Any:
    """Return uniform integers in [low, high); also called as `randint(high, size)`."""
    if size is None:
        if not isinstance(high, (tuple, list)):
            raise ShapeError("randint: pass a size, as in randint(0, 10, (3,))")
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    return pure.randint(next_key(generator), tuple(size), low, high, dtype_of(dtype or "int64"))


@creation_function("lucid", "random")
def randperm(n: int, *, generator: Any = None, dtype: Any = None) -> Any:
    """Return the numbers 0 to n-1 in random order."""
    return cast(permutation(next_key(generator), n), dtype or "int64")


@public_function("lucid", "Tensor", "random")
def bernoulli(input: Any, p: Any = None, *, generator: Any = None) -> Any:
    """Return 1 with probability `input` (or `p`), else 0, in the shape and dtype of `input`."""
    x = as_tensor(input)
    chance = x.detach() if p is None else p
    check_values("bernoulli", "a probability", chance, 0.0, 1.0)
    drawn = keyed_bernoulli(next_key(generator), chance, x.shape)
    return cast(drawn, x.dtype)


@creation_function("lucid", "random")
def rand_like(input: Any, *, generator: Any = None, dtype: Any = None) -> Any:
    """Return numbers uniform in [0, 1) in the shape and dtype of `input`."""
    return rand(input.shape, generator=generator, dtype=dtype or input.dtype)


@creation_function("lucid", "random")
def randn_like(input: Any, *, generator: Any = None, dtype: Any = None) -> Any:
    """Return normally distributed numbers in the shape and dtype of `input`."""
    return randn(input.shape, generator=generator, dtype=dtype or input.dtype)


@creation_function("lucid", "random")
def randint_like(
    input: Any, low: int, high: Any = None, *, generator: Any = None, dtype: Any = None
) -> Any:
    """Return integers uniform in [low, high), or [0, low), in the shape and dtype of `input`."""
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, input.shape, generator=generator, dtype=dtype or input.dtype)


@public_function("lucid", "Tensor", "random")
def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Any:
    """Return indices drawn with probabilities proportional to the last axis of `input`.

    With replacement by inverting the cumulative sum; without by the Gumbel trick: the k largest
    of log p + noise are k draws.
    """
    weights = cast(as_tensor(input).detach(), "float64")
    if weights.raw is not None:
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
    """Raise an error for weights from which not enough samples can be drawn."""
    if bool((weights < 0).any()) or bool((weights.sum(-1) <= 0).any()):
        raise ShapeError("multinomial: probabilities must be non-negative and not all 0")
    if not replacement and bool(((weights > 0).sum(-1) < num_samples).any()):
        facts = f"cannot draw {num_samples} samples without replacement from fewer non-zero weights"
        raise ShapeError(f"multinomial: {facts}")
