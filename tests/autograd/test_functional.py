"""lucid.autograd.functional: derivatives at a point, with PyTorch's forms of inputs and results."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd import functional as AF
from lucid.errors import ArgumentError, GraphError, ShapeError

X, Y = np.array([1.0, 2.0, -0.5]), np.array([0.5, -1.0, 3.0])
x, y = lucid.tensor(X), lucid.tensor(Y)


def scalar(x, y):
    return (x**3 * y).sum() + (y**2).sum() * x.sum()


# By hand: f = Σ x³y + Σy² Σx.
HXX = np.diag(6 * X * Y)
HXY = np.diag(3 * X**2) + 2 * Y[None, :] * np.ones((3, 1))
HYY = np.diag(2 * X.sum() * np.ones(3))


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobian_has_the_form_of_outputs_and_inputs(strategy):
    one = AF.jacobian(lambda x: x**2, x, strategy=strategy)
    np.testing.assert_allclose(one, np.diag(2 * X))
    pair = AF.jacobian(lambda x, y: (x * y, y.sum()), (x, y), vectorize=True, strategy=strategy)
    expected = ((np.diag(Y), np.diag(X)), (np.zeros(3), np.ones(3)))
    for row, wanted in zip(pair, expected, strict=True):
        for block, e in zip(row, wanted, strict=True):
            np.testing.assert_allclose(block, e)
    single = AF.jacobian(lambda x: x.sum(), (x,), strategy=strategy)
    assert isinstance(single, tuple) and single[0].shape == (3,)


def test_hessian_of_two_inputs():
    (xx, xy), (yx, yy) = AF.hessian(scalar, (x, y))
    for block, e in [(xx, HXX), (xy, HXY), (yx, HXY.T), (yy, HYY)]:
        np.testing.assert_allclose(block, e)
    np.testing.assert_allclose(AF.hessian(lambda x: scalar(x, y), x), HXX)


def test_products_with_jacobian_and_hessian():
    v = lucid.tensor([1.0, -2.0, 0.5])
    V = v.numpy()
    out, pulled = AF.vjp(lambda x: x**2, x, v)
    np.testing.assert_allclose(out, X**2)
    np.testing.assert_allclose(pulled, 2 * X * V)
    out, (a, b) = AF.vjp(lambda x, y: (x * y, y), (x, y), (v, v))
    np.testing.assert_allclose(a, Y * V)
    np.testing.assert_allclose(b, X * V + V)
    out, pushed = AF.jvp(lambda x, y: (x * y, y), (x, y), (v, v))
    np.testing.assert_allclose(out[0], X * Y)
    np.testing.assert_allclose(pushed[0], X * V + Y * V)
    for product in (AF.hvp, AF.vhp):
        out, (a, b) = product(scalar, (x, y), (v, v))
        np.testing.assert_allclose(out.item(), (X**3 * Y).sum() + (Y**2).sum() * X.sum())
        np.testing.assert_allclose(a, (HXX + HXY) @ V)
        np.testing.assert_allclose(b, (HXY.T + HYY) @ V)


def test_v_may_be_left_out_for_single_numbers():
    assert AF.vjp(lambda x: (x**2).sum(), x)[1].shape == (3,)
    assert AF.jvp(lambda t: t**2, lucid.tensor(3.0))[1].item() == 6.0
    assert AF.hvp(lambda t: t**3, lucid.tensor(2.0))[1].item() == 12.0


def test_results_are_detached_unless_a_graph_is_wanted():
    w = lucid.tensor(X, requires_grad=True)
    assert not AF.jacobian(lambda x: x**2, w).requires_grad
    AF.jacobian(lambda x: x**3, w, create_graph=True).sum().backward()
    np.testing.assert_allclose(w.grad, 6 * X)


def test_strict_refuses_what_does_not_depend():
    with pytest.raises(GraphError, match="output 1 does not depend on input 0"):
        AF.jacobian(lambda x, y: (x * y, y), (x, y), strict=True)
    AF.jacobian(lambda x, y: (x * y, y), (x, y))
    with pytest.raises(GraphError, match="the gradient by input 0 does not depend on input 0"):
        AF.hessian(lambda x: x.sum(), x, strict=True)
    AF.vhp(scalar, (x, y), (x, y), strict=True)


def test_bad_input_is_refused():
    with pytest.raises(ArgumentError, match="v is missing"):
        AF.vjp(lambda x: x**2, x)
    with pytest.raises(ArgumentError, match="v is missing"):
        AF.jvp(lambda x: x**2, x)
    with pytest.raises(ShapeError, match=r"v of shapes \[\(2,\)\] for the input of \[\(3,\)\]"):
        AF.hvp(lambda x: (x**2).sum(), x, lucid.ones(2))
    with pytest.raises(ArgumentError, match="strategy 'both'"):
        AF.jacobian(lambda x: x, x, strategy="both")
    with pytest.raises(ArgumentError, match="at least one input"):
        AF.jacobian(lambda: x, ())


def test_set_detect_anomaly_at_once_and_in_a_block():
    assert not lucid.autograd.is_anomaly_enabled()
    with lucid.autograd.set_detect_anomaly(True):
        assert lucid.autograd.is_anomaly_enabled()
        t = lucid.tensor([0.0], requires_grad=True)
        with pytest.raises(GraphError, match="produced a nan"):
            (t / t).sum().backward()
    assert not lucid.autograd.is_anomaly_enabled()
    lucid.autograd.set_detect_anomaly(True)
    assert lucid.autograd.is_anomaly_enabled()
    lucid.autograd.set_detect_anomaly(False)
    assert not lucid.autograd.is_anomaly_enabled()
