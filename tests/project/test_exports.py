"""What `import lucid` offers: every name is there, documented, and means one thing."""

from __future__ import annotations

import importlib
import inspect
import pydoc
import subprocess
import sys

import numpy as np
import pytest

import lucid
from lucid.public import index

FUNCTIONS = {
    name: getattr(lucid, name)
    for name in lucid.__all__
    if inspect.isfunction(getattr(lucid, name)) or inspect.isclass(getattr(lucid, name))
}
ALIASES = [
    ("abs", "absolute"), ("add", "add"), ("sub", "subtract"), ("mul", "multiply"),
    ("div", "divide"), ("div", "true_divide"), ("neg", "negative"), ("pow", "power"),
    ("asin", "arcsin"), ("acos", "arccos"), ("atan", "arctan"), ("atan2", "arctan2"),
    ("asinh", "arcsinh"), ("acosh", "arccosh"), ("atanh", "arctanh"), ("clamp", "clip"),
    ("cat", "concat"), ("eq", "eq"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"),
    ("gt", "greater"), ("ge", "greater_equal"), ("movedim", "moveaxis"),
    ("conj", "conjugate"), ("bitwise_not", "invert"), ("sigmoid", "expit"), ("vstack", "row_stack"),
    ("trunc", "fix"), ("lgamma", "gammaln"), ("digamma", "psi"), ("equal", "array_equal"),
]  # fmt: skip
DTYPES = {
    "half": "float16", "float": "float32", "double": "float64", "short": "int16", "int": "int32",
    "long": "int64", "cfloat": "complex64", "cdouble": "complex128", "bool": "bool",
    "bool_": "bool",
    **{name: name for name in ("float16", "float32", "float64", "complex64", "complex128")},
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip

# Methods that are not the function itself: detach takes tensors alone, where has the condition as
# second operand and polygamma the order; lucid.view shows a program, x.view is a view of a tensor.
DIFFERENT = {"diff", "detach", "polygamma", "view", "where"}
# In-place methods that only make sense in place: they overwrite what was there.
ALONE = {
    "fill_", "zero_", "fill_diagonal_", "uniform_", "normal_", "log_normal_", "exponential_",
    "cauchy_", "geometric_", "random_",
}  # fmt: skip


def test_the_list_of_names_is_sorted_and_has_no_doubles():
    assert lucid.__all__ == sorted(set(lucid.__all__))


def test_every_name_in_the_list_is_there():
    assert [name for name in lucid.__all__ if not hasattr(lucid, name)] == []


@pytest.mark.parametrize("name", sorted(index.NAMES.keys() - {"Tensor"}))
def test_a_namespace_shows_its_public_names_and_modules_alone(name):
    module = lucid if name == "lucid" else importlib.import_module(f"lucid.{name}")
    shown = {n for n in dir(module) if not n.startswith("__")}
    modules = {n for n in shown if inspect.ismodule(getattr(module, n))}
    assert shown == set(module.__all__)
    assert not modules & {"ops", "tape", "tensors", "compiler", "np", "public"}


def test_every_public_module_shows_its_public_names_alone():
    waiting, seen = [lucid], 0
    while waiting:
        module = waiting.pop()
        seen += 1
        assert module.__doc__ and module.__all__, module.__name__
        shown = {n for n in dir(module) if not n.startswith("__")}
        assert shown == {n for n in module.__all__ if not n.startswith("__")}, module.__name__
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.ismodule(value) and value.__name__ == f"{module.__name__}.{name}":
                waiting.append(value)
    assert seen > 25


@pytest.mark.parametrize("item", [lucid, lucid.jit, lucid.Tensor])
def test_help_starts_with_what_it_is_and_an_example(item):
    text = pydoc.plain(pydoc.render_doc(item)).split("Method resolution order")[0]
    first_page = "\n".join(text.splitlines()[:60])
    assert ">>>" in first_page and inspect.getdoc(item).splitlines()[0] in first_page


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_public_name_has_a_docstring_of_at_least_a_sentence(name):
    doc = inspect.getdoc(FUNCTIONS[name])
    assert doc and len(doc.split()) >= 2 and doc.splitlines()[0].rstrip()[-1] in ".:;", doc


@pytest.mark.parametrize(("name", "other"), ALIASES)
def test_aliases_are_the_same_object(name, other):
    assert getattr(lucid, name) is getattr(lucid, other)


@pytest.mark.parametrize(("name", "dtype"), DTYPES.items())
def test_dtypes_are_numpys(name, dtype):
    assert getattr(lucid, name) == np.dtype(dtype) and isinstance(getattr(lucid, name), np.dtype)


def test_constants_are_numpys():
    assert (lucid.pi, lucid.e, lucid.inf) == (np.pi, np.e, np.inf)
    assert np.isnan(lucid.nan) and lucid.newaxis is None


def test_submodules_are_there_after_a_plain_import():
    code = (
        "import lucid; lucid.func.grad, lucid.autograd.grad, lucid.ir.trace, lucid.random.randn, "
        "lucid.errors.ShapeError; print(lucid.__version__)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == lucid.__version__


@pytest.mark.parametrize("name", [n for n in dir(lucid.Tensor) if not n.startswith("_")])
def test_public_method_has_a_docstring(name):
    getattr(lucid.Tensor, name)  # a declared method is imported when it is first looked up
    member = inspect.getattr_static(lucid.Tensor, name)
    if inspect.ismemberdescriptor(member):
        pytest.skip("a slot")
    assert inspect.getdoc(member), name


@pytest.mark.parametrize(
    "name",
    [n for n in dir(lucid.Tensor) if n.endswith("_") and not n.endswith("__") and n[0] != "_"],
)
def test_in_place_method_has_a_counterpart(name):
    assert hasattr(lucid.Tensor, name[:-1]) or name in ALONE, name


def test_methods_are_the_functions_of_the_same_name():
    shared = [
        name
        for name in FUNCTIONS
        if inspect.isfunction(getattr(lucid.Tensor, name, None)) and not name.endswith("_")
    ]
    plain = {name: getattr(f, "__wrapped__", f) for name, f in FUNCTIONS.items()}  # without out=
    methods = {name: getattr(lucid.Tensor, name) for name in shared}
    different = [name for name in shared if methods[name] not in (FUNCTIONS[name], plain[name])]
    assert len(shared) > 150
    assert set(different) == DIFFERENT
