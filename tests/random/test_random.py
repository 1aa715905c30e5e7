"""Random numbers: published vectors, exact replay, distributions, and the state behind them."""

from threading import Thread

import numpy as np
import pytest
from scipy import stats

import lucid
import lucid.random as lr
from lucid.errors import DTypeError, ShapeError
from lucid.func import vmap
from lucid.ops.core.promote import as_tensor
from lucid.ops.random import keyed as pure
from lucid.ops.random.keyed import RandomBits
from tests.cases.random import threefry

KEY = pure.key(2024)


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_blocks_are_those_that_random123_publishes(key, counter, words):
    key, counter = np.array(key, "uint32"), np.array(counter, "uint32")
    assert tuple(RandomBits((2,)).eval(key, counter)) == words
    assert tuple(RandomBits((8,)).eval(key, counter)[:2]) == words


def test_integers_after_manual_seed_follow_from_the_cipher_alone():
    """The whole way from a seed to numbers, written out: it must never change."""
    key = threefry((0, 0), (0, 2))
    words = [word for i in range(4) for word in threefry(key, (i, 0))]
    units = [((h >> 5) * 2**26 + (low >> 6)) / 2**53 for h, low in zip(words[:4], words[4:])]
    lr.manual_seed(0)
    assert lr.randint(1000, (4,)).tolist() == [int(u * 1000) for u in units]


def test_the_same_key_gives_the_same_numbers_and_a_prefix_is_a_prefix():
    long, short = pure.random_bits(KEY, (9,)), pure.random_bits(KEY, (4,))
    assert long.tolist()[:4] == short.tolist()


def test_split_keys_and_folded_keys_are_all_different():
    keys = [tuple(k) for k in pure.split(KEY, 50).tolist()]
    keys += [tuple(pure.fold_in(KEY, i).tolist()) for i in range(50)]
    keys += [tuple(KEY.tolist()), tuple(pure.random_bits(KEY, (2,)).tolist())]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_bits_are_uniform_words(bits):
    words = pure.random_bits(KEY, (4096,), bits).numpy()
    assert words.dtype == f"uint{bits}"
    ones = np.unpackbits(words.view("uint8")).mean()
    assert abs(ones - 0.5) < 4 * 0.5 / np.sqrt(4096 * bits)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uniform_and_normal_have_their_distributions(dtype):
    for x, distribution in (
        (pure.uniform(KEY, (20000,), dtype=dtype), "uniform"),
        (pure.normal(KEY, (20000,), dtype=dtype), "norm"),
    ):
        assert x.dtype == dtype
        if dtype != "float16":
            assert stats.kstest(x.numpy(), distribution).pvalue > 0.001


def test_uniform_lies_between_its_bounds():
    x = pure.uniform(KEY, (10000,), -3, 5).numpy()
    assert x.min() >= -3 and x.max() < 5 and x.max() - x.min() > 7.9


def test_normal_is_finite_at_both_ends_of_the_uniform_numbers():
    for k, precision in ((0, 24), (2**24 - 1, 24), (0, 53), (2**53 - 1, 53)):
        u = k * 2.0 ** (1 - precision) + (2.0**-precision - 1)
        assert -1 < u < 1 and u != 0


def test_randint_is_uniform_over_its_range():
    x = pure.randint(KEY, (30000,), -3, 4).numpy()
    counts = np.bincount(x + 3, minlength=7)
    assert x.min() == -3 and x.max() == 3
    assert stats.chisquare(counts).pvalue > 0.001


def test_permutation_has_every_number_once():
    assert sorted(pure.permutation(KEY, 100).tolist()) == list(range(100))


def test_bernoulli_has_its_probability():
    drawn = pure.bernoulli(KEY, 0.3, (20000,)).numpy()
    assert drawn.dtype == bool and abs(drawn.mean() - 0.3) < 0.015


@pytest.mark.parametrize(
    "draw",
    [
        lambda key: pure.uniform(key, (3,), dtype="float64"),
        lambda key: pure.normal(key, (2, 2)),
        lambda key: pure.split(key, 3),
        lambda key: pure.fold_in(key, 7),
        lambda key: pure.permutation(key, 5),
    ],
)
def test_vmap_over_keys_is_a_loop_over_keys(draw):
    keys = pure.split(KEY, 4)
    expected = np.stack([draw(as_tensor(key)).numpy() for key in keys.numpy()])
    np.testing.assert_array_equal(vmap(draw)(keys).numpy(), expected)


def test_vmap_over_what_is_folded_in_is_a_loop():
    folded = vmap(lambda i: pure.fold_in(KEY, i))(as_tensor([3, 5]))
    assert folded.tolist() == [pure.fold_in(KEY, i).tolist() for i in (3, 5)]


def test_manual_seed_replays_and_state_goes_on():
    lr.manual_seed(5)
    lr.rand(3)
    state = lr.get_rng_state()
    first = lr.randn(4).tolist()
    lr.set_rng_state(state)
    assert lr.randn(4).tolist() == first
    assert lr.initial_seed() == 5


def test_draws_differ_and_generators_are_independent():
    g, h = lr.Generator(1), lr.Generator(1)
    a, b = lr.rand(5, generator=g), lr.rand(5, generator=g)
    assert a.tolist() != b.tolist()
    assert lr.rand(5, generator=h).tolist() == a.tolist()


def test_a_generator_gives_every_key_once_to_many_threads():
    g, keys = lr.Generator(0), []
    threads = [
        Thread(target=lambda: keys.extend(tuple(g.next_key().tolist()) for _ in range(50)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(keys)) == 200


def test_functions_have_the_shapes_and_dtypes_of_pytorch():
    x = lr.rand(2, 3, dtype="float64", requires_grad=True)
    assert x.requires_grad and x.shape == (2, 3) and x.dtype == "float64"
    assert lr.randn((4,)).dtype == "float32"
    assert lr.randn_like(x).dtype == lr.rand_like(x).dtype == "float64"
    assert lr.randint(3, 7, (2,)).dtype == "int64"
    assert sorted(lr.randperm(5).tolist()) == [0, 1, 2, 3, 4]
    assert set(lr.bernoulli(x).numpy().ravel()) <= {0.0, 1.0}
    assert lr.normal(10.0, 0.0, (2,)).tolist() == [10, 10]


def test_multinomial_draws_in_proportion_and_never_the_impossible():
    drawn = lr.multinomial(np.array([0.1, 0.0, 0.9]), 5000, replacement=True).numpy()
    assert set(drawn) == {0, 2} and abs((drawn == 2).mean() - 0.9) < 0.02
    assert sorted(lr.multinomial(np.array([[1.0, 2.0], [3.0, 4.0]]), 2).tolist()[0]) == [0, 1]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: pure.uniform(0), DTypeError, "i64[] is not a key (u32[2])"),
        (lambda: pure.uniform(KEY, dtype="int64"), DTypeError, "uniform: dtype int64"),
        (lambda: pure.random_bits(KEY, (), 7), DTypeError, "bits=7"),
        (lambda: pure.randint(KEY, (), 3, 3), ShapeError, "no integers in [3, 3)"),
        (lambda: lr.randint(3), ShapeError, "pass a size"),
        (lambda: lr.multinomial(np.array([1.0, 0.0]), 2), ShapeError, "2 samples without"),
    ],
)
def test_bad_input_is_named_with_the_line(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
    assert "test_random.py:" in str(caught.value)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_normal_numbers_have_variance_one_shared_by_their_parts(dtype):
    lucid.manual_seed(0)
    x = lucid.randn(200, 300, dtype=dtype).numpy()
    assert x.dtype == dtype and abs(x.mean()) < 0.02
    np.testing.assert_allclose([x.real.var(), x.imag.var()], [0.5, 0.5], rtol=0.02)
    assert abs((x.real * x.imag).mean()) < 0.01
    assert lucid.randn_like(lucid.tensor(x)).dtype == dtype


def test_complex_uniform_numbers_have_both_parts_between_zero_and_one():
    x = lucid.rand(100, 50, dtype="complex64").numpy()
    for part in (x.real, x.imag):
        assert part.min() >= 0 and part.max() < 1 and abs(part.mean() - 0.5) < 0.02


def test_complex_numbers_are_drawn_in_jit_as_outside():
    def draw(x):
        return lucid.randn(3, dtype="complex64") * x

    lucid.manual_seed(1)
    plain = draw(lucid.tensor(2.0))
    lucid.manual_seed(1)
    np.testing.assert_allclose(lucid.jit(draw)(lucid.tensor(2.0)).numpy(), plain.numpy(), rtol=1e-6)
