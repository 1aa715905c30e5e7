"""Functions of several operations, and heavy ones, as native programs once they are hot."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import lucid
import lucid.nn.functional as F
from lucid.autograd import set_detect_anomaly
from lucid.errors import IndexingError
from lucid.ops.nn.softmax import Softmax
from lucid.tape import tiering
from lucid.tape.tiering import COMPOSITION, OPERATION, Tiering


@pytest.fixture
def hot(monkeypatch):
    """What recurs becomes a Region, and native, at its first call."""
    if not Tiering.enabled:
        pytest.skip("nothing is compiled")
    monkeypatch.setattr(Tiering, "threshold", 0)
    tiering.table.clear()


def ops(x):
    """The names of the operations behind an eager result, as they stand on the tape."""
    names, stack = [], [x.node]
    while stack:
        node = stack.pop()
        if getattr(node, "op", None) is not None:
            names.append(node.op.name)
            stack += [y for y in node.inputs if hasattr(y, "op")]
    return names


def rows(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def test_a_function_becomes_a_region_at_its_fourth_call_with_the_same_types(monkeypatch):
    monkeypatch.setattr(Tiering, "threshold", 16)
    tiering.table.clear()
    x = lucid.tensor(rows(3, 4), requires_grad=True)
    seen = [ops(F.gelu(x))[0] for _ in range(5)]
    assert seen == ["mul"] * 3 + ["region"] * 2
    assert ops(F.gelu(x[:2]))[0] == "mul"
    assert ops(F.gelu(x, "tanh"))[0] == "mul"


def test_settings_of_other_types_are_other_calls(hot):
    x = lucid.tensor([1.0, -2.0], requires_grad=True)
    assert F.elu(x, 1).tolist() == pytest.approx(F.elu(x, 1.0).tolist())
    assert F.leaky_relu(x, True).tolist() == [1.0, -2.0]
    assert F.leaky_relu(x, 0.5).tolist() == [1.0, -1.0]


def test_settings_that_are_equal_but_not_the_same_are_other_calls(hot):
    x = lucid.tensor([1.0, -2.0])
    signs = [np.signbit(F.threshold(x, 5.0, v).numpy()).tolist() for v in (0.0, -0.0, 0.0)]
    assert signs == [[False, False], [True, True], [False, False]]


def test_a_result_may_be_changed_in_place_before_backward(hot):
    x = lucid.tensor([[1.0, -2.0]], requires_grad=True)
    w = lucid.tensor([[3.0, 4.0]], requires_grad=True)
    F.linear(x, w).mul_(2.0).sum().backward()
    assert w.grad.tolist() == [[2.0, -4.0]]


def test_an_index_out_of_range_is_refused_by_hot_operations_too(hot):
    x = lucid.ones(400, 100)
    x[lucid.arange(400)]
    for _ in range(3):
        with pytest.raises(IndexingError, match=r"test_region\.py"):
            x[lucid.arange(400) + 1]


def test_a_region_follows_the_default_dtype(hot):
    whole = lucid.tensor([[1, 2], [3, 4]])
    first = F.threshold(whole, 2, 0)
    lucid.set_default_dtype("float64")
    try:
        assert first.dtype == F.threshold(whole, 2, 0).dtype
        assert F.linear(lucid.tensor([[1.0]]), lucid.tensor([[2.0]])).dtype == np.float64
    finally:
        lucid.set_default_dtype("float32")


FUNCTIONS = {
    "linear": (F.linear, (rows(5, 4), rows(3, 4), rows(3))),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), (rows(5, 4), rows(4), rows(4))),
    "rms_norm": (lambda x, w: F.rms_norm(x, (4,), w), (rows(5, 4), rows(4))),
    "group_norm": (lambda x, w: F.group_norm(x, 2, w), (rows(2, 4, 3), rows(4))),
    "gelu": (F.gelu, (rows(5, 4),)),
    "tanh gelu": (lambda x: F.gelu(x, "tanh"), (rows(5, 4),)),
    "mish": (F.mish, (rows(5, 4),)),
    "cross_entropy": (lambda x: F.cross_entropy(x, lucid.tensor([3, 0, 1])), (rows(3, 4),)),
    "causal attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        (rows(2, 5, 4), rows(2, 5, 4, seed=1), rows(2, 5, 3)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_hot_function_has_the_value_and_derivatives_of_the_cold_one(name, monkeypatch):
    function, arrays = FUNCTIONS[name]

    def derivatives():
        xs = [lucid.tensor(x, requires_grad=True) for x in arrays]
        y = function(*xs)
        names = ops(y)
        first = lucid.autograd.grad((y * y).sum(), xs, create_graph=True)
        second = lucid.autograd.grad(sum([(g * g).sum() for g in first]), xs)
        return names, [z.detach().numpy() for z in (y, *first, *second)]

    monkeypatch.setattr(Tiering, "threshold", 16)
    tiering.table.clear()
    names, cold = derivatives()
    assert "region" not in names
    tiering.table.clear()
    monkeypatch.setattr(Tiering, "threshold", 0)
    names, hot = derivatives()
    assert "region" in names
    for a, b in zip(hot, cold):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_backward_of_a_hot_function_is_native_too_and_agrees(hot):
    x = lucid.tensor(rows(6, 4), requires_grad=True)
    w = lucid.tensor(rows(3, 4, seed=1), requires_grad=True)
    expected = None
    for _ in range(3):
        x.grad = w.grad = None
        F.gelu(F.linear(x, w)).sum().backward()
        found = [x.grad.numpy().copy(), w.grad.numpy().copy()]
        expected = expected or found
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    numbers = lucid.func.grad(lambda w: F.gelu(x.detach() @ w.T).sum())(w.detach())
    np.testing.assert_allclose(found[1], numbers.numpy(), rtol=1e-12)


def test_a_dump_shows_the_equations_inside_a_region(hot):
    x = lucid.tensor([1.0], requires_grad=True)
    names = [e.op.name for e in F.gelu(x).graph().equations]
    assert names == ["mul", "erfc", "mul", "mul"]


def test_transforms_and_recordings_see_every_equation(hot):
    x = lucid.tensor(rows(3), requires_grad=True)
    for f in (F.gelu, lucid.func.grad(lambda x: F.gelu(x).sum())):
        assert "region" not in [e.op.name for e in lucid.ir.trace(f)(x).equations]
    with set_detect_anomaly(True):
        assert "region" not in ops(F.gelu(x))


def test_a_write_to_an_operand_after_the_call_is_seen_by_the_next_call_alone(hot):
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    z = x * 1.0
    y = F.silu(z)
    with lucid.no_grad():
        z.mul_(0.0)
    assert y.tolist() == pytest.approx([0.7310586, 1.7615942])
    assert F.silu(z).tolist() == [0.0, 0.0]


def test_errors_are_those_of_the_function(hot):
    x = lucid.ones(2, 3)
    for _ in range(3):
        with pytest.raises(lucid.errors.ShapeError, match="linear: input of shape"):
            F.linear(x, lucid.ones(2, 2))


def test_dropout_in_attention_draws_anew_every_time(hot):
    q = lucid.tensor(rows(4, 4))
    first, second = (F.scaled_dot_product_attention(q, q, q, dropout_p=0.5) for _ in range(2))
    assert first.tolist() != second.tolist()


@pytest.mark.parametrize("turned", ["", "left", "right", "both", "strided"])
def test_a_hot_product_takes_operands_as_they_lie(hot, turned):
    a, b = rows(40, 30), rows(30, 50, seed=1)
    if turned == "strided":
        a, b = rows(80, 60)[::2, ::2], rows(30, 100, seed=1)[:, ::2]
    a = np.asfortranarray(a) if turned in ("left", "both") else a
    b = np.asfortranarray(b) if turned in ("right", "both") else b
    for _ in range(3):
        found = lucid.from_numpy(a) @ lucid.from_numpy(b)
        np.testing.assert_allclose(found.numpy(), a @ b, rtol=1e-12)
    found = [e for key, e in tiering.table.of(OPERATION).items() if key[1].name == "matmul"]
    assert len(found) == 1 and found[0].program is not None


def test_hot_operations_of_several_results_agree_with_numpy(hot):
    x = lucid.tensor(rows(2, 3, 16, 16))
    for _ in range(3):
        values, indices = F.max_pool2d(x, 2, return_indices=True)
    blocks = x.numpy().reshape(2, 3, 8, 2, 8, 2).transpose(0, 1, 2, 4, 3, 5).reshape(2, 3, 8, 8, 4)
    np.testing.assert_array_equal(values.numpy(), blocks.max(-1))
    flat = x.numpy().reshape(2, 3, 256)
    taken = np.take_along_axis(flat, indices.numpy().reshape(2, 3, 64), 2)
    np.testing.assert_array_equal(taken.reshape(2, 3, 8, 8), values.numpy())


def test_hot_products_of_integers_stay_with_numpy(hot):
    x = lucid.arange(1600).reshape(40, 40)
    for _ in range(3):
        assert (x @ x).tolist() == (x.numpy() @ x.numpy()).tolist()


SMALL = {
    "softmax": (lambda x: lucid.softmax(x, -1), lambda x: scipy.special.softmax(x, -1)),
    "sum": (lambda x: x.sum(0), lambda x: x.sum(0)),
    "matmul": (lambda x: x @ x.T, lambda x: x @ x.T),
    "max": (lambda x: x.max(1)[0], lambda x: x.max(1)),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), lambda x: np.clip(x, -0.5, 0.5)),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_operations_are_native_for_every_shape_dtype_and_layout(hot, name):
    ours, numpy = SMALL[name]
    for shape in ((2, 5), (3, 3), (2, 5), (0, 4)):
        if name == "max" and 0 in shape:
            continue
        for dtype in ("float64", "float32", "float64"):
            for layout in (np.ascontiguousarray, np.asfortranarray):
                x = layout(rows(*shape).astype(dtype))
                for _ in range(3):
                    found = ours(lucid.from_numpy(x)).numpy()
                    assert found.dtype == dtype
                    np.testing.assert_allclose(found, numpy(x), rtol=1e-5, atol=1e-7)
    assert any(entry.program is not None for entry in tiering.table.of(OPERATION).values())


def test_a_small_operation_is_native_after_calls_that_are_worth_it(monkeypatch):
    monkeypatch.setattr(Tiering, "enabled", True)
    tiering.table.clear()
    x, op = lucid.ones(2, 5), Softmax((1,))
    limit = Tiering.threshold * tiering.MAX_WORK
    for _ in range(limit // op.numpy_calls):
        lucid.softmax(x, 1)
    assert isinstance(op.calls[2, 5], int) and not tiering.table.of(OPERATION)
    for _ in range(2):
        lucid.softmax(x, 1)
    assert callable(op.calls[2, 5])
    tiering.table.clear()
    assert op.calls is None


def test_counts_of_small_operations_are_bounded(monkeypatch):
    monkeypatch.setattr(Tiering, "enabled", True)
    tiering.table.clear()
    monkeypatch.setattr(tiering, "MAX_CALLS", 8)
    for n in range(1, 40):
        lucid.softmax(lucid.ones(n), 0)
        assert len(Softmax((0,)).calls) <= 8


def test_a_small_operation_refuses_an_index_out_of_range_when_it_is_hot(hot):
    x, good, bad = lucid.tensor(rows(2, 3)), lucid.tensor([[2], [0]]), lucid.tensor([[3], [0]])
    for _ in range(3):
        np.testing.assert_array_equal(
            lucid.gather(x, 1, good).numpy(), np.take_along_axis(x.numpy(), good.numpy(), 1)
        )
        with pytest.raises(IndexingError, match="out of range"):
            lucid.gather(x, 1, bad)


def test_nothing_becomes_a_region_where_nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(Tiering, "enabled", False)
    tiering.table.clear()
    x = lucid.tensor(rows(3), requires_grad=True)
    assert all(ops(F.gelu(x))[0] == "mul" for _ in range(6))


def test_light_operations_leave_memory_in_another_order_to_numpy(hot):
    x = lucid.tensor(rows(300, 600)).T
    for _ in range(3):
        y = x * 2.0
    assert y.value.flags.f_contiguous
    np.testing.assert_array_equal(y.numpy(), x.numpy() * 2.0)


def test_what_is_remembered_of_operations_is_bounded(hot, monkeypatch):
    monkeypatch.setattr(tiering, "MAX_ENTRIES", 4)
    for n in range(40, 52):
        x = lucid.ones(n, 32)
        np.testing.assert_allclose((x @ x.T).numpy(), 32.0)
        F.gelu(x)
        assert len(tiering.table) <= 4
    assert tiering.table.of(COMPOSITION) and tiering.table.of(OPERATION)


def test_cross_entropy_looks_at_its_targets_in_every_call(hot):
    x = lucid.tensor(rows(3, 4), requires_grad=True)
    values = x.numpy() - np.log(np.exp(x.numpy()).sum(1, keepdims=True))
    for targets in ([0, 1, 2], [3, 3, 0], [2, -100, 1], [1, 1, 1]):
        counted = [(i, t) for i, t in enumerate(targets) if t >= 0]
        expected = -np.mean([values[i, t] for i, t in counted])
        assert F.cross_entropy(x, lucid.tensor(targets)).item() == pytest.approx(expected)
    with pytest.raises(IndexingError, match="target 4 is out of range"):
        F.cross_entropy(x, lucid.tensor([0, 4, 0]))
