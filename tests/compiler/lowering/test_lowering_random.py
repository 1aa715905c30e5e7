"""random_bits lowered to a native kernel: the words of the interpreter, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.ops.random.keyed import RandomBits
from tests.compiler.lowering.lowering_checks import check, compiled


def words(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2**32, shape, dtype="uint32")


@pytest.mark.parametrize("shape", [(), (1,), (2,), (3,), (4, 5), (0,), (7, 3), (1001,)])
@pytest.mark.parametrize("outer", [(), (3,), (2, 2)])
def test_every_key_has_words_of_its_own(shape, outer):
    check(RandomBits(shape), words(*outer, 2), words(*outer, 2)[..., ::-1].copy())


def test_the_counter_wraps():
    check(RandomBits((10,)), words(2), np.array([2**32 - 2, 7], "uint32"))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_words_are_the_same_for_any_number_of_threads(n, threads):
    threads(n)
    check(RandomBits((99_999,)), words(3, 2), words(3, 2))


def test_nothing_stays_in_python():
    key = words(2)
    assert compiled(RandomBits((5,)), key, key).plan is not None
