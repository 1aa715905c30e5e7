"""Creation: shapes as PyTorch and NumPy write them, dtypes, and gradients through full."""

import numpy as np
import pytest

import lucid
from lucid.errors import DTypeError, ShapeError
from lucid.ops.core.promote import as_tensor, set_default_dtype
from lucid.ops.shape import creation
from lucid.tape.recording.trace import trace


@pytest.mark.parametrize("shape", [(2, 3), (4,), (), (0, 2)])
def test_a_shape_is_given_as_numbers_or_as_one_sequence(shape):
    for function, expected in ((creation.zeros, np.zeros), (creation.ones, np.ones)):
        for y in (function(*shape), function(shape), function(list(shape))):
            np.testing.assert_array_equal(y.numpy(), expected(shape))
            assert y.dtype == "float32"


def test_default_dtype_is_respected():
    set_default_dtype("float64")
    assert creation.zeros(2).dtype == creation.linspace(0, 1, 3).dtype == "float64"


def test_full_has_the_dtype_of_its_number():
    kinds = [creation.full((2,), v).dtype.name for v in (True, 1, 1.0, 1j)]
    assert kinds == ["bool", "int64", "float32", "complex64"]


def test_full_of_a_tensor_has_a_gradient():
    v = lucid.Tensor(2.0, requires_grad=True)
    creation.full((2, 3), v).sum().backward()
    assert v.grad.tolist() == 6


def test_like_functions_take_shape_and_dtype():
    x = as_tensor(np.ones((2, 3), "float64"))
    for y, value in (
        (creation.zeros_like(x), 0),
        (creation.ones_like(x), 1),
        (creation.full_like(x, 7), 7),
    ):
        assert y.dtype == "float64" and y.shape == (2, 3) and (y.numpy() == value).all()
    assert creation.zeros_like(x, dtype="int32").dtype == "int32"
    assert creation.empty_like(x).shape == creation.empty(2, 3).shape


@pytest.mark.parametrize(
    "args", [(5,), (2, 7), (1, 8, 2), (8, 1, -3), (3, 3), (5, 2), (0.5, 2, 0.25)]
)
def test_arange_agrees_with_numpy(args):
    y = creation.arange(*args)
    np.testing.assert_allclose(y.numpy(), np.arange(*args))
    assert y.dtype == ("float32" if isinstance(args[0], float) else "int64")


def test_linspace_and_logspace_agree_with_numpy():
    np.testing.assert_allclose(
        creation.linspace(-1, 2, 7).numpy(), np.linspace(-1, 2, 7), rtol=1e-6
    )
    without_end = creation.linspace(0, 1, 4, endpoint=False, dtype="float64")
    np.testing.assert_allclose(without_end.numpy(), np.linspace(0, 1, 4, endpoint=False))
    np.testing.assert_allclose(creation.logspace(0, 2, 3).numpy(), [1, 10, 100], rtol=1e-6)


def test_eye_may_be_rectangular():
    np.testing.assert_array_equal(creation.eye(2, 3, dtype="int32").numpy(), np.eye(2, 3))


def test_requires_grad_makes_a_leaf():
    x = creation.zeros(2, requires_grad=True)
    assert x.requires_grad and x.is_leaf


def test_nothing_is_recorded_for_known_numbers():
    graph = trace(lambda x: x + creation.ones(3))(np.ones(3, "float32"))
    assert [eqn.op.name for eqn in graph.equations] == ["add"]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: creation.zeros(-1), ShapeError, "sizes must not be negative"),
        (lambda: creation.zeros(1.5), ShapeError, "sizes must be integers"),
        (lambda: creation.full((2,), [1, 2]), ShapeError, "give one number"),
        (lambda: creation.arange(0, 3, 0), ShapeError, "the step must not be 0"),
        (lambda: creation.zeros(2, dtype="int64", requires_grad=True), DTypeError, "no gradient"),
    ],
)
def test_bad_input_is_named_with_the_line(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
    assert "test_creation.py:" in str(caught.value)
