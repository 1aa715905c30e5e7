"""no_grad, enable_grad, set_grad_enabled, inference_mode, detect_anomaly: blocks, decorators,
threads, tasks, nested transforms and hooks.
"""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

import lucid
from lucid import func
from lucid.autograd import (
    detect_anomaly,
    enable_grad,
    forward_ad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from lucid.errors import GraphError


def leaf(*values: float) -> lucid.Tensor:
    return lucid.tensor(list(values), dtype="float64", requires_grad=True)


def tracked() -> bool:
    return (leaf(1.0) * 2.0).requires_grad


def test_no_grad_as_a_block():
    with no_grad():
        assert not is_grad_enabled() and not tracked()
    assert is_grad_enabled() and tracked()


@pytest.mark.parametrize("decorate", [no_grad, no_grad(), inference_mode, inference_mode()])
def test_modes_as_decorators(decorate):
    @decorate
    def f(a, *, b):
        """Doc."""
        return a, b, tracked()

    assert f(1, b=2) == (1, 2, False)
    assert f.__name__ == "f" and f.__doc__ == "Doc." and tracked()


def test_enable_grad_inside_no_grad():
    with no_grad():
        with enable_grad():
            assert tracked()
        assert not tracked()

        @enable_grad()
        def f():
            return tracked()

        assert f()


def test_set_grad_enabled_as_block_function_and_decorator():
    with set_grad_enabled(False):
        assert not tracked()
        with set_grad_enabled(True):
            assert tracked()
        assert not tracked()
    assert tracked()
    set_grad_enabled(False)
    assert not tracked()
    set_grad_enabled(True)
    assert tracked()

    @set_grad_enabled(False)
    def f():
        return tracked()

    assert is_grad_enabled() and not f() and is_grad_enabled()


def test_inference_mode_can_be_switched_off():
    with inference_mode():
        assert is_inference_mode_enabled() and not tracked()
        with inference_mode(False):
            assert not is_inference_mode_enabled() and tracked()
    assert not is_inference_mode_enabled()


def test_modes_end_when_the_block_raises():
    with pytest.raises(ZeroDivisionError), no_grad():
        _ = 1 / 0
    assert is_grad_enabled()


def test_one_mode_object_can_be_used_again_and_inside_itself():
    mode = no_grad()
    with mode:
        with mode:
            assert not tracked()
        assert not tracked()
    assert tracked()
    with mode:
        assert not tracked()


def test_decorated_recursion_leaves_the_mode_as_it_was():
    @no_grad()
    def f(n):
        return n if n == 0 else f(n - 1)

    f(5)
    assert is_grad_enabled()


def test_generator_runs_in_the_mode_and_its_consumer_does_not():
    @no_grad()
    def values():
        sent = yield tracked()
        yield (tracked(), sent)
        return "end"

    steps = values()
    assert next(steps) is False
    assert tracked()
    assert steps.send("hello") == (False, "hello")
    assert tracked()
    with pytest.raises(StopIteration) as stop:
        next(steps)
    assert stop.value.value == "end"
    assert [*values()] == [False, (False, None)]


def test_generator_can_be_closed_and_thrown_into():
    seen = []

    @no_grad()
    def values():
        try:
            yield 1
        except KeyError:
            seen.append(tracked())
            yield 2
        finally:
            seen.append(tracked())

    steps = values()
    next(steps)
    assert steps.throw(KeyError("x")) == 2
    steps.close()
    assert seen == [False, False] and is_grad_enabled()


def test_modes_belong_to_a_thread():
    inside, seen = threading.Event(), []

    def other():
        inside.wait(5)
        seen.append((is_grad_enabled(), tracked()))

    thread = threading.Thread(target=other)
    thread.start()
    with no_grad():
        inside.set()
        thread.join()
    assert seen == [(True, True)]


def test_leaves_made_under_no_grad_are_tracked_afterwards():
    with no_grad():
        x = leaf(2.0)
    (x * x).backward()
    assert x.grad.item() == 4.0


def test_backward_works_under_no_grad():
    x = leaf(2.0)
    y = x * x
    with no_grad():
        y.backward()
    assert x.grad.item() == 4.0


def test_values_computed_under_no_grad_are_constants():
    x = leaf(3.0)
    with no_grad():
        c = x * x
    (c * x).backward()
    assert x.grad.item() == 9.0


# Anomaly mode


def line_of(text: str) -> int:
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, 1) if line.rstrip().endswith(text))


def test_anomaly_names_the_forward_line_where_a_nan_was_born():
    x = leaf(-1.0, 4.0)
    y = lucid.sqrt(x)  # born here
    z = (y * 2.0).sum()
    with pytest.raises(
        GraphError, match=rf"forward.* sqrt at test_modes.py:{line_of('# born here')}\b"
    ):
        with detect_anomaly():
            z.backward()


def test_anomaly_names_the_forward_line_whose_backward_makes_a_nan():
    x = leaf(0.0, 4.0)
    y = lucid.sqrt(x)  # its derivative is inf
    z = (y * lucid.tensor([0.0, 1.0])) / y  # 0/0 comes from this line
    with detect_anomaly():
        with pytest.raises(GraphError, match=r"forward pass produced a nan.*test_modes.py"):
            z.sum().backward()
    w = leaf(0.0)
    v = (w * w).sqrt()  # inf times zero here
    with detect_anomaly():
        try:
            v.sum().backward()
        except GraphError as error:
            assert f"test_modes.py:{line_of('# inf times zero here')}" in str(error)


def test_anomaly_says_nothing_where_there_is_no_nan():
    x = leaf(1.0)
    with detect_anomaly():
        (x * x).backward()
    assert x.grad.item() == 2.0
    with detect_anomaly(False):
        lucid.sqrt(leaf(-1.0)).backward()


def test_nan_without_anomaly_mode_flows():
    x = leaf(-1.0)
    lucid.sqrt(x).backward()
    assert np.isnan(x.grad.item())


def test_anomaly_tells_a_nan_in_the_seed_from_others():
    x = leaf(1.0)
    with (
        detect_anomaly(),
        pytest.raises(GraphError, match="already in the inputs or in grad_outputs"),
    ):
        (x * 2.0).backward(np.array([np.nan]))


# Modes around nested transforms


def values_under_no_grad():
    """Functions of x that compute something nested under no_grad: constants for the outside."""
    square = lambda y: y * y  # noqa: E731

    def value(x):
        with no_grad():
            return func.value_and_grad(square)(x)[0]

    def gradient(x):
        with no_grad():
            return func.value_and_grad(square)(x)[1]

    def auxiliary(x):
        with no_grad():
            return func.grad(lambda y: (y * y, y * x), has_aux=True)(x)[1]

    def closure(x):
        with no_grad():
            return func.value_and_grad(lambda y: y * x)(x)[0]

    def vjp_value(x):
        with no_grad():
            return func.vjp(square, x)[0]

    def vjp_called_outside(x):
        with no_grad():
            _, pull = func.vjp(lambda y: y * y * x, x)
        return pull(lucid.tensor(1.0))[0]

    def jvp_both(x):
        with no_grad():
            out, tangent = func.jvp(lambda y: y * y * x, (x,), (x,))
        return out + tangent

    def linearized(x):
        with no_grad():
            out, push = func.linearize(square, x)
        return out + push(lucid.tensor(1.0))

    def dual(x):
        with no_grad(), forward_ad.dual_level():
            found = forward_ad.unpack_dual(forward_ad.make_dual(x, x) * x)
        return found.primal + found.tangent

    def jacobian(x):
        with no_grad():
            return func.jacrev(square)(x) + func.jacfwd(square)(x) + func.hessian(square)(x)

    return [value, gradient, auxiliary, closure, vjp_value, vjp_called_outside, jvp_both,
            linearized, dual, jacobian]  # fmt: skip


@pytest.mark.parametrize("f", values_under_no_grad(), ids=lambda f: f.__name__)
def test_no_grad_around_a_nested_transform_stops_the_gradient_of_what_it_returns(f):
    x = lucid.tensor(3.0)
    assert func.grad(lambda x: f(x) + 5.0 * x)(x).item() == 5.0
    assert func.jvp(lambda x: f(x) + 5.0 * x, (x,), (lucid.tensor(1.0),))[1].item() == 5.0
    leaf = lucid.tensor(3.0, requires_grad=True)
    (f(leaf) + 5.0 * leaf).backward()
    assert leaf.grad.item() == 5.0
    jitted = lucid.jit(func.grad(lambda x: f(x) + 5.0 * x))
    assert [jitted(lucid.tensor(v)).item() for v in (3.0, 4.0, 5.0)] == [5.0] * 3


def test_a_cotangent_given_later_has_its_gradient_though_the_residuals_are_constant():
    def f(x):
        with no_grad():
            _, pull = func.vjp(lambda y: y * y * x, x)
        return pull(x)[0]  # 2 x^2 times the cotangent, of which the first factor is constant

    assert func.grad(f)(lucid.tensor(3.0)).item() == 18.0


def test_hooks_run_with_grad_disabled_unless_the_backward_is_recorded():
    w = lucid.ones(2, requires_grad=True)
    seen = []
    w.register_hook(lambda g: seen.append(is_grad_enabled()))
    w.register_post_accumulate_grad_hook(
        lambda p: seen.append((is_grad_enabled(), (p * 2.0).requires_grad))
    )
    (w * w).sum().backward()
    assert seen == [False, (False, False)] and is_grad_enabled()
    seen.clear()
    with no_grad():
        loss = enable_grad(lambda: (w * w).sum())()
        loss.backward(create_graph=True)
        assert not is_grad_enabled()
    assert seen == [True, (True, True)]


# Contexts


def test_asyncio_tasks_have_modes_of_their_own():
    x = lucid.ones(2, requires_grad=True)
    order = []

    async def silent():
        with no_grad():
            for step in range(4):
                order.append(("silent", step))
                assert not (x * 2.0).requires_grad
                await asyncio.sleep(0)
                assert not is_grad_enabled() and not (x * 2.0).requires_grad

    async def recording():
        for step in range(4):
            order.append(("recording", step))
            assert (x * 2.0).requires_grad
            await asyncio.sleep(0)
            assert is_grad_enabled()

    async def child():
        return is_grad_enabled()

    async def main():
        await asyncio.gather(silent(), recording(), silent())
        with no_grad():
            inherited = asyncio.create_task(child())
        assert not await inherited
        assert is_grad_enabled()

    asyncio.run(main())
    assert order[:3] == [("silent", 0), ("recording", 0), ("silent", 0)]
    assert is_grad_enabled()


def test_set_grad_enabled_in_a_task_changes_nothing_outside():
    async def main():
        async def turn_off():
            set_grad_enabled(False)
            await asyncio.sleep(0)
            return is_grad_enabled()

        assert await asyncio.gather(turn_off(), turn_off()) == [False, False]
        assert is_grad_enabled()

    asyncio.run(main())


def test_all_modes_are_those_of_a_task():
    async def anomalous():
        with detect_anomaly(), inference_mode():
            await asyncio.sleep(0)
            return lucid.autograd.is_anomaly_enabled(), is_inference_mode_enabled()

    async def dual():
        with forward_ad.dual_level():
            await asyncio.sleep(0)
            x = forward_ad.make_dual(lucid.tensor(2.0), lucid.tensor(1.0))
            await asyncio.sleep(0)
            return forward_ad.unpack_dual(x * x).tangent.item()

    async def main():
        found = await asyncio.gather(anomalous(), dual(), dual(), anomalous())
        assert found == [(True, True), 4.0, 4.0, (True, True)]

    asyncio.run(main())
    assert not lucid.autograd.is_anomaly_enabled() and not is_inference_mode_enabled()
