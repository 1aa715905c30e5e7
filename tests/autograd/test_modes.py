"""no_grad, enable_grad, set_grad_enabled, inference_mode, detect_anomaly: blocks, decorators,
threads.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import lucid
from lucid.autograd import (
    detect_anomaly,
    enable_grad,
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
