"""Random numbers as pure functions of a key: the same key gives the same numbers, everywhere.

The one primitive is the block cipher Threefry 2x32 with 20 rounds (Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3", 2011). The rest is arithmetic on its bits. A key is two uint32 words;
the counter's high word separates drawing numbers from splitting a key and from folding data in.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.types import Type, dtype_of
from lucid.ops.core.arguments import public_function
from lucid.ops.core.kinds import Constant
from lucid.ops.core.promote import as_tensor, cast, get_default_dtype
from lucid.ops.index.subscript import getitem
from lucid.ops.reduce.sorting import argsort
from lucid.ops.shape.concatenate import Concatenate
from lucid.ops.shape.creation import checked_size
from lucid.ops.shape.movement import broadcast_unbatched
from lucid.tape import node as tape
from lucid.tape.bind import bind
from lucid.tape.modes import local
from lucid.tape.node import Traced, is_recording, wrap
from lucid.tape.tiering import Policy, Tiering, table

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
PARITY = np.uint32(0x1BD11BDA)
UINT32 = np.dtype("uint32")
FLOAT32 = np.dtype("float32")
DRAW, SPLIT, FOLD = 0, 1, 2
FIRST_COUNTERS = [np.array([0, purpose], UINT32) for purpose in (DRAW, SPLIT, FOLD)]
CALL_OVERHEAD = 10_000  # of a NumPy draw, in words
LARGE_DRAW = 4096  # words from which a native draw pays at once
CIPHER = Policy("cipher", CALL_OVERHEAD)
DRAW_OF_SIZE = Policy("draw", max_runs=4)


class RandomBits(Constant):
    """uint32 words of a shape: the cipher's blocks at counter, counter + 1, ... (two words each).

    Operands key and counter are two words each, low word first; leading axes give one array per
    key.
    """

    shape: tuple[int, ...]
    lowering = "lucid.compiler.lowering.random.threefry:RandomBitsLowering"

    def infer(self, key: Type, counter: Type) -> Type:
        for what, x in (("key", key), ("counter", counter)):
            if x.dtype != UINT32 or x.shape[-1:] != (2,) or x.shape != key.shape:
                raise ShapeError(
                    f"random_bits: {what} is {x}; it must be u32[2], as from lucid.random.key"
                )
        return Type(UINT32, key.shape[:-1] + self.shape)

    def eval(self, key: np.ndarray, counter: np.ndarray) -> np.ndarray:
        size = math.prod(self.shape)
        words = native_words(key, counter, size)
        if words is not None:
            return words.reshape(key.shape[:-1] + self.shape)
        if size <= 2 and key.ndim == 1:
            block = encrypt_block(*key.tolist(), *counter.tolist())
            return np.array(block[:size], UINT32).reshape(self.shape)
        x0 = counter[..., :1] + np.arange((size + 1) // 2, dtype=UINT32)
        x1 = np.broadcast_to(counter[..., 1:], x0.shape).copy()
        encrypt(key[..., :1], key[..., 1:], x0, x1)
        flat = np.stack((x0, x1), -1).reshape(*key.shape[:-1], 2 * x0.shape[-1])
        return flat[..., :size].reshape(key.shape[:-1] + self.shape)

    def batch(self, n: int, batched: tuple[bool, ...], key: Any, counter: Any) -> Any:
        return bind(self, *broadcast_unbatched(n, batched, key, counter))


def native_words(key: np.ndarray, counter: np.ndarray, size: int) -> np.ndarray | None:
    """Return `size` words for every key from native code, or None if NumPy must draw them."""
    if not Tiering.enabled or Tiering.load_cipher is None or not size or 0 in key.shape:
        return None
    cipher = table.entry(CIPHER, None)
    build = cipher.program or cipher.count(size + CALL_OVERHEAD, Tiering.load_cipher)
    if build is None:
        return None
    entry = table.entry(DRAW_OF_SIZE, (size, key.shape))
    if entry.program is None:
        large = size * math.prod(key.shape[:-1]) >= LARGE_DRAW
        entry.count(entry.limit if large else 1, lambda: build(key.shape, size))
        if entry.program is None:
            return None
    found = entry.program(key, counter)
    return None if found is None else found[0]


def encrypt(key0: np.ndarray, key1: np.ndarray, x0: np.ndarray, x1: np.ndarray) -> None:
    """Threefry 2x32 with 20 rounds, in place on the two words of every block."""
    keys = (key0, key1, key0 ^ key1 ^ PARITY)
    shifted = np.empty(x0.shape, UINT32)
    x0 += keys[0]
    x1 += keys[1]
    for group in range(5):
        for rotation in ROTATIONS[4 * (group % 2) : 4 * (group % 2) + 4]:
            x0 += x1
            np.right_shift(x1, 32 - rotation, out=shifted)
            np.left_shift(x1, rotation, out=x1)
            x1 |= shifted
            x1 ^= x0
        x0 += keys[(group + 1) % 3]
        x1 += keys[(group + 2) % 3] + np.uint32(group + 1)


def encrypt_block(key0: int, key1: int, x0: int, x1: int) -> tuple[int, int]:
    """`encrypt` one block of Python integers: 10 µs, where NumPy takes 100."""
    mask = 0xFFFFFFFF
    keys = (key0, key1, key0 ^ key1 ^ int(PARITY))
    x0, x1 = (x0 + key0) & mask, (x1 + key1) & mask
    for group in range(5):
        for rotation in ROTATIONS[4 * (group % 2) : 4 * (group % 2) + 4]:
            x0 = (x0 + x1) & mask
            x1 = ((x1 << rotation) & mask | x1 >> (32 - rotation)) ^ x0
        x0 = (x0 + keys[(group + 1) % 3]) & mask
        x1 = (x1 + keys[(group + 2) % 3] + group + 1) & mask
    return x0, x1


@public_function("random")
def key(seed: Any) -> Any:
    """The key of a seed: two uint32 words, low word first.

    >>> import lucid
    >>> lucid.random.key(7)
    Tensor([7, 0], dtype=uint32)
    """
    if isinstance(seed, Traced):  # no value is read: under vmap every example has its own
        words = [cast(cast(seed, "int64") // (1 << shift), UINT32).reshape(1) for shift in (0, 32)]
        return bind(Concatenate(0), *words)
    seed = int(seed) % (1 << 64)
    return wrap(np.array([seed & 0xFFFFFFFF, seed >> 32], UINT32))


@public_function("random")
def split(key: Any, n: int = 2) -> Any:
    """Split a key into `n` new keys; the old key should not be used again."""
    return _bits(key, (n, 2), SPLIT)


@public_function("random")
def fold_in(key: Any, data: Any) -> Any:
    """Derive a new key from a key and an integer: a different one for every 32-bit integer."""
    if isinstance(data, Traced):
        low = cast(data, UINT32).reshape(1)
        counter = bind(Concatenate(0), low, wrap(np.array([FOLD], UINT32)))
    else:
        counter = wrap(np.array([int(data) & 0xFFFFFFFF, FOLD], UINT32))
    return bind(RandomBits((2,)), as_key(key), counter)


def as_key(key: Any) -> Any:
    """Return `key` as a tensor, checking that it is a key."""
    key = as_tensor(key)
    if key.dtype != UINT32 or key.shape != (2,):
        raise DTypeError(f"random: {key.type} is not a key (u32[2]); use lucid.random.key(seed)")
    return key


def _bits(key: Any, shape: tuple[int, ...], purpose: int) -> Any:
    return bind(RandomBits(shape), as_key(key), wrap(FIRST_COUNTERS[purpose]))


@public_function("random")
def random_bits(key: Any, shape: Any = (), bits: int = 32) -> Any:
    """Uniform random words: uint8, uint16, uint32 or uint64 by the number of `bits`."""
    shape = checked_size("random_bits", (shape,))
    if bits == 32:
        return _bits(key, shape, DRAW)
    if bits == 64:
        high, low = _halves(key, shape)
        return cast(high, "uint64") * (1 << 32) + cast(low, "uint64")
    if bits in (8, 16):
        return cast(_bits(key, shape, DRAW) >> (32 - bits), f"uint{bits}")
    raise DTypeError(f"random_bits: bits={bits}; it must be 8, 16, 32 or 64")


def _halves(key: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    pairs = _bits(key, (2, *shape), DRAW)
    return getitem(pairs, 0), getitem(pairs, 1)


def _words(key: Any, shape: tuple[int, ...]) -> Any:
    """Return random words, as an ndarray (faster to compute with) if nothing is recording."""
    if key.__class__ is not tape.tensor_class or key.node is not None or key.raw is None:
        return _bits(key, shape, DRAW)
    if is_recording() or local.staging is not None:
        return _bits(key, shape, DRAW)
    return RandomBits(shape).eval(as_key(key).value, FIRST_COUNTERS[DRAW])


def _integers(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> tuple[Any, int]:
    """Return random integers below 2**precision, exact in a floating dtype, and the precision."""
    if dtype == np.float64:
        words = _words(key, (2, *shape))
        return (words[0] >> 5).astype(dtype) * 67108864.0 + (words[1] >> 6).astype(dtype), 53
    return (_words(key, shape) >> 8).astype(FLOAT32), 24


def _tensor(x: Any, dtype: np.dtype) -> Any:
    """Convert an ndarray or tensor to a tensor of a dtype."""
    return cast(x if isinstance(x, Traced) else wrap(np.asarray(x)), dtype)


def _draw_complex(draw: Any, key: Any, shape: Any, dtype: np.dtype) -> Any:
    """Draw complex numbers whose two parts have the same distribution."""
    from lucid.ops.shape.arranging import view_as_complex

    part = np.dtype("float64" if dtype.itemsize == 16 else "float32")
    return view_as_complex(draw(key, (*checked_size("random", (shape,)), 2), dtype=part))


def _floating(name: str, dtype: Any) -> np.dtype:
    dtype = get_default_dtype() if dtype is None else dtype_of(dtype)
    if dtype.kind != "f":
        raise DTypeError(f"{name}: dtype {dtype} is not floating")
    return dtype


@public_function("random")
def uniform(key: Any, shape: Any = (), low: Any = 0.0, high: Any = 1.0, dtype: Any = None) -> Any:
    """Uniform random numbers in [low, high); complex ones have both parts uniform before scaling.

    >>> import lucid
    >>> x = lucid.random.uniform(lucid.random.key(0), (1000,))
    >>> bool((x >= 0).all()), bool((x < 1).all())
    (True, True)
    """
    if dtype is not None and dtype_of(dtype).kind == "c":
        return _draw_complex(uniform, key, shape, dtype_of(dtype)) * (high - low) + low
    dtype = _floating("uniform", dtype)
    numbers, precision = _integers(key, checked_size("uniform", (shape,)), dtype)
    unit = _tensor(numbers * 2.0**-precision, dtype)
    are_numbers = not isinstance(low, Traced) and not isinstance(high, Traced)
    return unit if are_numbers and low == 0 and high == 1 else unit * (high - low) + low


@public_function("random", name="keyed_normal")
def normal(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Standard normal random numbers: √2 erfinv(u) for u uniform in (-1, 1).

    The parts of complex numbers have variance 1/2 each.
    """
    from lucid.ops.special.error_and_gamma import erfinv

    if dtype is not None and dtype_of(dtype).kind == "c":
        return _draw_complex(normal, key, shape, dtype_of(dtype)) * math.sqrt(0.5)
    dtype = _floating("normal", dtype)
    numbers, precision = _integers(key, checked_size("normal", (shape,)), dtype)
    symmetric = numbers * 2.0 ** (1 - precision) + (2.0**-precision - 1.0)
    return cast(erfinv(_tensor(symmetric, symmetric.dtype)) * math.sqrt(2.0), dtype)


@public_function("random", name="keyed_bernoulli")
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Any:
    """Random booleans that are True with probability `p`."""
    if shape is None:
        shape = p.shape if hasattr(p, "shape") else ()
    dtype = np.dtype("float64") if getattr(p, "dtype", None) == np.float64 else None
    return uniform(key, shape, dtype=dtype) < p


def randint(key: Any, shape: Any = (), low: int = 0, high: int = 2, dtype: Any = "int64") -> Any:
    """Uniform random integers in [low, high)."""
    if not low < high or high - low > 1 << 53:
        facts = f"no integers in [{low}, {high})" if low >= high else "a range above 2**53"
        raise ShapeError(f"randint: {facts}")
    unit = uniform(key, shape, dtype="float64")
    return cast(cast(unit * float(high - low), "int64") + low, dtype)


@public_function("random")
def permutation(key: Any, n: int) -> Any:
    """The numbers 0 to n-1 in random order."""
    return argsort(uniform(key, (n,), dtype="float64"))
