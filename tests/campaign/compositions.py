"""The same mathematics by many paths: jit at every place of a composition of transforms.

A word such as ("vmap", "grad") names transforms from the outside in. `paths(word)` gives all ways
to put jit around its parts; each must agree with the word itself, run eagerly and cold.

Every program takes the 24 paths of `WORDS`, and of the 963 paths of `DEEP_WORDS` (words of up to
three transforms, a Hessian being two) the two that its seed chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

import lucid
from lucid.func import grad, hessian, jvp, vjp, vmap
from lucid.ir.pytree import flatten
from tests.campaign.programs import Program, points, set_state
from tests.campaign.tiers import cold, hot

Function = Callable[..., Any]
WORDS: tuple[tuple[str, ...], ...] = (
    (), ("grad",), ("jvp",), ("vmap",), ("vmap", "grad"), ("jvp", "grad"),
)  # fmt: skip
KINDS = ("grad", "jvp", "vjp", "vmap", "hessian")
DEEP_WORDS = tuple(
    word
    for n in (1, 2, 3)
    for word in product(KINDS, repeat=n)
    if word not in WORDS and word.count("vmap") < 2 and n + word.count("hessian") <= 3
)
DEEP_PATHS = 2
BATCH = 3


def as_scalar(f: Function) -> Function:
    def scalar(*xs: Any) -> Any:
        return sum(
            (lucid.sin(y).sum() for y in flatten(f(*xs))[0]), lucid.zeros((), dtype="float64")
        )

    return scalar


def transformed(kind: str, f: Function, n: int) -> Function:
    """One transform of a function of `n` tensors."""
    if kind == "grad":
        return grad(as_scalar(f), argnums=tuple(range(n)))
    if kind == "vmap":
        return vmap(f)
    if kind == "hessian":
        return hessian(as_scalar(f), argnums=tuple(range(n)))
    if kind == "vjp":

        def pulled(*xs: Any) -> Any:
            scalar, pull = vjp(as_scalar(f), *xs)
            return pull(scalar * 0.5 + 1.0)

        return pulled

    def pushed(*xs: Any) -> Any:
        along = [lucid.cos(lucid.arange(x.numel()).to("float64")).reshape(x.shape) for x in xs]
        return jvp(f, tuple(xs), tuple(along))[1]

    return pushed


def composed(word: tuple[str, ...], jits: tuple[bool, ...], f: Function, n: int) -> Function:
    """The composition, with jit around part i (0 is the outermost) where `jits[i]`."""
    for kind, jitted in zip(reversed(word), reversed(jits[1:])):
        f = transformed(kind, lucid.jit(f) if jitted else f, n)
    return lucid.jit(f) if jits[0] else f


def paths(word: tuple[str, ...]) -> Iterator[tuple[bool, ...]]:
    for jits in product((False, True), repeat=len(word) + 1):
        if any(jits):
            yield jits


def deep_paths(seed: int) -> list[tuple[tuple[str, ...], tuple[bool, ...]]]:
    """Return the deep words that a program is tried on, each with jit at some of its places."""
    rng = np.random.default_rng([seed, 1])
    words = [DEEP_WORDS[int(i)] for i in rng.integers(len(DEEP_WORDS), size=DEEP_PATHS)]
    return [
        (word, list(paths(word))[int(rng.integers(2 ** (len(word) + 1) - 1))]) for word in words
    ]


def label(word: tuple[str, ...], jits: tuple[bool, ...]) -> str:
    parts = [("jit " if jits[0] else "") + (word[0] if word else "f")]
    for kind, jitted in zip((*word[1:], "f") if word else (), jits[1:]):
        parts.append(("jit " if jitted else "") + kind)
    return " of ".join(parts)


def arguments(program: Program, word: tuple[str, ...], call: int) -> list[Any]:
    """The program's inputs for one call: other values every time, stacked where vmap wants it."""
    arrays = list(points(program))[call]
    if "vmap" in word:
        arrays = [np.stack([x * (1.0 - 0.3 * k) for k in range(BATCH)]) for x in arrays]
    return [lucid.as_tensor(x) for x in arrays]


def values(result: Any) -> list[np.ndarray]:
    return [np.array(y.detach().numpy()) for y in flatten(result)[0]]


def disagreement(actual: list[np.ndarray], expected: list[np.ndarray]) -> str:
    if len(actual) != len(expected):
        return f"{len(actual)} results for {len(expected)}"
    for i, (a, e) in enumerate(zip(actual, expected)):
        if a.shape != e.shape or a.dtype != e.dtype:
            return f"result {i}: {a.dtype}{a.shape} for {e.dtype}{e.shape}"
        scale = 1.0 + np.abs(np.where(np.isfinite(e), e, 0)).max(initial=0.0)
        if not np.allclose(a, e, rtol=1e-8, atol=1e-9 * scale, equal_nan=True):
            return f"result {i}:\n{a}\nfor\n{e}"
    return ""


def rounding_explains(
    plain: Function, xs: list[Any], actual: list[np.ndarray], expected: list[np.ndarray]
) -> bool:
    """Whether inputs that differ in their last digits move the results as far as they disagree.

    A third derivative that takes the sine of a number of size 1e9 has seven right digits.
    """
    rng = np.random.default_rng(0)
    moved = [np.zeros(()) for _ in expected]
    for _ in range(4):
        near = [lucid.as_tensor(last_digits_changed(np.asarray(x), rng)) for x in xs]
        with cold():
            change = [abs(y - e).max(initial=0.0) for y, e in zip(values(plain(*near)), expected)]
        moved = [np.fmax(m, c) for m, c in zip(moved, change)]
    return all(
        a.shape == e.shape
        and a.dtype == e.dtype
        and np.array_equal(np.isfinite(a), np.isfinite(e))
        and np.nanmax(np.where(np.isfinite(e), abs(a - e), 0.0), initial=0.0)
        <= 16 * m + 1e-9 * (1.0 + np.abs(np.where(np.isfinite(e), e, 0)).max(initial=0.0))
        for a, e, m in zip(actual, expected, moved)
    )


def last_digits_changed(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return x with every float moved by up to four units in its last place.

    A small number moves as far as 1 does: a program that adds a constant rounds it as much.
    """
    if x.dtype.kind != "f":
        return x
    return x + np.spacing(np.fmax(np.abs(x), 1.0)) * rng.integers(-4, 5, size=x.shape)


def failures(program: Program, words: tuple[tuple[str, ...], ...] = WORDS) -> Iterator[str]:
    """The paths on which a program disagrees with its eager, cold run; nothing is the aim."""
    chosen = [(word, list(paths(word))) for word in words]
    chosen += [(word, [jits]) for word, jits in deep_paths(program.seed)]
    for word, ways in chosen:
        if "vmap" not in word or not program.reads:
            yield from failures_of_word(program, word, ways)


def failures_of_word(
    program: Program, word: tuple[str, ...], ways: list[tuple[bool, ...]]
) -> Iterator[str]:
    """Compare eager hot code and jit at some places of a composition with eager cold code."""
    f, n = program.function(), len(program.inputs)
    calls = [arguments(program, word, k) for k in range(3)]
    plain = composed(word, (False,) * (len(word) + 1), f, n)
    expected = []
    with cold():
        for k, xs in enumerate(calls):
            set_state(f.__globals__, k)
            expected.append(values(plain(*xs)))
    with hot():
        for k, (xs, e) in enumerate(zip(calls, expected)):
            set_state(f.__globals__, k)
            actual = values(plain(*xs))
            text = disagreement(actual, e)
            if text and not rounding_explains(plain, xs, actual, e):
                yield f"{' of '.join(word) or 'f'}, hot: {text}"
                break
    for jits in ways:
        g = composed(word, jits, f, n)
        for k, (xs, e) in enumerate([*zip(calls, expected), (calls[0], expected[0])]):
            set_state(f.__globals__, k)
            actual = values(g(*xs))
            text = disagreement(actual, e)
            if text and not rounding_explains(plain, xs, actual, e):
                yield f"{label(word, jits)}, call {k + 1}: {text}"
                break
