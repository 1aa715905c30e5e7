"""jit: one recorded run, repeated natively; state is written back, values read are guards."""

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid.compiler.jit.jit import jit
from lucid.compiler.jit.recording import RecompileWarning
from lucid.errors import GraphError

rng = np.random.default_rng(0)


def tensor(*shape, **options):
    return lucid.tensor(rng.standard_normal(shape).astype("float32"), **options)


def close(a, b, tolerance=2e-6):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


def test_later_calls_equal_the_first_and_numpy():
    f = jit(lambda x, y: lucid.sin(x) * y + 1.0)
    for _ in range(3):
        x, y = tensor(4), tensor(4)
        close(f(x, y), np.sin(x.numpy()) * y.numpy() + 1.0)


def test_arguments_and_results_are_pytrees():
    f = jit(lambda p, x: {"y": p["w"] @ x + p["b"], "n": [x.sum(), "text"]})
    p = {"w": tensor(3, 2), "b": tensor(3)}
    for _ in range(2):
        x = tensor(2)
        out = f(p, x)
        close(out["y"], p["w"].numpy() @ x.numpy() + p["b"].numpy())
        assert out["n"][1] == "text"


def test_transforms_inside_and_outside():
    def f(x):
        return (lucid.tanh(x) ** 2).sum()

    x = tensor(5)
    y = np.tanh(x.numpy())
    gradient = 2 * y * (1 - y * y)
    for _ in range(2):
        close(jit(F.grad(f))(x), gradient)
        close(F.grad(jit(f))(x), gradient)
        close(F.vmap(jit(f))(lucid.stack([x, x])), [(y * y).sum()] * 2)
        close(jit(F.vmap(f))(lucid.stack([x, x])), [(y * y).sum()] * 2)
        diagonal = 2 * (1 - y * y) * (1 - 3 * y * y)
        close(jit(F.hessian(f))(x), np.diag(diagonal), 1e-5)
        close(F.hessian(jit(f))(x), np.diag(diagonal), 1e-5)


def test_backward_passes_through_a_jitted_function():
    f = jit(lambda x, w: lucid.exp(x * w))
    w = tensor(3, requires_grad=True)
    x = tensor(3)
    for _ in range(3):
        w.grad = None
        f(x, w).sum().backward()
        close(w.grad, x.numpy() * np.exp(x.numpy() * w.detach().numpy()), 1e-5)


def test_a_captured_tensor_is_read_anew_at_every_call():
    w = lucid.ones(3)
    f = jit(lambda x: x * w)
    close(f(lucid.ones(3)), [1, 1, 1])
    w.mul_(5.0)
    close(f(lucid.ones(3)), [5, 5, 5])


def test_operations_on_captured_tensors_alone_are_part_of_the_program():
    w = lucid.ones(3)
    f = jit(lambda x: x + (w * 2).sum() + F.grad(lambda v: (v * v).sum())(w).sum())
    close(f(lucid.zeros(3)), [12, 12, 12])
    w.fill_(2.0)
    close(f(lucid.zeros(3)), [24, 24, 24])


def test_a_branch_on_a_value_is_a_guard():
    @jit
    def f(x):
        return x * 2 if x.sum() > 0 else x * 3

    for x in ([1.0], [-1.0], [2.0], [-2.0], [3.0]):
        close(f(lucid.tensor(x)), [x[0] * (2 if x[0] > 0 else 3)])
    assert "bool()" in f.why_recompiled() and "test_jit.py" in f.why_recompiled()


def test_a_loop_until_a_value_is_reached_is_a_guard_at_every_step():
    @jit
    def halve(x):
        steps = 0
        while float(x) > 1.0:
            x, steps = x / 2, steps + 1
        return x, steps

    for start, steps in ((8.0, 3), (8.0, 3), (20.0, 5), (0.5, 0), (8.0, 3)):
        x, n = halve(lucid.tensor(start))
        assert n == steps
        close(x, start / 2**steps)


def test_too_many_paths_warn_and_interpret():
    @jit
    def f(x):
        return x + float(x)

    with pytest.warns(RecompileWarning):
        for i in range(20):
            close(f(lucid.tensor(float(i))), 2.0 * i)
    close(f(lucid.tensor(100.0)), 200.0)


def make_step(w, b, m):
    def step(x, y):
        loss = ((lucid.tanh(x @ w + b) - y) ** 2).mean()
        w.grad = None
        b.grad = None
        loss.backward()
        with lucid.no_grad():
            m.mul_(0.9)
            m.add_(w.grad + 0.01 * w)
            w.sub_(0.1 * m)
            b.sub_(0.1 * b.grad)
        return loss

    return step


def test_a_training_step_with_state_equals_the_eager_one():
    start = rng.standard_normal((4, 3)).astype("float32")
    runs = []
    for wrap in (lambda f: f, jit):
        w = lucid.tensor(start, requires_grad=True)
        b, m = lucid.zeros(3, requires_grad=True), lucid.zeros(4, 3)
        step = wrap(make_step(w, b, m))
        data = np.random.default_rng(1)
        losses = []
        for _ in range(8):
            x = lucid.tensor(data.standard_normal((8, 4)).astype("float32"))
            y = lucid.tensor(data.standard_normal((8, 3)).astype("float32"))
            losses.append(step(x, y).item())
        runs.append((losses, w, b, m))
    (eager, we, be, me), (jitted, wj, bj, mj) = runs
    close(jitted, eager, 1e-5)
    for a, b in ((wj, we), (bj, be), (mj, me), (wj.grad, we.grad)):
        close(a.detach().numpy(), b.detach().numpy(), 1e-5)
    assert wj.is_leaf and wj.requires_grad


def test_gradients_accumulate_over_jitted_calls():
    w = lucid.ones(2, requires_grad=True)

    @jit
    def accumulate(x):
        (w * x).sum().backward()

    for k in range(1, 5):
        accumulate(lucid.full((2,), 3.0))
        close(w.grad, [3.0 * k] * 2)


def test_a_temporary_that_is_filled_in_place_starts_anew():
    @jit
    def f(x):
        out = lucid.zeros(3)
        out[0] = x[0]
        out += 1
        return out

    for v in (1.0, 2.0, 5.0):
        close(f(lucid.tensor([v, 0.0, 0.0])), [v + 1, 1, 1])


def test_static_arguments_select_programs():
    f = jit(lambda x, n: x * n, static_argnums=1)
    close(f(lucid.ones(2), 3), [3, 3])
    close(f(lucid.ones(2), 4), [4, 4])


def test_a_tensor_made_inside_cannot_become_a_leaf():
    @jit
    def f(x):
        y = (x * 2).detach()
        y.requires_grad_()
        return y

    with pytest.raises(GraphError, match="jitted function"):
        f(lucid.ones(2))


def test_another_size_gives_another_result():
    f = jit(lambda x: (x * x).sum())
    for n in (3, 7, 1, 100):
        close(f(lucid.ones(n)), float(n))


def test_every_call_can_be_differentiated_in_what_was_captured():
    w = lucid.tensor([1.0, 2.0], requires_grad=True)
    f = jit(lambda x: (x * w * w).sum())
    for _ in range(3):
        w.grad = None
        f(lucid.tensor([1.0, 10.0])).backward()
        close(w.grad, [2.0, 40.0])


def test_detached_results_are_off_the_tape_at_every_call():
    w = lucid.tensor([1.0, 2.0], requires_grad=True)

    @jit
    def f(x):
        y = x * w
        with lucid.no_grad():
            z = x * w
        return y, y.detach(), z, (y > 0)

    for _ in range(3):
        results = f(lucid.ones(2))
        assert [y.requires_grad for y in results] == [True, False, False, False]


def test_the_gradient_of_every_call_sees_the_numbers_that_were_drawn():
    w = lucid.ones(50, requires_grad=True)
    f = jit(lambda: w * lucid.rand(50))
    for _ in range(3):
        w.grad = None
        y = f()
        y.sum().backward()
        close(w.grad, y.detach())


def test_an_error_on_another_path_is_no_error_of_this_one():
    """The path recorded first reads x[i], which fails for an i that takes the other path."""

    @lucid.jit
    def f(x, i):
        return x[i] if i < 3 else x.sum()

    x = lucid.tensor([0.0, 1.0, 2.0])
    assert [f(x, lucid.tensor(i)).item() for i in (1, 2, 5, 7, 0)] == [1.0, 2.0, 3.0, 3.0, 0.0]


def test_a_derivative_from_outside_multiplies_no_matrices_again():
    from lucid.ops.higher_order.call import with_residuals

    def f(x, w, v):
        return (lucid.tanh(x @ w + 1.0) @ v).sum()

    arrays = [np.random.default_rng(i).normal(size=(4, 4)) for i in range(3)]
    graph = with_residuals(lucid.ir.trace(f)(*map(lucid.tensor, arrays)))
    made = {y: eqn.op.name for eqn in graph.equations for y in eqn.outputs}
    assert [made[y] for y in graph.outputs] == ["sum", "matmul"]

    jitted = lucid.jit(f)
    grads = []
    for run in (f, jitted, jitted, jitted):
        xs = [lucid.tensor(x, requires_grad=True) for x in arrays]
        run(*xs).backward()
        grads.append([x.grad.numpy() for x in xs])
    for other in grads[1:]:
        for a, b in zip(grads[0], other):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    xs = [lucid.tensor(x, requires_grad=True) for x in arrays]
    first = lucid.autograd.grad(jitted(*xs), xs[0], create_graph=True)
    again = lucid.autograd.grad(f(*xs), xs[0], create_graph=True)
    both = [lucid.autograd.grad((g * g).sum(), xs[1]).numpy() for g in (first, again)]
    np.testing.assert_allclose(*both, rtol=1e-12)


@pytest.mark.parametrize("leaf", ["fresh", "with a gradient"])
def test_a_step_that_discards_gradients_first_is_recorded_once(leaf):
    w = lucid.ones(3, requires_grad=True)
    if leaf == "with a gradient":
        w.grad = lucid.full((3,), 7.0)
    runs = []

    @lucid.jit
    def step(x):
        runs.append(1)
        w.grad = None
        loss = (w * x).sum()
        loss.backward()
        return loss

    for k in range(1, 4):
        step(lucid.full((3,), float(k)))
        np.testing.assert_array_equal(w.grad.numpy(), k)
        assert len(runs) == 1
    w.grad = None
    step(lucid.full((3,), 9.0))
    np.testing.assert_array_equal(w.grad.numpy(), 9)
    assert len(runs) == 1


def test_a_step_that_adds_to_gradients_looks_at_whether_there_is_one():
    w = lucid.ones(3, requires_grad=True)
    step = lucid.jit(lambda x: (w * x).sum().backward())
    for k in range(1, 4):
        step(lucid.ones(3))
        np.testing.assert_array_equal(w.grad.numpy(), k)
    w.grad = None
    step(lucid.ones(3))
    np.testing.assert_array_equal(w.grad.numpy(), 1)
