"""Cases for random bits, against the cipher written once more with Python integers."""

import math

import numpy as np

from lucid.ops.random.keyed import RandomBits
from tests.cases.case import Case, integer

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
MASK = 0xFFFFFFFF


def threefry(key, counter):
    """Threefry 2x32 as in section 3.3 of Salmon et al., 20 rounds."""
    schedule = [*key, 0x1BD11BDA ^ key[0] ^ key[1]]
    x, y = ((c + k) & MASK for c, k in zip(counter, schedule))
    for r in range(20):
        x = (x + y) & MASK
        y = (y << ROTATIONS[r % 8] | y >> 32 - ROTATIONS[r % 8]) & MASK ^ x
        if r % 4 == 3:
            s = r // 4 + 1
            x, y = (x + schedule[s % 3]) & MASK, (y + schedule[(s + 1) % 3] + s) & MASK
    return x, y


def bits(shape):
    def expected(key, counter):
        if key.ndim > 1:
            return np.stack([expected(k, c) for k, c in zip(key, counter)])
        key, (low, high) = key.tolist(), counter.tolist()
        n = math.prod(shape)
        words = [w for i in range(n) for w in threefry(key, ((low + i) & MASK, high))]
        return np.array(words[:n], "uint32").reshape(shape)

    return expected


def words(*shape):
    return integer(*shape, low=0, high=1 << 32, dtype="uint32")


CASES = [
    Case(RandomBits(shape), (words(2), words(2)), bits(shape), label=f"{shape}")
    for shape in [(2,), (), (5,), (2, 3), (0,), (0, 2)]
] + [
    Case(RandomBits((3,)), (words(4, 2), words(4, 2)), bits((3,))),
    Case(RandomBits(()), (words(2, 2), words(2, 2)), bits(())),
    Case(RandomBits((2,)), (words(0, 2), words(0, 2)), lambda k, c: np.zeros((0, 2), "uint32")),
]
