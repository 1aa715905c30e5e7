"""Wrong arguments to nn.functional get an error of Lucid's own."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import lucid
import lucid.nn.functional as F
from lucid.ops.core.arguments import public_name
from tests.project.test_bad_input import POOL, I, V, X, complaint, shortened

FUNCTIONS = sorted(
    (name, getattr(F, name)) for name in F.__all__ if inspect.isfunction(getattr(F, name))
)


@pytest.mark.parametrize(("name", "f"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_wrong_arguments_get_an_error_of_our_own(name, f, recwarn):
    rng = np.random.default_rng(sum(map(ord, name)))
    complaints = []
    for _ in range(40):
        args = [POOL[i] for i in rng.integers(len(POOL), size=int(rng.integers(1, 6)))]
        if rng.random() < 0.7:
            args[0] = [X, V, I, lucid.tensor(2.0), lucid.zeros(0, 2)][int(rng.integers(5))].clone()
        found = complaint(f, args, {})
        if found:
            complaints.append(f"{name}({', '.join(map(shortened, args))}): {found}")
    assert not complaints, "\n" + "\n".join(complaints)


def test_errors_say_where_help_is():
    assert public_name(F.linear) == "lucid.nn.functional.linear"
    assert public_name(lucid.var) == "lucid.var"
