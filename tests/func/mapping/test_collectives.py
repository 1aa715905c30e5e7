"""Collectives over the named axis of vmap, under every transform."""

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, ShapeError
from lucid.func import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    checkpoint,
    cond,
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    pmax,
    pmean,
    pmin,
    ppermute,
    psum,
    psum_scatter,
    scan,
    vmap,
    while_loop,
)


def t(x):
    return lucid.tensor(np.asarray(x, np.float32))


THREE, PAIRS = t([1.0, 2.0, 4.0]), t(np.arange(6).reshape(3, 2) + 1.0)
SQUARE, CUBE = t(np.arange(9).reshape(3, 3) + 1.0), t(np.arange(27).reshape(3, 3, 3))

# programs, and what JAX gives for them
PROGRAMS = [
    (
        lambda: vmap(grad(lambda x: lucid.sin(x) * psum(x * x, "i")), axis_name="i")(THREE),
        [13.3343, -4.7632, -5.7748],
    ),
    (
        lambda: vmap(jacrev(lambda x: all_gather(x, "i") * x), axis_name="i")(THREE),
        [[8.0, 2.0, 4.0], [1.0, 9.0, 4.0], [1.0, 2.0, 11.0]],
    ),
    (
        lambda: vmap(jacfwd(lambda x: all_gather(x, "i") * x), axis_name="i")(THREE),
        [[2.0, 3.0, 5.0], [3.0, 4.0, 6.0], [5.0, 6.0, 8.0]],
    ),
    (
        lambda: hessian(
            lambda x: lucid.sum(vmap(lambda x: x * psum(x * x, "i"), axis_name="i")(x))
        )(THREE),
        [[18.0, 6.0, 10.0], [6.0, 22.0, 12.0], [10.0, 12.0, 30.0]],
    ),
    (
        lambda: vmap(
            vmap(grad(lambda x: x * psum(x * x, "i") * psum(x, "j")), axis_name="j"), axis_name="i"
        )(PAIRS),
        [[410.0, 715.0], [1048.0, 1521.0], [1686.0, 2327.0]],
    ),
    (
        lambda: vmap(vmap(lambda x: all_gather(x, "j"), axis_name="i"), axis_name="j")(PAIRS),
        [
            [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]],
            [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]],
            [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]],
        ],
    ),
    (
        lambda: vmap(lambda x: all_to_all(x, "i", 0, 0), axis_name="i")(SQUARE),
        [[1.0, 4.0, 7.0], [2.0, 5.0, 8.0], [3.0, 6.0, 9.0]],
    ),
    (
        lambda: vmap(lambda x: all_to_all(x, "i", 0, 1), axis_name="i")(CUBE),
        [
            [[0.0, 9.0, 18.0], [1.0, 10.0, 19.0], [2.0, 11.0, 20.0]],
            [[3.0, 12.0, 21.0], [4.0, 13.0, 22.0], [5.0, 14.0, 23.0]],
            [[6.0, 15.0, 24.0], [7.0, 16.0, 25.0], [8.0, 17.0, 26.0]],
        ],
    ),
    (
        lambda: vmap(lambda x: all_to_all(x, "i", 1, 0), axis_name="i")(CUBE),
        [
            [[0.0, 3.0, 6.0], [9.0, 12.0, 15.0], [18.0, 21.0, 24.0]],
            [[1.0, 4.0, 7.0], [10.0, 13.0, 16.0], [19.0, 22.0, 25.0]],
            [[2.0, 5.0, 8.0], [11.0, 14.0, 17.0], [20.0, 23.0, 26.0]],
        ],
    ),
    (
        lambda: vmap(lambda x: all_to_all(x, "i", 1, 0, tiled=True), axis_name="i")(CUBE),
        [
            [[0.0], [3.0], [6.0], [9.0], [12.0], [15.0], [18.0], [21.0], [24.0]],
            [[1.0], [4.0], [7.0], [10.0], [13.0], [16.0], [19.0], [22.0], [25.0]],
            [[2.0], [5.0], [8.0], [11.0], [14.0], [17.0], [20.0], [23.0], [26.0]],
        ],
    ),
    (lambda: vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(SQUARE), [12.0, 15.0, 18.0]),
    (
        lambda: vmap(
            lambda x: psum_scatter(x, "i", scatter_dimension=1, tiled=True), axis_name="i"
        )(CUBE),
        [[[27.0], [36.0], [45.0]], [[30.0], [39.0], [48.0]], [[33.0], [42.0], [51.0]]],
    ),
    (
        lambda: vmap(grad(lambda x: lucid.sum(psum_scatter(x * x, "i") * x)), axis_name="i")(
            SQUARE
        ),
        [[78.0, 126.0, 210.0], [141.0, 243.0, 381.0], [210.0, 366.0, 558.0]],
    ),
    (
        lambda: vmap(lambda x: ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), axis_name="i")(PAIRS),
        [[5.0, 6.0], [1.0, 2.0], [3.0, 4.0]],
    ),
    (lambda: vmap(lambda x: x * axis_index("i"), axis_name="i")(THREE), [0.0, 2.0, 8.0]),
    (
        lambda: vmap(vmap(lambda x: x * axis_index(("i", "j")), axis_name="j"), axis_name="i")(
            PAIRS
        ),
        [[0.0, 2.0], [6.0, 12.0], [20.0, 30.0]],
    ),
    (
        lambda: vmap(
            lambda x: scan(lambda c, y: (c * psum(y, "i"), c + y), t(1.0), x)[1], axis_name="i"
        )(PAIRS),
        [[2.0, 11.0], [4.0, 13.0], [6.0, 15.0]],
    ),
    (
        lambda: vmap(
            grad(lambda x: scan(lambda c, y: (c * psum(y, "i"), c + y), t(1.0), x)[0]),
            axis_name="i",
        )(PAIRS),
        [[36.0, 27.0], [36.0, 27.0], [36.0, 27.0]],
    ),
    (
        lambda: vmap(grad(checkpoint(lambda x: lucid.sin(x) * pmean(x, "i"))), axis_name="i")(
            THREE
        ),
        [1.5920, -0.6397, -1.1938],
    ),
    (
        lambda: vmap(
            lambda x: cond(lucid.sum(x) > 4, lambda x: psum(x, "i"), lambda x: x, x), axis_name="i"
        )(PAIRS),
        [[1.0, 2.0], [9.0, 12.0], [9.0, 12.0]],
    ),
    (
        lambda: vmap(
            lambda x: jvp(lambda x: x * psum(x * x, "i"), (x,), (x * 2,))[1], axis_name="i"
        )(THREE),
        [126.0, 252.0, 504.0],
    ),
    (
        lambda: vmap(lambda x: all_gather(x, "i", axis=1), axis_name="i")(PAIRS),
        [
            [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]],
            [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]],
            [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]],
        ],
    ),
    (
        lambda: vmap(lambda x: all_gather(x, "i", tiled=True), axis_name="i")(PAIRS),
        [
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        ],
    ),
    (
        lambda: vmap(lambda x, y: psum(x * y, "i"), in_axes=(0, None), axis_name="i")(THREE, THREE),
        [[7.0, 14.0, 28.0], [7.0, 14.0, 28.0], [7.0, 14.0, 28.0]],
    ),
    (
        lambda: vmap(
            grad(lambda y, x: lucid.sum(psum(x * y, "i") * x)), in_axes=(None, 0), axis_name="i"
        )(THREE, THREE),
        [[7.0, 7.0, 7.0], [14.0, 14.0, 14.0], [28.0, 28.0, 28.0]],
    ),
    (
        lambda: vmap(
            lambda x: while_loop(lambda c: lucid.sum(c) < 40, lambda c: c + psum(c, "i"), x),
            axis_name="i",
        )(THREE),
        [148.0, 149.0, 151.0],
    ),
    (
        lambda: vmap(lambda x: pmax(x, "i") - pmin(x, "i"), axis_name="i")(PAIRS),
        [[4.0, 4.0], [4.0, 4.0], [4.0, 4.0]],
    ),
    (
        lambda: vmap(
            lambda x: vmap(lambda y: psum(y * x, "i"), axis_name="i")(PAIRS[:, 0]) * psum(x, "i"),
            axis_name="i",
        )(THREE),
        [[63.0, 63.0, 63.0], [126.0, 126.0, 126.0], [252.0, 252.0, 252.0]],
    ),
    (
        lambda: lucid.jit(vmap(grad(lambda x: lucid.sin(x) * psum(x * x, "i")), axis_name="i"))(
            THREE
        ),
        [13.3343, -4.7632, -5.7748],
    ),
    (
        lambda: vmap(lucid.jit(grad(lambda x: lucid.sin(x) * psum(x * x, "i"))), axis_name="i")(
            THREE
        ),
        [13.3343, -4.7632, -5.7748],
    ),
    (lambda: vmap(lambda x: psum(x, "i"), axis_name="i", out_axes=None)(THREE), 7.0),
]


@pytest.mark.parametrize(("program", "expected"), PROGRAMS)
def test_results_are_those_of_jax(program, expected):
    np.testing.assert_allclose(program().numpy(), np.array(expected, np.float32), atol=2e-4)


def test_the_derivative_of_a_maximum_is_shared_by_those_that_attain_it():
    x, s = t([1.0, 3.0, 3.0]), t([1.0, 10.0, 100.0])
    f = vmap(grad(lambda x, s: s * pmax(x, "i")), axis_name="i")
    assert f(x, s).tolist() == [0.0, 55.5, 55.5]
    out = vmap(lambda x, v: jvp(lambda x: pmax(x, "i"), (x,), (v,))[1], axis_name="i")(x, s)
    assert out.tolist() == [55.0] * 3
    assert vmap(grad(lambda x: pmin(x, "i")), axis_name="i")(x).tolist() == [3.0, 0.0, 0.0]


def test_a_constant_counts_once_for_every_example():
    x = lucid.ones(3)
    assert vmap(lambda x: x * psum(1, "i"), axis_name="i")(x).tolist() == [3.0] * 3
    assert vmap(lambda x: psum(x > 0, "i"), axis_name="i")(x).tolist() == [3] * 3
    assert vmap(lambda x: x * axis_size("i"), axis_name="i")(x).tolist() == [3.0] * 3


def test_each_example_has_a_derivative_in_its_own_copy_of_a_constant():
    w, s = t(2.0), t([1.0, 2.0, 3.0])

    def f(s):
        return grad(lambda w: s * psum(w, "i"))(w)

    assert vmap(f, axis_name="i")(s).tolist() == [6.0, 6.0, 6.0]

    def g(s):
        return grad(lambda w: s * all_gather(w, "i")[1])(w)

    assert vmap(g, axis_name="i")(s).tolist() == [0.0, 6.0, 0.0]

    def h(s):
        return s * 0 + grad(lambda w: all_gather(w, "i")[0])(w)

    assert vmap(h, axis_name="i")(s).tolist() == [3.0, 0.0, 0.0]


def test_loops_whose_operands_are_shared_may_use_the_axis():
    def f(x):
        return scan(lambda c, _: (c + axis_index("i"), c), lucid.tensor(0), None, length=2)[0]

    assert vmap(f, axis_name="i")(lucid.ones(3)).tolist() == [0, 2, 4]

    def g(x):
        return scan(lambda c, _: (c + psum(c, "i"), c), t(1.0), None, length=2)[0]

    assert vmap(g, axis_name="i")(lucid.ones(3)).tolist() == [16.0] * 3


def test_custom_rules_may_use_the_axis():
    @custom_jvp
    def f(x):
        return x * psum(x, "i")

    f.defjvp(lambda primals, tangents: (f(*primals), 10 * psum(tangents[0], "i")))
    x = t([1.0, 2.0])
    assert vmap(f, axis_name="i")(x).tolist() == [3.0, 6.0]
    assert vmap(grad(f), axis_name="i")(x).tolist() == [20.0, 20.0]
    assert grad(lambda x: vmap(f, axis_name="i")(x).sum())(x).tolist() == [20.0, 20.0]

    @custom_vjp
    def g(x):
        return x * 1.0

    g.defvjp(lambda x: (g(x), x), lambda x, ct: (psum(x * ct, "i"),))
    assert vmap(grad(g), axis_name="i")(x).tolist() == [3.0, 3.0]
    assert grad(lambda x: vmap(g, axis_name="i")(x).sum())(x).tolist() == [3.0, 3.0]


def test_the_inner_of_two_equal_names_is_meant():
    f = vmap(lambda x: vmap(lambda y: psum(y, "i"), axis_name="i")(x), axis_name="i")
    assert f(PAIRS).tolist() == [[3.0, 3.0], [7.0, 7.0], [11.0, 11.0]]


def test_batch_normalization_over_a_named_axis_is_that_of_the_batch():
    x = lucid.rand(8, 5, generator=lucid.Generator(0))

    def normalize(x):
        mean = pmean(x, "batch")
        return (x - mean) / (pmean((x - mean) ** 2, "batch") + 1e-5) ** 0.5

    found = vmap(normalize, axis_name="batch")(x)
    expected = (x - x.mean(0)) / (x.var(0, correction=0) + 1e-5) ** 0.5
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_jitted_function_takes_other_numbers_of_examples():
    f = lucid.jit(vmap(grad(lambda x: x * psum(x, "i")), axis_name="i"))
    for n in (3, 4, 3):
        assert f(lucid.ones(n)).tolist() == [2.0 * n] * n


def test_out_axes_none_returns_what_all_examples_share():
    assert vmap(lambda x: psum(x, "i"), axis_name="i", out_axes=None)(THREE).item() == 7.0
    f = vmap(lambda x: psum(x, "i"), in_axes=None, axis_name="i", axis_size=4)
    assert f(t(2.0)).tolist() == [8.0] * 4


def test_unknown_names_and_parts_of_a_batch_are_errors():
    with pytest.raises(ArgumentError, match="psum: no vmap with axis_name='k' is running"):
        psum(THREE, "k")
    with pytest.raises(ArgumentError, match="the running ones have 'i'"):
        vmap(lambda x: psum(x, "k"), axis_name="i")(THREE)
    with pytest.raises(ArgumentError, match="needs all 3 examples at once"):
        vmap(lambda x: psum(x, "i"), axis_name="i", chunk_size=2)(THREE)
    with pytest.raises(ShapeError, match="axis_size=4"):
        vmap(lambda x: x, axis_name="i", axis_size=4)(THREE)
    with pytest.raises(ShapeError, match="axis 0 has size 2, not 3"):
        vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(PAIRS)
