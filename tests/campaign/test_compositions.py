"""Random programs through jit at every place of every composition: all paths agree.

`pytest tests/campaign --compositions 500` runs more. A failure prints the smallest program.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import lucid
from tests.campaign.compositions import (
    DEEP_WORDS,
    WORDS,
    deep_paths,
    failures,
    label,
    paths,
    rounding_explains,
)
from tests.campaign.programs import Program, make, shrink


def first_failure(program: Program) -> str:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return next(failures(program), "")
        except Exception as error:
            return f"{type(error).__name__}: {error}"


def pytest_generate_tests(metafunc):
    if "composed_seed" in metafunc.fixturenames:
        first = metafunc.config.getoption("--first-seed")
        count = metafunc.config.getoption("--compositions")
        metafunc.parametrize("composed_seed", range(first, first + count))


def test_every_path_of_a_program_agrees(composed_seed):
    program = make(composed_seed)
    text = first_failure(program)
    if text:
        small = shrink(program, lambda p: bool(first_failure(p)))
        pytest.fail(
            f"program {composed_seed}, at its smallest:\n\n{small.text()}\n\n"
            f"inputs {dict(small.inputs)}\n{first_failure(small)}",
            pytrace=False,
        )


def test_the_paths_are_those_that_are_meant():
    named = [label(word, jits) for word in WORDS for jits in paths(word)]
    assert len(named) == len(set(named)) == 24
    assert {"jit f", "jit grad of f", "grad of jit f", "vmap of jit grad of f"} <= set(named)


def test_deeper_words_are_spread_over_the_seeds():
    chosen = [word for seed in range(2000) for word, _ in deep_paths(seed)]
    assert set(chosen) == set(DEEP_WORDS)
    assert {len(word) for word in chosen} == {1, 2, 3}
    assert {kind for word in chosen for kind in word} == {"grad", "jvp", "vjp", "vmap", "hessian"}


def test_rounding_explains_what_it_can_and_nothing_else():
    x, wild = np.array([0.3]), np.array([3e9])
    expected, at_wild = [np.sin(x)], [np.sin(wild)]
    xs, wilds = [lucid.as_tensor(x)], [lucid.as_tensor(wild)]
    assert rounding_explains(lucid.sin, xs, [expected[0] * (1 + 1e-12)], expected)
    assert not rounding_explains(lucid.sin, xs, [expected[0] * (1 + 1e-7)], expected)
    assert rounding_explains(lucid.sin, wilds, [np.sin(np.nextafter(wild, 4e9))], at_wild)
    assert not rounding_explains(lucid.sin, wilds, [at_wild[0] + 1e-4], at_wild)
    assert not rounding_explains(lucid.sin, xs, [np.array([np.nan])], expected)
