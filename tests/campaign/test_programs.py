"""Random programs: gradients against finite differences, and transforms against each other.

`pytest --programs 5000` runs more of them. A failure prints the smallest program that shows it.
"""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.func import grad, jvp, vmap
from tests.campaign.programs import (
    Program,
    Statement,
    has_margin,
    make,
    runs,
    set_state,
    shrink,
)

STEP = 1e-6
# Their equations hold functions of Python or of Numba, which no text can say.
WITHOUT_TEXT = ("ruled.by_jvp", "ruled.Mapped", "ruled.numbers", "ruled.given", "ruled.sums")


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        first = metafunc.config.getoption("--first-seed")
        count = metafunc.config.getoption("--programs")
        metafunc.parametrize("seed", range(first, first + count))


def close(actual, expected, rtol: float = 1e-9, atol: float = 1e-9) -> None:
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=rtol, atol=atol)


def tensors(arrays) -> list:
    return [lucid.as_tensor(np.array(x)) for x in arrays]


def shifted(arrays, directions, step) -> list:
    return tensors([x + step * d for x, d in zip(arrays, directions)])


def gradients(f, arrays) -> list:
    return [g.numpy() for g in grad(f, argnums=tuple(range(len(arrays))))(*tensors(arrays))]


def dot(xs, ys) -> float:
    return float(sum((np.asarray(x) * np.asarray(y)).sum() for x, y in zip(xs, ys)))


def directions(program: Program, k: int) -> list:
    rng = np.random.default_rng([program.seed, k])
    return [rng.standard_normal(shape) for _, shape in program.inputs]


def differences(f, arrays, along) -> float | None:
    """The derivative along a direction by central differences; None at a kink or a jump."""
    value = f(*tensors(arrays)).item()
    above, below = (f(*shifted(arrays, along, s)).item() for s in (STEP, -STEP))
    right, left = (above - value) / STEP, (value - below) / STEP
    if not np.isclose(right, left, rtol=1e-3, atol=1e-3):
        return None
    return (right + left) / 2


# Each check takes a program and raises where something disagrees.


def gradient_is_the_finite_difference(program: Program) -> None:
    f, arrays, along = program.function(), program.arrays(), directions(program, 0)
    numerical = differences(f, arrays, along)
    if numerical is not None:
        close(dot(gradients(f, arrays), along), numerical, 1e-4, 1e-5)


def jvp_is_the_product_with_the_gradient(program: Program) -> None:
    f, arrays, along = program.function(), program.arrays(), directions(program, 1)
    value, tangent = jvp(f, tuple(tensors(arrays)), tuple(tensors(along)))
    close(value.numpy(), f(*tensors(arrays)).numpy(), 1e-14)
    close(tangent.numpy(), dot(gradients(f, arrays), along))


def backward_is_grad(program: Program) -> None:
    f, arrays = program.function(), program.arrays()
    leaves = [x.requires_grad_(True) for x in tensors(arrays)]
    y = f(*leaves)
    if y.requires_grad:
        y.backward()
    for x, g in zip(leaves, gradients(f, arrays)):
        close(np.zeros(x.shape) if x.grad is None else x.grad.numpy(), g, 1e-12)


def second_derivatives_agree(program: Program) -> None:
    f, arrays = program.function(), program.arrays()
    u, v = directions(program, 2), directions(program, 3)
    numbers = tuple(range(len(arrays)))

    def slope(*xs):
        return sum(
            ((g * d).sum() for g, d in zip(grad(f, numbers)(*xs), tensors(u))), lucid.zeros(())
        )

    forward = jvp(slope, tuple(tensors(arrays)), tuple(tensors(v)))[1].item()
    reverse = dot([g.numpy() for g in grad(slope, numbers)(*tensors(arrays))], v)
    close(reverse, forward, 1e-8, 1e-8)
    numerical = differences(slope, arrays, v)
    if numerical is not None:
        close(forward, numerical, 1e-3, 1e-3)


def vmap_is_the_loop(program: Program) -> None:
    if program.reads:
        return
    f, arrays = program.function(), program.arrays()
    batch = [np.stack([x, 0.9 * x, -x]) for x in arrays]
    numbers = tuple(range(len(arrays)))
    together = vmap(f)(*tensors(batch)).numpy()
    pulled = [g.numpy() for g in vmap(grad(f, numbers))(*tensors(batch))]
    shared = (0, *[None] * (len(arrays) - 1))
    first = vmap(f, in_dims=shared)(*tensors([batch[0], *arrays[1:]])).numpy()
    for k in range(3):
        example = [x[k] for x in batch]
        close(together[k], f(*tensors(example)).numpy(), 1e-10, 1e-12)
        close(first[k], f(*tensors([batch[0][k], *arrays[1:]])).numpy(), 1e-10, 1e-12)
        for many, one in zip(pulled, gradients(f, example)):
            close(many[k], one)


def text_of_the_graph_means_the_same(program: Program) -> None:
    if any(name in program.text() for name in WITHOUT_TEXT):
        return
    f, arrays = program.function(), program.arrays()
    numbers = tuple(range(len(arrays)))
    for g in (f, grad(f, numbers)):
        graph = lucid.ir.trace(g)(*tensors(arrays))
        again = lucid.ir.parse(str(graph))
        assert again.key == graph.key
        lucid.ir.verify(again)
        if len(graph.inputs) == len(arrays):
            outs = lucid.ir.evaluate(again, *arrays)
            eager = g(*tensors(arrays))
            for out, y in zip(outs, eager if isinstance(eager, tuple) else (eager,), strict=True):
                close(out, y.numpy(), 1e-12, 1e-12)


CHECKS = (
    gradient_is_the_finite_difference,
    jvp_is_the_product_with_the_gradient,
    backward_is_grad,
    second_derivatives_agree,
    vmap_is_the_loop,
    text_of_the_graph_means_the_same,
)


def failure(check, program: Program) -> Exception | None:
    try:
        with np.errstate(all="ignore"):
            check(program)
    except Exception as error:
        return error
    return None


def test_random_program(seed):
    program = make(seed)
    for check in CHECKS:
        error = failure(check, program)
        if error is not None:
            kind = type(error)
            small = shrink(program, lambda p: type(failure(check, p)) is kind)  # noqa: B023
            pytest.fail(
                f"{check.__name__}, program {seed}, at its smallest:\n\n{small.text()}\n\n"
                f"inputs {dict(small.inputs)}\n{type(error).__name__}: {failure(check, small)}",
                pytrace=False,
            )


# The generator itself


def test_programs_are_the_same_every_time_and_cover_the_operations():
    assert make(7).text() == make(7).text()
    programs = [make(seed) for seed in range(300)]
    text = "\n".join(p.text() for p in programs)
    for word in (
        "@",
        "[::-1]",
        "sort",
        "cumprod",
        ".clone()",
        "while",
        "1j",
        "where",
        "+= ",
        "max(",
        "[:0]",
        "net(",
        "table",
        "gate(",
        "* K",
        "FLAG",
        "T[0]",
    ):
        assert word in text, word
    ranks = {len(shape) for p in programs for _, shape in p.inputs}
    assert ranks == {0, 1, 2, 3, 4, 5}
    assert any([0 in shape for p in programs for _, shape in p.inputs])


def test_a_branch_that_rounding_decides_has_no_margin():
    nothing = Statement("v0", "v0 = a * 3.0 - a - a - a", ("a",))
    branch = Statement("v1", "v1 = a if v0.sum() > 0 else -a", ("a", "v0"))
    program = Program((("a", (3,)),), (nothing, branch), "v1", True, 0)
    assert not has_margin(program)
    assert has_margin(program.returning(0))


def test_the_state_of_programs_changes_between_calls():
    f = Program((("a", ()),), (Statement("v0", "v0 = a * K + T[0]", ("a",)),), "v0", False, 0)
    function = f.function()
    found = []
    for call in range(3):
        set_state(function.__globals__, call)
        found.append(function(lucid.tensor(1.0, dtype="float64")).item())
    np.testing.assert_allclose(found, np.sin([1.5, 1.0, 1.5]))


def test_failing_program_is_shrunk_to_the_statement_that_fails():
    program = next(
        p for p in map(make, range(300)) if "cumprod" in p.text() and len(p.statements) > 5
    )
    small = shrink(program, lambda p: "cumprod" in p.text())
    assert len(small.statements) == 1 and "cumprod" in small.text() and runs(small)
