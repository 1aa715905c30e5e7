"""A followed step hands out the tensors of the one before again, unless something holds them."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import lucid
from lucid.autograd.following import follow, step_sequence
from lucid.errors import GraphError
from lucid.tape.node import followers
from tests.campaign.tiers import settings

STEPS = 8


@pytest.fixture(autouse=True)
def hot(monkeypatch):
    """Every step that repeats is followed from the third on."""
    monkeypatch.setattr(step_sequence, "is_worthwhile", lambda cut, types: True)
    followers.clear()
    with settings(enabled=True, threshold=1):
        yield
    followers.clear()


@pytest.fixture
def made(monkeypatch):
    """The Followers that were made, and how many steps they ran."""
    found = {"followers": 0, "run": 0}
    init, prepare = follow.Follower.__init__, follow.Follower.prepare

    def counted_init(self, *args):
        found["followers"] += 1
        return init(self, *args)

    def counted_prepare(self, *args):
        result = prepare(self, *args)
        found["run"] += result is not None
        return result

    monkeypatch.setattr(follow.Follower, "__init__", counted_init)
    monkeypatch.setattr(follow.Follower, "prepare", counted_prepare)
    return found


def leaf(*values: float) -> lucid.Tensor:
    return lucid.tensor(np.array(values), requires_grad=True)


def grad_of(w: lucid.Tensor) -> np.ndarray:
    found, w.grad = w.grad.numpy().copy(), None
    return found


def test_a_step_uses_the_tensors_of_the_one_before(made):
    w, ids = leaf(1.0, 2.0), []
    for _ in range(STEPS):
        h = w * 2.0
        ids.append(id(h))
        y = (h * h).sum()
        del h
        y.backward()
        np.testing.assert_allclose(grad_of(w), [8.0, 16.0])
    assert made["run"] >= STEPS - 3
    assert made["followers"] == 1
    assert len(set(ids[-4:])) == 1


def test_following_allocates_nothing_that_the_collector_counts():
    w = leaf(1.0, 2.0)

    def step():
        y = w
        for _ in range(200):
            y = y * 0.99 + 0.01
        y.sum().backward()
        w.grad = None

    for _ in range(6):
        step()
    gc.collect()
    before = [generation["collections"] for generation in gc.get_stats()]
    for _ in range(20):
        step()
    assert [generation["collections"] for generation in gc.get_stats()] == before


def test_tensors_that_are_kept_keep_their_own_values(made):
    w, kept = leaf(1.0, 2.0), []
    for _ in range(STEPS):
        h = w * 2.0
        y = (h * h).sum()
        kept.append((h, y, h.grad_fn))
        y.backward()
        w.grad = None
        with lucid.no_grad():
            w.add_(1.0)
    assert made["run"] >= STEPS - 3
    assert len({id(h) for h, _, _ in kept}) == STEPS
    for i, (h, y, _) in enumerate(kept):
        want = 2.0 * np.array([1.0 + i, 2.0 + i])
        np.testing.assert_allclose(h.detach().numpy(), want)
        np.testing.assert_allclose(y.item(), (want * want).sum())


def test_a_second_backward_through_a_step_that_has_run_is_an_error(made):
    w, old = leaf(1.0, 2.0), []
    for _ in range(STEPS):
        h = w * 2.0
        (h * h).sum().backward()
        old.append(h)
    assert made["run"] >= STEPS - 3
    for h in old:
        with pytest.raises(GraphError, match="freed"):
            h.sum().backward()


def test_a_view_of_a_tensor_that_is_kept_shares_its_memory(made):
    w, views = leaf(1.0, 2.0, 3.0, 4.0), []
    for _ in range(STEPS):
        h = w * 2.0
        views.append(h.detach().reshape(2, 2))
        (h * h).sum().backward()
        grad = grad_of(w)
        np.testing.assert_allclose(grad, 8.0 * np.arange(1.0, 5.0))
        views[-1].mul_(10.0)
        np.testing.assert_allclose(h.detach().numpy(), 20.0 * np.arange(1.0, 5.0))
    for view in views:
        np.testing.assert_allclose(view.numpy(), 20.0 * np.arange(1.0, 5.0).reshape(2, 2))
    assert made["run"] >= STEPS - 3


def test_a_weak_reference_to_a_tensor_never_leads_to_another(made):
    w, seen = leaf(1.0, 2.0), []
    for _ in range(STEPS):
        h = w * 2.0
        seen.append(weakref.ref(h))
        (h * h).sum().backward()
        assert seen[-1]() is h
        del h
        assert [r() for r in seen] == [None] * len(seen)
    assert made["run"] >= STEPS - 3


def test_what_users_attach_to_an_operation_is_gone_in_the_next_step():
    w = leaf(1.0, 2.0)
    for _ in range(STEPS):
        h = w * 2.0
        assert not h.grad_fn.metadata
        h.grad_fn.metadata["name"] = "h"
        (h * h).sum().backward()
        del h


def test_a_hook_of_one_step_is_not_called_in_the_next():
    w, called = leaf(1.0, 2.0), []
    for i in range(STEPS):
        h = w * 2.0
        if i == 5:
            h.register_hook(lambda g: called.append(5))
        (h * h).sum().backward()
        np.testing.assert_allclose(grad_of(w), [8.0, 16.0])
        del h
    assert called == [5]


def test_a_step_holds_nothing_of_its_leaves():
    w = leaf(1.0, 2.0)
    for _ in range(STEPS):
        x = lucid.tensor([3.0, 4.0], dtype="float64")
        h = w * x
        (h * h).sum().backward()
        w.grad = None
    gone = [weakref.ref(x.raw), weakref.ref(w.raw)]
    del x, h, w
    assert [r() for r in gone] == [None, None]


def test_numbers_that_are_equal_are_the_same_and_signed_zeros_are_not(made):
    w = leaf(1.0, 2.0)
    for i in range(STEPS):
        h = w * (2 if i % 2 else 2.0)
        (h * h).sum().backward()
        np.testing.assert_allclose(grad_of(w), [8.0, 16.0])
    assert made["run"] >= STEPS - 3
    for i in range(STEPS):
        zero = 0.0 if i < 5 else -0.0
        h = w * zero
        (h * h).sum().backward()
        assert np.signbit(h.detach().numpy()).tolist() == [i >= 5] * 2


def test_the_line_of_an_operation_is_the_one_that_called_it():
    w = leaf(1.0, 2.0)
    for i in range(STEPS):
        if i == 6:
            h = w * 2.0
            line = "other"
        else:
            h = w * 2.0
            line = "first"
        source = str(h.node.source[0].co_name), h.node.source[1]
        if i == 5:
            first = source
        (h * h).sum().backward()
        assert i < 6 or (source != first) == (line == "other")
