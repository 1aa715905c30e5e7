"""Templates: a tape that was cut before is recognized, and lines whose tapes vary get none."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.support.caches import clear_caches
from lucid.tape import template
from lucid.tape.template import ALTERNATIVES, Template


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """The Cuts that templates were made of; the tables are empty."""
    made = []

    class Counted(Template):
        __slots__ = ()

        def __init__(self, cut):
            made.append(cut)
            super().__init__(cut)

    monkeypatch.setattr(template, "Template", Counted)
    clear_caches()
    return made


def power_gradient(n, factor=1.0):
    """d/dx (factor x)^n at 0.9, by a loop of n multiplications."""
    x = lucid.tensor(0.9, requires_grad=True, dtype="float64")
    y = x * factor
    z = y
    for _ in range(n - 1):
        z = z * y
    z.backward()
    np.testing.assert_allclose(x.grad.item(), n * factor**n * 0.9 ** (n - 1), rtol=1e-12)


def test_a_tape_that_recurs_has_one_template(counted):
    for _ in range(5):
        power_gradient(6)
    assert len(counted) == 1


def test_tapes_of_different_lengths_soon_get_no_templates(counted):
    for n in range(3, 60):
        power_gradient(n)
    assert len(counted) <= 3 * ALTERNATIVES


def test_a_length_that_comes_again_soon_gets_a_template(counted):
    lengths = [4, 5, 6, 7]
    assert len(lengths) == ALTERNATIVES
    for n in range(10, 40):
        power_gradient(n)
    counted.clear()
    for n in lengths * 5:
        power_gradient(n)
    assert len(counted) == ALTERNATIVES


def test_a_number_that_changes_is_an_operand_from_the_second_tape_on(counted):
    for factor in (1.5, 2.5, 0.5, 3.5):
        power_gradient(4, factor)
    assert len(counted) == 2


def test_a_template_that_no_longer_matches_goes(counted):
    power_gradient(2)
    (line,) = template._lines.values()
    for n in range(3, 60):
        power_gradient(n)
    assert not line.templates and line.wasted >= ALTERNATIVES
    power_gradient(2)
    power_gradient(2)
    assert len(line.templates) == 1
