"""lucid.numpy as a namespace: NumPy's names, the array API standard's, and what they return."""

import inspect

import numpy as np
import pytest

import lucid
import lucid.numpy as lnp
from lucid.errors import ArgumentError

STANDARD = pytest.importorskip("array_api_strict")


@pytest.mark.parametrize("part", ["", "linalg", "fft"])
def test_every_name_of_the_standard_is_there(part):
    theirs, ours = (getattr(m, part) if part else m for m in (STANDARD, lnp))
    own = {name for name in theirs.__all__ if "strict" in name.lower() or name == "Device"}
    missing = [n for n in theirs.__all__ if n not in own and not hasattr(ours, n)]
    assert missing in ([], ["__version__"])


def test_the_namespace_lists_what_it_has():
    for module, least in ((lnp, 350), (lnp.linalg, 30), (lnp.fft, 18)):
        assert len(module.__all__) >= least
        assert set(module.__all__) <= set(dir(module))
        assert [name for name in module.__all__ if not hasattr(module, name)] == []
    with pytest.raises(AttributeError, match="no attribute 'genfromtxt'"):
        lnp.genfromtxt  # noqa: B018


def test_a_tensor_names_its_namespace():
    assert lucid.ones(2).__array_namespace__() is lnp
    assert lucid.ones(2).__array_namespace__(api_version="2024.12") is lnp
    with pytest.raises(ArgumentError, match="2030"):
        lucid.ones(2).__array_namespace__(api_version="2030.12")


@pytest.mark.parametrize(
    "call",
    [
        lambda np: np.arange(5),
        lambda np: np.arange(1.0, 2.0, 0.25, dtype=np.float64),
        lambda np: np.asarray([[1, 2], [3, 4]]),
        lambda np: np.array([1.5], dtype=np.float64, ndmin=2),
        lambda np: np.zeros((2, 3), np.float64),
        lambda np: np.ones(3, dtype="int32"),
        lambda np: np.full((2,), 7),
        lambda np: np.eye(3, 4, 1, dtype=np.float64),
        lambda np: np.identity(2, np.float64),
        lambda np: np.tri(3, k=-1, dtype=np.float64),
        lambda np: np.tril_indices(3),
        lambda np: np.triu_indices(3, 1),
        lambda np: np.diag_indices(3),
        lambda np: np.indices((2, 3)),
        lambda np: np.linspace(0.0, 1.0, 4, dtype=np.float64),
        lambda np: np.add.outer(np.arange(3), np.arange(2)),
        lambda np: np.multiply.accumulate(np.arange(1, 4)),
        lambda np: np.meshgrid(np.arange(2), np.arange(3)),
        lambda np: np.meshgrid(np.arange(2), np.arange(3), sparse=True),
        lambda np: np.linalg.inv(np.asarray([[2.0, 1.0], [0.0, 4.0]], np.float64)),
        lambda np: np.fft.fftfreq(5, 0.5),
        lambda np: np.fft.rfftfreq(4),
        lambda np: np.hanning(5),
        lambda np: np.hamming(4),
        lambda np: np.bartlett(4),
        lambda np: np.blackman(6),
        lambda np: np.kaiser(5, 8.0),
        lambda np: np.unique(np.asarray([3, 1, 3]), return_index=True, return_counts=True),
        lambda np: np.sum(np.ones((2, 2), np.uint8)),
        lambda np: np.sign(np.asarray([3 + 4j, 0j])),
    ],
)
def test_functions_of_the_namespace_have_numpys_values(call):
    ours, theirs = call(lnp), call(np)
    pairs = zip(ours, theirs) if isinstance(theirs, (tuple, list)) else [(ours, theirs)]
    lucid.set_default_dtype("float64")
    for ours, theirs in pairs:
        assert isinstance(ours, lucid.Tensor)
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6)


def test_floats_have_the_default_dtype():
    made = (lnp.asarray([1.0]), lnp.zeros(2), lnp.arange(2.0), lnp.linspace(0, 1, 3), lnp.eye(2))
    assert {x.dtype for x in made} == {np.dtype("float32")}
    assert lnp.__array_namespace_info__().default_dtypes()["real floating"] == np.float32
    lucid.set_default_dtype("float64")
    assert lnp.linspace(0, 1, 3).dtype == lnp.hanning(3).dtype == np.float64


def test_tensors_without_axes_promote_as_in_numpy_though_operators_follow_pytorch():
    number, row = lucid.tensor(2.0, dtype="float64"), lucid.ones(2)
    assert lnp.multiply(number, row).dtype == np.multiply(number, row).dtype == np.float64
    assert lnp.tensordot(number, row, 0).dtype == np.float64
    assert (number * row).dtype == np.float32


def test_asarray_shares_memory_unless_a_copy_is_asked_for():
    array = np.zeros(2, "float32")
    shared, copied = lnp.asarray(array), lnp.asarray(array, copy=True)
    array[0] = 5.0
    assert shared.tolist() == [5.0, 0.0] and copied.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="copy=False"):
        lnp.asarray([1.0], copy=False)


def test_signatures_are_numpys_or_the_standards():
    assert list(inspect.signature(lnp.sum).parameters)[:3] == ["a", "axis", "dtype"]
    assert "descending" in inspect.signature(lnp.sort).parameters
    assert lnp.sort(lnp.asarray([1, 3, 2]), descending=True).tolist() == [3, 2, 1]
    assert lnp.argsort(lnp.asarray([1, 3, 2]), descending=True).tolist() == [1, 2, 0]
    assert lnp.clip(lnp.arange(4), 1, 2).tolist() == [1, 1, 2, 2]
    assert np.clip(lucid.arange(4), a_min=1, a_max=2).tolist() == [1, 1, 2, 2]


def test_devices_are_the_cpu():
    assert lnp.ones(2, device="cpu").device == "cpu"
    assert lnp.ones(2).to_device("cpu").shape == (2,)
    with pytest.raises(ArgumentError, match="cuda"):
        lnp.ones(2, device="cuda")


def test_questions_about_dtypes():
    assert lnp.isdtype(lnp.float32, "real floating") and not lnp.isdtype(lnp.int8, "bool")
    assert lnp.isdtype(lnp.uint8, ("bool", "integral"))
    assert isinstance(lnp.finfo(lnp.float32).eps, float) and lnp.iinfo("int8").max == 127
    info = lnp.__array_namespace_info__()
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert info.devices() == ["cpu"] and info.capabilities()["boolean indexing"]


def test_size_is_a_number_and_a_method():
    x = lucid.zeros(2, 3)
    assert x.size == 6 and x.size() == (2, 3) and x.size(-1) == 3
    assert lucid.Tensor.size(x, 0) == 2
    assert np.zeros(x.size).shape == (6,)


def test_gradients_flow_through_the_namespace():
    x = np.linspace(0.1, 1.0, 4)
    slope = lucid.func.grad(lambda x: lnp.sum(lnp.sin(x) ** 2 + lnp.linalg.norm(x)))(x)
    np.testing.assert_allclose(slope, np.sin(2 * x) + 4 * x / np.linalg.norm(x), rtol=1e-12)
    f = lucid.jit(lambda x: lnp.cumulative_sum(lnp.exp(x)))
    for scale in (1.0, 2.0):
        np.testing.assert_allclose(f(scale * x).numpy(), np.cumsum(np.exp(scale * x)))


def test_floor_divide_of_infinities_is_the_standard_s_and_the_operator_numpy_s():
    inf = np.inf
    x = lucid.tensor([inf, -inf, inf, 1.0, -1.0, 1.0, 0.0, 7.0, inf, np.nan])
    y = lucid.tensor([2.0, 2.0, -2.0, -inf, inf, inf, inf, 2.0, inf, 1.0])
    want = np.array([inf, -inf, -inf, -0.0, -0.0, 0.0, 0.0, 3.0, np.nan, np.nan])
    got = lnp.floor_divide(x, y).numpy()
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got)[:7], np.signbit(want)[:7])
    with np.errstate(invalid="ignore"):
        for ours in (x // y, np.floor_divide(x, y)):
            np.testing.assert_array_equal(ours.numpy(), np.floor_divide(x.numpy(), y.numpy()))
    assert lnp.floor_divide(lucid.tensor([7, -7]), 2).tolist() == [3, -4]


def test_a_cross_product_promotes_vectors_before_it_takes_their_components():
    a, b = (lucid.tensor([1, 2, 3], dtype=d) for d in ("uint8", "uint16"))
    assert lnp.linalg.cross(a, b).dtype == lnp.cross(a, b).dtype == np.uint16


def test_integers_compare_by_value_and_those_pytorch_lacks_promote_as_in_numpy():
    small = lucid.tensor([0, 1], dtype="uint8")
    assert (lucid.tensor(-1, dtype="int32") > small).tolist() == [False, False]
    assert (small < lucid.tensor(256, dtype="int32")).tolist() == [True, True]
    assert (lucid.tensor(1, dtype="uint16") + small).dtype == np.uint16
    assert (lucid.tensor(1) + lucid.tensor([1], dtype="uint32")).dtype == np.int64
    assert (lucid.tensor(1) + lucid.tensor([1], dtype="int8")).dtype == np.int8  # as in PyTorch


def test_a_mask_without_elements_selects_nothing_as_in_numpy():
    x = lucid.arange(6.0).reshape(2, 3)
    for shape in ((0,), (2, 0), (0, 3), (0, 0)):
        mask = np.zeros(shape, bool)
        assert x[mask].shape == x.numpy()[mask].shape
        y = x.clone()
        y[mask] = 7.0
        assert y.tolist() == x.tolist()
    with pytest.raises(IndexError, match="a boolean index of shape"):
        x[np.zeros((3,), bool)]
