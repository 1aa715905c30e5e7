"""Large products and the kernels that read their rows are one instruction over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lucid
from lucid.compiler.inspect.stages import planned_text
from lucid.compiler.plan import epilogue

rng = np.random.default_rng(0)


def normal(*shape: int) -> lucid.Tensor:
    return lucid.tensor((rng.normal(size=shape) / 3).astype(np.float32))


X, W, B = normal(300, 40), normal(40, 50), normal(50)
SQUARE, TALL = normal(40, 40), normal(3000, 40)
STACK, MATRICES = normal(3, 4, 70, 40), normal(4, 40, 60)

JOINED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "bias and activation": (lambda x, w, b: lucid.tanh(x @ w + b), (X, W, B)),
    "softmax": (lambda x, w, b: lucid.softmax(x @ w + b, -1), (X, W, B)),
    "residual": (lambda x, w: x + lucid.tanh(x @ w), (X, SQUARE)),
    "sum of rows": (lambda x, w: lucid.relu(x @ w).sum(1), (TALL, W)),
    "sum of columns": (lambda x, w: lucid.relu(x @ w).sum(0), (TALL, W)),
    "sum of everything": (lambda x, w: lucid.relu(x @ w).sum(), (TALL, W)),
    "rows of a batch": (lambda x, w: lucid.relu(x @ w), (normal(5, 300, 40), W)),
    "a batch": (lambda x, w: lucid.relu(x @ w + 1), (STACK, MATRICES)),
    "attention": (lambda x: lucid.softmax(x @ x.mT, -1) @ x, (normal(7, 33, 20),)),
}
APART: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "its transpose": (lambda x, w: lucid.relu(x @ w).T + 1, (X, W)),
    "rows in reverse": (lambda x, w: lucid.flip(x @ w, (0,)) * (x @ w), (X, W)),
    "its own transpose": (lambda x: (x @ x) + (x @ x).T, (SQUARE,)),
    "rows at indices": (lambda x, w: (x @ w)[lucid.tensor([3, 0, 3])] * 2, (X, W)),
    "columns of softmax": (lambda x, w: lucid.softmax(x @ w, 0), (TALL, W)),
    "deviation": (lambda x, w: (x @ w).std(), (normal(30, 40), W)),
}


@pytest.fixture(params=[1, 1 << 12, 1 << 18])
def small_blocks(request: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(epilogue, "MIN_BYTES", 1)
    monkeypatch.setattr(epilogue, "BLOCK_BYTES", request.param)


def plan_of(f: Callable[..., Any], args: tuple[Any, ...]) -> str:
    return planned_text(lucid.ir.trace(f)(*args).stripped())


def agrees(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    expected = f(*args)
    results = []
    before = lucid.get_num_threads()
    try:
        for threads in (1, 2, 4):
            lucid.set_num_threads(threads)
            jitted = lucid.jit(lambda *xs: f(*xs))
            jitted(*args)  # recorded: an eager run
            results.append(jitted(*args))
    finally:
        lucid.set_num_threads(before)
    for one, *others in zip(*[r if isinstance(r, tuple) else (r,) for r in results]):
        assert all(np.array_equal(one.numpy(), other.numpy()) for other in others)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    given = results[0] if isinstance(results[0], tuple) else (results[0],)
    for x, y in zip(given, wanted, strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.usefixtures("small_blocks")
def test_a_kernel_that_reads_rows_joins_the_product(name: str) -> None:
    f, args = JOINED[name]
    assert "matmul then" in plan_of(f, args)
    agrees(f, args)


@pytest.mark.parametrize("name", APART)
@pytest.mark.usefixtures("small_blocks")
def test_a_kernel_that_needs_other_rows_does_not(name: str) -> None:
    f, args = APART[name]
    assert "matmul then" not in plan_of(f, args)
    agrees(f, args)


@pytest.mark.usefixtures("small_blocks")
def test_gradients_of_layers_agree_for_any_number_of_threads() -> None:
    def loss(x: Any, w: Any, b: Any, v: Any) -> Any:
        h = lucid.tanh(x @ w + b)
        return (lucid.softmax(x + h @ v, -1) ** 2).sum()

    agrees(lucid.func.grad(loss, (0, 1, 2, 3)), (TALL, W, B, normal(50, 40)))


@pytest.mark.usefixtures("small_blocks")
def test_what_the_product_reads_is_not_overwritten_before_all_rows_are_done() -> None:
    def steps(x: Any, w: Any) -> Any:
        for _ in range(4):
            x = x + lucid.tanh(x @ w)
        return x

    agrees(steps, (TALL, SQUARE))


def test_results_that_fit_into_the_cache_stay_two_instructions() -> None:
    f, args = JOINED["bias and activation"]
    assert plan_of(f, args).splitlines()[1:] == ["    matmul", "    add tanh"]
