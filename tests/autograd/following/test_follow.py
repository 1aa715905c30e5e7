"""A step that repeats is followed, and means what it means when each operation runs at once."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import lucid
import lucid.nn.functional as F
from lucid.autograd.following import follow, step_sequence
from lucid.errors import IndexingError, ShapeError
from tests.campaign.tiers import cold, settings

STEPS = 8
is_worthwhile = step_sequence.is_worthwhile


@pytest.fixture
def counts(monkeypatch):
    """How many steps ran as one program, and how many were given up on the way."""
    found = {"run": 0, "stopped": 0}
    prepare, stop = follow.Follower.prepare, follow.Follower.stop

    def counted_prepare(self, *args):
        result = prepare(self, *args)
        found["run"] += result is not None
        return result

    def counted_stop(self):
        found["stopped"] += self.at > 0
        return stop(self)

    monkeypatch.setattr(follow.Follower, "prepare", counted_prepare)
    monkeypatch.setattr(follow.Follower, "stop", counted_stop)
    return found


def hot():
    return settings(enabled=True, threshold=1)


def data(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def both_ways(program, rtol=1e-4):
    """Run a program with every operation at once and followed; both give lists of arrays."""
    with cold():
        want = program()
    with hot():
        got = program()
    assert len(got) == len(want)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


def training(body, shapes=((4, 8), (8,), (8, 3))):
    """A program of several steps: `body(params, x, i)` returns the loss and values to look at."""

    def program():
        lucid.manual_seed(0)
        params = [lucid.tensor(data(*s, seed=k), requires_grad=True) for k, s in enumerate(shapes)]
        seen = []
        for i in range(STEPS):
            x = lucid.tensor(data(5, 4, seed=100 + i))
            loss, *others = body(params, x, i)
            loss.backward()
            with lucid.no_grad():
                for p in params:
                    if p.grad is not None:
                        p -= 0.1 * p.grad
                        seen.append(p.grad.numpy().copy())
                        p.grad = None
            seen += [loss.item(), *[y.detach().numpy().copy() for y in others]]
        return [*seen, *[p.detach().numpy().copy() for p in params]]

    return program


def network(params, x, i):
    w, b, v = params
    h = lucid.tanh(x @ w + b)
    return ((h @ v) ** 2).mean(), h


def test_a_step_that_repeats_runs_as_one_program(counts):
    both_ways(training(network))
    assert counts == {"run": STEPS - 2, "stopped": 0}


def test_modules_losses_and_optimizers(counts):
    def program():
        lucid.manual_seed(0)
        model = lucid.nn.Sequential(
            lucid.nn.Linear(4, 8), lucid.nn.LayerNorm(8), lucid.nn.GELU(), lucid.nn.Linear(8, 3)
        )
        optimizer = lucid.optim.AdamW(model.parameters(), lr=0.05)
        losses = []
        for i in range(12):
            x, y = lucid.tensor(data(6, 4, seed=i)), lucid.arange(6) % 3
            optimizer.zero_grad()
            out = model(x)
            loss = F.cross_entropy(out, y)
            loss.backward()
            optimizer.step()
            losses += [loss.item(), (out.argmax(1) == y).float().mean().item()]
        return [np.array(losses), *[p.detach().numpy().copy() for p in model.parameters()]]

    both_ways(program, rtol=1e-3)
    assert counts["run"] >= 5 and counts["stopped"] == 0


def test_a_look_before_backward_computes_what_is_pending(counts):
    def body(params, x, i):
        loss, h = network(params, x, i)
        assert np.isfinite(loss.item())
        return loss, h

    both_ways(training(body))
    assert counts["run"] == 0 and 0 < counts["stopped"] <= follow.MAX_MISSES


def test_another_branch_goes_on_eagerly(counts):
    def body(params, x, i):
        w, b, v = params
        h = x @ w + b
        h = lucid.sin(h) if i % 3 == 2 else lucid.tanh(h)
        return ((h @ v) ** 2).mean(), h

    both_ways(training(body))
    assert counts["run"] > 0 and counts["stopped"] > 0


def test_a_write_between_forward_and_backward(counts):
    def body(params, x, i):
        w, b, v = params
        y = x * 1.0
        h = (y + b.sum()) * 2.0
        loss = (h * 3.0).sum() + (x @ w + b).sum() + v.sum()
        if i >= 4:
            x.mul_(100.0)  # no derivative needs it; the values were computed before
            x.zero_()
        return loss, h

    def program():
        return training(lambda params, x, i: body(params, x, i))()

    with cold():
        with pytest.raises(lucid.MutationError if hasattr(lucid, "MutationError") else Exception):
            program()  # x @ w needs x
    with hot(), pytest.raises(Exception, match="changed in place"):
        program()


def test_state_that_is_written_in_the_step(counts):
    def program():
        state, w = lucid.zeros(3), lucid.ones(3, requires_grad=True)
        seen = []
        for i in range(STEPS):
            h = w * state + 1.0
            state.add_(float(i))
            loss = (h * h).sum()
            try:
                loss.backward()
            except lucid.errors.MutationError:
                seen.append(np.array(-1.0))
            seen += [loss.item(), state.numpy().copy()]
            w.grad = None
        return seen

    both_ways(program)


def test_memory_that_numpy_sees_may_change_at_any_time(counts):
    def program():
        array = np.ones(3, "float32")
        x, w = lucid.from_numpy(array), lucid.ones(3, requires_grad=True)
        seen = []
        for i in range(STEPS):
            array[:] = float(i)
            h = w + x
            array[:] = -7.0
            loss = (h * h).sum()
            loss.backward()
            seen += [loss.item(), w.grad.numpy().copy()]
            w.grad = None
        return seen

    both_ways(program)
    assert counts["run"] > 0


def test_an_array_that_was_handed_out_before(counts):
    def program():
        x, w = lucid.ones(3), lucid.ones(3, requires_grad=True)
        array, seen = x.numpy(), []
        for i in range(STEPS):
            array[:] = float(i)
            h = w + x
            array[:] = -7.0
            loss = (h * h).sum()
            loss.backward()
            seen += [loss.item(), w.grad.numpy().copy()]
            w.grad = None
        return seen

    both_ways(program)
    assert counts["run"] > 0


def test_views_of_results_share_their_memory():
    def body(params, x, i):
        w, b, v = params
        h = lucid.tanh(x @ w + b)
        row = h[0]
        loss = ((h @ v) ** 2).mean() + row.sum()
        return loss, h, row

    def program():
        params = [lucid.tensor(data(*s), requires_grad=True) for s in ((4, 8), (8,), (8, 3))]
        seen = []
        for i in range(STEPS):
            loss, h, row = body(params, lucid.tensor(data(5, 4, seed=i)), i)
            loss.backward()
            with lucid.no_grad():
                row.detach().zero_()
            seen += [h.detach().numpy().copy(), row.detach().numpy().copy(), loss.item()]
            for p in params:
                seen.append(p.grad.numpy().copy())
                p.grad = None
        return seen

    both_ways(program)


def test_hooks_and_retained_gradients():
    def program():
        w, seen = lucid.ones(3, requires_grad=True), []
        w.register_hook(lambda g: g * 2.0)
        for i in range(STEPS):
            h = w * float(i + 1)
            if i % 3 == 1:
                h.register_hook(lambda g, seen=seen: seen.append(g.numpy().copy()))
            if i % 3 == 2:
                h.retain_grad()
            (h * h).sum().backward()
            seen += [w.grad.numpy().copy()] + ([h.grad.numpy().copy()] if i % 3 == 2 else [])
            w.grad = None
        return seen

    both_ways(program)


def test_gradients_accumulate_and_graphs_are_kept():
    def program():
        w, seen = lucid.ones(3, requires_grad=True), []
        for i in range(STEPS):
            loss = (w * w * float(i)).sum()
            loss.backward(retain_graph=i == 5)
            if i == 5:
                loss.backward()
            seen.append(w.grad.numpy().copy())
        return seen

    both_ways(program)


def test_a_second_backward_is_an_error_as_ever(counts):
    w = lucid.ones(3, requires_grad=True)
    with hot():
        for _ in range(5):
            loss = (w * w).sum()
            loss.backward()
            with pytest.raises(lucid.errors.GraphError, match="retain_graph"):
                loss.backward()
    assert counts["run"] > 0


def test_two_steps_that_take_turns(counts):
    def program():
        w, v, seen = lucid.ones(3, requires_grad=True), lucid.ones(2, requires_grad=True), []
        for _ in range(10):
            (w * w * 2.0).sum().backward()
            lucid.exp(v * 0.1).sum().backward()
            seen += [w.grad.numpy().copy(), v.grad.numpy().copy()]
        return seen

    both_ways(program)
    assert counts["run"] >= 10


def test_errors_have_their_own_lines(counts):
    w = lucid.ones(2, 3, requires_grad=True)
    rows = lucid.tensor([0, 1])

    def step(x, rows):
        h = w @ x
        h = h[rows]  # the line of the index
        return (h * 2.0).sum()

    line = step.__code__.co_firstlineno
    with hot():
        for _ in range(5):
            step(lucid.ones(3), rows).backward()
        assert counts["run"] > 0
        with pytest.raises(ShapeError, match=f"test_follow.py:{line + 1}"):
            step(lucid.ones(4), rows)
        step(lucid.ones(3), rows).backward()
        with pytest.raises(IndexingError, match=f"test_follow.py:{line + 2}"):
            step(lucid.ones(3), rows * 7)


def test_a_target_out_of_range_is_an_error_of_its_own_line(counts):
    w = lucid.tensor(data(4, 3), requires_grad=True)
    x = lucid.tensor(data(6, 4))

    def step(y):
        out = x @ w
        return F.cross_entropy(out, y)  # the line of the loss

    line = step.__code__.co_firstlineno + 2
    with hot():
        for _ in range(12):
            step(lucid.arange(6) % 3).backward()
        assert counts["run"] > 0
        with pytest.raises(Exception, match=f"test_follow.py:{line}"):
            step(lucid.arange(6))
        step(lucid.arange(6) % 3).backward()


def test_random_streams_are_the_same(counts):
    def program():
        lucid.manual_seed(3)
        w, seen = lucid.ones(50, requires_grad=True), []
        for _ in range(STEPS):
            h = F.dropout(w * 2.0, 0.5)
            loss = (h * lucid.rand(50)).sum()
            loss.backward()
            seen += [loss.item(), w.grad.numpy().copy(), lucid.rand(2).numpy()]
            w.grad = None
        return seen

    both_ways(program)


def test_threads_follow_their_own_steps():
    program, results = training(network), {}
    with cold():
        want = program()

    def work(number):
        results[number] = program()

    with hot():
        threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 3
    for got in results.values():
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_another_thread_looks_at_a_pending_value(counts):
    w, seen = lucid.ones(3, requires_grad=True), []
    with hot():
        for _ in range(6):
            h = w * 2.0
            thread = threading.Thread(target=lambda h=h: seen.append(h.tolist()))
            thread.start()
            thread.join()
            (h * h).sum().backward()
            seen.append(w.grad.tolist())
            w.grad = None
    assert seen == [[2.0] * 3, [8.0] * 3] * 6 and counts["run"] > 0


def test_an_interrupt_in_the_program_leaves_the_step_as_it_was(monkeypatch):
    w = lucid.ones(3, requires_grad=True)
    with hot():
        for _ in range(4):
            (w * w).sum().backward()
            w.grad = None
        program = follow.StepSequence.program

        def interrupted(self, *args):
            raise KeyboardInterrupt

        loss = (w * w).sum()
        monkeypatch.setattr(follow.StepSequence, "program", interrupted)
        with pytest.raises(KeyboardInterrupt):
            loss.backward()
        monkeypatch.setattr(follow.StepSequence, "program", program)
        assert w.grad is None
        loss.backward()
        assert loss.item() == 3.0 and w.grad.tolist() == [2.0] * 3


def test_a_step_leaves_no_tape_behind():
    w = lucid.ones(1000, requires_grad=True)
    with hot():
        for _ in range(5):
            (lucid.exp(w * 0.5) * 2.0).sum().backward()
            w.grad = None
        gc.collect()
        gc.disable()
        try:
            before = len(gc.get_objects())
            for _ in range(20):
                (lucid.exp(w * 0.5) * 2.0).sum().backward()
                w.grad = None
            assert len(gc.get_objects()) - before < 40, (
                "what a step makes dies without a collection"
            )
        finally:
            gc.enable()


def test_many_small_elementwise_operations_are_followed(counts, monkeypatch):
    monkeypatch.setattr(step_sequence, "is_worthwhile", is_worthwhile)

    def program():
        w, seen = lucid.tensor(data(3), requires_grad=True), []
        for _ in range(STEPS):
            y = w
            for _ in range(6):
                y = lucid.tanh(y * 0.9 + 0.1)
            y.sum().backward()
            seen += [y.detach().numpy().copy(), w.grad.numpy().copy()]
            w.grad = None
        return seen

    both_ways(program)
    assert counts["run"] >= STEPS - 3


def test_small_elementwise_steps_are_not_followed(counts, monkeypatch):
    monkeypatch.setattr(step_sequence, "is_worthwhile", is_worthwhile)
    w = lucid.ones(3, requires_grad=True)
    with hot():
        for _ in range(6):
            (lucid.exp(w * 0.5) * 2.0).sum().backward()
        assert counts["run"] == 0
        training(network)()
    assert counts["run"] > 0


def test_a_few_operations_are_followed_on_large_tensors_alone(counts, monkeypatch):
    monkeypatch.setattr(step_sequence, "is_worthwhile", is_worthwhile)
    for size, is_followed in ((4, False), (64, True)):
        x, w = lucid.ones(size, size), lucid.ones(size, size, requires_grad=True)
        with hot():
            for _ in range(6):
                (x @ w).sum().backward()
        assert (counts["run"] > 0) == is_followed


def test_tiering_off_follows_nothing(counts):
    with cold():
        training(network)()
    assert counts == {"run": 0, "stopped": 0}
