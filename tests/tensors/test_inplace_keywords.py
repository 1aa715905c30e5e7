"""Every in-place method with every keyword stores what NumPy's formula gives, on every path.

The methods and their parameters are found by introspection: a new one without a case is a failure.
"""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
import scipy.special as sp

import lucid
from lucid.nn import Parameter
from lucid.public import index
from lucid.public.lazy import homes
from lucid.tensors.tensor import Tensor
from tests.table import row as table

A = np.array([[0.25, -0.5, 0.75], [1.5, -1.25, 2.0]])
B = np.array([[2.0, 4.0, -0.5], [0.5, 3.0, -1.0]])
C = np.array([[1.0, -2.0, 0.5], [0.25, 2.0, 4.0]])
SQUARE = S = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
TALL = np.arange(12.0).reshape(6, 2)
CUBES = np.arange(12.0).reshape(2, 2, 3) - 5
UNIT = np.array([0.125, 0.5, 0.875])
ABOVE = np.array([1.5, 2.5, 4.0])
ODD = np.array([1.0, math.nan, math.inf, -math.inf])
INTS, MORE_INTS = np.array([12, -7, 5]), np.array([4, 3, 2])
BOOLS = np.array([[True, False, True], [False, False, True]])
ROWS = np.array([2, 0, 2])  # row 2 twice
PLACES = np.array([[0, 1, 0], [1, 1, 0]])


def along(ufunc, start, index, src, include_self=True, axis=0):
    """Combine `src` into `start` at `index` along an axis, element by element."""
    out, seen = start.copy(), set()
    for where in np.ndindex(index.shape):
        place = list(where)
        place[axis] = index[where]
        place = tuple(place)
        fresh = not include_self and place not in seen
        out[place] = src[where] if fresh else ufunc(out[place], src[where])
        seen.add(place)
    return out


def rows(ufunc, start, index, src, include_self=True):
    wide = np.broadcast_to(index[:, None], src.shape)
    return along(ufunc, start, wide, src, include_self)


def put(x, at, value):
    out = x.copy()
    out[at] = value
    return out


def renorm(x, p, maxnorm):
    norms = (np.abs(x) ** p).sum(1, keepdims=True) ** (1 / p)
    return np.where(norms > maxnorm, x * maxnorm / (norms + 1e-7), x)  # the 1e-7 is PyTorch's


def last(x, y):
    return y


# (method, tensor, positional arguments, keywords, expected value)
CASES = [
    ("add_", A, (B,), {}, A + B),
    ("add_", A, (B,), {"alpha": -5.0}, A - 5 * B),
    ("add_", A, (2,), {"alpha": -5.0}, A - 10),
    ("add_", INTS, (MORE_INTS,), {"alpha": 3}, INTS + 3 * MORE_INTS),
    ("sub_", A, (B,), {}, A - B),
    ("sub_", A, (B,), {"alpha": -5.0}, A + 5 * B),
    ("mul_", A, (B,), {}, A * B),
    ("mul_", A, (), {"other": B}, A * B),
    ("div_", A, (B,), {}, A / B),
    ("div_", 9 * A, (B,), {"rounding_mode": "floor"}, np.floor(9 * A / B)),
    ("div_", 9 * A, (B,), {"rounding_mode": "trunc"}, np.trunc(9 * A / B)),
    ("div_", INTS, (MORE_INTS,), {"rounding_mode": "floor"}, INTS // MORE_INTS),
    ("div_", 9 * A, (2.0,), {"rounding_mode": "floor"}, 9 * A // 2),
    ("neg_", A, (), {}, -A),
    ("abs_", A, (), {}, np.abs(A)),
    ("sgn_", A, (), {}, np.sign(A)),
    ("copysign_", A, (B,), {}, np.copysign(A, B)),
    ("floor_", A, (), {}, np.floor(A)),
    ("ceil_", A, (), {}, np.ceil(A)),
    ("trunc_", A, (), {}, np.trunc(A)),
    ("round_", A, (), {}, np.round(A)),
    ("round_", A, (), {"decimals": 1}, np.round(A, 1)),
    ("frac_", A, (), {}, A - np.trunc(A)),
    ("sign_", A, (), {}, np.sign(A)),
    ("floor_divide_", 9 * A, (B,), {}, 9 * A // B),
    ("remainder_", 9 * A, (B,), {}, 9 * A % B),
    ("fmod_", 9 * A, (B,), {}, np.fmod(9 * A, B)),
    ("pow_", np.abs(A), (B,), {}, np.abs(A) ** B),
    ("pow_", A, (), {"exponent": 3}, A**3),
    ("square_", A, (), {}, A * A),
    ("reciprocal_", A, (), {}, 1 / A),
    ("float_power_", A, (2,), {}, A**2.0),
    ("exp_", A, (), {}, np.exp(A)),
    ("exp2_", A, (), {}, np.exp2(A)),
    ("expm1_", A, (), {}, np.expm1(A)),
    ("log_", ABOVE, (), {}, np.log(ABOVE)),
    ("log2_", ABOVE, (), {}, np.log2(ABOVE)),
    ("log10_", ABOVE, (), {}, np.log10(ABOVE)),
    ("log1p_", ABOVE, (), {}, np.log1p(ABOVE)),
    ("sqrt_", ABOVE, (), {}, np.sqrt(ABOVE)),
    ("rsqrt_", ABOVE, (), {}, 1 / np.sqrt(ABOVE)),
    ("cbrt_", A, (), {}, np.cbrt(A)),
    ("sigmoid_", A, (), {}, sp.expit(A)),
    ("sin_", A, (), {}, np.sin(A)),
    ("cos_", A, (), {}, np.cos(A)),
    ("tan_", A, (), {}, np.tan(A)),
    ("asin_", UNIT, (), {}, np.arcsin(UNIT)),
    ("acos_", UNIT, (), {}, np.arccos(UNIT)),
    ("atan_", A, (), {}, np.arctan(A)),
    ("atan2_", A, (B,), {}, np.arctan2(A, B)),
    ("hypot_", A, (B,), {}, np.hypot(A, B)),
    ("sinh_", A, (), {}, np.sinh(A)),
    ("cosh_", A, (), {}, np.cosh(A)),
    ("tanh_", A, (), {}, np.tanh(A)),
    ("asinh_", A, (), {}, np.arcsinh(A)),
    ("acosh_", ABOVE, (), {}, np.arccosh(ABOVE)),
    ("atanh_", UNIT, (), {}, np.arctanh(UNIT)),
    ("deg2rad_", A, (), {}, np.deg2rad(A)),
    ("rad2deg_", A, (), {}, np.rad2deg(A)),
    ("erf_", A, (), {}, sp.erf(A)),
    ("erfc_", A, (), {}, sp.erfc(A)),
    ("erfinv_", UNIT, (), {}, sp.erfinv(UNIT)),
    ("lgamma_", ABOVE, (), {}, sp.gammaln(ABOVE)),
    ("digamma_", ABOVE, (), {}, sp.digamma(ABOVE)),
    ("mvlgamma_", ABOVE, (2,), {},
     sp.gammaln(ABOVE) + sp.gammaln(ABOVE - 0.5) + 0.5 * np.log(np.pi)),
    ("i0_", A, (), {}, sp.i0(A)),
    ("igamma_", ABOVE, (UNIT,), {}, sp.gammainc(ABOVE, UNIT)),
    ("igammac_", ABOVE, (UNIT,), {}, sp.gammaincc(ABOVE, UNIT)),
    ("relu_", A, (), {}, np.maximum(A, 0)),
    ("clamp_", A, (), {"min": -0.5}, np.maximum(A, -0.5)),
    ("clamp_", A, (), {"min": -0.5, "max": 1.0}, np.clip(A, -0.5, 1.0)),
    ("clamp_", A, (B,), {"max": C + 9}, np.clip(A, B, C + 9)),
    ("clamp_min_", A, (0.5,), {}, np.maximum(A, 0.5)),
    ("clamp_max_", A, (0.5,), {}, np.minimum(A, 0.5)),
    ("addcmul_", A, (B, C), {"value": -2.0}, A - 2 * B * C),
    ("addcdiv_", A, (B, C), {"value": -2.0}, A - 2 * B / C),
    ("lerp_", A, (B, 0.25), {}, A + 0.25 * (B - A)),
    ("lerp_", A, (B,), {"weight": C}, A + C * (B - A)),
    ("heaviside_", A, (B,), {}, np.heaviside(A, B)),
    ("xlogy_", A, (np.abs(B),), {}, A * np.log(np.abs(B))),
    ("logit_", UNIT, (), {}, np.log(UNIT / (1 - UNIT))),
    ("logit_", UNIT, (), {"eps": 0.25}, sp.logit(np.clip(UNIT, 0.25, 0.75))),
    ("sinc_", A, (), {}, np.sinc(A)),
    ("ldexp_", A, (MORE_INTS,), {}, A * 2.0**MORE_INTS),
    ("nextafter_", A, (B,), {}, np.nextafter(A, B)),
    ("gcd_", INTS, (MORE_INTS,), {}, np.gcd(INTS, MORE_INTS)),
    ("lcm_", INTS, (MORE_INTS,), {}, np.lcm(INTS, MORE_INTS)),
    ("nan_to_num_", ODD, (), {"nan": 7.0, "posinf": 8.0, "neginf": 9.0}, [1.0, 7.0, 8.0, 9.0]),
    ("conj_", A, (), {}, A),
    ("eq_", A, (np.where(B > 0, A, B),), {}, B > 0),
    ("ne_", A, (np.where(B > 0, A, B),), {}, B <= 0),
    ("lt_", A, (B,), {}, A < B),
    ("le_", A, (B,), {}, A <= B),
    ("gt_", A, (B,), {}, A > B),
    ("ge_", A, (B,), {}, A >= B),
    ("logical_and_", BOOLS, (~BOOLS,), {}, BOOLS & False),
    ("logical_or_", BOOLS, (~BOOLS,), {}, BOOLS | True),
    ("logical_xor_", BOOLS, (True,), {}, ~BOOLS),
    ("logical_not_", BOOLS, (), {}, ~BOOLS),
    ("bitwise_and_", INTS, (MORE_INTS,), {}, INTS & MORE_INTS),
    ("bitwise_or_", INTS, (MORE_INTS,), {}, INTS | MORE_INTS),
    ("bitwise_xor_", INTS, (MORE_INTS,), {}, INTS ^ MORE_INTS),
    ("bitwise_not_", INTS, (), {}, ~INTS),
    ("bitwise_left_shift_", INTS, (MORE_INTS,), {}, INTS << MORE_INTS),
    ("bitwise_right_shift_", INTS, (MORE_INTS,), {}, INTS >> MORE_INTS),
    ("tril_", SQUARE, (), {"diagonal": -1}, np.tril(SQUARE, -1)),
    ("triu_", SQUARE, (), {"diagonal": 1}, np.triu(SQUARE, 1)),
    ("cumsum_", A, (1,), {}, np.cumsum(A, 1)),
    ("cumsum_", A, (), {"axis": 0, "dtype": "float64"}, np.cumsum(A, 0)),
    ("cumprod_", A, (1,), {}, np.cumprod(A, 1)),
    ("cumprod_", A, (), {"axis": 0, "dtype": "float64"}, np.cumprod(A, 0)),
    ("scatter_", A, (0, PLACES, B), {}, along(last, A, PLACES, B)),
    ("scatter_", A, (0, PLACES), {"value": 7.0}, along(last, A, PLACES, B * 0 + 7)),
    ("scatter_", A, (), {"axis": 0, "index": PLACES, "src": B, "reduce": "add"},
     along(np.add, A, PLACES, B)),
    ("scatter_", A, (0, PLACES, B), {"reduce": "multiply"}, along(np.multiply, A, PLACES, B)),
    ("scatter_add_", A, (0, PLACES, B), {}, along(np.add, A, PLACES, B)),
    ("scatter_add_", A, (), {"axis": 0, "index": PLACES, "src": B}, along(np.add, A, PLACES, B)),
    *[("scatter_reduce_", A, (0, PLACES, B, name), {"include_self": keeps},
       along(ufunc, A, PLACES, B, keeps))
      for name, ufunc in (("sum", np.add), ("prod", np.multiply), ("amin", np.minimum),
                          ("amax", np.maximum)) for keeps in (True, False)],
    ("scatter_reduce_", A, (), {"axis": 0, "index": PLACES, "src": B, "reduce": "amin"},
     along(np.minimum, A, PLACES, B)),
    ("index_add_", S, (0, ROWS, S), {"alpha": -2.0}, rows(np.add, S, ROWS, -2 * S)),
    ("index_add_", SQUARE, (), {"axis": 0, "index": ROWS, "source": SQUARE},
     rows(np.add, SQUARE, ROWS, SQUARE)),
    ("index_copy_", SQUARE, (0, ROWS[:2], A), {}, put(SQUARE, ROWS[:2], A)),
    ("index_copy_", SQUARE, (), {"axis": 0, "index": ROWS[:2], "source": A},
     put(SQUARE, ROWS[:2], A)),
    ("index_fill_", SQUARE, (0, ROWS, 7.0), {}, put(SQUARE, ROWS, 7.0)),
    ("index_fill_", SQUARE, (), {"axis": 0, "index": ROWS, "value": 7.0}, put(SQUARE, ROWS, 7.0)),
    *[("index_reduce_", SQUARE, (0, ROWS, 5 - SQUARE, name), {"include_self": keeps},
       rows(ufunc, SQUARE, ROWS, 5 - SQUARE, keeps))
      for name, ufunc in (("prod", np.multiply), ("amin", np.minimum), ("amax", np.maximum))
      for keeps in (True, False)],
    ("index_reduce_", S, (), {"axis": 0, "index": ROWS, "source": 5 - S, "reduce": "amin"},
     rows(np.minimum, SQUARE, ROWS, 5 - SQUARE)),
    ("index_put_", UNIT, ((ROWS[:2],), UNIT[1:]), {}, put(UNIT, ROWS[:2], UNIT[1:])),
    ("index_put_", UNIT, ((ROWS,), ABOVE), {"accumulate": True}, along(np.add, UNIT, ROWS, ABOVE)),
    ("put_", A, (ROWS[:2], UNIT[1:]), {}, put(A.ravel(), ROWS[:2], UNIT[1:]).reshape(2, 3)),
    ("put_", A, (ROWS, ABOVE), {"accumulate": True},
     along(np.add, A.ravel(), ROWS, ABOVE).reshape(2, 3)),
    ("masked_fill_", A, (BOOLS, 7.0), {}, np.where(BOOLS, 7.0, A)),
    ("masked_scatter_", A, (BOOLS, ABOVE), {}, put(A, BOOLS, ABOVE)),
    ("renorm_", A, (2.0, 0, 1.0), {}, renorm(A, 2.0, 1.0)),
    ("renorm_", A, (), {"p": 1.0, "axis": 0, "maxnorm": 2.0}, renorm(A, 1.0, 2.0)),
    ("addmm_", SQUARE, (A.T, B), {"beta": 0.5, "alpha": -2.0}, 0.5 * SQUARE - 2 * A.T @ B),
    ("addmv_", UNIT, (S, ABOVE), {"beta": 0.5, "alpha": -2.0}, 0.5 * UNIT - 2 * S @ ABOVE),
    ("addr_", SQUARE, (UNIT, ABOVE), {"beta": 0.5, "alpha": -2.0},
     0.5 * SQUARE - 2 * np.outer(UNIT, ABOVE)),
    ("addbmm_", A, (CUBES, np.stack([SQUARE] * 2)), {"beta": 0.5, "alpha": -2.0},
     0.5 * A - 2 * (CUBES @ SQUARE).sum(0)),
    ("baddbmm_", CUBES, (CUBES, np.stack([SQUARE] * 2)), {"beta": 0.5, "alpha": -2.0},
     0.5 * CUBES - 2 * CUBES @ SQUARE),
    ("copy_", A, (B,), {"non_blocking": True}, B),
    ("copy_", A, (UNIT,), {}, np.broadcast_to(UNIT, A.shape)),
    ("fill_", A, (), {"value": 7.0}, A * 0 + 7),
    ("zero_", A, (), {}, A * 0),
    ("fill_diagonal_", TALL, (7.0,), {}, put(TALL, ([0, 1], [0, 1]), 7.0)),
    ("fill_diagonal_", TALL, (7.0,), {"wrap": True}, put(TALL, ([0, 1, 3, 4], [0, 1, 0, 1]), 7.0)),
]  # fmt: skip
MORE = {*homes(index.INPLACE["assign"]), *homes(index.INPLACE["ufunc"])}
MORE -= {case[0] for case in CASES}
for row in table.rows():  # a function of one element is called as in its row of the table
    name = f"{row.name}_"
    if name in MORE and len(inspect.signature(getattr(Tensor, name)).parameters) == 1:
        (values,) = table.arrays_for(row.calls[0])
        CASES.append((name, values, (), {}, row.expected(values)))
SHAPE_CASES = [
    ("squeeze_", A[None, :, None], (), {}, A),
    ("squeeze_", A[None, :, None], (0, 2), {}, A),
    ("squeeze_", A[None, :, None], (), {"axis": 2}, A[None]),
    ("unsqueeze_", A, (1,), {}, A[:, None]),
    ("unsqueeze_", A, (), {"axis": -1}, A[..., None]),
    ("transpose_", A, (0, 1), {}, A.T),
    ("transpose_", CUBES, (), {"axes": (2, 0, 1)}, CUBES.transpose(2, 0, 1)),
    ("swapaxes_", CUBES, (0, 2), {}, CUBES.swapaxes(0, 2)),
    ("swapdims_", CUBES, (0, 2), {}, CUBES.swapaxes(0, 2)),
    ("t_", A, (), {}, A.T),
]
RANDOM = {"bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_",
          "random_", "uniform_"}  # fmt: skip
OTHER = {"detach_", "requires_grad_"}
METHODS = sorted(n for n in dir(Tensor) if n.endswith("_") and not n.startswith("_"))
ids = [f"{i}-{case[0]}" for i, case in enumerate(CASES)]
every_case = pytest.mark.parametrize("case", CASES, ids=ids)


def operand(x):
    if isinstance(x, tuple):
        return tuple(map(operand, x))
    return lucid.tensor(x) if isinstance(x, np.ndarray) else x


def call(x, case):
    name, _, args, kwargs, _ = case
    out = getattr(x, name)(*map(operand, args), **{k: operand(v) for k, v in kwargs.items()})
    assert out is x
    return out


def check(x, case):
    expected = np.asarray(case[-1])
    dtype = case[1].dtype
    assert x.dtype == dtype and x.shape == expected.shape, case[0]
    np.testing.assert_allclose(x.detach().numpy(), expected.astype(dtype), rtol=1e-12, atol=1e-14)


def test_every_parameter_of_every_method_has_a_case():
    seen = {name: set() for name in METHODS}
    for name, x, args, kwargs, _ in CASES + SHAPE_CASES:
        signature = inspect.signature(getattr(Tensor, name))
        for key, value in signature.bind_partial(x, *args, **kwargs).arguments.items():
            default = signature.parameters[key].default
            if value is not default:
                seen[name].add(key)
    for name in METHODS:  # another name of the same method needs no case of its own
        for other in METHODS:
            if inspect.unwrap(getattr(Tensor, name)) is inspect.unwrap(getattr(Tensor, other)):
                seen[name] |= seen[other]
    missing = []
    for name in METHODS:
        if name not in RANDOM | OTHER:
            wanted = [*inspect.signature(getattr(Tensor, name)).parameters]
            missing += [(name, key) for key in wanted if key not in seen[name]]
    assert missing == []


@every_case
def test_in_a_plain_tensor(case):
    check(call(lucid.tensor(case[1]), case), case)


@every_case
def test_the_function_gives_what_the_method_stores(case):
    name, x, args, kwargs, _ = case
    functions = {"sub": lucid.sub, "copy": None, "fill": None, "zero": None, "fill_diagonal": None}
    function = functions.get(name[:-1], getattr(lucid, name[:-1], None))
    if function is not None:
        kwargs = {k: operand(v) for k, v in kwargs.items()}
        y = function(lucid.tensor(x), *map(operand, args), **kwargs)
        check(y if y.dtype == x.dtype else y.to(x.dtype), case)


@every_case
def test_in_a_leaf_under_no_grad(case):
    if case[1].dtype.kind == "f":
        for x in lucid.tensor(case[1], requires_grad=True), Parameter(lucid.tensor(case[1])):
            with lucid.no_grad():
                call(x, case)
            assert x.requires_grad and x.is_leaf
            check(x, case)


@every_case
def test_in_a_view(case):
    x = case[1]
    base = lucid.tensor(np.stack([x, x, x], -1))
    view = base[..., 1]
    check(call(view, case), case)
    check(base[..., 1], case)
    assert np.array_equal(base[..., 0], x, equal_nan=x.dtype.kind == "f")


@every_case
def test_in_a_tracked_tensor(case):
    if case[1].dtype.kind == "f":
        x = lucid.tensor(case[1], requires_grad=True)
        check(call(x * 1.0, case), case)


@every_case
def test_in_a_tensor_that_a_jitted_function_closes_over(case):
    state = lucid.tensor(case[1])
    step = lucid.jit(lambda: call(state, case).sum())
    for scale in (1, 0, 1):
        state.copy_(case[1] * scale if scale else np.ones_like(case[1]))
        step()
    check(state, case)


@every_case
def test_in_a_tensor_made_inside_a_jitted_function(case):
    @lucid.jit
    def f(x):
        return call(x.clone(), case)

    f(lucid.tensor(np.ones_like(case[1])))
    for _ in range(2):
        check(f(lucid.tensor(case[1])), case)


@every_case
def test_in_a_tensor_made_inside_a_mapped_function(case):
    examples = lucid.tensor(np.stack([case[1], case[1]]))
    found = lucid.vmap(lambda x: call(x.clone(), case))(examples)
    for x in found:
        check(x, case)


@pytest.mark.parametrize("case", SHAPE_CASES, ids=[case[0] for case in SHAPE_CASES])
def test_of_another_shape(case):
    x = lucid.tensor(case[1])
    old = x[...]
    check(call(x, case), case)
    x.mul_(2)
    assert np.array_equal(old, 2 * case[1])
    f = lucid.jit(lambda x: call(x.clone(), case))
    for _ in range(3):
        check(f(lucid.tensor(case[1])), case)


def draw(name, *args, **kwargs):
    generator = lucid.Generator().manual_seed(3)
    x = lucid.zeros(1000, dtype=lucid.float64)
    assert getattr(x, name)(*args, generator=generator, **kwargs) is x
    return x.numpy()


FORMULAS = [
    ("uniform_", {"from_": -2.0, "to": 5.0}, lambda u: 7 * u - 2),
    ("normal_", {"mean": -2.0, "std": 3.0}, lambda z: 3 * z - 2),
    ("cauchy_", {"median": -2.0, "sigma": 3.0}, lambda c: 3 * c - 2),
    ("exponential_", {"lambd": 4.0}, lambda e: e / 4),
]


@pytest.mark.parametrize("name, kwargs, formula", FORMULAS, ids=[row[0] for row in FORMULAS])
def test_random_method_has_its_parameters(name, kwargs, formula):
    np.testing.assert_allclose(draw(name, **kwargs), formula(draw(name)), rtol=1e-9, atol=1e-12)


def test_random_methods_of_integers_have_their_parameters():
    assert set(draw("random_", 3)) == {0, 1, 2} and set(draw("random_", from_=5, to=7)) == {5, 6}
    assert 0.2 < draw("bernoulli_", p=0.25).mean() < 0.3
    assert draw("geometric_", 0.5).min() == 1 and 1.8 < draw("geometric_", p=0.5).mean() < 2.2
    logs = np.log(draw("log_normal_", mean=-2.0, std=3.0))
    np.testing.assert_allclose(logs, 3 * draw("normal_") - 2, rtol=1e-9, atol=1e-9)
