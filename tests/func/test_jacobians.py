"""lucid.func: gradients, Jacobians and linear maps: argnums, has_aux, pytrees, Python on values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import lucid
from lucid.errors import DTypeError, LucidError, ShapeError
from lucid.func import (
    grad,
    grad_and_value,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacobians,
    jacrev,
    jvp,
    linearize,
    value_and_grad,
    vjp,
    vmap,
)


def double(x) -> lucid.Tensor:
    return lucid.as_tensor(np.asarray(x, "float64"))


def array(*shape: int) -> np.ndarray:
    return np.sin(1.0 + np.arange(np.prod(shape, dtype=int))).reshape(shape)


def equal(actual, expected) -> None:
    assert isinstance(actual, lucid.Tensor)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12, atol=1e-14)


# grad


def test_argnums_choose_the_arguments():
    f = lambda x, y, z: (x * y**2 * z**3).sum()  # noqa: E731
    args = double([1.0]), double([2.0]), double([3.0])
    equal(grad(f)(*args), [108.0])
    equal(grad(f, argnums=1)(*args), [108.0])
    equal(grad(f, argnums=-1)(*args), [108.0])
    several = grad(f, argnums=(2, 0))(*args)
    assert isinstance(several, tuple)
    equal(several[0], [108.0])
    equal(several[1], [108.0])
    assert isinstance(grad(f, argnums=(0,))(*args), tuple)
    assert len(grad(f, argnums=[0, -1])(*args)) == 2


def test_argnums_out_of_range_are_refused():
    with pytest.raises(LucidError, match="argnums=2 is out of range: lambda was called with 1"):
        grad(lambda x: x, argnums=2)(1.0)


def test_python_floats_are_arguments():
    assert grad(lambda x: x**3)(2.0).item() == 12.0
    value, gradient = value_and_grad(lambda x, y: x * y)(2.0, 3.0)
    assert (value.item(), gradient.item()) == (6.0, 3.0)


def test_integers_are_refused_as_what_is_differentiated_and_pass_through_elsewhere():
    with pytest.raises(DTypeError, match="dtype int64 has no derivative.*argnums"):
        grad(lambda x: x * 1.0)(2)
    with pytest.raises(DTypeError, match="int64"):
        jacrev(lambda x: x * 1.0)(lucid.arange(3))
    equal(grad(lambda x, n: (x**n).sum())(double([2.0, 3.0]), 3), [12.0, 27.0])
    rows = grad(lambda x, i: x[i].sum())(double([1.0, 2.0, 3.0]), lucid.as_tensor([0, 0, 2]))
    equal(rows, [2.0, 0.0, 1.0])


def test_keyword_arguments_pass_through():
    equal(grad(lambda x, *, k: (x * k).sum())(double([1.0, 2.0]), k=double([3.0, 4.0])), [3.0, 4.0])


def test_unused_arguments_give_zeros():
    first, second = grad(lambda x, y: (x * 2).sum(), argnums=(0, 1))(
        double([1.0]), double([1.0, 2.0])
    )
    equal(first, [2.0])
    equal(second, [0.0, 0.0])
    equal(grad(lambda x: double(3.0))(double([1.0, 2.0])), [0.0, 0.0])


def test_has_aux_passes_anything_beside_the_value():
    def f(x):
        y = x * x
        return y.sum(), {"y": y, "note": "squares", "none": None}

    g, aux = grad(f, has_aux=True)(double([1.0, 2.0]))
    equal(g, [2.0, 4.0])
    equal(aux["y"], [1.0, 4.0])
    assert aux["note"] == "squares" and aux["none"] is None and not aux["y"].requires_grad
    (value, aux), g = value_and_grad(f, has_aux=True)(double([1.0, 2.0]))
    assert value.item() == 5.0 and aux["note"] == "squares"
    g, (value, aux) = grad_and_value(f, has_aux=True)(double([1.0, 2.0]))
    assert value.item() == 5.0
    jac, aux = jacrev(lambda x: (x * x, x), has_aux=True)(double([1.0, 2.0]))
    equal(jac, np.diag([2.0, 4.0]))
    equal(aux, [1.0, 2.0])
    with pytest.raises(LucidError, match="with has_aux the function must return"):
        grad(lambda x: x, has_aux=True)(double(1.0))


def test_value_and_grad_and_grad_and_value_have_their_own_order():
    f = lambda x: (x**2).sum()  # noqa: E731
    value, g = value_and_grad(f)(double([3.0]))
    equal(value, 9.0)
    equal(g, [6.0])
    g, value = grad_and_value(f)(double([3.0]))
    equal(value, 9.0)
    equal(g, [6.0])


def test_wrapped_function_keeps_its_name_and_docstring():
    def loss(x):
        """The loss."""
        return x.sum()

    for transform in (grad, value_and_grad, jacrev, jacfwd, jacobian, vmap):
        assert transform(loss).__name__ == "loss" and transform(loss).__doc__ == "The loss."


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: x, r"must return one scalar, not f64\[3\]; sum\(\) it"),
        (lambda x: (x.sum(), x.sum()), r"must return one scalar, not f64\[\], f64\[\]"),
        (lambda x: None, "must return one scalar, not nothing"),
    ],
)
def test_function_that_gives_no_scalar_is_refused(f, message):
    with pytest.raises(ShapeError, match=message):
        grad(f)(double(array(3)))


def test_complex_and_integer_results_are_refused():
    with pytest.raises(DTypeError, match="real floating number, not complex128"):
        grad(lambda x: (x * 1j).sum())(double(array(3)))
    with pytest.raises(DTypeError, match="not int64"):
        grad(lambda x: x.argmax())(double(array(3)))


def test_gradient_of_a_complex_argument_points_uphill():
    z = np.array([1 + 2j, -0.5j])
    g = grad(lambda z: (lucid.abs(z) ** 2).sum())(lucid.as_tensor(z))
    equal(g, 2 * z)


# Pytrees


class Layer(NamedTuple):
    w: object
    b: object


@dataclass
class Model:
    layers: list
    scale: object


def model() -> Model:
    return Model(
        [Layer(double(array(3)), double(0.5)), Layer(double(array(3)), None)], {"s": double(2.0)}
    )


def predict(model, x):
    first, second = model.layers
    return model.scale["s"] * ((x * first.w).sum() + first.b) * (x * second.w).sum()


def test_gradient_has_the_structure_of_the_argument():
    x = double(array(3))
    g = grad(predict)(model(), x)
    assert isinstance(g, Model) and isinstance(g.layers[0], Layer) and g.layers[1].b is None
    a, s = array(3), (array(3) ** 2).sum()
    equal(g.layers[0].w, 2 * s * a)
    equal(g.layers[0].b, 2 * s)
    equal(g.layers[1].w, 2 * (s + 0.5) * a)
    equal(g.scale["s"], (s + 0.5) * s)


def test_vjp_and_jvp_take_and_give_trees():
    f = lambda t: {"sum": t["a"] + t["b"][0], "product": [t["a"] * t["b"][0]]}  # noqa: E731
    point = {"a": double([1.0, 2.0]), "b": (double([3.0, 4.0]),)}
    out, pull = vjp(f, point)
    equal(out["product"][0], [3.0, 8.0])
    (g,) = pull({"sum": double([1.0, 1.0]), "product": [double([1.0, 0.0])]})
    equal(g["a"], [4.0, 1.0])
    equal(g["b"][0], [2.0, 1.0])
    out, tangent = jvp(f, (point,), ({"a": double([1.0, 0.0]), "b": (double([0.0, 1.0]),)},))
    equal(tangent["sum"], [1.0, 1.0])
    equal(tangent["product"][0], [3.0, 2.0])


@pytest.mark.parametrize("jac", [jacrev, jacfwd, jacobian])
def test_jacobian_is_a_tree_of_outputs_of_trees_of_inputs(jac):
    f = lambda t, y: {"u": t["a"] * y, "v": (t["a"].sum() + y.sum(),)}  # noqa: E731
    a, y = array(2), array(2) + 1
    j = jac(f, argnums=(0, 1))({"a": double(a)}, double(y))
    equal(j["u"][0]["a"], np.diag(y))
    equal(j["u"][1], np.diag(a))
    equal(j["v"][0][0]["a"], [1.0, 1.0])
    assert isinstance(j["u"], tuple)
    single = jac(f)({"a": double(a)}, double(y))
    equal(single["u"]["a"], np.diag(y))


def test_hessian_of_a_tree_has_a_block_for_every_pair():
    f = lambda t: (t["a"] ** 2 * t["b"]).sum()  # noqa: E731
    a, b = array(2), array(2) + 2
    h = hessian(f)({"a": double(a), "b": double(b)})
    equal(h["a"]["a"], np.diag(2 * b))
    equal(h["a"]["b"], np.diag(2 * a))
    equal(h["b"]["b"], np.zeros((2, 2)))
    h = hessian(lambda x, y: (x * y).sum(), argnums=(0, 1))(double(a), double(b))
    equal(h[0][1], np.eye(2))
    equal(h[1][1], np.zeros((2, 2)))


# Jacobians


@pytest.mark.parametrize("jac", [jacrev, jacfwd, jacobian])
@pytest.mark.parametrize("chunk", [None, 1, 2, 5, 100])
def test_jacobian_has_the_axes_of_output_then_input(jac, chunk):
    x, m = array(2, 3), array(4, 2)
    j = jac(lambda x: double(m) @ x, chunk_size=chunk)(double(x))
    expected = np.einsum("ij,kl->ikjl", m, np.eye(3))
    equal(j, expected)


@pytest.mark.parametrize("jac", [jacrev, jacfwd, jacobian])
def test_jacobian_of_scalars_and_of_empty_tensors(jac):
    equal(jac(lambda x: x**2)(double(3.0)), 6.0)
    equal(jac(lambda x: x.sum())(double(array(2, 2))), np.ones((2, 2)))
    assert jac(lambda x: x * 2)(double(np.zeros((0, 2)))).shape == (0, 2, 0, 2)
    assert jac(lambda x: x.sum())(double(np.zeros(0))).shape == (0,)
    equal(jac(lambda x: double(array(2)))(double(array(3))), np.zeros((2, 3)))


def test_jacobian_of_several_arguments_of_which_one_is_not_used():
    for jac in (jacrev, jacfwd, jacobian):
        first, second = jac(lambda x, y: x * 2, argnums=(0, 1))(double(array(2)), double(array(3)))
        equal(first, 2 * np.eye(2))
        equal(second, np.zeros((2, 3)))


def test_integer_outputs_have_no_jacobian():
    with pytest.raises(DTypeError, match="an output of dtype int64 has no derivative"):
        jacrev(lambda x: x.argsort())(double(array(3)))


def count_modes(monkeypatch) -> list:
    used = []
    original = jacobians.batched_derivative

    def spy(mode, *rest):
        used.append(mode)
        return original(mode, *rest)

    monkeypatch.setattr(jacobians, "batched_derivative", spy)
    return used


def test_jacobian_goes_forward_for_few_inputs_and_backward_for_few_outputs(monkeypatch):
    used = count_modes(monkeypatch)
    jacobian(lambda x: x.expand(10))(double(array(1)))
    jacobian(lambda x: x.sum())(double(array(10)))
    assert used == ["jvp", "vjp"]


def test_chunks_limit_how_many_seeds_run_at_once(monkeypatch):
    used = count_modes(monkeypatch)
    jacrev(lambda x: x * 2, chunk_size=4)(double(array(10)))
    assert len(used) == 3


def test_jacobian_runs_the_function_once():
    calls = []
    jacrev(lambda x: calls.append(1) or x * 2)(double(array(10)))
    jacfwd(lambda x: calls.append(1) or x * 2)(double(array(10)))
    assert len(calls) == 2


# vjp, jvp, linearize, hvp


def test_curried_forms():
    f = lambda x, y: x * y  # noqa: E731
    x, y = double([1.0, 2.0]), double([3.0, 4.0])
    _, pull = vjp(f)(x, y)
    gx, gy = pull(lucid.ones(2))
    equal(gx, [3.0, 4.0])
    equal(gy, [1.0, 2.0])
    out, tangent = jvp(f)((x, y), (double([1.0, 0.0]), double([0.0, 1.0])))
    equal(out, [3.0, 8.0])
    equal(tangent, [3.0, 2.0])


def test_vjp_with_aux_gives_three_things():
    out, pull, aux = vjp(lambda x: (x * x, {"x": x}), double([1.0, 2.0]), has_aux=True)
    equal(out, [1.0, 4.0])
    equal(pull(lucid.ones(2))[0], [2.0, 4.0])
    equal(aux["x"], [1.0, 2.0])
    out, tangent, aux = jvp(lambda x: (x * x, "note"), (double(2.0),), (double(1.0),), has_aux=True)
    assert (out.item(), tangent.item(), aux) == (4.0, 4.0, "note")


def test_pullback_may_be_called_many_times():
    _, pull = vjp(lambda x: lucid.sin(x), double(array(3)))
    for seed in np.eye(3):
        equal(pull(double(seed))[0], np.cos(array(3)) * seed)


def test_scalar_cotangents_broadcast():
    _, pull = vjp(lambda x: x * x, double(array(3)))
    equal(pull(2.0)[0], 4 * array(3))


@pytest.mark.parametrize(
    ("cotangents", "message"),
    [
        ((), "got 0 arrays, expected 1"),
        ((1.0, 2.0), "got 2 arrays, expected 1"),
        ((np.ones(4),), r"got shape \(4,\), expected \(3,\)"),
    ],
)
def test_wrong_cotangents_are_refused(cotangents, message):
    _, pull = vjp(lambda x: x * x, double(array(3)))
    with pytest.raises(ShapeError, match=message):
        pull(*cotangents)


def test_wrong_tangents_are_refused():
    with pytest.raises(ShapeError, match="got 2 arrays, expected 1"):
        jvp(lambda x: x, (double(array(3)),), (double(array(3)), double(array(3))))
    with pytest.raises(ShapeError, match=r"got shape \(2,\), expected \(3,\)"):
        jvp(lambda x: x, (double(array(3)),), (double(array(2)),))


def test_linearize_runs_the_function_once_and_is_linear():
    calls = []
    x = array(3)
    out, push = linearize(lambda x: calls.append(1) or lucid.exp(x) * x.sum(), double(x))
    jac = np.diag(np.exp(x) * x.sum()) + np.exp(x)[:, None]
    for v in (np.eye(3)[0], array(3), np.zeros(3)):
        equal(push(double(v)), jac @ v)
    equal(out, np.exp(x) * x.sum())
    assert len(calls) == 1
    equal(vmap(push)(double(np.eye(3))), jac.T)


def test_linearize_of_several_arguments_and_trees():
    out, push = linearize(lambda x, t: {"y": x * t["a"]}, double(2.0), {"a": double(3.0)})
    equal(out["y"], 6.0)
    equal(push(double(1.0), {"a": double(10.0)})["y"], 23.0)


def test_hvp_is_the_hessian_times_a_vector():
    f = lambda x: (x**3).sum() * x[0]  # noqa: E731
    x, v = array(3), array(3) + 1
    equal(hvp(f, double(x), double(v)), hessian(f)(double(x)).numpy() @ v)
    equal(hvp(f, (double(x),), (double(v),)), hessian(f)(double(x)).numpy() @ v)


def test_forward_mode_makes_one_pass():
    graph = lucid.ir.trace(lambda x, v: jvp(lambda x: lucid.sin(x), (x,), (v,))[1])(
        lucid.ones(3), lucid.ones(3)
    )
    assert [eqn.op.name for eqn in graph.equations] == ["cos", "scale"]


# Python on values


def test_python_branches_loops_and_prints_on_values(capsys):
    def f(x):
        total = x * 0.0
        n = 0
        while total < 10.0:
            total = total + x * x if x > 0 else total + 2.0 * x * -1.0
            n += 1
        print("steps", n, x.item())
        return total

    assert grad(f)(double(2.0)).item() == 12.0
    assert grad(f)(double(-1.0)).item() == -10.0
    assert jvp(f, (double(2.0),), (double(1.0),))[1].item() == 12.0
    assert vjp(f, double(2.0))[1](1.0)[0].item() == 12.0
    assert "steps 3 2.0" in capsys.readouterr().out


def test_value_that_leaked_from_grad_is_harmless():
    kept = []
    grad(lambda x: kept.append(x * 2.0) or x)(double(3.0))
    assert (kept[0] + 1.0).item() == 7.0


def test_result_shares_no_history_with_the_run():
    value, _ = value_and_grad(lambda x: x * x)(double(3.0))
    assert not value.requires_grad and value.is_leaf
    x = lucid.tensor(3.0, requires_grad=True)
    value, g = value_and_grad(lambda x: x * x)(x)
    assert value.requires_grad and g.requires_grad
    g.backward()
    assert x.grad.item() == 2.0


def test_float32_stays_float32():
    x = lucid.tensor([1.0, 2.0])
    assert grad(lambda x: (x * x).sum())(x).dtype == np.float32
    assert jacrev(lambda x: x * x)(x).dtype == np.float32
    assert hessian(lambda x: (x**3).sum())(x).dtype == np.float32
    assert jvp(lambda x: x * x, (x,), (double([1.0, 1.0]),))[1].dtype == np.float32
