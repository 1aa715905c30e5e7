"""Shapes, joins, diagonals: what the public functions give, and what they say of bad input."""

import numpy as np
import pytest

import lucid
from lucid.errors import AxisError, ShapeError
from lucid.ops.core.promote import as_tensor
from lucid.ops.shape import diagonals, joining, movement, shaping
from lucid.tape.recording.trace import trace


def numbers(*shape):
    return np.arange(np.prod(shape, dtype=int), dtype="float64").reshape(shape)


def same(y, expected):
    np.testing.assert_array_equal(y.numpy(), expected)
    assert y.shape == np.shape(expected)


X = numbers(2, 3, 4)
M = numbers(3, 4)

COMPARED = {
    "transpose": (lambda: shaping.transpose(X, 0, 2), X.transpose(2, 1, 0)),
    "transpose as in NumPy": (lambda: shaping.transpose(X, (1, 0, 2)), X.transpose(1, 0, 2)),
    "transpose of all axes": (lambda: shaping.transpose(X), X.T),
    "swapaxes": (lambda: shaping.swapaxes(X, -1, 0), X.swapaxes(-1, 0)),
    "T": (lambda: shaping.T(X), X.T),
    "mT": (lambda: shaping.mT(X), X.swapaxes(1, 2)),
    "t of a matrix": (lambda: shaping.t(M), M.T),
    "movedim": (lambda: shaping.movedim(X, (0, 1), (2, 0)), np.moveaxis(X, (0, 1), (2, 0))),
    "moveaxis of one": (lambda: lucid.moveaxis(X, 0, -1), np.moveaxis(X, 0, -1)),
    "squeeze": (lambda: shaping.squeeze(X[:, :1, :1]), X[:, 0, 0]),
    "squeeze of one axis": (lambda: shaping.squeeze(X[:1, :1], 1), X[:1, 0]),
    "squeeze leaves larger axes": (lambda: shaping.squeeze(X, 1), X),
    "squeeze by axis": (lambda: shaping.squeeze(X[:1, :1], axis=(0, 1)), X[0, 0]),
    "unsqueeze": (lambda: shaping.unsqueeze(X, -1), X[..., None]),
    "expand_dims": (lambda: shaping.expand_dims(M, (0, 2)), np.expand_dims(M, (0, 2))),
    "expand": (lambda: shaping.expand(M[:1], 2, -1, 4), np.broadcast_to(M[:1], (2, 1, 4))),
    "expand_as": (lambda: shaping.expand_as(M[:1], M), np.broadcast_to(M[:1], (3, 4))),
    "flatten": (lambda: shaping.flatten(X, 1), X.reshape(2, 12)),
    "flatten of a number": (lambda: shaping.flatten(np.float64(3)), np.array([3.0])),
    "unflatten": (lambda: shaping.unflatten(M, 1, (2, -1)), M.reshape(3, 2, 2)),
    "ravel": (lambda: shaping.ravel(M.T), M.T.ravel()),
    "view": (lambda: shaping.view(M, -1, 6), M.reshape(-1, 6)),
    "view_as": (lambda: shaping.view_as(M, np.zeros((4, 3))), M.reshape(4, 3)),
    "flip": (lambda: shaping.flip(X, (0, 2)), np.flip(X, (0, 2))),
    "flip of all axes": (lambda: shaping.flip(X), np.flip(X)),
    "fliplr": (lambda: shaping.fliplr(M), np.fliplr(M)),
    "flipud": (lambda: shaping.flipud(M), np.flipud(M)),
    "rot90": (lambda: shaping.rot90(M), np.rot90(M)),
    "rot90 twice": (lambda: shaping.rot90(M, 2), np.rot90(M, 2)),
    "rot90 back": (lambda: shaping.rot90(X, -1, (1, 2)), np.rot90(X, -1, (1, 2))),
    "repeat": (lambda: shaping.repeat(M, 2, 1, 3), np.tile(M, (2, 1, 3))),
    "tile": (lambda: shaping.tile(X, 2), np.tile(X, 2)),
    "cat": (lambda: joining.cat([M, M[:1]]), np.concatenate([M, M[:1]])),
    "cat by axis": (lambda: joining.cat([M, M], axis=-1), np.concatenate([M, M], -1)),
    "cat with an empty vector": (lambda: joining.cat([np.zeros(0), M]), M),
    "concatenate flat": (lambda: joining.concatenate([M, M], None), np.concatenate([M, M], None)),
    "stack": (lambda: joining.stack([M, M], -1), np.stack([M, M], -1)),
    "stack of rows of a tensor": (lambda: joining.stack(as_tensor(M)), M),
    "hstack": (lambda: joining.hstack([M, M]), np.hstack([M, M])),
    "hstack of vectors": (lambda: joining.hstack([M[0], M[1]]), np.hstack([M[0], M[1]])),
    "vstack": (lambda: joining.vstack([M[0], M[1]]), np.vstack([M[0], M[1]])),
    "dstack": (lambda: joining.dstack([M, M]), np.dstack([M, M])),
    "column_stack": (lambda: joining.column_stack([M[0], M[1]]), np.column_stack([M[0], M[1]])),
    "roll": (lambda: joining.roll(M, 5), np.roll(M, 5)),
    "roll along axes": (lambda: joining.roll(M, (1, -1), (0, 1)), np.roll(M, (1, -1), (0, 1))),
    "repeat_interleave": (lambda: joining.repeat_interleave(M, 2), np.repeat(M, 2)),
    "repeat_interleave by axis": (
        lambda: joining.repeat_interleave(M, [1, 0, 2], 0),
        np.repeat(M, [1, 0, 2], 0),
    ),
    "repeat_interleave behind": (lambda: joining.repeat_interleave(M, 2, 1), np.repeat(M, 2, 1)),
    "pad": (lambda: joining.pad(M, (1, 2)), np.pad(M, [(0, 0), (1, 2)])),
    "pad crops": (lambda: joining.pad(M, (-1, 0, 0, -2)), M[:1, 1:]),
    "pad with a number": (
        lambda: joining.pad(M, (1, 0, 2, -1), value=9.0),
        np.pad(M[:2], [(2, 0), (1, 0)], constant_values=9.0),
    ),
    "pad with inf": (
        lambda: joining.pad(M, (1, 1), value=-np.inf),
        np.pad(M, [(0, 0), (1, 1)], constant_values=-np.inf),
    ),
    "pad by reflection": (
        lambda: joining.pad(M, (2, 1), "reflect"),
        np.pad(M, [(0, 0), (2, 1)], "reflect"),
    ),
    "pad by the edge": (
        lambda: joining.pad(M, (2, 1, 1, 1), "replicate"),
        np.pad(M, [(1, 1), (2, 1)], "edge"),
    ),
    "pad in a circle": (
        lambda: joining.pad(M, (2, 1), "circular"),
        np.pad(M, [(0, 0), (2, 1)], "wrap"),
    ),
    "diagonal": (lambda: diagonals.diagonal(M), np.diagonal(M)),
    "diagonal below": (lambda: diagonals.diagonal(M, -1), np.diagonal(M, -1)),
    "diagonal above": (lambda: diagonals.diagonal(M, 2), np.diagonal(M, 2)),
    "diagonal beyond": (lambda: diagonals.diagonal(M, 7), np.diagonal(M, 7)),
    "diagonal of axes": (lambda: diagonals.diagonal(X, 1, 2, 0), np.diagonal(X, 1, 2, 0)),
    "diag of a vector": (lambda: diagonals.diag(M[0]), np.diag(M[0])),
    "diag of a vector above": (lambda: diagonals.diag(M[0], 1), np.diag(M[0], 1)),
    "diag of a vector below": (lambda: diagonals.diag(M[0], -2), np.diag(M[0], -2)),
    "diag of nothing": (lambda: diagonals.diag(np.zeros(0)), np.zeros((0, 0))),
    "diag of a matrix": (lambda: diagonals.diag(M, 1), np.diag(M, 1)),
    "diag_embed": (
        lambda: diagonals.diag_embed(M),
        np.stack([np.diag(row) for row in M]),
    ),
    "trace": (lambda: diagonals.trace(M), np.trace(M)),
    "tril": (lambda: diagonals.tril(X, 1), np.tril(X, 1)),
    "triu": (lambda: diagonals.triu(X, -1), np.triu(X, -1)),
    "tril_indices": (
        lambda: diagonals.tril_indices(3, 4, 1),
        np.stack(np.tril_indices(3, 1, 4)),
    ),
}


@pytest.mark.parametrize("name", COMPARED)
def test_function_agrees_with_numpy(name):
    function, expected = COMPARED[name]
    same(function(), expected)


def test_split_gives_pieces_of_one_size_and_a_rest():
    assert [p.shape for p in joining.split(np.zeros((5, 2)), 2)] == [(2, 2), (2, 2), (1, 2)]


def test_split_gives_pieces_of_given_sizes():
    first, second = joining.split(M, [1, 3], dim=1)
    same(first, M[:, :1])
    same(second, M[:, 1:])


def test_chunk_gives_at_most_that_many_pieces():
    assert [p.shape for p in joining.chunk(np.zeros(5), 4)] == [(2,), (2,), (1,)]


@pytest.mark.parametrize("sections", [3, [1, 3], [0, 9, 2], [-1]])
def test_tensor_split_is_array_split(sections):
    x = numbers(7, 2)
    for a, b in zip(joining.tensor_split(x, sections), np.array_split(x, sections), strict=True):
        same(a, b)


def test_unbind_drops_the_axis():
    for a, b in zip(shaping.unbind(X, 1), np.moveaxis(X, 1, 0), strict=True):
        same(a, b)


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_meshgrid_agrees_with_numpy(indexing):
    vectors = np.arange(2.0), np.arange(3.0), np.arange(4.0)
    mine = joining.meshgrid(*vectors, indexing=indexing)
    for a, b in zip(mine, np.meshgrid(*vectors, indexing=indexing), strict=True):
        same(a, b)


def test_broadcast_tensors_share_one_shape():
    a, b = shaping.broadcast_tensors(M[:, :1], M[0])
    assert a.shape == b.shape == (3, 4)


def test_views_share_memory():
    x = lucid.Tensor(X)
    for y in (x.reshape(6, 4), shaping.mT(x), x[::-1], shaping.unsqueeze(x, 0)):
        assert np.shares_memory(y.value, x.value)


def test_expanded_memory_is_read_only():
    assert not shaping.expand(lucid.Tensor([1.0, 2.0]), 3, 2).value.flags.writeable


def test_stack_promotes_dtypes():
    assert joining.stack([np.float32([1]), np.float64([2])]).dtype == "float64"


def test_triu_of_nan_below_the_diagonal_is_zero_with_gradient_zero():
    x = lucid.Tensor([[1.0, 2.0], [np.nan, 3.0]], requires_grad=True)
    y = diagonals.triu(x)
    same(y.detach(), np.array([[1.0, 2.0], [0.0, 3.0]], "float32"))
    y.sum().backward()
    same(x.grad, np.array([[1.0, 1.0], [0.0, 1.0]], "float32"))


def test_gradient_of_a_strided_slice_is_one_pad():
    graph = trace(lambda x: movement.slice_axis(x, 0, 1, 6, 2))(lucid.Tensor(np.zeros(7)))
    assert "slice[starts=(1,), limits=(6,), strides=(2,), drop=()]" in str(graph)
    x = lucid.Tensor(np.zeros(7), requires_grad=True)
    movement.slice_axis(x, 0, 1, 6, 2).sum().backward()
    same(x.grad, np.array([0, 1, 0, 1, 0, 1, 0.0]))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: movement.reshape(M, 5, -1), ShapeError, "12 elements do not fill shape (5, -1)"),
        (lambda: movement.permute(M, 0, 0), ShapeError, "not a permutation"),
        (lambda: movement.broadcast_to(M, (4, 3)), ShapeError, "does not broadcast"),
        (lambda: shaping.transpose(M, 0, 2), AxisError, "axis 2 is out of range for 2 axes"),
        (lambda: shaping.movedim(M, (0, 0), (0, 1)), AxisError, "each once"),
        (lambda: shaping.expand_dims(M, (0, 0)), AxisError, "twice"),
        (lambda: shaping.flatten(X, 2, 1), AxisError, "start_dim 2 comes after end_dim 1"),
        (lambda: shaping.mT(M[0]), ShapeError, "fewer than two axes"),
        (lambda: joining.cat([M, X]), ShapeError, "(3, 4) and (2, 3, 4) differ"),
        (lambda: joining.cat([]), ShapeError, "the sequence is empty"),
        (lambda: joining.cat([np.float64(1)]), ShapeError, "use stack"),
        (lambda: joining.stack([M, M[:1]]), ShapeError, "shapes (3, 4) and (1, 4) differ"),
        (lambda: joining.split(M, [1, 1]), ShapeError, "do not add up to size 3"),
        (lambda: joining.pad(M, (1, 2, 3)), ShapeError, "3 widths"),
        (lambda: joining.pad(M, (1, 2), "mirror"), ShapeError, "unknown mode 'mirror'"),
        (lambda: diagonals.diag(X), ShapeError, "neither a vector nor a matrix"),
    ],
)
def test_bad_input_is_named_with_the_line(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
    assert "test_movement.py:" in str(caught.value)
