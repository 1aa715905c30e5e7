"""Pending values: a recording computes what Python looks at, and its program computes the rest."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import IndexingError, LinAlgError, ShapeError
from lucid.ir.primitive import Primitive
from lucid.tape.recording import pending


@pytest.fixture
def evaluated(monkeypatch):
    """Names of the operations that were computed one by one."""
    names: list[str] = []
    evaluate_node = pending.evaluate_node

    def noting(node, env):
        names.append(node.op.name)
        return evaluate_node(node, env)

    monkeypatch.setattr(pending, "evaluate_node", noting)
    return names


def values(*shape: int, seed: int = 0) -> lucid.Tensor:
    return lucid.tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"))


def test_the_first_call_computes_nothing_but_the_compiled_program(evaluated):
    f = lucid.jit(lambda x: (lucid.exp(x) * 2.0 - x.sum()).tanh())
    x = values(1000)
    first, second = f(x), f(x)
    assert evaluated == []
    np.testing.assert_array_equal(first.numpy(), second.numpy())


def test_a_whole_training_step_is_pending_on_its_first_call(evaluated):
    lucid.manual_seed(0)
    model = lucid.nn.Sequential(
        lucid.nn.Linear(4, 8), lucid.nn.BatchNorm1d(8), lucid.nn.Dropout(0.5), lucid.nn.Linear(8, 3)
    )
    optimizer = lucid.optim.Adam(model.parameters(), lr=0.01)

    def step(x, y):
        optimizer.zero_grad()
        loss = lucid.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    lucid.jit(step)(values(16, 4), lucid.arange(16) % 3)
    assert evaluated == []


def test_looking_at_a_value_computes_what_leads_to_it_once(evaluated):
    seen = []

    def f(x):
        y = lucid.exp(x)
        z = lucid.sin(x)
        seen.append(y.sum().item())
        seen.append(y.max().item())
        return z * y

    f = lucid.jit(f)
    x = values(5)
    f(x)
    assert evaluated == ["exp", "sum", "max"]
    np.testing.assert_allclose(seen, [np.exp(x.numpy()).sum(), np.exp(x.numpy()).max()], rtol=1e-6)


def test_a_loop_that_looks_at_a_value_computes_each_equation_once(evaluated):
    def f(x):
        while (x * x).sum().item() < 1000.0:
            x = x * 2.0
        return x

    x = lucid.ones(4)
    np.testing.assert_array_equal(lucid.jit(f)(x).numpy(), np.full(4, 16.0))
    assert evaluated.count("mul") == 5 + 4


def test_writes_happen_when_the_program_has_run():
    state, seen = lucid.zeros(3), []
    view = state[1:]

    def f(x):
        state.add_(x)
        seen.append(state.tolist())
        view.mul_(2.0)
        seen.append(state.tolist())
        return view.sum()

    f = lucid.jit(f)
    memory = state.numpy()
    assert f(lucid.ones(3)).item() == 4.0
    assert seen == [[1.0, 1.0, 1.0], [1.0, 2.0, 2.0]]
    assert memory.tolist() == state.tolist() == [1.0, 2.0, 2.0] and view.tolist() == [2.0, 2.0]
    assert f(lucid.ones(3)).item() == 12.0
    assert memory.tolist() == [2.0, 6.0, 6.0] and view.tolist() == [6.0, 6.0]


@pytest.mark.parametrize("given_twice", [True, False])
def test_memory_that_no_view_describes_is_written_at_once(given_twice):
    def run(transform):
        array = np.zeros(3, "float32")
        a, b = lucid.from_numpy(array), lucid.from_numpy(array[1:])

        def f(a, b):
            before = b.sum()
            a.add_(1.0)
            b.mul_(3.0)
            return before, a.sum() + b.sum()

        if given_twice:
            results = [transform(f)(a, b) for _ in range(2)]
        else:
            g = transform(lambda a: f(a, b))
            results = [g(a) for _ in range(2)]
        return [[y.item() for y in ys] for ys in results], array.tolist()

    assert run(lucid.jit) == run(lambda f: f)


def test_an_exception_leaves_what_was_done_before_it():
    state, kept = lucid.zeros(2), []
    w = lucid.ones(2, requires_grad=True)

    def f(x):
        state.add_(x)
        kept.append(x * 3.0)
        (w * x).sum().backward()
        lucid.rand(2)
        raise KeyError("here")

    lucid.manual_seed(1)
    with pytest.raises(KeyError, match="here"):
        lucid.jit(f)(lucid.ones(2))
    after = lucid.rand(2).tolist()
    assert state.tolist() == [1.0, 1.0] and w.grad.tolist() == [1.0, 1.0]
    assert kept[0].tolist() == [3.0, 3.0]
    lucid.manual_seed(1)
    lucid.rand(2)
    assert lucid.rand(2).tolist() == after


def test_an_interrupt_leaves_what_was_done_before_it():
    state, w = lucid.zeros(2), lucid.ones(2, requires_grad=True)
    stop = [True]

    def f(x):
        state.add_(x)
        (w * x).sum().backward()
        if stop[0]:
            raise KeyboardInterrupt
        return state * 1.0

    f = lucid.jit(f)
    with pytest.raises(KeyboardInterrupt):
        f(lucid.ones(2))
    assert state.tolist() == [1.0, 1.0] and w.grad.tolist() == [1.0, 1.0]
    stop[0] = False
    assert f(lucid.ones(2)).tolist() == [2.0, 2.0] and w.grad.tolist() == [2.0, 2.0]


def test_a_wrong_type_is_an_error_at_its_own_line():
    def f(x):
        y = x * 2.0
        z = y @ lucid.ones(3)  # the wrong line
        return z + 1.0

    with pytest.raises(ShapeError, match=r"test_pending.py:\d+") as caught:
        lucid.jit(f)(lucid.ones(2))
    line = f.__code__.co_firstlineno + 2
    assert f"test_pending.py:{line}" in str(caught.value)


def test_try_works_around_an_operation_that_fails_for_some_values():
    def f(a):
        try:
            return lucid.linalg.cholesky(a * 1.0)
        except LinAlgError:
            return a * 0.0

    assert lucid.jit(f)(-lucid.eye(2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_try_works_around_an_index_that_is_known():
    def f(x, i):
        try:
            return (x * 2.0)[i]
        except IndexingError:
            return x

    assert lucid.jit(f)(lucid.ones(2), lucid.tensor([5])).tolist() == [1.0, 1.0]


def test_an_index_that_is_pending_is_checked_when_it_is_computed():
    def f(x, i):
        return (x * 2.0)[i * 3]  # the line of the index

    line = f.__code__.co_firstlineno + 1
    with pytest.raises(IndexingError, match=f"test_pending.py:{line}"):
        lucid.jit(f)(lucid.ones(2), lucid.tensor([1]))


def test_a_tensor_that_python_keeps_has_its_value():
    kept = {}

    def f(x):
        h = lucid.exp(x)
        kept["h"], kept["view"] = h, h.reshape(2, 2)[0]
        y = h * 2.0
        kept["y"] = y
        return y

    x = values(4)
    out = lucid.jit(f)(x)
    np.testing.assert_allclose(kept["h"].numpy(), np.exp(x.numpy()), rtol=1e-6)
    np.testing.assert_allclose(kept["view"].numpy(), np.exp(x.numpy())[:2], rtol=1e-6)
    np.testing.assert_array_equal(kept["y"].numpy(), out.numpy())


def test_another_thread_may_look_at_a_value_of_a_recording():
    from threading import Thread

    found = []

    def f(x):
        y = lucid.exp(x)
        thread = Thread(target=lambda: found.append((y + 1.0).tolist()))
        thread.start()
        thread.join()
        return y * 2.0

    assert lucid.jit(f)(lucid.zeros(2)).tolist() == [2.0, 2.0] and found == [[2.0, 2.0]]


def test_a_primitive_of_a_user_runs_at_once():
    class CountedDouble(Primitive):
        """Twice its operand."""

        runs = 0
        differentiable = False

        def infer(self, x):
            return x

        def eval(self, x):
            type(self).runs += 1
            return x * 2

    def f(x):
        y = lucid.ir.bind(CountedDouble(), x * 1.0)
        assert CountedDouble.runs == 1
        return y

    try:
        assert lucid.jit(f)(lucid.ones(2)).tolist() == [2.0, 2.0]
    finally:
        from lucid.ir.primitive import REGISTRY

        del REGISTRY[CountedDouble.name]


def test_item_assignment_to_a_pending_view_is_one_write():
    def f(x):
        y = x * 2.0
        y[0] += 1.0
        return y

    f = lucid.jit(f)
    assert f(lucid.ones(3)).tolist() == f(lucid.ones(3)).tolist() == [3.0, 2.0, 2.0]
    names = [eqn.op.name for eqn in f.graph(lucid.ones(3)).equations]
    assert names.count("slice_set") == 1


def test_a_nested_transform_captures_pending_values(evaluated):
    def f(x, w):
        h = lucid.exp(x)
        rows = lucid.func.vmap(lambda a: (a * w * h.sum()).sum())(h)
        slope = lucid.func.grad(lambda v: (v * h).sum())(w)
        total, _ = lucid.func.scan(lambda c, a: (c + a * w, None), w * 0.0, h)
        return rows, slope, total

    x, w = values(3, 2), values(2, seed=1)
    got = lucid.jit(f)(x, w)
    assert evaluated == []
    for a, b in zip(got, f(x, w)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
