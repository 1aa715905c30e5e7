"""An eager vmap that recurs runs as one native program, with the meaning it had before."""

import numpy as np
import pytest

import lucid
from lucid.func import grad, jacfwd, jacrev, jvp, psum, vmap
from lucid.tape.tiering import VMAP, table
from tests.campaign.tiers import cold, hot


@pytest.fixture(autouse=True)
def compile_at_first_sight():
    with hot():
        yield


def programs():
    """How many structures of vmapped functions run natively now."""
    return sum([entry.program is not None for entry in table.of(VMAP).values()])


def tensor(*shape, seed=0):
    return lucid.tensor(np.random.default_rng(seed).normal(size=shape))


def test_a_function_that_is_mapped_again_is_batched_and_compiled_once():
    w = tensor(3, 3)
    mapped = vmap(lambda x: (w @ x).tanh().sum())
    for seed in range(3):
        x = tensor(5, 3, seed=seed)
        expected = np.tanh(x.numpy() @ w.numpy().T).sum(1)
        np.testing.assert_allclose(mapped(x), expected, rtol=1e-12)
    assert programs() == 1
    mapped(tensor(4, 3))
    assert programs() == 2, "another number of examples"


def test_it_becomes_hot_after_the_runs_that_the_threshold_says(monkeypatch):
    monkeypatch.setattr("lucid.tape.tiering.Tiering.threshold", 3)
    found = []
    for _ in range(4):
        vmap(lambda x: x.sin() * 2.0)(tensor(5, 3))
        found.append(programs())
    assert found == [0, 0, 1, 1]
    with cold():
        vmap(lambda x: x.sin() * 2.0)(tensor(5, 3))
        assert programs() == 0


def test_jacobians_of_every_example_agree_with_a_loop():
    params = [tensor(4, 3), tensor(4, seed=1)]

    def f(params, x):
        return (params[0] @ x + params[1]).tanh()

    for jacobian in (jacrev, jacfwd):
        each = vmap(jacobian(f), (None, 0))
        for seed in (2, 3):
            xs = tensor(5, 3, seed=seed)
            loop = [jacobian(f)(params, x) for x in xs]
            for i, found in enumerate(each(params, xs)):
                np.testing.assert_allclose(found, np.stack([y[i] for y in loop]), rtol=1e-10)
    assert programs() == 2


def test_captured_tensors_numbers_and_state_of_python_may_change():
    w, scale, extra = tensor(3), [2.0], []

    def f(x):
        y = x * w * scale[0]
        return y + extra[0] if extra else y

    mapped, x = vmap(f), tensor(5, 3)
    array = x.numpy()
    np.testing.assert_allclose(mapped(x), array * w.numpy() * 2)
    w.add_(1.0)
    np.testing.assert_allclose(mapped(x), array * w.numpy() * 2)
    scale[0] = -3.0
    np.testing.assert_allclose(mapped(x), array * w.numpy() * -3)
    extra.append(lucid.tensor(7.0, dtype="float64"))
    np.testing.assert_allclose(mapped(x), array * w.numpy() * -3 + 7)


def test_views_among_the_results_share_memory_as_before():
    def f(x, y):
        z = x * 2.0
        return x, x[1:], y, z, z.transpose(0, 1), z.reshape(-1)

    def written():
        x, y = tensor(4, 2, 3), tensor(2)
        same, part, shared, z, turned, flat = vmap(f, (0, None), (0, 0, None, 0, 0, 0))(x, y)
        assert not turned.is_contiguous() and flat.is_contiguous()
        part.fill_(1.0)
        turned[0].fill_(5.0)
        shared.zero_()
        return [t.numpy().copy() for t in (x, y, same, z, flat)]

    now = written()
    assert programs() == 1
    with cold():
        for found, expected in zip(now, written()):
            np.testing.assert_array_equal(found, expected)


def test_results_that_the_examples_share_may_have_no_batch_axis():
    w = tensor(3)
    mapped = vmap(lambda x: (x * w, w.exp()), out_dims=(1, None))
    for _ in range(2):
        y, shared = mapped(tensor(5, 3))
        assert y.shape == (3, 5) and shared.shape == (3,)
        np.testing.assert_allclose(shared, np.exp(w.numpy()))
    assert programs() == 1


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_random_draws_are_those_of_the_interpreter(randomness):
    def draws():
        lucid.manual_seed(3)
        mapped = vmap(lambda x: x + lucid.rand(3), randomness=randomness)
        return [mapped(lucid.zeros(4, 3)).numpy() for _ in range(3)] + [lucid.rand(2).numpy()]

    found = draws()
    assert programs()
    with cold():
        for now, before in zip(found, draws()):
            np.testing.assert_array_equal(now, before)
    assert (found[0] != found[1]).any()
    assert (found[0][0] == found[0][1]).all() == (randomness == "same")


def test_a_write_to_an_outside_tensor_is_seen_by_the_next_call():
    count = lucid.tensor(0.0)

    def f(x):
        count.add_(1.0)
        return x * count

    mapped = vmap(f)
    found = [mapped(lucid.ones(2)).tolist() for _ in range(3)]
    assert found == [[1, 1], [2, 2], [3, 3]] and count.item() == 3
    assert programs() == 1


def test_tracked_arguments_are_recorded_and_the_same_under_no_grad_run_natively():
    w = tensor(3).requires_grad_()
    x = tensor(5, 3)
    mapped = vmap(lambda x: (x * w).sin().sum())
    for _ in range(2):
        (g,) = lucid.autograd.grad(mapped(x).sum(), [w])
        expected = (x.numpy() * np.cos(x.numpy() * w.detach().numpy())).sum(0)
        np.testing.assert_allclose(g, expected, rtol=1e-12)
    assert programs() == 0
    with lucid.no_grad():
        assert not mapped(x).requires_grad
    assert programs() == 1
    np.testing.assert_allclose(grad(lambda w: vmap(lambda x: (x * w).sum())(x).sum())(w), x.sum(0))


def test_maps_nest_in_one_another_and_in_derivatives():
    x, y = tensor(3, 2), tensor(4, 2, seed=1)
    table_of = vmap(lambda a: vmap(lambda b: (a * b).sum().sin())(y))
    products = x.numpy() @ y.numpy().T
    for _ in range(2):
        np.testing.assert_allclose(table_of(x), np.sin(products), rtol=1e-12)
    assert programs() == 1
    _, tangent = jvp(table_of, (x,), (lucid.ones_like(x),))
    np.testing.assert_allclose(tangent, np.cos(products) * y.numpy().sum(1), rtol=1e-12)
    assert programs() == 1, "a derivative needs the equations"


def test_collectives_read_the_axis_that_has_their_name():
    mapped = vmap(lambda x: x - psum(x, "i") / 4.0, axis_name="i")
    for seed in range(2):
        x = tensor(4, 3, seed=seed)
        np.testing.assert_allclose(mapped(x), x.numpy() - x.numpy().mean(0), atol=1e-12)
    assert programs() == 1


def test_a_failure_names_the_line_of_the_call_that_fails():
    def first(x):
        return lucid.linalg.cholesky(x)

    def second(x):
        return lucid.linalg.cholesky(x)

    vmap(first)(lucid.eye(2).expand(3, 2, 2))
    vmap(second)(lucid.eye(2).expand(3, 2, 2))
    with pytest.raises(lucid.errors.LucidError) as found:
        vmap(second)(-lucid.eye(2).expand(3, 2, 2))
    line = second.__code__.co_firstlineno + 1
    assert f"test_hot_vmap.py:{line}" in str(found.value)


def test_anomaly_checks_see_single_operations():
    x = tensor(4, 3)
    with lucid.autograd.detect_anomaly():
        vmap(lambda x: x.sin())(x)
    assert programs() == 0


def test_examples_that_branch_run_every_path():
    mapped = vmap(lambda x: x * 2.0 if x > 0 else x - 1.0, branching="split")
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=6)
        np.testing.assert_allclose(mapped(lucid.tensor(x)), np.where(x > 0, x * 2, x - 1))


def test_chunks_and_no_examples_at_all():
    mapped = vmap(lambda x: x.sum().exp(), chunk_size=2)
    x = tensor(5, 3)
    for _ in range(2):
        np.testing.assert_allclose(mapped(x), np.exp(x.numpy().sum(1)), rtol=1e-12)
    assert mapped(lucid.zeros(0, 3)).shape == (0,)
