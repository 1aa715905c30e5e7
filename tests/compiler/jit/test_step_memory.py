"""A compiled training step changes its state in place, once, and keeps one set of gradients."""

import tracemalloc

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import IndexingError
from lucid.nn import functional as F

WIDTH = 300


class Step:
    """A classifier whose loss checks its labels, and a jitted step of SGD."""

    def __init__(self, embed: bool = False) -> None:
        lucid.manual_seed(0)
        self.embed = nn.Embedding(7, WIDTH) if embed else None
        self.model = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, 5))
        self.params = [*self.model.parameters(), *([self.embed.weight] if embed else ())]
        self.optimizer = lucid.optim.SGD(self.params, lr=0.1)
        self.jitted = lucid.jit(self.step)

    def step(self, x, labels):
        self.optimizer.zero_grad()
        x = x if self.embed is None else self.embed(x)
        loss = F.cross_entropy(self.model(x), labels)
        loss.backward()
        self.optimizer.step()
        return loss

    def values(self):
        return [p.detach().numpy().copy() for p in self.params]

    def plan(self):
        ((path,),) = self.jitted.paths.values()
        return path.program.plan


def batch(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(6, WIDTH)).astype(np.float32), rng.integers(0, 5, 6)


def test_a_step_with_checked_labels_writes_its_parameters_in_place():
    step, eager = Step(), Step()
    for seed in range(3):
        x, labels = batch(seed)
        step.jitted(x, labels)
        eager.step(lucid.tensor(x), lucid.tensor(labels))
    for mine, other in zip(step.values(), eager.values(), strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-5, atol=2e-6)
    new = [out.shape for out in step.plan().outputs if out.alias < 0]
    assert sorted(new) == sorted([(), (), *[tuple(p.shape) for p in step.params]])  # gradients


@pytest.mark.parametrize("embed", [False, True])
def test_a_bad_label_raises_and_leaves_the_parameters_as_they_were(embed):
    step = Step(embed)
    x, labels = batch()
    if embed:
        x = np.array([0, 3, 6, 2, 2, 1])
    step.jitted(x, labels)
    before = step.values()
    with pytest.raises(IndexingError, match="out of range"):
        step.jitted(x, labels + 3)
    if embed:
        with pytest.raises(IndexingError, match="out of range"):
            step.jitted(x + 1, labels)
    for now, old in zip(step.values(), before, strict=True):
        assert np.array_equal(now, old)
    step.jitted(x, labels)
    assert not np.array_equal(step.values()[0], before[0])
    assert {out.alias >= 0 for out in step.plan().outputs if len(out.shape) == 2} == {True, False}


def test_indices_that_a_maximum_gives_need_no_check_before_writes():
    pool = nn.MaxPool2d(2)
    weight = lucid.ones(4, 4, requires_grad=True)

    @lucid.jit
    def step(x):
        weight.grad = None
        pool(x * weight).sum().backward()
        with lucid.no_grad():
            weight.sub_(weight.grad)

    x = np.arange(16.0, dtype=np.float32).reshape(1, 1, 4, 4)
    for _ in range(2):
        step(x)
    # only the last element of each window has a gradient, which is x
    expected = np.ones((4, 4))
    expected[1::2, 1::2] = 1 - x[0, 0, 1::2, 1::2]
    first = expected.copy()
    product = x[0, 0] * first
    for i in (0, 2):
        for j in (0, 2):
            k = np.unravel_index(np.argmax(product[i : i + 2, j : j + 2]), (2, 2))
            expected[i + k[0], j + k[1]] -= x[0, 0, i + k[0], j + k[1]]
    np.testing.assert_array_equal(weight.detach().numpy(), expected)
    ((path,),) = step.paths.values()
    assert len(path.into) == len(path.program.parts[0].into) == 1


def test_a_parameter_and_the_tensor_it_was_made_from_are_written_once():
    base = lucid.ones(3)
    p = nn.Parameter(base)

    @lucid.jit
    def double():
        with lucid.no_grad():
            p.mul_(2.0)

    for expected in (2.0, 4.0, 8.0):
        double()
        assert p.tolist() == base.tolist() == [expected] * 3
    ((path,),) = double.paths.values()
    assert path.n_state == 1


def test_two_views_of_one_tensor_are_both_written():
    base = lucid.zeros(4)
    left, right = base[:2], base[2:]

    @lucid.jit
    def step():
        left.add_(1.0)
        right.add_(2.0)

    for _ in range(3):
        step()
    assert base.tolist() == [3.0, 3.0, 6.0, 6.0]
    assert left.tolist() == [3.0, 3.0]
    assert right.tolist() == [6.0, 6.0]


def test_a_step_that_clears_gradients_first_holds_one_set_of_them():
    step = Step()
    x, labels = batch()
    for _ in range(2):
        step.jitted(x, labels)
    nbytes = sum(p.detach().numpy().nbytes for p in step.params)
    tracemalloc.start()
    step.jitted(x, labels)
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    step.jitted(x, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert before > 0.9 * nbytes  # the gradients of the step before
    assert peak < 1.2 * nbytes


def test_gradients_that_a_step_accumulates_are_not_cleared():
    w = lucid.ones(600, 600, requires_grad=True)

    @lucid.jit
    def step(x):
        (w * x).sum().backward()

    for x in (1.0, 2.0, 3.0):
        step(x)
    assert np.all(w.grad.numpy() == 6.0)
