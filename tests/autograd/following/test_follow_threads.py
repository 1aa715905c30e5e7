"""What a thread writes, another thread's followed step has read before or not at all."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import lucid
from lucid.errors import MutationError
from lucid.tape.node import followers
from tests.autograd.following.test_follow import hot

X = np.array([1.0, 2.0])
LOSS = np.exp(np.tanh(X) * X).sum()
GRADIENT = np.exp(np.tanh(X) * X) * ((1 - np.tanh(X) ** 2) * X + np.tanh(X))
STEPS, LATE = 20, 12


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def fill(w):
    with lucid.no_grad():
        w.fill_(5.0)


def scale(w):
    with lucid.no_grad():
        w.mul_(2.0)


def write_view(w):
    w.detach()[1:] = 5.0


def write_array(w):
    w.detach().numpy()[...] = 5.0


@lucid.jit
def jitted(w):
    w.copy_(w * 5.0)


WRITES = {"fill": fill, "scale": scale, "view": write_view, "NumPy": write_array,
          "jit": lambda w: jitted(w.detach())}  # fmt: skip


def steps(during, optimizer=False):
    """Yield the number of a step, its parameter and loss, after `backward()`."""
    w = lucid.tensor(X, requires_grad=True)
    update = lucid.optim.SGD([w], lr=0.0)
    for i in range(STEPS):
        update.zero_grad()
        w.data.copy_(lucid.tensor(X))
        y = lucid.tanh(w) * w
        if i > LATE:
            during(w, y)
        loss = y.exp().sum()
        yield i, w, loss
        if optimizer:
            update.step()


@pytest.mark.parametrize("name", WRITES)
def test_gradients_that_wait_are_those_from_before_the_write_of_another_thread(name):
    with hot():
        waited = 0
        for i, w, loss in steps(lambda w, y: None, optimizer=True):
            loss.backward()
            waited += bool(followers)
            if i > LATE:
                in_thread(lambda w=w: WRITES[name](w))
            np.testing.assert_allclose(w.grad.numpy(), GRADIENT)
            np.testing.assert_allclose(loss.item(), LOSS)
        assert waited > LATE / 2


@pytest.mark.parametrize("name", WRITES)
def test_a_step_keeps_what_it_read_before_the_write_of_another_thread(name):
    """The derivative needs what was overwritten; NumPy's writes are not noticed."""
    with hot():
        for i, _, loss in steps(lambda w, y: in_thread(lambda: WRITES[name](w))):
            if i > LATE and name != "NumPy":
                with pytest.raises(MutationError):
                    loss.backward()
            else:
                loss.backward()
            np.testing.assert_allclose(loss.item(), LOSS)


def test_a_step_reads_what_another_thread_has_written_to_its_results():
    def double(y):
        with lucid.no_grad():
            y.mul_(2.0)

    with hot():
        for i, _, loss in steps(lambda w, y: in_thread(lambda: double(y))):
            want = LOSS if i <= LATE else np.exp(2 * np.tanh(X) * X).sum()
            loss.backward()
            np.testing.assert_allclose(loss.item(), want)
