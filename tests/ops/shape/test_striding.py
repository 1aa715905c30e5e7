"""as_strided of views: what lies around them in memory, as in PyTorch, or a clear error."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, IndexingError
from tests.compiled import compiled

MEMORY = np.arange(24.0)
VIEWS = {
    "transposed": lambda x: x.reshape(4, 6).T,
    "columns": lambda x: x.reshape(4, 6)[:, 1:5:2],
    "a row": lambda x: x.reshape(4, 6)[2],
    "from the fourth": lambda x: x.reshape(24, 1)[3:],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("offset", [None, 0, 2])
def test_strides_count_the_memory_that_a_view_shows(view, offset):
    own = MEMORY.copy()
    seen = view(own)
    first = (seen.__array_interface__["data"][0] - own.__array_interface__["data"][0]) // 8
    start = own[first if offset is None else offset :]
    expected = np.lib.stride_tricks.as_strided(start, (2, 3), (8, 16))
    x = view(lucid.tensor(MEMORY))
    assert np.array_equal(lucid.as_strided(x, (2, 3), (1, 2), offset), expected)


def test_a_jitted_function_reads_the_memory_of_views_too():
    def f(x):
        return (x * 2).reshape(4, 6).T.as_strided((2, 3), (1, 6), 1)

    x = lucid.tensor(MEMORY)
    expected = (MEMORY * 2).reshape(4, 6)[:3, 1:3].T
    assert np.array_equal(f(x), expected) and np.array_equal(compiled(f)(x), expected)


def test_gradients_reach_elements_beside_the_view():
    x = lucid.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    x[1:3].as_strided((4,), (1,), 0).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0, 1.0]


def test_memory_in_another_order_is_read_in_its_own():
    x = lucid.from_numpy(np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    assert x.as_strided((6,), (1,)).tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]


def test_gaps_in_memory_are_no_elements():
    x = lucid.from_numpy(np.arange(6.0)[::2])
    assert x.as_strided((2,), (4,)).tolist() == [0.0, 4.0]
    with pytest.raises(IndexingError, match="offset 1 is not among"):
        x.as_strided((2,), (1,))


def test_bits_of_another_size_have_no_strides_of_their_own():
    with pytest.raises(ArgumentError, match="float32 as int16"):
        lucid.ones(4).view(lucid.int16).as_strided((2,), (1,))


def test_a_scatter_into_a_view_keeps_the_shape_of_the_view():
    x = lucid.tensor(MEMORY).reshape(4, 6).T
    y = lucid.as_strided_scatter(x, lucid.zeros(4), (4,), (6,), 1)
    expected = MEMORY.reshape(4, 6).T.copy()
    expected[1] = 0
    assert np.array_equal(y, expected)
