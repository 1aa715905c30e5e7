"""Random state is state like any other: a jitted function draws what the eager one would draw."""

from threading import Thread

import numpy as np
import pytest

import lucid
from lucid.compiler.jit.jit import jit
from lucid.func import grad, vmap
from lucid.ops.random.keyed import DRAW_OF_SIZE, RandomBits
from lucid.tape.tiering import Tiering, table

WEIGHTS = np.array([0.1, 0.4, 0.0, 0.5])


def runs(f, n=5, seed=3):
    lucid.manual_seed(seed)
    return [np.asarray(f()) for _ in range(n)]


def dropout(x):
    return lucid.where(lucid.rand(x.shape) < 0.5, x * 2, 0.0)


DRAWS = {
    "rand": lambda: lucid.rand(3),
    "rand64": lambda: lucid.rand(2, 3, dtype="float64"),
    "randint": lambda: lucid.randint(0, 100, (5,)),
    "randperm": lambda: lucid.randperm(7),
    "bernoulli": lambda: lucid.bernoulli(lucid.full((9,), 0.3)),
    "dropout": lambda: dropout(lucid.ones(8)),
    "multinomial": lambda: lucid.multinomial(WEIGHTS, 2),
    "multinomial again": lambda: lucid.multinomial(WEIGHTS, 6, replacement=True),
    "two draws": lambda: lucid.rand(3) - lucid.rand(3),
    "mapped": lambda: vmap(lambda x: x + lucid.rand(2), randomness="different")(lucid.zeros(4)),
    "mapped same": lambda: vmap(lambda x: x + lucid.rand(2), randomness="same")(lucid.zeros(4)),
    "gradient": lambda: grad(lambda x: (x * lucid.rand(3)).sum())(lucid.ones(3)),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_jitted_function_draws_the_stream_of_the_eager_one(draw):
    calls = []

    @jit
    def jitted():
        calls.append(1)
        return draw()

    eager = runs(draw)
    for _ in range(2):  # manual_seed between calls takes effect
        np.testing.assert_array_equal(runs(jitted), eager)
    assert len(calls) == 1, "recorded once, whatever the seed and the count"
    assert any((eager[0] != other).any() for other in eager[1:])


def test_normal_numbers_agree_within_rounding():
    draw = lambda: lucid.randn(50)  # noqa: E731
    np.testing.assert_allclose(runs(jit(draw)), runs(draw), rtol=1e-5, atol=1e-6)


def test_eager_and_jitted_draws_continue_one_another():
    jitted = jit(lambda: lucid.rand(4))
    jitted()
    lucid.manual_seed(1)
    expected = [lucid.rand(4).tolist() for _ in range(6)]
    lucid.manual_seed(1)
    mixed = [(jitted if i % 2 else lambda: lucid.rand(4))().tolist() for i in range(6)]
    assert mixed == expected


def test_one_native_call_draws():
    f = jit(lambda x: dropout(lucid.tanh(x)))
    for _ in range(3):
        f(lucid.ones(16))
    assert f.last is not None and f.last.fast_call is not None


def test_a_generator_that_is_closed_over():
    g, h = lucid.Generator(5), lucid.Generator(5)
    jitted = jit(lambda: lucid.rand(3, generator=g) + lucid.rand(3))
    lucid.manual_seed(0)
    first = [jitted().tolist() for _ in range(4)]
    lucid.manual_seed(0)
    again = [(lucid.rand(3, generator=h) + lucid.rand(3)).tolist() for _ in range(4)]
    assert first == again
    assert g.get_state().tolist() == h.get_state().tolist()


def test_seeding_inside_starts_the_stream_at_every_call():
    @jit
    def f():
        lucid.manual_seed(9)
        return lucid.rand(3)

    f()
    lucid.manual_seed(9)
    expected = lucid.rand(3).tolist()
    lucid.rand(1)
    assert f().tolist() == f().tolist() == expected
    assert lucid.initial_seed() == 9


def test_a_state_that_is_saved_and_restored_inside_replays():
    @jit
    def f():
        state = lucid.get_rng_state()
        a = lucid.rand(3)
        lucid.set_rng_state(state)
        return a, lucid.rand(3)

    for _ in range(3):
        a, b = f()
        assert a.tolist() == b.tolist()


def test_the_count_carries_into_its_upper_word():
    jitted = jit(lambda: lucid.rand(3))
    jitted()
    state = lucid.tensor(np.array([7, 0, 0xFFFFFFFE, 2], "uint32"))
    lucid.set_rng_state(state)
    eager = [lucid.rand(3).tolist() for _ in range(4)]
    end = lucid.get_rng_state().tolist()
    lucid.set_rng_state(state)
    assert [jitted().tolist() for _ in range(4)] == eager
    assert lucid.get_rng_state().tolist() == end == [7, 0, 2, 258]


def test_a_derivative_goes_through_a_jitted_draw():
    f = jit(lambda x: (lucid.rand(3) * x * x).sum())
    lucid.manual_seed(2)
    noise = [lucid.rand(3).numpy() for _ in range(5)]
    lucid.manual_seed(2)
    x = lucid.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for r in noise:
        y = f(x)
        x.grad = None
        y.backward()
        np.testing.assert_allclose(x.grad.numpy(), 2 * r * x.detach().numpy(), rtol=1e-6)
        np.testing.assert_allclose(y.item(), (r * x.detach().numpy() ** 2).sum(), rtol=1e-6)


def test_two_results_may_be_differentiated_after_both_were_drawn():
    f = jit(lambda x: (lucid.rand(3) * x).sum())
    x = lucid.ones(3, requires_grad=True)
    lucid.manual_seed(4)
    a, b = lucid.rand(3).numpy(), lucid.rand(3).numpy()
    lucid.manual_seed(4)
    y, z = f(x), f(x)
    y.backward()
    z.backward()
    np.testing.assert_allclose(x.grad.numpy(), a + b, rtol=1e-6)


def test_a_tracked_argument_and_written_floats_run_once_a_call():
    mean = lucid.zeros(2)

    @jit
    def f(x):
        with lucid.no_grad():
            mean.add_(x)
        return x * lucid.rand(2)

    x = lucid.ones(2, requires_grad=True)
    for k in range(1, 4):
        assert f(x).requires_grad
        assert mean.tolist() == [k, k] and not mean.requires_grad


def test_a_checkpoint_draws_again_what_it_drew():
    from lucid.func.checkpointing import checkpoint

    x = lucid.full((8,), 3.0)
    plain, again = (grad(lambda x, f=f: f(x * x).sum()) for f in (dropout, checkpoint(dropout)))
    expected = runs(lambda: plain(x))
    np.testing.assert_array_equal(runs(lambda: again(x)), expected)
    jitted = jit(again)
    for _ in range(2):
        np.testing.assert_array_equal(runs(lambda: jitted(x)), expected)


def test_threads_never_draw_the_same_numbers():
    g, drawn = lucid.Generator(0), []
    f = jit(lambda: lucid.rand(4, generator=g))
    f()
    threads = [
        Thread(target=lambda: drawn.extend(tuple(f().tolist()) for _ in range(100)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 400


@pytest.mark.parametrize("shape", [(), (1,), (2,), (5,), (3, 4), (9000,)])
def test_native_words_are_those_of_numpy(shape, monkeypatch):
    key, counter = np.array([1, 2], "uint32"), np.array([0xFFFFFFFE, 0], "uint32")
    op = RandomBits(shape)
    for _ in range(40):
        native = op.eval(key, counter)
    drawn = [entry.program for entry in table.of(DRAW_OF_SIZE).values()]
    assert any(drawn)
    monkeypatch.setattr(Tiering, "load_cipher", None)
    np.testing.assert_array_equal(native, op.eval(key, counter))
    keys, counters = np.stack([key, key + 1, key + 7]), np.stack([counter] * 3)
    together = op.eval(keys, counters)
    np.testing.assert_array_equal(together[0], native)
