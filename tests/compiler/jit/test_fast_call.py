"""The fast call of a jitted function returns what the general path returns, or defers to it."""

import numpy as np
import pytest

import lucid
from lucid.compiler.jit.jit import jit
from lucid.errors import MutationError
from lucid.func import grad, vmap


def counted(f):
    """`f`, jitted, and the list of its runs in Python."""
    runs = []

    def watched(*args, **kwargs):
        runs.append(1)
        return f(*args, **kwargs)

    return jit(watched), runs


def test_later_calls_do_not_run_python():
    f, runs = counted(lambda tree, x: {"sum": tree["a"] + x, "all": [tree["b"][0] * x, x]})
    for k in range(5):
        x = lucid.full((3,), float(k))
        out = f({"a": lucid.ones(3), "b": (x,)}, x)
        assert out["sum"].tolist() == [k + 1.0] * 3
        assert out["all"][0].tolist() == [k * k] * 3
        assert out["all"][1].tolist() == [k] * 3
    assert len(runs) == 1


def test_arrays_and_tensors_take_the_same_path():
    f, runs = counted(lambda x, y: x - y)
    x, y = np.arange(4.0), np.ones(4)
    for args in ((x, y), (lucid.tensor(x), y), (x, lucid.tensor(y)), (x[::-1], y)):
        assert f(*args).tolist() == (np.asarray(args[0]) - 1).tolist()
    assert len(runs) == 1


def test_an_argument_of_which_only_the_shape_matters_is_compared():
    f, runs = counted(lambda x, y: x * y.shape[0])
    for n in (2, 2, 3, 3, 2):
        assert f(lucid.ones(2), lucid.zeros(n)).tolist() == [n, n]
    assert len(runs) == 2


def test_a_list_of_numbers_is_not_taken_for_an_array():
    f, _ = counted(lambda x: x * 2 if isinstance(x, lucid.Tensor) else x[0] * 3)
    for _ in range(3):
        assert f(lucid.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
        assert f([lucid.tensor(1.0), lucid.tensor(2.0)]).item() == 3.0


def test_a_keyword_that_is_none_is_not_forgotten():
    f, _ = counted(lambda x, scale=2.0: x * 5 if scale is None else x * scale)
    for _ in range(3):
        assert f(lucid.ones(1), scale=None).tolist() == [5.0]
        assert f(lucid.ones(1)).tolist() == [2.0]


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_another_dtype_or_shape_is_another_program(dtype):
    f, runs = counted(lambda x: x + x)
    for _ in range(2):
        assert f(lucid.ones(3)).dtype == np.float32
        assert f(np.ones(3, dtype)).dtype == dtype
        assert f(lucid.ones(2, 3)).shape == (2, 3)
    assert len(runs) == 3


def test_a_tracked_argument_keeps_its_gradient():
    f, _ = counted(lambda x: x * x)
    x = lucid.tensor([3.0], requires_grad=True)
    for _ in range(3):
        assert not f(x.detach()).requires_grad
        y = f(x)
        assert y.requires_grad
        x.grad = None
        y.sum().backward()
        assert x.grad.tolist() == [6.0]


def test_a_captured_tensor_that_becomes_tracked_is_noticed():
    w = lucid.ones(2)
    f, _ = counted(lambda x: x * w)
    for _ in range(3):
        assert not f(lucid.ones(2)).requires_grad
    w.requires_grad_()
    assert f(lucid.ones(2)).requires_grad
    with lucid.no_grad():
        assert not f(lucid.ones(2)).requires_grad


def test_a_captured_tensor_with_another_shape_is_noticed():
    w = {"w": lucid.ones(2)}
    f, _ = counted(lambda: w["w"].sum() * w["w"].shape[0])
    assert [f().item() for _ in range(3)] == [4.0] * 3
    w["w"].data = lucid.full((2,), 3.0)
    assert f().item() == 12.0


def test_guards_hold_on_the_fast_call():
    f, runs = counted(lambda x: x * 2 if x.sum() > 0 else x * 3)
    for v in (1.0, 2.0, -1.0, -2.0, 1.0, float("nan"), 4.0, -0.0, 0.0):
        expected = v * (2 if v > 0 else 3)
        np.testing.assert_equal(f(lucid.tensor([v])).tolist(), [expected])
    assert len(runs) == 2


def test_state_is_written_once_a_call():
    count = lucid.zeros(1)

    @jit
    def step(x):
        count.add_(x)
        return count * 2

    for k in range(1, 6):
        assert step(lucid.ones(1)).tolist() == [2.0 * k]
        assert count.tolist() == [float(k)]


def test_a_graph_notices_that_a_jitted_step_has_changed_a_parameter():
    w = lucid.ones(2, requires_grad=True)

    @jit
    def step(x):
        with lucid.no_grad():
            w.add_(x)

    for _ in range(3):
        step(lucid.ones(2))
        y = (w * w).sum()
        step(lucid.ones(2))
        with pytest.raises(MutationError):
            y.backward()
        del y
        version = w._version
        step(lucid.ones(2))
        assert w._version == version + 1


def test_a_gradient_can_be_cleared_after_the_update_it_was_for():
    w = lucid.ones(2, requires_grad=True)

    def step(x):
        (w * x).sum().backward()
        with lucid.no_grad():
            w.sub_(w.grad)
        cleared = w.grad * 2
        w.grad = None
        return cleared

    f, runs = counted(step)
    for k in range(4):
        assert f(lucid.ones(2)).tolist() == [2.0, 2.0]
        assert w.tolist() == [-k, -k]
        assert w.grad is None
    assert len(runs) == 1
    assert f.last is not None, "a training step is one plan"


def test_vmap_of_grad_is_recorded_once():
    f, runs = counted(vmap(grad(lambda w, x: (w * x).sum() ** 2), (None, 0)))
    w, x = lucid.ones(2), lucid.tensor([[1.0, 2.0], [3.0, 4.0]])
    for _ in range(3):
        assert f(w, x).tolist() == [[6.0, 12.0], [42.0, 56.0]]
    assert len(runs) == 1


def test_inside_a_recording_or_a_transform_the_function_is_traced():
    f, _ = counted(lambda x: (x * x).sum())
    x = lucid.tensor([1.0, 2.0])
    for _ in range(3):
        assert f(x).item() == 5.0
        assert jit(lambda x: f(x) + 1)(x).item() == 6.0
        assert grad(f)(x).tolist() == [2.0, 4.0]
        assert vmap(f)(lucid.ones(3, 2)).tolist() == [2.0] * 3


def programs():
    """name -> (a function that makes a jitted function with its own state, its arguments)."""

    def captured():
        w = lucid.tensor([3.0, 4.0])
        return lucid.jit(lambda x: x * w)

    def writing():
        total = lucid.zeros(2)

        def f(x):
            total.add_(x)
            return total * 2.0

        return lucid.jit(f)

    def guarded():
        return lucid.jit(lambda x: x * 2.0 if x.sum().item() > 0.0 else x - 1.0)

    def drawing():
        generator = lucid.Generator()
        generator.manual_seed(5)
        return lucid.jit(lambda x: x + lucid.rand(2, generator=generator))

    return {
        "pure": (lambda: lucid.jit(lambda x: x * 2.0 + 1.0), lambda x: (x,)),
        "two": (lambda: lucid.jit(lambda x, y: (x * y, x - y)), lambda x: (x, x + 1.0)),
        "tree": (
            lambda: lucid.jit(lambda d: {"s": d["a"] + d["b"]}),
            lambda x: ({"a": x, "b": x},),
        ),
        "shape": (lambda: lucid.jit(lambda x, y: x * y.shape[0]), lambda x: (x, x)),
        "donated": (lambda: lucid.jit(lambda x: x * 3.0, donate_argnums=0), lambda x: (x,)),
        "captured": (captured, lambda x: (x,)),
        "writing": (writing, lambda x: (x,)),
        "guarded": (guarded, lambda x: (x,)),
        "drawing": (drawing, lambda x: (x,)),
    }


@pytest.mark.parametrize("name", programs())
def test_a_fast_call_gives_what_the_general_path_gives(name):
    make, arguments = programs()[name]
    results = []
    for general in (False, True):
        f = make()
        rows = []
        for values in ([1.0, 2.0], [2.0, 1.0], [4.0, -1.0], [0.5, 2.5]):
            if general:
                f.last = None
            out = f(*arguments(lucid.tensor(values)))
            for y in lucid.ir.pytree.flatten(out)[0]:
                slots = (y.node, y.storage, y.origin, hasattr(y, "writes"), type(y))
                rows.append((y.tolist(), str(y.type), slots))
        results.append(rows)
        assert general or f.last is not None
    assert results[0] == results[1]


def test_a_pending_argument_is_computed_first():
    f, runs = counted(lambda x: x + 1)
    g, _ = counted(lambda x: (x * 2, x - 1))
    kept = {}

    def outer(x):
        kept["pending"] = x * 3  # pending until something looks at it
        return x

    for k in range(4):
        jit(outer)(lucid.full((2,), float(k)))
        assert f(kept["pending"]).tolist() == [3.0 * k + 1] * 2
        doubled, less = g(kept["pending"])
        assert (doubled.tolist(), less.tolist()) == ([6.0 * k] * 2, [3.0 * k - 1] * 2)
    assert len(runs) == 1


def test_a_fast_call_sees_a_mode_that_was_changed():
    f, runs = counted(lambda x: x * 2)
    x = lucid.ones(2)
    for _ in range(3):
        assert f(x).tolist() == [2.0, 2.0]
        with lucid.no_grad():
            assert f(x).tolist() == [2.0, 2.0]
        with lucid.memory_budget("1MB"):
            assert f(x).tolist() == [2.0, 2.0]
    assert len(runs) == 3  # one path for each mode
