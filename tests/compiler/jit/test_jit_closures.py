"""Jitted functions that close over tracked and traced values."""

import threading

import numpy as np
import pytest

import lucid
import lucid.func as F

T = lucid.tensor


def nested(x):
    y = -x
    return lucid.jit(lambda a: 10 * y + x * a)(x)  # x² - 10x


def test_a_value_computed_from_another_captured_one_stays_an_input_of_its_own():
    primal, tangent = F.jvp(nested, (T(2.0),), (T(1.0),))
    assert (primal.item(), tangent.item()) == (-16.0, -6.0)
    assert F.grad(nested)(T(2.0)).item() == -6.0
    assert F.grad(F.grad(nested))(T(2.0)).item() == 2.0
    np.testing.assert_allclose(F.vmap(F.grad(nested))(T([2.0, 3.0])).numpy(), [-6.0, -4.0])


def test_backward_reaches_captured_values_that_depend_on_each_other():
    y = T(2.0, requires_grad=True)
    z = y * 5
    f = lucid.jit(lambda a: a * y + z)
    for a in (3.0, 4.0, 5.0):
        y.grad = None
        f(T(a, requires_grad=True)).backward(retain_graph=True)
        assert y.grad.item() == a + 5


def test_a_captured_value_may_have_been_written_through_a_view_before():
    base = T([1.0, 2.0], requires_grad=True)
    y = base * 2
    part = y[:]
    f = lucid.jit(lambda a: (a * y).sum())
    seen = []
    for _ in range(3):
        with lucid.no_grad():
            part.add_(1.0)
        seen.append(f(T(1.0)).item())
    assert seen == [8.0, 10.0, 12.0]
    f(T(3.0)).backward()
    assert base.grad.tolist() == [6.0, 6.0]


TRACED = {
    "vmap": lambda call: F.vmap(lambda v: call(v))(T([3.0, 4.0]))[0],
    "scan": lambda call: F.scan(lambda c, x: (call(x), c), T(0.0), T([5.0, 3.0]))[0],
    "cond": lambda call: F.cond(T(True), call, lambda x: x, T(3.0)),
    "while_loop": lambda call: F.while_loop(lambda x: x < 6, call, T(3.0)),
    "map": lambda call: F.map(call, T([3.0, 4.0]))[0],
    "checkpoint": lambda call: F.checkpoint(call)(T(3.0)),
    "grad": lambda call: F.grad(lambda x: call(x) * x)(T(3.0)) / 2,
    "vmap of grad": lambda call: F.vmap(F.grad(lambda x: call(x) * x))(T([3.0, 4.0]))[0] / 2,
}


@pytest.mark.parametrize("name", TRACED)
def test_jit_closes_over_values_that_an_outer_transform_traces(name):
    def call(x):
        return lucid.jit(lambda a: a * x)(T(2.0))

    assert TRACED[name](call).item() == 6.0
    outer = lucid.jit(lambda: TRACED[name](call))
    assert [outer().item() for _ in range(3)] == [6.0] * 3


def test_jit_inside_custom_rules():
    @F.custom_vjp
    def square(x):
        return x * x

    square.defvjp(
        lambda x: (lucid.jit(lambda a: a * x)(x), x),
        lambda x, ct: (lucid.jit(lambda a: a * ct * x)(T(2.0)),),
    )

    @F.custom_jvp
    def also(x):
        return x * x

    also.defjvp(lambda p, t: (also(p[0]), lucid.jit(lambda a: a * t[0] * p[0])(T(2.0))))
    for f in (square, also):
        assert F.grad(f)(T(3.0)).item() == 6.0
        assert F.jvp(f, (T(3.0),), (T(1.0),))[1].item() == 6.0
        jitted = lucid.jit(F.grad(f))
        assert [jitted(T(x)).item() for x in (3.0, 4.0, 5.0)] == [6.0, 8.0, 10.0]


def test_custom_rules_that_close_over_traced_values_inside_jit():
    def f(x):
        y = x * 2

        @F.custom_vjp
        def times(a):
            return a * y

        times.defvjp(lambda a: (a * y, y), lambda y, ct: (ct * y,))
        return times(x)

    for g in (lucid.jit(F.grad(f)), F.grad(lucid.jit(f))):
        assert [g(T(x)).item() for x in (3.0, 4.0, 5.0)] == [6.0, 8.0, 10.0]


def test_jit_inside_a_trace_by_types_is_part_of_it():
    scale = lambda x: lucid.jit(lambda a: a * x)(T(2.0))  # noqa: E731
    graph = lucid.ir.trace(scale)(lucid.ir.Type.parse("f32[]"))
    assert lucid.ir.evaluate(graph, np.float32(3.0), np.float32(2.0))[0] == 6.0


def test_threads_draw_while_others_record_and_trace():
    lucid.manual_seed(0)
    seen, errors = [], []

    def work(number):
        try:
            f = lucid.jit(lambda: lucid.rand(3))
            loop = lambda: F.scan(lambda c, x: (c, lucid.rand(3)), None, length=2)[1]  # noqa: E731
            same = F.vmap(lambda x: lucid.rand(3) + x * 0, randomness="same", chunk_size=1)
            for _ in range(4):
                seen.append(same(lucid.zeros(2))[0].numpy().tobytes())
                seen.extend([f().numpy().tobytes(), lucid.rand(3).numpy().tobytes()])
                seen.extend([row.numpy().tobytes() for row in loop()])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors and len(seen) == 80 and len(set(seen)) == 80
    lucid.manual_seed(0)
    assert set(seen) == {lucid.rand(3).numpy().tobytes() for _ in range(80)}
