"""Transforms, loops, windows and keyed draws give the numbers of a formula in every setting."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.campaign.tiers import without_optimization
from tests.matrix import settings
from tests.matrix.calls import X, Y, table
from tests.matrix.forms import Form
from tests.table.row import Row, parts_of

ROW = Row("calls", None, ())
USES = [pytest.param(use, id=f"{i}-{use}") for i, use in enumerate(table())]
EXAMPLES = [[X, Y], [Y, X * 0.5], [X, Y]]


def close(found, expected, what):
    assert len(found) == len(expected), what
    for a, e in zip(found, expected):
        np.testing.assert_allclose(a, e, rtol=1e-8, atol=1e-9, err_msg=what)


@pytest.mark.parametrize("use", USES)
def test_settings_agree_with_the_formula(use):
    form = Form(str(use), frozenset(use.keywords), lambda xs: use.run(*xs))
    each = [settings.plain(ROW, form, arrays) for arrays in EXAMPLES]
    if use.expected is not None:
        for arrays, found in zip(EXAMPLES, each):
            close(found, [np.asarray(y) for y in parts_of(use.expected(*arrays))], f"plain: {use}")
    for name, run in settings.EAGER.items():
        close(run(ROW, form, EXAMPLES[0])[: len(each[0])], each[0], f"{name}: {use}")
    with without_optimization():
        compiled = settings.jitted(ROW, [form], EXAMPLES)
    for number, (found, expected) in enumerate(zip(compiled, each), 1):
        close(found[0], expected, f"call {number} of jit: {use}")
    mapped = partial(settings.mapped, ROW, form, EXAMPLES)
    close(mapped(), [np.stack(ys) for ys in zip(*each)], f"vmap: {use}")
