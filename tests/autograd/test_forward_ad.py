"""Dual tensors: the tangents that `lucid.func.jvp` gives, under PyTorch's names."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd import forward_ad
from lucid.errors import DTypeError, GraphError, ShapeError
from tests.compiled import compiled

X, T = np.array([0.3, -1.2, 0.7]), np.array([1.0, 0.5, -2.0])


def dual(x=X, t=T):
    return forward_ad.make_dual(lucid.tensor(x), lucid.tensor(t))


def close(actual, expected):
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12)


def test_the_tangent_is_the_derivative_in_its_direction():
    with forward_ad.dual_level():
        primal, tangent = forward_ad.unpack_dual(lucid.sin(dual()) * 2)
    close(primal, 2 * np.sin(X))
    close(tangent, 2 * np.cos(X) * T)


def test_tangents_of_several_duals_add_up():
    with forward_ad.dual_level():
        close(forward_ad.unpack_dual(dual() * dual(T, X)).tangent, T * T + X * X)


def test_a_dual_that_is_not_used_has_its_own_tangent():
    with forward_ad.dual_level():
        close(forward_ad.unpack_dual(dual()).tangent, T)


def test_what_depends_on_no_dual_has_no_tangent():
    with forward_ad.dual_level():
        dual()
        assert forward_ad.unpack_dual(lucid.ones(2)).tangent is None


def test_a_write_in_place_carries_its_tangent():
    with forward_ad.dual_level():
        y = dual().clone()
        y[0] = y[1] * 3
        close(forward_ad.unpack_dual(y).tangent, [1.5, 0.5, -2.0])


def test_tangents_end_with_the_level():
    with forward_ad.dual_level():
        y = dual() * 2
    assert forward_ad.unpack_dual(y).tangent is None
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(lucid.ones(1)).tangent is None


def test_a_level_inside_no_grad_has_tangents_and_leaves_the_mode_as_it_was():
    with lucid.no_grad():
        with forward_ad.dual_level():
            close(forward_ad.unpack_dual(dual() * 2).tangent, 2 * T)
        assert not lucid.is_grad_enabled()


def test_backward_goes_through_a_tangent():
    x = lucid.tensor(2.0, requires_grad=True)
    with forward_ad.dual_level():
        out = forward_ad.unpack_dual(forward_ad.make_dual(x, lucid.tensor(1.0)) ** 3)
        out.tangent.backward()
    assert x.grad.item() == 12.0 and not x.grad.requires_grad


def test_values_beside_the_duals_have_gradients_too():
    w = lucid.tensor(2.0, requires_grad=True)
    with forward_ad.dual_level():
        x = forward_ad.make_dual(lucid.tensor(3.0), lucid.tensor(1.0))
        forward_ad.unpack_dual(x * x * w).tangent.backward()
    assert w.grad.item() == 6.0


def slope(x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(lucid.sin(forward_ad.make_dual(x, x * 0 + 1))).tangent


@pytest.mark.parametrize("transform", [compiled, lucid.vmap, lambda f: f])
def test_levels_work_inside_transforms(transform):
    close(transform(slope)(lucid.tensor(X)), np.cos(X))


def test_levels_can_be_differentiated():
    close(lucid.func.grad(slope)(lucid.tensor(0.5, dtype="float64")), -np.sin(0.5))


def test_a_level_can_be_entered_and_left_by_hand():
    level = forward_ad.enter_dual_level()
    close(forward_ad.unpack_dual(dual(), level=level).tangent, T)
    forward_ad.exit_dual_level(level=level)


def test_what_is_wrong_is_refused():
    with pytest.raises(GraphError, match="no level is open"):
        dual()
    with pytest.raises(GraphError, match="no level is open"):
        forward_ad.exit_dual_level()
    with forward_ad.dual_level():
        with pytest.raises(GraphError, match="cannot be nested"):
            forward_ad.enter_dual_level()
        with pytest.raises(GraphError, match="level 3"):
            forward_ad.exit_dual_level(level=3)
        with pytest.raises(ShapeError, match=r"\(3,\) with a tangent of \(2,\)"):
            dual(X, T[:2])
        with pytest.raises(DTypeError, match="int64"):
            dual(np.arange(3), np.arange(3))
        with pytest.raises(DTypeError, match="float32"):
            dual(X, T.astype("float32"))
