"""Every distribution × its parameters × its methods, and every transform, in every setting.

The numbers of plain tensors are held to SciPy by tests/distributions, and to PyTorch by its
parity.py. By default one distribution of every class is compiled; LUCID_TEST_ALL=1 compiles all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import lucid
from lucid import distributions as D
from lucid.errors import LucidError
from tests.campaign.tiers import without_optimization
from tests.distributions.cases import CASES, FIXED, MATRIX, TRANSFORMS, UNIT, A, B, X
from tests.matrix import settings
from tests.matrix.forms import Form
from tests.matrix.test_matrix import ALL, attempt, same
from tests.table.row import Row

ROW = Row("distributions", None, ())
AT_VALUE = ("log_prob", "cdf")
FACTS = ("mean", "variance", "stddev", "mode")
METHODS = ("entropy", "perplexity", "enumerate_support")
DRAWS = ("sample", "rsample", "sample_n", "has_rsample")
# Methods that are not compared in all settings: why.
OTHERS = {
    "expand": "tests/distributions", "draw": "what sample and rsample call",
    "check": "validation", "checks": "validation", "options": "validation",
    "should_validate": "validation", "validate_args": "validation",
    "validate_by_default": "validation", "set_default_validate_args": "validation",
    "batch_shape": "no numbers", "event_shape": "no numbers", "support": "no numbers",
    "has_enumerate_support": "no numbers", "expand_support": "of enumerate_support",
    "no_formula": "an error", "params": "the parameters", "set_parameters": "the parameters",
    "shape": "no numbers", "standardize": "of log_prob",
}  # fmt: skip


class Made(NamedTuple):
    """A distribution: its class, a function of tensors, the arrays it is made of, and a value."""

    name: str
    keywords: frozenset[str]
    make: Callable[..., Any]
    arrays: list[np.ndarray]
    value: np.ndarray

    def __str__(self) -> str:
        return f"{self.name}({', '.join(sorted(self.keywords))})"


def by_table() -> list[Made]:
    found = []
    for name, parameters, _, value in CASES:
        fixed = FIXED.get(name, {})

        def make(*xs: Any, name=name, keys=tuple(parameters), fixed=fixed) -> Any:
            return getattr(D, name)(**dict(zip(keys, xs)), **fixed)

        given = frozenset({*parameters, *fixed})
        found.append(Made(name, given, make, [*parameters.values()], value))
    return found


def composed() -> list[Made]:
    def mixture(logits: Any, loc: Any, scale: Any) -> Any:
        return D.MixtureSameFamily(D.Categorical(logits=logits), D.Normal(loc, scale))

    def transformed(loc: Any, scale: Any) -> Any:
        return D.TransformedDistribution(
            D.Normal(loc, scale), [D.AffineTransform(1.0, -2.0), D.ExpTransform()]
        )

    names = frozenset({"mixture_distribution", "component_distribution"})
    return [
        Made("MixtureSameFamily", names, mixture, [A, B, A], np.array(0.7)),
        Made("TransformedDistribution", frozenset({"base_distribution", "transforms"}),
             transformed, [A, B], X),
        Made("Independent", frozenset({"base_distribution", "reinterpreted_batch_ndims"}),
             lambda loc, scale: D.Independent(D.Normal(loc, scale), 1), [A, B], X),
        Made("ContinuousBernoulli", frozenset({"probs", "lims"}),
             lambda p: D.ContinuousBernoulli(p, lims=(0.4, 0.6)), [np.array([0.1, 0.45, 0.9])],
             UNIT),
        Made("Wishart", frozenset({"df", "scale_tril"}), lambda n, x: D.Wishart(n, scale_tril=x),
             [np.array(4.5), np.linalg.cholesky(MATRIX)], MATRIX + np.eye(3)),
        Made("Normal", frozenset({"loc", "scale", "validate_args"}),
             lambda a, b: D.Normal(a, b, validate_args=False), [A, B], X),
    ]  # fmt: skip


TABLE = [*by_table(), *composed()]
MADE = [pytest.param(made, id=f"{i}-{made.name}") for i, made in enumerate(TABLE)]
FIRST = {p.values[0].name: p for p in reversed(MADE)}


def value_of(made: Made, method: str, xs: Any) -> Any:
    """What a method of the distribution gives; the last tensor is the value."""
    d = made.make(*xs[:-1])
    if method in AT_VALUE:
        return getattr(d, method)(xs[-1])
    if method == "icdf":
        return d.icdf(0.25 + 0.0 * xs[0])
    if method in ("sample", "rsample"):
        return getattr(d, method)((2,))
    if method == "sample_n":
        return d.sample_n(2)
    found = getattr(d, method)
    return found() if callable(found) else found


def forms_of(made: Made) -> list[Form]:
    """The methods that there are formulas for."""
    found = []
    for method in (*AT_VALUE, "icdf", *FACTS, *METHODS, "sample", "sample_n", "rsample"):
        form = Form(f"{made}.{method}", made.keywords, partial(value_of, made, method))
        try:
            settings.plain(ROW, form, [*made.arrays, made.value])
        except (LucidError, NotImplementedError):
            continue
        found.append(form)
    return found


def turned(x: np.ndarray, square: bool) -> np.ndarray:
    """Other numbers of the same kind: a simplex is one, a symmetric matrix too."""
    if x.ndim == 2 and np.array_equal(x, np.tril(x)):
        y = np.flip(x @ x.T)
        return np.linalg.cholesky(y / np.sqrt(np.outer(np.diag(y), np.diag(y))) if square else y)
    return np.flip(x).copy()


def examples_of(made: Made) -> list[list[np.ndarray]]:
    first = [*made.arrays, made.value]
    second = [turned(x, made.name == "LKJCholesky") for x in first]
    return [first, second]


@pytest.mark.parametrize("made", MADE)
def test_methods_agree_in_eager_settings(made):
    arrays = [*made.arrays, made.value]
    forms = forms_of(made)
    assert {"log_prob", "sample"} <= {form.name.rpartition(".")[2] for form in forms}
    for form in forms:
        expected = settings.plain(ROW, form, arrays)
        for name, run in settings.EAGER.items():
            found = attempt(partial(run, ROW, form, arrays))
            assert not isinstance(found, LucidError), f"{name}: {form.name}: {found}"
            same(found[: len(expected)], expected, 1e-12, f"{name}: {form.name}")


@pytest.mark.parametrize("made", MADE if ALL else FIRST.values())
def test_methods_agree_inside_jit_on_every_call(made):
    first, second = examples_of(made)
    forms, examples = forms_of(made), [first, second, first]
    with without_optimization():
        results = settings.jitted(ROW, forms, examples)
    for number, (arrays, found) in enumerate(zip(examples, results), 1):
        for form, values in zip(forms, found, strict=True):
            what = f"call {number} of jit: {form.name}"
            same(values, settings.plain(ROW, form, arrays), 1e-9, what)


@pytest.mark.parametrize("made", MADE)
def test_methods_are_mapped_over_parameters(made):
    examples = examples_of(made)
    for form in forms_of(made):
        if form.name.endswith(("sample", "sample_n")):
            continue  # vmap asks how to draw: tests/func/mapping
        expected = [np.stack(ys) for ys in zip(*[settings.plain(ROW, form, x) for x in examples])]
        same(settings.mapped(ROW, form, examples), expected, 1e-9, f"vmap: {form.name}")


def transform_forms(name: str, args: Any) -> list[Form]:
    make = partial(getattr(D, name), *args)
    found = {
        "call": lambda xs: make()(xs[0]),
        "inverse": lambda xs: make().inv(make()(xs[0])),
        "slope": lambda xs: make().log_abs_det_jacobian(xs[0], make()(xs[0])),
    }
    forms = []
    for what, run in found.items():
        try:
            run([lucid.tensor(MATRIX if "Cholesky" in name or "Def" in name else X)])
        except (LucidError, NotImplementedError):
            continue
        forms.append(Form(f"{name}.{what}", frozenset(), run))
    return forms


MORE_TRANSFORMS = [
    ("AffineTransform", (0.5, -2.0), X), ("ExpTransform", (), X), ("PowerTransform", (3.0,), X),
    ("SigmoidTransform", (), X), ("SoftplusTransform", (), X), ("TanhTransform", (), X),
    ("ComposeTransform", ([D.ExpTransform(), D.AffineTransform(1.0, 2.0)],), X),
    ("IndependentTransform", (D.ExpTransform(), 1), X),
    ("CumulativeDistributionTransform", (D.Normal(lucid.tensor(0.5), lucid.tensor(2.0)),), X),
    ("CatTransform", ([D.ExpTransform(), D.TanhTransform()], 0, [1, 2]), X),
    ("StackTransform", ([D.ExpTransform(), D.TanhTransform(), D.AffineTransform(1.0, 2.0)], 0), X),
]  # fmt: skip
ALL_TRANSFORMS = [*TRANSFORMS, *MORE_TRANSFORMS]


@pytest.mark.parametrize(("name", "args", "value"), ALL_TRANSFORMS, ids=lambda x: str(x)[:30])
def test_transforms_agree_in_every_setting(name, args, value):
    forms = transform_forms(name, args)
    assert len(forms) >= 2
    examples = [[value], [np.flip(value).copy()], [value]]
    with without_optimization():
        compiled = settings.jitted(ROW, forms, examples)
    for i, form in enumerate(forms):
        each = [settings.plain(ROW, form, arrays) for arrays in examples]
        for setting, run in settings.EAGER.items():
            same(run(ROW, form, [value])[:1], each[0], 1e-12, f"{setting}: {form.name}")
        for number, (found, expected) in enumerate(zip(compiled, each), 1):
            same(found[i], expected, 1e-9, f"call {number} of jit: {form.name}")
        stacked = [np.stack(ys) for ys in zip(*each)]
        same(settings.mapped(ROW, form, examples), stacked, 1e-9, f"vmap: {form.name}")


def test_every_class_parameter_and_method_is_in_the_table():
    passed: dict[str, set[str]] = {}
    for made in TABLE:
        passed.setdefault(made.name, set()).update(made.keywords)
    transforms = {name for name, _, _ in ALL_TRANSFORMS}
    left = set()
    for name in D.__all__:
        cls = getattr(D, name)
        if not isinstance(cls, type) or cls in (D.Distribution, D.Transform):
            continue
        if issubclass(cls, D.Transform):
            left |= set() if name in transforms else {(name, "*")}
        else:
            keys = {*inspect.signature(cls).parameters} - {"validate_args"}
            left |= {(name, key) for key in keys - passed.get(name, set())}
    assert left == set()
    named = {*AT_VALUE, "icdf", *FACTS, *METHODS, *DRAWS, *OTHERS}
    assert {m for m in dir(D.Distribution) if not m.startswith("_")} <= named
