"""Every call of the table, in every form, in every setting, gives the numbers of its first form.

The first form in plain tensors is held to NumPy or a formula by tests/table. By default the fewest
calls that pass all parameters of a row are tried, and one of them is compiled;
LUCID_TEST_ALL=1 tries all calls.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np
import pytest

import lucid
from lucid.errors import LucidError
from tests.campaign.tiers import without_optimization
from tests.laws import assert_close
from tests.matrix import settings
from tests.matrix.forms import Form, forms_of, look_up, plain_form
from tests.matrix.passed import parameters_passed
from tests.table.row import Call, Row, arrays_for, rows

ALL = os.environ.get("LUCID_TEST_ALL", "") not in ("", "0")
# Forms that mean something else, alone or with the call: why.
DIFFERENT = {
    "axis for dim in max(...)": "axis has NumPy's meaning: values without indices",
    "axis for dim in min(...)": "axis has NumPy's meaning: values without indices",
    "axis for dim in median(...)": "axis has NumPy's meaning: values without indices",
    "axis for dim in nanmedian(...)": "axis has NumPy's meaning: values without indices",
    ("axis for dim in sum(...)", "2x3,()"): "no axis of NumPy is none, no dim of PyTorch is all",
    ("axis for dim in var(...)", "4,False"): "this False is `unbiased` in the place of dim",
    ("axis for dim in std(...)", "4,False"): "this False is `unbiased` in the place of dim",
    "Tensor.where(...)": "the condition is its second argument; it has a row of its own",
    "Tensor.normal_(...)": "it fills the tensor, which the function takes for the mean",
    "numpy.full(...)": "NumPy asks the fill value for nothing but an array",
    "numpy.asarray(...)": "it makes an ndarray",
    "numpy.put(...)": "NumPy's writes to its argument",
    "lucid.numpy.put(...)": "NumPy's writes to its argument",
    "numpy.linalg.eig(...)": "NumPy's dtype depends on the values",
    "lucid.numpy.linalg.eig(...)": "NumPy's dtype depends on the values",
    "numpy.linalg.eigvals(...)": "NumPy's dtype depends on the values",
    "lucid.numpy.linalg.eigvals(...)": "NumPy's dtype depends on the values",
    "numpy.linalg.lstsq(...)": "its rank is int64, not an int32 of LAPACK",
    "lucid.numpy.linalg.lstsq(...)": "its rank is int64, not an int32 of LAPACK",
    "numpy.result_type(...)": "it answers for tensors, whose promotion is PyTorch's",
    "lucid.numpy.result_type(...)": "it answers for tensors, whose promotion is PyTorch's",
}
# Forms that raise a clear error in a setting: why.
REFUSED = {
    ("requires_grad=True", "vmap"): "what a transform makes is no leaf",
    ("requires_grad=True", "jit"): "what a jitted function makes is no leaf",
    (".detach_(", "view"): "a view shares its history with its base",
    ("numpy.histogramdd(", "requires_grad"): "NumPy counts on arrays",
    ("numpy.histogramdd(", "parameter"): "NumPy counts on arrays",
    ("numpy.histogramdd(", "vmap"): "NumPy counts on arrays",
    ("numpy.histogramdd(", "jit"): "NumPy counts on arrays",
}


def sample(row: Row) -> list[Call]:
    """The fewest calls, greedily, that pass every parameter which some call of the row passes."""
    if ALL:
        return list(row.calls)
    left = set().union(*(parameters_passed(row, c) for c in row.calls))
    kept: list[Call] = []
    while left:
        best = max(row.calls, key=lambda c: len(left & parameters_passed(row, c)))
        kept.append(best)
        left -= parameters_passed(row, best)
    return kept or list(row.calls[:1])


ROWS = [pytest.param(row, id=row.name) for row in rows()]
every_row = pytest.mark.parametrize("row", ROWS)


def reference(row: Row, c: Call, arrays: list[np.ndarray]) -> tuple[Any, list[np.ndarray]]:
    """The result of the call as it is written, and its values."""
    first = plain_form(row.name, look_up(row.name), c)
    result = settings.run(first, [lucid.tensor(x) for x in arrays])
    return result, settings.values(row, result)


def forms(row: Row, c: Call, arrays: list[np.ndarray]) -> tuple[list[Form], list[np.ndarray]]:
    """The forms of a call, without those that cannot store their result where they write."""
    example, expected = reference(row, c, arrays)
    kept = []
    for form in forms_of(row, c, example):
        if form.name in DIFFERENT or (form.name, str(c)) in DIFFERENT:
            continue
        if form.writes and (example.shape, example.dtype) != (arrays[0].shape, arrays[0].dtype):
            continue
        kept.append(form)
    return kept, expected


def is_refused(form: Form, setting: str) -> bool:
    return any(part in form.name and where == setting for part, where in REFUSED)


def same(found: list[Any], expected: list[Any], rtol: float, what: str) -> None:
    assert len(found) == len(expected), f"{what}: {len(found)} results, not {len(expected)}"
    for a, e in zip(found, expected):
        assert a.dtype == e.dtype, f"{what}: {a.dtype}, not {e.dtype}"
        assert_close(a, e, rtol, what)


def hold(form: Form, setting: str, what: str, run: Any, expected: Any, rtol: float) -> None:
    """`run()` gives `expected`; both may be the same kind of refusal."""
    what = f"{setting}: {form.name} of {what}"
    found = attempt(run)
    if isinstance(found, LucidError):
        alike = isinstance(expected, LucidError) and type(found) is type(expected)
        assert alike or is_refused(form, setting), f"{what}: {found}"
    else:
        assert not isinstance(expected, LucidError), f"{what}: accepted, and not {expected}"
        assert not is_refused(form, setting), f"{what}: accepted"
        same(found[: len(expected)], expected, rtol, what)


def attempt(run: Any) -> Any:
    try:
        return run()
    except LucidError as error:
        return error


def expected_of(form: Form, arrays: list[np.ndarray], first: list[np.ndarray], n: int) -> Any:
    """What a form gives where the first one gives `first`: n results, and perhaps gradients.

    The gradients are those of the first form only if the results are.
    """
    if form.expected is None:
        return first
    own = form.expected(arrays)
    agrees = len(own) == n and all(
        a.shape == b.shape and np.allclose(a, b, equal_nan=True) for a, b in zip(own, first)
    )
    return [*own, *first[n:]] if agrees else own


@every_row
def test_forms_agree_in_eager_settings(row):
    for c in sample(row):
        what, arrays = f"{row.name}({c})", arrays_for(c)
        found, values = forms(row, c, arrays)
        for name, run in settings.EAGER.items():
            if name == "view" and row.laid_out:
                continue
            first = attempt(partial(run, row, found[0], arrays))
            if isinstance(first, LucidError):
                assert name in ("requires_grad", "parameter"), f"{name}: {what}: {first}"
            else:
                same(first[: len(values)], values, 1e-12, f"{name}: {what}")
            for form in found[1:]:
                expected = first
                if not isinstance(first, LucidError):
                    expected = expected_of(form, arrays, first, len(values))
                hold(form, name, what, partial(run, row, form, arrays), expected, 1e-12)


@pytest.mark.parametrize("row", [p for p in ROWS if not p.values[0].unmapped])
def test_forms_agree_inside_vmap(row):
    for c in sample(row):
        examples = settings.examples_of(c, 2)
        if not examples[0]:
            continue  # nothing to map over
        found, _ = forms(row, c, examples[0])
        plain = [settings.plain(row, found[0], arrays) for arrays in examples]
        for form in found:
            each = [form.expected(x) if form.expected else y for x, y in zip(examples, plain)]
            stacked = [np.stack(parts) for parts in zip(*each)]
            run = partial(settings.mapped, row, form, examples)
            hold(form, "vmap", f"{row.name}({c})", run, stacked, 1e-9)


@pytest.mark.parametrize("row", [p for p in ROWS if not p.values[0].unjitted])
def test_forms_agree_inside_jit_on_every_call(row):
    calls = sample(row)
    for c in calls if ALL else calls[-1:]:
        examples = settings.examples_of(c, 3)
        found, _ = forms(row, c, examples[0])
        found = [
            f
            for f in found
            if not is_refused(f, "jit") and not (row.unmapped and "out" in f.keywords)
        ]
        with without_optimization():
            results = settings.jitted(row, found, examples)
        for number, (arrays, by_form) in enumerate(zip(examples, results), 1):
            plain = settings.plain(row, found[0], arrays)
            for form, values in zip(found, by_form, strict=True):
                expected = form.expected(arrays) if form.expected else plain
                same(
                    values, expected, 1e-9, f"call {number} of jit: {form.name} of {row.name}({c})"
                )
