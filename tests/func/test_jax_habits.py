"""What users of JAX type on the first day: static names, lowering, transposes, batch rules."""

import dataclasses

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, DTypeError, GraphError, ShapeError, TracedValueError
from lucid.func import (
    closure_convert,
    custom_jvp,
    custom_vjp,
    custom_vmap,
    eval_shape,
    grad,
    hessian,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    make_jaxpr,
    value_and_grad,
    vectorize,
    vmap,
)

t = lucid.tensor


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        (lambda x: x.at[1].set(5.0), [1, 5, 3]),
        (lambda x: x.at[1:].add(t([1.0, 2.0])), [1, 3, 5]),
        (lambda x: x.at[t([0, 0])].add(t([1.0, 2.0])), [4, 2, 3]),
        (lambda x: x.at[t([0, 0])].multiply(t([2.0, 3.0])), [6, 2, 3]),
        (lambda x: x.at[-1].mul(2.0), [1, 2, 6]),
        (lambda x: x.at[t([True, False, True])].min(2.0), [1, 2, 2]),
        (lambda x: x.at[...].max(2.0), [2, 2, 3]),
        (lambda x: x.at[0].subtract(1.0), [0, 2, 3]),
        (lambda x: x.at[2].divide(2.0), [1, 2, 1.5]),
        (lambda x: x.at[2].power(2), [1, 2, 9]),
        (lambda x: x.at[:2].apply(lucid.exp).at[0].set(0.0).at[1].set(0.0), [0, 0, 3]),
        (lambda x: x.at[t([2, 0])].get(), [3, 1]),
    ],
)
def test_at_returns_updated_copies(update, expected):
    x = t([1.0, 2.0, 3.0])
    assert update(x).tolist() == expected and x.tolist() == [1.0, 2.0, 3.0]
    jitted = lucid.jit(update)
    for _ in range(3):
        assert jitted(x).tolist() == expected


def test_at_is_differentiated_and_batched():
    assert grad(lambda x: x.at[1].set(x[0] ** 2).sum())(t([3.0, 4.0])).tolist() == [7.0, 0.0]
    found = vmap(lambda x, i: x.at[i].add(1.0))(lucid.zeros(2, 3), t([0, 2]))
    assert found.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    with pytest.raises(ArgumentError, match="mode='drop'"):
        lucid.zeros(2).at[5].set(1.0, mode="drop")


def test_static_arguments_are_named():
    f = lucid.jit(lambda x, n=2, *, negate=False: -(x**n) if negate else x**n,
                  static_argnames=("n", "negate"))  # fmt: skip
    for _ in range(3):
        assert f(t(2.0)).item() == 4.0
        assert f(t(2.0), 3).item() == f(t(2.0), n=3).item() == 8.0
        assert f(t(2.0), n=3, negate=True).item() == -8.0
    with pytest.raises(ArgumentError, match="'m', which is not an argument"):
        lucid.jit(lambda x: x, static_argnames="m")


def test_a_function_is_compiled_before_there_are_values():
    w = t([1.0, 2.0])
    lowered = lucid.jit(lambda x, n: x**n * w, static_argnums=1).lower(
        lucid.ir.Type.parse("f32[2]"), 2
    )
    assert "mul" in lowered.as_text() and "f32[2]" in lowered.as_text()
    compiled = lowered.compile()
    for scale in (1.0, 3.0):
        assert compiled(lucid.ones(2) * scale, 2).tolist() == [scale**2, 2 * scale**2]
    with pytest.raises(ArgumentError, match=r"called with f32\[3\], compiled for f32\[2\]"):
        compiled(lucid.ones(3), 2)
    with pytest.raises(TracedValueError):
        lucid.jit(lambda x: x if x > 0 else -x).lower(t(1.0))


def test_eval_shape_computes_nothing():
    large = lucid.ir.Type.parse("f32[2,1000000000000]")
    found = eval_shape(lambda x: {"sum": x.sum(), "rows": (x[0],)}, large)
    assert found["sum"].shape == () and found["rows"][0].shape == (10**12,)
    assert str(make_jaxpr(lambda x: x * 2.0)(t(1.0)).equations[0].op) == "mul"


def test_closures_become_arguments():
    w = t([1.0, 2.0])
    f, consts = closure_convert(lambda x: (x * w).sum(), lucid.ones(2))
    assert f(lucid.ones(2), *consts).item() == 3.0
    assert grad(f, argnums=1)(t([5.0, 6.0]), *consts).tolist() == [5.0, 6.0]


def test_linear_functions_are_transposed():
    a = t([[1.0, 2.0], [3.0, 4.0]])
    (found,) = linear_transpose(lambda x: a @ x, lucid.ones(2))(t([1.0, 10.0]))
    assert found.tolist() == (a.numpy().T @ [1.0, 10.0]).tolist()
    both = linear_transpose(lambda x, y: 2 * x + y.sum(), lucid.ones(2), lucid.ones(3))(
        lucid.ones(2)
    )
    assert [x.tolist() for x in both] == [[2.0, 2.0], [2.0, 2.0, 2.0]]
    with pytest.raises(GraphError, match="not linear"):
        linear_transpose(lambda x: x * x, t(1.0))
    with pytest.raises(DTypeError, match="no cotangent"):
        linear_transpose(lambda x: x * 2, t(1))


def test_vectorize_broadcasts_all_but_the_core_axes():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 2, 3)), rng.normal(size=(4, 1, 3))
    found = vectorize(lambda a, b: a @ b, signature="(m,n),(n)->(m)")(t(a), t(b))
    np.testing.assert_allclose(found, np.einsum("bmn,acn->abm", a, b))
    assert vectorize(lambda x, y: x + y)(lucid.ones(3, 1), lucid.ones(4)).shape == (3, 4)
    assert vectorize(lambda x, n: x**n, excluded={1})(t([1.0, 2.0]), 2).tolist() == [1.0, 4.0]
    with pytest.raises(ShapeError, match="core axis n has sizes 3 and 2"):
        vectorize(lambda x, y: x @ y, signature="(n),(n)->()")(lucid.ones(3), lucid.ones(2))
    with pytest.raises(ShapeError, match="state the core axes"):
        vectorize(lambda x: lucid.stack([x, x]))(lucid.ones(3))


def test_holomorphic_functions_have_complex_derivatives():
    z = t(1 + 2j)
    assert grad(lambda z: z**3, holomorphic=True)(z).item() == pytest.approx(3 * (1 + 2j) ** 2)
    assert value_and_grad(lambda z: z**2, holomorphic=True)(z)[1].item() == 2 + 4j
    assert hessian(lambda z: z**3, holomorphic=True)(z).item() == pytest.approx(6 + 12j)
    for transform in (grad, jacrev):
        with pytest.raises(DTypeError, match="holomorphic=True needs complex"):
            transform(lambda x: x * x, holomorphic=True)(t(1.0))
    with pytest.raises(DTypeError, match="real floating"):
        grad(lambda z: z**2)(z)


def test_integers_have_zero_gradients_where_they_are_allowed():
    f = grad(lambda i, x: x * i, argnums=(0, 1), allow_int=True)
    found = f(t(3), t(2.0))
    assert [x.item() for x in found] == [0, 3.0]


def test_auxiliary_results_are_returned_everywhere():
    f = lambda x: ((x**3).sum(), "aux")  # noqa: E731
    x = t([1.0, 2.0])
    assert hessian(f, has_aux=True)(x)[1] == "aux"
    assert linearize(f, x, has_aux=True)[2] == "aux"
    assert jvp(f, (x,), (x,), has_aux=True)[2] == "aux"


def test_a_batch_rule_of_the_user_is_used():
    calls = []

    @custom_vmap
    def product(x, y):
        return x * y

    with pytest.raises(GraphError, match="no batch rule"):
        product(t(1.0), t(2.0))

    @product.def_vmap
    def rule(axis_size, in_batched, x, y):
        calls.append((axis_size, in_batched))
        return x * y * 10.0, True

    assert product(t(2.0), t(3.0)).item() == 6.0 and grad(product)(t(2.0), t(3.0)).item() == 3.0
    assert vmap(product, in_dims=(0, None))(lucid.ones(3), t(2.0)).tolist() == [20.0] * 3
    assert calls == [(3, [True, False])]
    jitted = lucid.jit(vmap(product))
    for n in (2, 4):
        assert jitted(lucid.ones(n), lucid.ones(n)).tolist() == [10.0] * n
    twice = vmap(vmap(product))(lucid.ones(2, 3), lucid.ones(2, 3))
    assert twice.shape == (2, 3)
    product.def_vmap(lambda n, b, x, y: (x, True))
    with pytest.raises(ShapeError, match="marked as batched"):
        vmap(product, in_dims=(None, 0))(t(1.0), lucid.ones(3))


def test_static_arguments_of_custom_rules_are_named():
    f = custom_vjp(lambda x, n: x * 1.0, nondiff_argnames=("n",))
    f.defvjp(lambda x, n: (x * 1.0, None), lambda n, res, ct: (ct * n,))
    assert grad(f)(t(1.0), 7).item() == 7.0
    with pytest.raises(ArgumentError, match="'m', which is not an argument"):
        custom_jvp(lambda x: x, nondiff_argnames="m")


def test_rules_may_branch_on_values_in_eager_mode():
    @custom_jvp
    def f(x):
        return x * 1.0

    @f.defjvp
    def rule(primals, tangents):
        (x,), (v,) = primals, tangents
        return f(x), (10 * x * v if x > 0 else 20 * x * v)

    jitted = lucid.jit(grad(f))
    for value, slope in ((1.0, 10.0), (-1.0, 20.0), (3.0, 10.0)):
        x = t(value)
        assert jvp(f, (x,), (t(1.0),))[1].item() == slope * value
        assert grad(f)(x).item() == jitted(x).item() == slope * value
        assert grad(grad(f))(x).item() == slope
        leaf = t(value, requires_grad=True)
        f(leaf).backward()
        assert leaf.grad.item() == slope * value
    with pytest.raises(TracedValueError):
        vmap(grad(f))(t([1.0, -1.0]))


# Trees


@lucid.tree.register_node_class
class Pair:
    def __init__(self, x, power):
        self.x, self.power = x, power

    def tree_flatten(self):
        return (self.x,), self.power

    @classmethod
    def tree_unflatten(cls, power, children):
        return cls(*children, power)


@dataclasses.dataclass
class Layer:
    weight: object
    size: int


lucid.tree.register_dataclass(Layer, ["weight"], ["size"])


def test_registered_classes_pass_through_transforms():
    assert grad(lambda p: p.x**p.power)(Pair(t(3.0), 2)).x.item() == 6.0
    f = lucid.jit(lambda layer: layer.weight * layer.size)
    for size in (2, 3, 2):
        assert f(Layer(lucid.ones(2), size)).tolist() == [float(size)] * 2
    assert vmap(lambda p: p.x * 2.0)(Pair(lucid.ones(3), 1)).tolist() == [2.0] * 3
    with pytest.raises(ArgumentError, match="already a tree"):
        lucid.tree.register_node(Pair, None, None)


def test_trees_are_mapped_and_flattened():
    tree = lucid.tree
    nested = {"b": 1, "a": (2, None, [3])}
    assert tree.leaves(nested) == [2, 3, 1]
    assert tree.map(lambda x, y: x + y, nested, nested) == {"b": 2, "a": (4, None, [6])}
    assert tree.unflatten(tree.structure(nested), [5, 6, 7]) == {"b": 7, "a": (5, None, [6])}
    assert (
        tree.reduce(lambda a, b: a + b, nested) == tree.reduce(lambda a, b: a + b, nested, 0) == 6
    )
    assert tree.all({"a": True, "b": 1}) and not tree.all([True, 0])
    assert tree.map(len, [(1, 2), (3,)], is_leaf=lambda x: isinstance(x, tuple)) == [2, 1]
    assert tree.leaves_with_path(nested)[1] == (("a", 2, 0), 3)
    assert tree.map_with_path(lambda path, x: path[-1], {"k": 1}) == {"k": "k"}
    outer, inner = tree.structure((0, 0)), tree.structure({"a": 0})
    assert tree.transpose(outer, inner, ({"a": 1}, {"a": 2})) == {"a": (1, 2)}
    with pytest.raises(ArgumentError, match="different structures"):
        tree.map(lambda x, y: x, [1, 2], [1])
