"""Recurrent layers, cells and packed sequences against loops in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ArgumentError, LucidError, ShapeError
from lucid.nn.utils.rnn import (
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)

RNG = np.random.default_rng(0)
KINDS = ["RNN", "LSTM", "GRU"]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def numpy_step(kind, x, state, w):
    """One step by the formulas, with the gates one by one."""
    wi, wh, bi, bh = w
    h = state[0]
    a, b = x @ wi.T + bi, h @ wh.T + bh
    n = h.shape[-1]
    part = [slice(i * n, (i + 1) * n) for i in range(4)]
    if kind == "RNN":
        return (np.tanh(a + b),)
    if kind == "LSTM":
        i, f, g, o = ((a + b)[..., p] for p in part)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        return (sigmoid(o) * np.tanh(c), c)
    r, z = sigmoid((a + b)[..., part[0]]), sigmoid((a + b)[..., part[1]])
    new = np.tanh(a[..., part[2]] + r * b[..., part[2]])
    return ((1 - z) * new + z * h,)


def numpy_run(kind, layer, x, suffix="_l0", reverse=False):
    """The outputs and the last state of one direction over (steps, examples, features)."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    w = [getattr(layer, name + suffix).detach().numpy() for name in names]
    state = tuple(np.zeros((x.shape[1], layer.hidden_size)) for _ in range(2))
    ys = np.zeros((*x.shape[:2], layer.hidden_size))
    for step in reversed(range(len(x))) if reverse else range(len(x)):
        state = numpy_step(kind, x[step], state, w)
        ys[step] = state[0]
    return ys, state


def layer_of(kind, *args, **kwargs):
    lucid.manual_seed(0)
    return getattr(nn, kind)(*args, **kwargs).double()


def last(state):
    return state if isinstance(state, tuple) else (state,)


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_is_its_formula_step_by_step(kind):
    layer, x = layer_of(kind, 3, 4), RNG.normal(size=(6, 2, 3))
    y, state = layer(lucid.tensor(x))
    expected, end = numpy_run(kind, layer, x)
    np.testing.assert_allclose(y.detach(), expected, rtol=1e-12)
    for s, e in zip(last(state), end):
        np.testing.assert_allclose(s[0].detach(), e, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_two_directions_stand_side_by_side(kind):
    layer, x = layer_of(kind, 3, 4, bidirectional=True), RNG.normal(size=(6, 2, 3))
    y, state = layer(lucid.tensor(x))
    there, end = numpy_run(kind, layer, x)
    back, start = numpy_run(kind, layer, x, "_l0_reverse", reverse=True)
    np.testing.assert_allclose(y.detach(), np.concatenate([there, back], -1), rtol=1e-12)
    np.testing.assert_allclose(last(state)[0].detach(), np.stack([end[0], start[0]]), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_layers_feed_one_another(kind):
    layer, x = layer_of(kind, 3, 4, num_layers=2), RNG.normal(size=(6, 2, 3))
    hidden, _ = numpy_run(kind, layer, x)
    expected, _ = numpy_run(kind, layer, hidden, "_l1")
    np.testing.assert_allclose(layer(lucid.tensor(x))[0].detach(), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_is_one_step(kind):
    cell = layer_of(f"{kind}Cell", 3, 4)
    x = RNG.normal(size=(2, 3))
    state = tuple(RNG.normal(size=(2, 4)) for _ in range(2 if kind == "LSTM" else 1))
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    w = [getattr(cell, name).detach().numpy() for name in names]
    given = tuple(map(lucid.tensor, state))
    found = cell(lucid.tensor(x), given if kind == "LSTM" else given[0])
    for a, b in zip(last(found), numpy_step(kind, x, state, w)):
        np.testing.assert_allclose(a.detach(), b, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_unrolled_loop(kind):
    layer, cell = layer_of(kind, 3, 4), layer_of(f"{kind}Cell", 3, 4)
    cell.load_state_dict({n.removesuffix("_l0"): p for n, p in layer.state_dict().items()})
    x = lucid.tensor(RNG.normal(size=(5, 2, 3)))
    (layer(x)[0] ** 2).sum().backward()
    state, total = None, 0.0
    for row in x:
        state = cell(row, state)
        total = total + (last(state)[0] ** 2).sum()
    total.backward()
    for name, p in cell.named_parameters():
        found = getattr(layer, f"{name}_l0").grad
        np.testing.assert_allclose(found, p.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_jit_equals_eager_and_vmap_equals_a_loop(kind):
    layer, x = layer_of(kind, 3, 4), lucid.tensor(RNG.normal(size=(3, 5, 2, 3)))
    run = lambda x: layer(x)[0]  # noqa: E731
    jitted = lucid.jit(run)
    for _ in range(2):
        np.testing.assert_allclose(jitted(x[0]).detach(), run(x[0]).detach(), rtol=1e-10)
    expected = np.stack([run(part).detach() for part in x])
    np.testing.assert_allclose(lucid.func.vmap(run)(x).detach(), expected, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_the_program_does_not_grow_with_the_length(kind):
    layer = layer_of(kind, 3, 4)
    jitted = lucid.jit(lambda x: layer(x)[0])
    sizes = {len(jitted.graph(lucid.zeros(n, 2, 3, dtype="float64")).equations) for n in (2, 50)}
    assert len(sizes) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_module_is_differentiated_whole_and_stacked(kind):
    models = [getattr(nn, kind)(3, 4) for _ in range(2)]
    x = lucid.tensor(RNG.normal(size=(5, 2, 3)).astype("float32"))
    params, _ = lucid.func.stack_module_state(models)

    def loss(params):
        return lucid.func.functional_call(models[0], params, (x,))[0].sum()

    stacked = lucid.func.vmap(lucid.func.grad(loss))(params)
    for i, model in enumerate(models):
        grads = lucid.func.grad(lambda m: m(x)[0].sum())(model)
        for name, g in grads.named_parameters():
            np.testing.assert_allclose(stacked[name][i].detach(), g.detach(), rtol=2e-4, atol=1e-5)


def test_dropout_stands_between_layers_while_training():
    layer, x = layer_of("LSTM", 3, 4, 2, dropout=0.5), lucid.tensor(RNG.normal(size=(5, 2, 3)))
    a, b = layer(x)[0], layer(x)[0]
    assert not np.allclose(a.detach(), b.detach())
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0].detach(), layer(x)[0].detach())


def test_a_projection_makes_states_smaller():
    layer = layer_of("LSTM", 3, 6, proj_size=2)
    y, (h, c) = layer(lucid.tensor(RNG.normal(size=(5, 2, 3))))
    assert (y.shape, h.shape, c.shape) == ((5, 2, 2), (1, 2, 2), (1, 2, 6))


def test_initial_values_lie_within_the_bound():
    layer = nn.GRU(3, 16)
    for p in layer.parameters():
        values = p.detach().numpy()
        assert abs(values).max() <= 0.25 and abs(values).max() > 0.2


def test_reprs():
    assert repr(nn.LSTM(3, 4, 2, batch_first=True)) == "LSTM(3, 4, num_layers=2, batch_first=True)"
    assert repr(nn.GRUCell(3, 4, bias=False)) == "GRUCell(3, 4, bias=False)"


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: nn.RNN(3, 4, nonlinearity="sin"), ArgumentError),
        (lambda: nn.LSTM(3, 4, proj_size=4), ArgumentError),
        (lambda: nn.LSTM(0, 4), ArgumentError),
        (lambda: nn.GRU(3, 4, dropout=2.0), ArgumentError),
        (lambda: nn.GRU(3, 4)(lucid.ones(5, 2, 9)), ShapeError),
        (lambda: nn.GRU(3, 4)(lucid.ones(5, 2, 3), lucid.ones(1, 9, 4)), ShapeError),
        (lambda: nn.LSTM(3, 4)(lucid.ones(5, 2, 3), lucid.ones(1, 2, 4)), ShapeError),
        (lambda: nn.GRUCell(3, 4)(lucid.ones(2, 3), lucid.ones(3, 4)), ShapeError),
    ],
)
def test_what_does_not_fit_is_refused(make, error):
    with pytest.raises(error):
        make()


# Packed sequences

LENGTHS = [2, 5, 3]


def sequences():
    return [lucid.tensor(RNG.normal(size=(n, 3))) for n in LENGTHS]


def test_packing_and_padding_are_inverse():
    xs = sequences()
    padded = pad_sequence(xs, batch_first=True)
    assert padded.shape == (3, 5, 3) and padded[0, 2:].abs().sum() == 0
    packed = pack_padded_sequence(padded, LENGTHS, batch_first=True, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 3, 2, 1, 1] and packed.data.shape == (10, 3)
    again, lengths = pad_packed_sequence(packed, batch_first=True, total_length=6)
    assert lengths.tolist() == LENGTHS
    np.testing.assert_array_equal(again[:, :5], padded)
    for a, b, c in zip(unpack_sequence(packed), unpad_sequence(padded, LENGTHS, True), xs):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, c)


def test_padding_may_stand_before_the_sequences():
    padded = pad_sequence([lucid.ones(1), lucid.ones(2)], True, 7.0, "left")
    assert padded.tolist() == [[7, 1], [1, 1]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences_run_as_if_alone(kind, bidirectional):
    layer = layer_of(kind, 3, 4, 2, bidirectional=bidirectional)
    xs = sequences()
    y, state = layer(pack_sequence(xs, enforce_sorted=False))
    ys, _ = pad_packed_sequence(y)
    for i, x in enumerate(xs):
        alone, end = layer(x)
        np.testing.assert_allclose(ys[: len(x), i].detach(), alone.detach(), rtol=1e-10)
        assert np.all(ys[len(x) :, i].detach().numpy() == 0)
        for a, b in zip(last(state), last(end)):
            np.testing.assert_allclose(a[:, i].detach(), b.detach(), rtol=1e-10)


def test_gradients_of_packed_sequences_are_the_sum_of_those_alone():
    layer, xs = layer_of("LSTM", 3, 4), sequences()
    (layer(pack_sequence(xs, enforce_sorted=False))[0].data ** 2).sum().backward()
    found = {name: p.grad for name, p in layer.named_parameters()}
    layer.zero_grad()
    sum((layer(x)[0] ** 2).sum() for x in xs).backward()
    for name, p in layer.named_parameters():
        np.testing.assert_allclose(found[name], p.grad, rtol=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pack_padded_sequence(lucid.ones(3, 2), [1, 2]),
        lambda: pack_padded_sequence(lucid.ones(3, 2), [4, 2]),
        lambda: pack_padded_sequence(lucid.ones(3, 2), [1]),
        lambda: pack_padded_sequence(lucid.ones(3, 2), [1, 0]),
        lambda: pack_padded_sequence(lucid.ones(3), [1]),
        lambda: pad_sequence([]),
        lambda: pad_sequence([lucid.ones(2, 3), lucid.ones(2, 4)]),
        lambda: pad_packed_sequence(pack_sequence([lucid.ones(3)]), total_length=2),
        lambda: nn.GRU(3, 4)(pack_sequence([lucid.ones(3, 5)])),
        lambda: pack_sequence(3),
    ],
)
def test_sequences_that_cannot_be_packed_are_refused(make):
    with pytest.raises(LucidError):
        make()


def test_a_cell_refuses_a_state_without_parts():
    with pytest.raises(lucid.errors.ShapeError, match="2 of shape"):
        lucid.nn.LSTMCell(3, 4)(lucid.zeros(2, 3), ())


@pytest.mark.parametrize("number", [0, 2, 3])
def test_a_bias_of_a_gru_cell_may_be_written_before_backward(number, monkeypatch):
    """No derivative reads a bias, or weights of an input without a gradient, hot or not."""
    monkeypatch.setattr("lucid.tape.tiering.Tiering.threshold", 1)
    cell = lucid.nn.GRUCell(3, 4)
    x = lucid.ones(2, 3)
    for _ in range(6):
        y = cell(x, cell(x)).sum()
        with lucid.no_grad():
            list(cell.parameters())[number].mul_(0.9)
        y.backward()
