"""A call that a followed step expects skips its checks, and means what it means elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import IndexingError
from lucid.tape.node import followers
from lucid.tape.tiering import Tiering

F = nn.functional
LATE = 24  # steps until the sequence is followed


@pytest.fixture(autouse=True)
def hot(monkeypatch):
    monkeypatch.setattr(Tiering, "threshold", 2)
    yield
    followers.clear()


def expected_functions() -> list[str]:
    """Return the names of the calls that this thread's steps expect."""
    (follower,) = followers.values()
    return [step.call.function.__name__ for step in follower.sequence.steps if step.call]


def log_softmax(x: np.ndarray) -> np.ndarray:
    x = x - x.max(1, keepdims=True)
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def classify(w, x, targets):
    """Return the loss and the gradient of a linear classifier."""
    loss = F.cross_entropy(F.relu(x @ w), lucid.tensor(targets), ignore_index=-1)
    loss.backward()
    got, w.grad = w.grad.numpy().copy(), None
    return loss.item(), got


def test_targets_of_a_followed_step_are_checked_and_ignored_as_in_the_first():
    rng = np.random.default_rng(0)
    w = lucid.tensor(rng.normal(size=(4, 3)).astype("float32"), requires_grad=True)
    x = lucid.tensor(rng.normal(size=(5, 4)).astype("float32"))
    scores = np.maximum(x.numpy().astype("float64") @ w.detach().numpy(), 0)
    for step in range(LATE + 12):
        targets = rng.integers(0, 3, 5)
        if step > LATE and step % 3 == 0:
            targets[:2] = -1  # an index of the last class to a gather
        if step > LATE and step % 3 == 1:
            with pytest.raises(IndexingError, match="target 3 is out of range for 3 classes"):
                classify(w, x, np.where(targets == targets[0], 3, targets))
        loss, _ = classify(w, x, targets)
        used = targets >= 0
        want = -log_softmax(scores)[np.arange(5), targets][used].mean()
        np.testing.assert_allclose(loss, want, rtol=1e-5)


def test_probabilities_and_classes_take_turns_in_a_followed_step():
    rng = np.random.default_rng(1)
    w = lucid.tensor(rng.normal(size=(4, 3)).astype("float32"), requires_grad=True)
    x = lucid.tensor(rng.normal(size=(5, 4)).astype("float32"))
    weights = np.array([1.0, 2.0, 0.5], "float32")
    scores = x.numpy().astype("float64") @ w.detach().numpy()
    p = np.exp(log_softmax(scores))
    for step in range(LATE + 12):
        t = rng.dirichlet(np.ones(3), 5).astype("float32")
        smooth, targets, weight = 0.0, lucid.tensor(t), None
        match step % 6 if step > LATE else 0:
            case 1:
                smooth = 0.25
                t = 0.75 * t + 0.25 / 3
            case 3:
                weight = lucid.tensor(weights)
                t = t * weights
            case 5:
                targets = lucid.tensor(t.argmax(1))
                t = np.eye(3)[t.argmax(1)]
        loss = F.cross_entropy(x @ w, targets, weight=weight, label_smoothing=smooth)
        loss.backward()
        want = -(t * log_softmax(scores)).sum(1).mean()
        np.testing.assert_allclose(loss.item(), want, rtol=1e-5)
        gradient = x.numpy().T @ (p * t.sum(1, keepdims=True) - t) / 5
        np.testing.assert_allclose(w.grad.numpy(), gradient, rtol=1e-4, atol=1e-6)
        w.grad = None
        assert step != LATE or "cross_entropy" in expected_functions()


def test_the_calls_of_a_convolutional_step_are_expected():
    lucid.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.InstanceNorm2d(2, affine=True), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3),
    )  # fmt: skip
    x, y = lucid.randn(4, 1, 4, 4), lucid.tensor([0, 1, 2, 0])
    for _ in range(LATE):
        F.cross_entropy(net(x), y).backward()
    found = expected_functions()
    assert {"conv2d", "instance_norm", "relu", "linear", "cross_entropy"} <= set(found)


def test_another_stride_or_operand_in_a_followed_step_is_not_the_expected_call():
    rng = np.random.default_rng(0)
    a, b = [rng.normal(size=(2, 1, 4, 4)).astype("float32") for _ in range(2)]
    w = lucid.tensor(rng.normal(size=(1, 1, 2, 2)).astype("float32"), requires_grad=True)
    for step in range(LATE + 8):
        stride = 2 if step > LATE and step % 2 else 1
        x = lucid.tensor(a if step < LATE else b)
        y = F.relu(F.conv2d(x, w, None, stride))
        (y * y).sum().backward()
        got, w.grad = w.grad.numpy().copy(), None
        v, n = w.detach().numpy()[0, 0], 4 - 1
        want = np.zeros((2, 2))
        for i in range(0, n, stride):
            for j in range(0, n, stride):
                part = x.numpy()[:, 0, i : i + 2, j : j + 2]
                out = np.maximum((part * v).sum((1, 2)), 0)
                want += (2 * out[:, None, None] * part).sum(0)
        np.testing.assert_allclose(got[0, 0], want, rtol=1e-4, atol=1e-5)


def test_two_operands_that_were_one_tensor_are_not_the_expected_call():
    """The bias of a linear map was its input's row: a call with two tensors is another one."""
    rng = np.random.default_rng(0)
    w = lucid.tensor(rng.normal(size=(3, 3)).astype("float32"), requires_grad=True)
    v = lucid.tensor(rng.normal(size=3).astype("float32"))
    u = lucid.tensor(rng.normal(size=3).astype("float32"))
    for step in range(LATE + 6):
        bias = v if step < LATE else u
        y = F.tanh(F.linear(v, w, bias))
        y.sum().backward()
        got, w.grad = w.grad.numpy().copy(), None
        inner = w.detach().numpy() @ v.numpy() + bias.numpy()
        want = (1 / np.cosh(inner) ** 2)[:, None] * v.numpy()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_stopped_step_computes_side_operations_of_each_other():
    """Metrics of a step, made of each other, of detached and of tracked values."""
    rng = np.random.default_rng(0)
    w = lucid.tensor(rng.normal(size=(4, 4)).astype("float32"), requires_grad=True)
    for step in range(LATE + 8):
        x = lucid.tensor(rng.normal(size=(3, 4)).astype("float32"))
        y = F.tanh(x @ w)
        off = y.detach() - x
        low, place = off.min(1)
        share = (off / low.reshape(3, 1)).mean()
        linked = (y * off.detach()).sum() * share
        if step > LATE and step % 2:
            assert share.item() is not None  # a look
        (F.tanh(y) ** 2).sum().backward()
        y = np.tanh(x.numpy() @ w.detach().numpy())
        d = y - x.numpy()
        want = (d / d.min(1, keepdims=True)).mean()
        np.testing.assert_allclose(share.item(), want, rtol=1e-4)
        np.testing.assert_array_equal(place.numpy(), d.argmin(1))
        np.testing.assert_allclose(linked.item(), (y * d).sum() * want, rtol=1e-3)
        w.grad = None


def cell_states(xs, weights, lstm, swapped=False):
    """The states of an LSTM or an RNN at every step, by NumPy; `swapped` after the third."""
    ih, hh, bias_ih, bias_hh = weights
    h = c = np.zeros((len(xs[0]), hh.shape[1]))
    out = []
    for x in xs:
        gates = x @ ih.T + bias_ih + h @ hh.T + bias_hh
        if lstm:
            i, f, g, o = np.split(gates, 4, 1)
            i, f, o = (1 / (1 + np.exp(-z)) for z in (i, f, o))
            c = f * c + i * np.tanh(g)
            h = o * np.tanh(c)
        else:
            h = np.tanh(gates)
        out.append((h, c))
        if swapped and len(out) == 3:
            h, c = c, h
    return out


@pytest.mark.parametrize("lstm", [True, False])
def test_a_call_that_is_several_operations_is_expected_as_one(lstm):
    """A cell is followed by one comparison of its arguments; other states are another call."""
    lucid.manual_seed(0)
    rng = np.random.default_rng(0)
    cell = (nn.LSTMCell if lstm else nn.RNNCell)(3, 4, dtype="float64")
    for step in range(LATE + 12):
        rows = rng.normal(size=(5, 2, 3))
        xs, state, states = lucid.tensor(rows), None, []
        swapped = lstm and step > LATE and step % 3 == 1
        for x in xs:
            state = cell(x, state)
            states.append(state)
            if swapped and len(states) == 3:
                state = (state[1], state[0])
        looked = step > LATE and step % 3 == 2
        if looked:
            assert np.isfinite((states[3][0] if lstm else states[3]).numpy()).all()
        if step == LATE:
            assert expected_functions().count("checked_state") == 4  # all but the one of zeros
        last = state[0] + state[1] if lstm else state
        (last * last).sum().backward()
        weights = [p.detach().numpy() for p in cell.parameters()]
        grads = [p.grad.numpy().copy() for p in cell.parameters()]
        cell.zero_grad()
        want = cell_states(rows, weights, lstm, swapped)
        for found, expected in zip(states, want):
            for y, z in zip(found if lstm else (found,), expected):
                np.testing.assert_allclose(y.detach().numpy(), z, rtol=1e-10)

        def loss(number, at, h, rows=rows, weights=weights, swapped=swapped):
            moved = [w.copy() for w in weights]
            moved[number][at] += h
            end = cell_states(rows, moved, lstm, swapped)[-1]
            return ((end[0] + end[1] if lstm else end[0]) ** 2).sum()

        for number, at in ((0, (1, 2)), (1, (2, 1)), (3, (3,))):
            slope = (loss(number, at, 1e-6) - loss(number, at, -1e-6)) / 2e-6
            np.testing.assert_allclose(grads[number][at], slope, rtol=1e-5, atol=1e-9)


def test_a_cell_of_another_size_in_a_followed_step_raises_its_own_error():
    cell = nn.LSTMCell(3, 4)
    xs = lucid.randn(5, 2, 3)
    for step in range(LATE + 4):
        state = None
        for x in xs:
            state = cell(x, state)
            if step > LATE:
                with pytest.raises(lucid.errors.ShapeError, match="LSTMCell: input of shape"):
                    cell(lucid.zeros(2, 5), state)
        state[0].sum().backward()
        cell.zero_grad()


def test_an_expected_loss_of_probabilities_checks_no_classes():
    """Its step has no indices, and the call is the one that checks classes elsewhere."""
    rng = np.random.default_rng(0)
    w = lucid.tensor(rng.normal(size=(4, 3)).astype("float32"), requires_grad=True)
    x = lucid.tensor(rng.normal(size=(5, 4)).astype("float32"))
    for _ in range(LATE + 4):
        t = rng.dirichlet(np.ones(3), 5).astype("float32")
        loss = F.cross_entropy(x @ w, lucid.tensor(t))
        loss.backward()
        w.grad = None
        want = -(t * log_softmax(x.numpy() @ w.detach().numpy())).sum(1).mean()
        np.testing.assert_allclose(loss.item(), want, rtol=1e-5)


def test_gradients_are_accumulated_over_steps_that_wait_for_an_update():
    """A call is not expected while the step before it still waits for an optimizer."""
    w = lucid.tensor([[[1.0, 2.0]]], requires_grad=True)
    x = lucid.tensor([[[1.0, 3.0, -5.0]]])
    optimizer = lucid.optim.SGD([w], lr=0.0)
    for step in range(LATE + 8):
        if step < LATE or step % 3 == 0:
            optimizer.zero_grad()
        F.conv1d(x, w).exp().log().sum().backward()
        if step < LATE or step % 3 == 2:
            optimizer.step()
    np.testing.assert_allclose(w.grad.numpy(), [[[8.0, -4.0]]], rtol=1e-5)
