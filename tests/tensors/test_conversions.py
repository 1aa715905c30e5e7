"""Conversions that leave the graph: what can stay on it stays, an implicit one raises or warns."""

import math
import warnings

import numpy as np
import pytest
import scipy.signal
import scipy.stats

import lucid
from lucid.errors import ArgumentError, DetachWarning, GraphError, LucidError, ShapeError
from lucid.func import grad, jvp, value_and_grad, vmap


def double(x, **options):
    return lucid.tensor(x, dtype="float64", **options)


def assign_item(x):
    a = np.zeros(2)
    a[0] = x[0]


def assign_slice(x):
    a = np.zeros(2)
    a[:] = x


IMPLICIT = {
    "array of a list": lambda x: np.array([x, 2 * x]),
    "mean of a list": lambda x: np.mean([x * x, x]),
    "r_": lambda x: np.r_[x, x],
    "asarray": lambda x: np.asarray(x),
    "float32": lambda x: np.float32(x[0]),
    "ufunc of a list": lambda x: np.sin([x, x]),
    "stack of nested lists": lambda x: np.stack([[x[0], x[1]], [x[1], x[0]]]),
    "slice of an ndarray": assign_slice,
    "fill": lambda x: np.full(2, x[0]),
    "scipy.stats": lambda x: scipy.stats.norm.logpdf(x),
    "scipy.signal": lambda x: scipy.signal.convolve(x, [1.0, 2.0]),
    "method of an ndarray": lambda x: np.ones(2).dot(x),
    "random": lambda x: np.random.default_rng(0).normal(x),
}


@pytest.mark.parametrize("convert", IMPLICIT.values(), ids=IMPLICIT)
def test_implicit_conversion_to_an_array_raises_with_line_and_remedy(convert):
    message = r"requires a gradient.*detach\(\)\.numpy\(\).*\[test_conversions\.py:\d+\]"
    with pytest.raises(GraphError, match=message):
        convert(double([1.0, 2.0], requires_grad=True))
    with pytest.raises(GraphError, match=message):
        grad(lambda x: lucid.as_tensor(convert(x)).sum())(double([1.0, 2.0]))
    with pytest.raises(GraphError, match=message):
        jvp(convert, (double([1.0, 2.0]),), (double([1.0, 0.0]),))
    convert(double([1.0, 2.0]))
    with lucid.no_grad():
        convert(double([1.0, 2.0], requires_grad=True))


def test_item_of_an_ndarray_does_not_store_a_tracked_tensor():
    # NumPy raises a ValueError of its own from ours
    with pytest.raises(ValueError, match="setting an array element") as raised:
        assign_item(double([1.0, 2.0], requires_grad=True))
    assert isinstance(raised.value.__cause__, GraphError)
    assert "item()" in str(raised.value.__cause__)
    assign_item(double([1.0, 2.0]))


NUMBERS = {
    "float": lambda x: x * float(x),
    "int": lambda x: x * int(x),
    "complex": lambda x: x * complex(x).real,
    "math.sin": lambda x: x * math.sin(x),
    "float of an element": lambda x: x * float(x.reshape(1)[0]),
    "np.float64": lambda x: x * np.float64(x).item(),
}


@pytest.mark.parametrize("convert", NUMBERS.values(), ids=NUMBERS)
def test_conversion_to_a_number_warns_at_its_line(convert):
    for run in (convert, grad(convert)):
        x = double(2.0, requires_grad=run is convert)
        with pytest.warns(DetachWarning, match=r"requires a gradient.*item\(\)") as caught:
            run(x)
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        convert(double(2.0))
        with lucid.no_grad():
            convert(double(2.0, requires_grad=True))


def test_conversion_to_a_number_warns_once_a_line():
    x = double(2.0, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            float(x)
        float(x)
    assert len(caught) == 2


def test_what_states_that_a_constant_is_meant_is_silent():
    def f(x):
        n = x.item() + x.tolist() + x.detach().numpy() + float(x.detach()) + x.data.numpy()
        if x > 1 and bool(x) and 1.0 in lucid.stack([x, x / 2]):
            n = n + len(f"{x:.3f} {x} {x!r}")
        return x * int(n)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        constant = 10 + len("2.000 Tensor(2., dtype=float64) Tensor(2., dtype=float64)")
        assert grad(f)(double(2.0)).item() >= constant
        for n in range(int(lucid.tensor(2))):
            assert np.zeros(3)[lucid.tensor(n)] == 0.0


def test_numpy_is_an_act_outside_of_transforms_and_an_error_inside():
    x = double([1.0, 2.0], requires_grad=True)
    assert (x * 2).numpy().tolist() == [2.0, 4.0]
    with pytest.raises(GraphError, match=r"numpy: .*differentiated.*detach\(\)\.numpy\(\)"):
        grad(lambda y: lucid.tensor(y.numpy()).sum())(x)
    with pytest.raises(GraphError, match=r"numpy: .*differentiated"):
        lucid.jit(grad(lambda y: lucid.tensor(y.numpy()).sum()))(x.detach())
    assert grad(lambda y: (y * y.numpy(force=True)).sum())(x).tolist() == [1.0, 2.0]


def test_numpy_in_a_jitted_step_is_what_it_is_without_jit():
    w = double([1.0, 2.0], requires_grad=True)

    def step(x):
        loss = (w * x).sum()
        loss.backward()
        return lucid.tensor(loss.numpy() * 2.0)

    jitted = lucid.jit(step)
    for k in (1.0, 2.0, 3.0):
        assert jitted(double([k, k])).item() == 6.0 * k
    assert w.grad.tolist() == [6.0, 6.0]


def test_integers_and_conditions_convert_inside_transforms():
    def f(x):
        order = np.asarray(x.argsort())
        mask = np.asarray(x > 1.5)
        return (x[order] * np.arange(3.0)).sum() + x[mask].sum()

    assert grad(f)(double([3.0, 1.0, 2.0])).tolist() == [3.0, 0.0, 2.0]


# Sequences


SEQUENCES = {
    "tensor": lambda x: lucid.tensor([x * 2, x]),
    "nested": lambda x: lucid.tensor([[x, 1.0], (2, x * x)]),
    "as_tensor": lambda x: lucid.as_tensor([[x, 1.0], [2, x * x]]),
    "asarray": lambda x: lucid.asarray([x, [1.0, x]][1]),
    "Tensor": lambda x: lucid.Tensor([[x], [x * x]]),
    "copy": lambda x: lucid.tensor(x),
    "new_tensor": lambda x: x.new_tensor([x, 3 * x]),
    "scalar_tensor": lambda x: lucid.scalar_tensor(x, dtype="float64"),
    "full": lambda x: lucid.full((3,), x),
    "stack": lambda x: lucid.stack([x, 2.0 * x]),
    "np.stack": lambda x: np.stack([x, 2.0 * x]),
    "np.concatenate": lambda x: np.concatenate([x.reshape(1), [1.0]]),
    "np.where": lambda x: np.where([True, False], [x, x], x * x),
    "np.linspace": lambda x: np.linspace(0.5, x, 4),
    "np.logspace": lambda x: np.logspace(x, 1.0, 4, base=x),
    "np.geomspace": lambda x: np.geomspace(x, 16.0, 4),
    "np.block": lambda x: np.block([[x, 2.0], [x * x, 1.0]]),
    "np.pad": lambda x: np.pad(x.reshape(1), 1, constant_values=x),
    "np.pad of pairs": lambda x: np.pad(x.reshape(1, 1), 1, constant_values=[(x, 0.0), (1.0, x)]),
    "np.quantile": lambda x: np.quantile(double([1.0, 2.0, 4.0]), x / 5),
    "np.percentile": lambda x: np.percentile(double([1.0, 2.0, 4.0]), x * 20),
    "np.nanpercentile": lambda x: np.nanpercentile(double([1.0, 2.0, 4.0]), x * 20),
    "np.select": lambda x: np.select([x > 0], [x * x], x),
    "np.insert": lambda x: np.append([1.0], x),
}


@pytest.mark.parametrize("f", SEQUENCES.values(), ids=SEQUENCES)
def test_sequences_and_parameters_stay_on_the_graph(f):
    def total(x):
        y = lucid.as_tensor(f(x)).reshape(-1)
        return (y * lucid.arange(1, y.numel() + 1)).sum()

    h = 1e-6
    difference = (total(double(2.0 + h)) - total(double(2.0 - h))).item() / (2 * h)
    assert grad(total)(double(2.0)).item() == pytest.approx(difference, rel=1e-7)
    x = double(2.0, requires_grad=True)
    total(x).backward()
    assert x.grad.item() == pytest.approx(difference, rel=1e-7)
    value = total(double(2.0)).item()
    jitted = lucid.jit(total)
    for _ in range(3):
        assert jitted(double(2.0)).item() == pytest.approx(value, rel=1e-14)


def test_sequences_of_tensors_have_the_values_and_dtypes_of_numpy():
    x = double(2.0)
    assert lucid.tensor([x, 0.1]).tolist() == [2.0, 0.1]
    assert lucid.as_tensor([[x, 0.1], [1, 2]]).dtype == lucid.float64
    assert lucid.tensor([lucid.tensor(1), 2]).dtype == lucid.int64
    assert lucid.tensor([lucid.tensor(1), 0.5]).dtype == lucid.float32
    assert lucid.tensor([x, 1.0], dtype="float32").dtype == lucid.float32
    rows = lucid.tensor([lucid.arange(3), [3, 4, 5]])
    assert rows.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ShapeError, match="do not make an array"):
        lucid.tensor([x, [x, x]])
    mapped = vmap(lambda v: lucid.tensor([v, v * v]))(double([1.0, 3.0]))
    assert mapped.tolist() == [[1.0, 1.0], [3.0, 9.0]]


def test_copy_of_a_tensor_has_memory_of_its_own():
    x = double([1.0, 2.0])
    y = lucid.tensor(x)
    y[0] = 5.0
    assert x.tolist() == [1.0, 2.0] and y.is_leaf


def test_tracked_data_do_not_make_a_new_leaf():
    x = double([1.0], requires_grad=True)
    with pytest.raises(GraphError, match=r"not a leaf; detach\(\)"):
        lucid.tensor(x * 2, requires_grad=True)
    assert lucid.tensor((x * 2).detach(), requires_grad=True).is_leaf


# Programs


def test_variational_inference_does_not_fit_a_wrong_answer_with_scipy():
    """The evidence lower bound of a normal mean: SciPy's density would have no gradient."""
    data = np.array([1.0, 2.0, 3.0])
    draws = np.random.default_rng(0).standard_normal(100)

    def bound(logpdf, mean):
        samples = mean + draws * 0.1
        return sum(logpdf(x, samples).mean() for x in data)

    with pytest.raises(GraphError, match=r"detach\(\)\.numpy\(\).*test_conversions"):
        grad(lambda m: bound(scipy.stats.norm.logpdf, m))(double(0.0))

    def logpdf(x, mean):
        return -0.5 * (x - mean) ** 2 - 0.5 * np.log(2 * np.pi)

    value, slope = value_and_grad(lambda m: bound(logpdf, m))(double(0.5))
    expected = bound(scipy.stats.norm.logpdf, 0.5)
    assert value.item() == pytest.approx(expected, rel=1e-12)
    assert slope.item() == pytest.approx((data[:, None] - 0.5 - 0.1 * draws).mean(1).sum())


def test_optimizers_refuse_a_tracked_hyperparameter():
    p = lucid.nn.Parameter(lucid.ones(2))
    for name in ("lr", "momentum", "weight_decay", "dampening"):
        with pytest.raises(LucidError, match=f"SGD: {name}"):
            lucid.optim.SGD([p], **{"lr": 0.1, name: double(0.1, requires_grad=True) * 1})


def test_modules_refuse_a_tracked_number():
    x = double(0.5, requires_grad=True)
    made = [
        lambda y: lucid.nn.LeakyReLU(x)(y),
        lambda y: lucid.nn.Dropout(x)(y),
        lambda y: lucid.nn.BatchNorm1d(2, eps=x)(y),
        lambda y: lucid.nn.LayerNorm(2, eps=x)(y),
        lambda y: lucid.nn.Softplus(x)(y),
        lambda y: lucid.nn.HuberLoss(delta=x)(y, y),
        lambda y: lucid.nn.Threshold(x, 1.0)(y),
        lambda y: lucid.nn.ELU(x)(y),
    ]
    for call in made:
        with pytest.raises(LucidError, match=r"number|gradient"):
            call(lucid.ones(2, 2))


def test_the_error_for_a_number_names_function_and_parameter():
    x = double(2.0, requires_grad=True)
    for call, words in {
        lambda: lucid.norm(lucid.ones(3), p=x): ("norm", "p"),
        lambda: lucid.arange(x): ("arange", "start"),
        lambda: lucid.kaiser_window(5, beta=x): ("kaiser_window", "beta"),
        lambda: lucid.linalg.cond(lucid.ones(2, 2), x): ("cond", "p"),
    }.items():
        with pytest.raises(ArgumentError, match=r"test_conversions\.py") as raised:
            call()
        assert all(word in str(raised.value) for word in words)
