"""Subscripts and index functions: random ones read, write and differentiate as in NumPy."""

import numpy as np
import pytest

import lucid
from lucid.errors import DTypeError, IndexingError, ShapeError, TracedValueError
from lucid.func import vmap
from lucid.ir.types import Type
from lucid.ops.core.promote import as_tensor
from lucid.ops.index import lookup
from lucid.ops.index.gather_scatter import nonzero
from lucid.ops.index.subscript import getitem, setitem
from lucid.tape.recording.trace import trace


class RandomSubscript:
    """Every kind of index that NumPy takes, mixed at random."""

    def __init__(self, rng, shape):
        self.rng, self.shape = rng, shape
        self.common = tuple(rng.integers(0, 4, rng.integers(0, 3)))

    def chance(self, p):
        return self.rng.random() < p

    def make(self):
        items, axis, ndim = [], 0, len(self.shape)
        ellipsis_at = self.rng.integers(0, ndim + 1) if self.chance(0.3) else -1
        while axis < ndim:
            if axis == ellipsis_at:
                items.append(Ellipsis)
                axis += int(self.rng.integers(0, ndim - axis + 1))
                ellipsis_at = -1
            elif self.chance(0.05) and axis:
                break
            else:
                item, used = self.item(axis)
                items.append(item)
                axis += used
        return tuple(items) if len(items) != 1 or self.chance(0.5) else items[0]

    def item(self, axis):
        n, kind = self.shape[axis], self.rng.random()
        if kind < 0.1:
            return None, 0
        if kind < 0.15:
            return self.chance(0.7), 0
        if kind < 0.3 and n:
            return int(self.rng.integers(-n, n)), 1
        if kind < 0.55 or not n:
            return self.slice(n), 1
        if kind < 0.85:
            return self.integers(n), 1
        count = int(self.rng.integers(1, len(self.shape) - axis + 1))
        return self.rng.random(self.shape[axis : axis + count]) < 0.5, count

    def slice(self, n):
        start, stop = (
            None if self.chance(0.3) else int(self.rng.integers(-n - 2, n + 3)) for _ in range(2)
        )
        return slice(start, stop, self.rng.choice([None, -3, -2, -1, 1, 2, 3]))

    def integers(self, n):
        shape = [1 if self.chance(0.3) else size for size in self.common]
        values = self.rng.integers(-n, n, shape[1:] if self.chance(0.2) else shape)
        kind = self.rng.random()
        if kind < 0.2 and values.size:
            return values.tolist()
        return values if kind < 0.6 else as_tensor(values)


def for_numpy(index):
    if isinstance(index, tuple):
        return tuple(for_numpy(item) for item in index)
    return index.numpy() if isinstance(index, lucid.Tensor) else index


def expressions(seed, count):
    """(array, subscript, the same for NumPy), for subscripts that NumPy accepts."""
    rng = np.random.default_rng(seed)
    while count:
        low = 0 if rng.random() < 0.1 else 1
        shape = tuple(int(n) for n in rng.integers(low, 5, rng.integers(0, 5)))
        index = RandomSubscript(rng, shape).make()
        x = rng.normal(size=shape)
        try:
            x[for_numpy(index)]
        except IndexError:
            with pytest.raises(IndexError):
                getitem(as_tensor(x), index)
            continue
        count -= 1
        yield x, index, for_numpy(index)


def test_random_subscripts_read_as_numpy_does():
    for x, index, plain in expressions(0, 400):
        y = getitem(as_tensor(x), index)
        assert y.shape == x[plain].shape, (x.shape, plain)
        np.testing.assert_array_equal(y.numpy(), x[plain], err_msg=f"{x.shape} {plain}")


def test_random_subscripts_have_the_gradient_that_adding_at_them_gives():
    rng = np.random.default_rng(5)
    for x, index, plain in expressions(1, 300):
        t = lucid.Tensor(x, requires_grad=True)
        y = getitem(t, index)
        weights = rng.normal(size=y.shape)
        (y * as_tensor(weights)).sum().backward()
        expected = np.zeros_like(x)
        np.add.at(expected, plain, weights)
        actual = np.zeros_like(x) if t.grad is None else t.grad.numpy()
        np.testing.assert_allclose(actual, expected, err_msg=f"{x.shape} {plain}", atol=1e-12)


def test_random_subscripts_write_as_numpy_does():
    rng = np.random.default_rng(6)
    for x, index, plain in expressions(2, 400):
        shape = x[plain].shape
        value = rng.normal(size=[(), shape, shape[-1:], (1, *shape)][rng.integers(4)])
        expected = x.copy()
        try:
            expected[plain] = value
        except (TypeError, ValueError):  # NumPy takes no longer shape for one element or a mask
            assert value.ndim > len(shape)
            continue
        y = setitem(as_tensor(x), index, value)
        np.testing.assert_array_equal(y.numpy(), expected, err_msg=f"{x.shape} {plain}")


def test_random_writes_have_the_gradient_of_the_last_write():
    """Write the numbers of the elements: what survives says where each element came from."""
    rng = np.random.default_rng(7)
    for x, index, plain in expressions(3, 200):
        shape = x[plain].shape
        a = lucid.Tensor(x, requires_grad=True)
        b = lucid.Tensor(rng.normal(size=shape), requires_grad=True)
        weights = rng.normal(size=x.shape)
        (setitem(a, index, b) * as_tensor(weights)).sum().backward()
        origin = np.full(x.shape, -1)
        origin[plain] = np.arange(b.value.size).reshape(shape)
        for_b = np.zeros(b.value.size)
        for_b[origin[origin >= 0]] = weights[origin >= 0]
        for t, expected in ((a, np.where(origin < 0, weights, 0)), (b, for_b.reshape(shape))):
            actual = np.zeros(t.shape) if t.grad is None else t.grad.numpy()
            np.testing.assert_allclose(actual, expected, err_msg=f"{x.shape} {plain}")


def test_reading_one_row_is_one_equation():
    graph = trace(lambda x: getitem(x, 1))(np.zeros((3, 2)))
    assert len(graph.equations) == 1


@pytest.mark.parametrize("index", [1, slice(1, 3), (slice(None), None, 0), ..., np.s_[::-1, 1:]])
def test_basic_subscripts_are_views(index):
    x = lucid.Tensor(np.zeros((3, 4)))
    y = getitem(x, index)
    assert y is not x and np.shares_memory(y.value, x.value)


def test_reading_with_a_tensor_copies():
    x = lucid.Tensor(np.zeros((3, 4)))
    assert not np.shares_memory(getitem(x, as_tensor([0, 1])).value, x.value)


def test_a_number_in_a_0d_tensor_is_an_int():
    assert getitem(as_tensor(np.arange(6).reshape(2, 3)), as_tensor(1)).tolist() == [3, 4, 5]


def test_the_last_of_two_writes_counts_and_alone_has_a_gradient():
    x = lucid.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = lucid.Tensor([10.0, 20.0], requires_grad=True)
    y = setitem(x, [1, 1], v)
    assert y.tolist() == [1, 20, 3]
    y.sum().backward()
    assert x.grad.tolist() == [1, 0, 1]
    assert v.grad.tolist() == [0, 1]


def test_writing_by_a_mask_gives_no_nan_gradient_where_it_was_nan():
    x = lucid.Tensor([np.nan, 2.0], requires_grad=True)
    setitem(x, as_tensor([True, False]), 0.0).sum().backward()
    assert x.grad.tolist() == [0, 1]


def test_values_are_cast_to_the_dtype_they_are_stored_in():
    assert setitem(as_tensor([1, 2]), 0, 3.7).tolist() == [3, 2]


@pytest.mark.parametrize("index", [lambda i: i, lambda i: (slice(None), i), lambda i: (i, ..., i)])
def test_traced_indices_read_under_vmap(index):
    x = np.arange(48.0).reshape(4, 4, 3)[..., [0, 1, 2, 0]]
    rows = np.array([[0, 1], [3, -1], [2, 2]])
    y = vmap(lambda i: getitem(as_tensor(x), index(i)))(as_tensor(rows))
    np.testing.assert_array_equal(y.numpy(), np.stack([x[index(i)] for i in rows]))


def test_a_traced_number_reads_and_writes_one_row_under_vmap():
    x = lucid.Tensor(np.arange(6.0).reshape(3, 2))
    rows = as_tensor([2, 0, -1, 1])
    read = vmap(lambda i: getitem(x, i))(rows)
    np.testing.assert_array_equal(read.numpy(), x.numpy()[[2, 0, -1, 1]])
    written = vmap(lambda i: setitem(x, (i, 1), 9.0))(rows)
    for i, y in zip([2, 0, -1, 1], written.numpy()):
        expected = x.numpy().copy()
        expected[i, 1] = 9
        np.testing.assert_array_equal(y, expected)


def test_traced_indices_write_under_vmap():
    rows = np.array([[0, 1], [3, -1]])
    y = vmap(lambda i: setitem(as_tensor(np.zeros((4, 2))), i, 1.0))(as_tensor(rows))
    expected = np.zeros((2, 4, 2))
    for k, row in enumerate(rows):
        expected[k, row] = 1
    np.testing.assert_array_equal(y.numpy(), expected)


def test_an_index_out_of_range_under_vmap_is_named():
    with pytest.raises(IndexingError, match="index 9 is out of range for axis 0 of size 3"):
        vmap(lambda i: getitem(as_tensor(X), i))(as_tensor([0, 9]))


def test_traced_mask_writes_one_number_but_does_not_read():
    mask = Type(np.dtype("bool"), (3,))
    graph = trace(lambda x, m: setitem(x, m, 0.0))(np.ones(3), mask)
    assert "where" in str(graph)
    with pytest.raises(TracedValueError, match="boolean indexing"):
        trace(getitem)(np.ones(3), mask)


X = np.arange(12.0).reshape(3, 4)
ROWS = np.array([[2, 0], [1, 1]])

COMPARED = {
    "take flat": (lambda: lookup.take(X, ROWS), lambda: np.take(X, ROWS)),
    "take along an axis": (lambda: lookup.take(X, ROWS, 1), lambda: np.take(X, ROWS, 1)),
    "gather": (lambda: lookup.gather(X, 1, ROWS), lambda: np.take_along_axis(X[:2], ROWS, 1)),
    "index_select": (lambda: lookup.index_select(X, 1, [3, 0]), lambda: X[:, [3, 0]]),
    "masked_select": (lambda: lookup.masked_select(X, X > 5), lambda: X[X > 5]),
    "masked_fill": (lambda: lookup.masked_fill(X, X > 5, -1), lambda: np.where(X > 5, -1, X)),
    "select": (lambda: lookup.select(X, 1, -1), lambda: X[:, -1]),
    "narrow": (lambda: lookup.narrow(X, 1, 1, 2), lambda: X[:, 1:3]),
    "argwhere": (lambda: lookup.argwhere(X > 9), lambda: np.argwhere(X > 9)),
    "nonzero": (lambda: nonzero(X[0]), lambda: np.argwhere(X[0])),
    "nonzero by axis": (lambda: nonzero(X, as_tuple=True)[1], lambda: np.nonzero(X)[1]),
    "diff": (lambda: lookup.diff(X**2, 2), lambda: np.diff(X**2, 2)),
}


@pytest.mark.parametrize("name", COMPARED)
def test_function_agrees_with_numpy(name):
    function, expected = COMPARED[name]
    np.testing.assert_array_equal(function().numpy(), expected())


def test_take_along_dim_broadcasts_other_axes():
    y = lookup.take_along_dim(X, as_tensor([[2, 0]]), dim=1)
    np.testing.assert_array_equal(y.numpy(), X[:, [2, 0]])


def test_scatter_writes_and_scatter_add_adds():
    src = np.array([[1.0, 2.0, 9.0], [3.0, 4.0, 9.0]])
    written, added = X.copy(), X.copy()
    for i, j in np.ndindex(2, 2):
        written[i, ROWS[i, j]] = src[i, j]
        added[i, ROWS[i, j]] += src[i, j]
    np.testing.assert_array_equal(lookup.scatter(X, 1, ROWS, src).numpy(), written)
    np.testing.assert_array_equal(lookup.scatter_add(X, 1, ROWS, src).numpy(), added)


def test_index_add_adds_repeated_rows():
    expected = X.copy()
    np.add.at(expected, (slice(None), [1, 1]), 2 * X[:, :2])
    y = lookup.index_add(X, 1, [1, 1], X[:, :2], alpha=2)
    np.testing.assert_array_equal(y.numpy(), expected)


def test_index_copy_and_index_fill_replace_slices():
    expected = X.copy()
    expected[:, [3, 0]] = X[:, :2]
    np.testing.assert_array_equal(lookup.index_copy(X, 1, [3, 0], X[:, :2]).numpy(), expected)
    expected[[1]] = 7
    y = lookup.index_fill(as_tensor(expected), 0, [1], 7)
    np.testing.assert_array_equal(y.numpy(), expected)


T = as_tensor(X)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: getitem(T, 3), IndexingError, "index 3 is out of range for axis 0 of size 3"),
        (
            lambda: getitem(T, (0, -5)),
            IndexingError,
            "index -5 is out of range for axis 1 of size 4",
        ),
        (lambda: getitem(T, [0, 7]), IndexingError, "index 7 is out of range for axis 0 of size 3"),
        (
            lambda: getitem(T, (slice(None), [4])),
            IndexingError,
            "index 4 is out of range for axis 1",
        ),
        (
            lambda: setitem(T, [9], 0.0),
            IndexingError,
            "index 9 is out of range for axis 0 of size 3",
        ),
        (lambda: getitem(T, (0, 0, 0)), IndexingError, "3 indices for a tensor with 2 axes"),
        (lambda: getitem(T, (..., ...)), IndexingError, "at most one ellipsis"),
        (lambda: getitem(T, 1.5), IndexingError, "float is not an index"),
        (lambda: getitem(T, "a"), IndexingError, "str is not an index"),
        (lambda: getitem(T, as_tensor([1.0])), IndexingError, "a tensor of dtype float32"),
        (lambda: getitem(T, slice(None, None, 0)), IndexingError, "zero"),
        (lambda: getitem(T, np.ones(4, bool)), IndexingError, "a boolean index of shape (4,)"),
        (lambda: getitem(T, ([0, 1], [0, 1, 2])), IndexingError, "(2,), (3,) do not broadcast"),
        (lambda: getitem(as_tensor(1.0), 0), IndexingError, "0-d tensor"),
        (
            lambda: setitem(T, 0, np.zeros(3)),
            ShapeError,
            "(3,) do not fit into a region of shape (4,)",
        ),
        (lambda: setitem(T, 0, 1j), DTypeError, "complex values"),
        (lambda: lookup.gather(T, 0, [[0.5]]), DTypeError, "it must be integer"),
        (lambda: lookup.gather(T, 1, np.zeros((4, 1), int)), ShapeError, "smaller than the index"),
        (lambda: lookup.narrow(T, 0, 2, 2), IndexingError, "2 elements from 2 are out of range"),
    ],
)
def test_bad_input_is_named_with_the_line(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
    assert "test_indexing.py:" in str(caught.value)
