"""Every public name × every law: the rows are in the files beside this one."""

from __future__ import annotations

import importlib
import inspect
import warnings

import pytest

from lucid.public import index
from tests.table import laws
from tests.table.row import Row, rows

NAMESPACES = ("", "linalg", "special", "fft", "nn.functional")
# Exported, and not operations on tensors: they have tests of their own.
NOT_OPERATIONS = {
    "Generator", "Tensor", "clear_caches", "compile", "enable_grad", "explain_no_grad", "export",
    "find_nan", "get_default_dtype", "memory", "precision", "verify",
    "get_num_threads", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "jit",
    "manual_seed", "no_grad", "profile", "set_default_dtype", "set_grad_enabled",
    "set_num_threads", "seed", "initial_seed", "get_rng_state", "load", "save", "set_rng_state",
    "set_printoptions", "view", "vmap",
}  # fmt: skip
# `lucid.exp_(x)` is `x.exp_()`: tests/tensors/test_inplace_functions.py
IN_PLACE = set(index.NAMES["lucid"]["tensors.inplace_functions"].split())
TESTED_ELSEWHERE = NOT_OPERATIONS | IN_PLACE

ROWS = rows()


def pairs(*keep) -> pytest.MarkDecorator:
    """Run a test for every call of every row that passes the filters."""
    seen: dict[str, int] = {}
    out = []
    for row in ROWS:
        for c in row.calls:
            if all(test(row, c) for test in keep):
                name = f"{row.name}-{c}"
                seen[name] = seen.get(name, 0) + 1
                out.append(pytest.param(row, c, id=f"{name}-{seen[name]}"))
    return pytest.mark.parametrize(("row", "c"), out)


def smooth(row, c) -> bool:
    return row.is_smooth(c)


def jitted(row, c) -> bool:
    return not row.unjitted


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pairs()
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_value_is_what_an_independent_source_gives(row, c, dtype):
    laws.value_is_expected(row, c, dtype)


@pairs(lambda row, c: not row.laid_out)
def test_layout_of_arguments_is_irrelevant(row, c):
    laws.layout_is_irrelevant(row, c)


@pairs(smooth)
def test_jvp_is_the_finite_difference(row, c):
    laws.jvp_is_the_slope(row, c)


@pairs(smooth)
def test_vjp_is_the_adjoint_of_jvp(row, c):
    laws.vjp_is_the_adjoint_of_jvp(row, c)


@pairs(smooth)
def test_order_two_is_the_finite_difference_of_vjp(row, c):
    laws.order_two_is_the_slope_of_vjp(row, c)


@pairs(lambda row, c: laws.arguments_in(c))
def test_vmap_is_the_stack_of_a_loop(row, c):
    laws.vmap_is_the_stack_of_a_loop(row, c)


@pairs(jitted)
def test_jit_is_eager(row, c):
    laws.jit_is_eager(row, c)


@pytest.mark.parametrize(
    ("row", "refused"),
    [
        pytest.param(row, refused, id=f"{row.name}-{i}")
        for row in ROWS
        for i, refused in enumerate(row.refused)
    ],
)
def test_bad_input_is_refused(row, refused):
    laws.refusal_is_clear(row, refused)


# Completeness


def exported() -> list[str]:
    """The public names that are operations, with their namespace."""
    names = []
    for space in NAMESPACES:
        try:
            module = importlib.import_module(f"lucid.{space}".rstrip("."))
        except ModuleNotFoundError:
            continue
        for name in getattr(module, "__all__", ()):
            full = f"{space}.{name}".lstrip(".")
            if inspect.isfunction(getattr(module, name)) and full not in TESTED_ELSEWHERE:
                names.append(full)
    return names


@pytest.mark.parametrize("name", exported())
def test_every_exported_name_has_a_row(name):
    """A row of an alias (the same function by another name) counts."""
    functions = {inspect.unwrap(laws.function_of(row)) for row in ROWS}
    function = inspect.unwrap(laws.function_of(Row(name, None, ())))  # with or without `out`
    assert function in functions, f"give {name} a Row in tests/table"


def test_every_name_stands_in_the_table_once():
    names = [row.name for row in ROWS]
    assert sorted(names) == sorted(set(names))
