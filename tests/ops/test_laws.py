"""Every primitive × every law. The cases are in tests/cases, the laws in tests/laws.py."""

from __future__ import annotations

import importlib
import pkgutil
import warnings

import pytest

import lucid.autograd
import lucid.ops
from lucid.ir.primitive import Primitive, all_primitives
from lucid.ops.core.kinds import Bilinear, Elementwise, Linear
from tests import laws
from tests.cases.case import Case
from tests.collect import collected


def modules_of(package) -> list:
    found = pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    return [importlib.import_module(m.name) for m in found]


def collect() -> list[Case]:
    return [case for found in collected("CASES") for case in found]


modules_of(lucid.ops)
CASES = collect()
PRIMITIVES = sorted(
    (cls for cls in all_primitives().values() if cls.__module__.startswith("lucid.")),
    key=lambda cls: cls.name,
)

# These hold Python objects of one run, which no table can: tests/autograd has their tests.
WITHOUT_CASE = {
    "watch": "a value on the tape with its hooks",
    "watched": "the cotangent of such a value",
    "watch_node": "an equation with the hooks of its Node; tests/autograd/test_graph.py",
    "prehooks": "the cotangents before such an equation",
    "posthooks": "the cotangents after such an equation",
    "saved": "an operation with packed values; tests/autograd/test_saved_tensors.py",
    "function_call": "one call of a user's Function with its context",
    "function_backward": "the backward of such a call",
    "custom_function": "a Function's own jvp or vmap; tests/autograd/functions/test_function.py",
    "once_differentiable": "its derivative is an error; tests/autograd/functions/test_function.py",
    "axis_sum": "over the examples of a vmap; tests/func/mapping/test_collectives.py",
    "axis_max": "over the examples of a vmap; tests/func/mapping/test_collectives.py",
    "axis_gather": "over the examples of a vmap; tests/func/mapping/test_collectives.py",
    "axis_scatter": "over the examples of a vmap; tests/func/mapping/test_collectives.py",
    "custom_batch": "a batch rule that is a function of Python; tests/func/test_jax_habits.py",
    "custom_jvp": "a rule that is a function of Python; tests/func/test_custom_rules.py",
}
# Primitives whose derivative is by definition not the slope of their value, with the reason.
NOT_THE_SLOPE = {
    "overwritten": "the value after a write that was not recorded, with the derivative before it",
    "ldl_solve": "the factors have none; that of the right-hand side is tested in test_ldl.py",
    "lu_solve": "the derivative with respect to the matrix, whose factors are given",
    "precomputed_det": "a value that is given, with its derivative with respect to the matrix",
    "precomputed_slogdet": "a value that is given, with its derivative with respect to the matrix",
    "precomputed_pinv": "a value that is given, with its derivative with respect to the matrix",
}


WITHOUT_TEXT = {
    "from_numba": "it holds a function of Numba's",
    "numba_arrays": "it holds a function of Numba's",
}


def has_text(case: Case) -> bool:
    return case.op.name not in WITHOUT_TEXT


def has_real(case: Case) -> bool:
    return any(arg.kind in ("real", "complex") for arg in case.args)


def cases(*keep) -> pytest.MarkDecorator:
    """Run a test for every case that passes the filters."""
    chosen = [case for case in CASES if all(test(case) for test in keep)]
    return pytest.mark.parametrize("case", unique(chosen), ids=str)


def unique(chosen: list[Case]) -> list:
    """The cases, numbered where two have the same id."""
    seen: dict[str, int] = {}
    out = []
    for case in chosen:
        name = str(case)
        seen[name] = seen.get(name, 0) + 1
        out.append(case if seen[name] == 1 else pytest.param(case, id=f"{name}-{seen[name]}"))
    return out


def derivable(case: Case) -> bool:
    return case.op.differentiable and has_real(case)


def smooth(case: Case) -> bool:
    return case.smooth and derivable(case)


def elementwise(case: Case) -> bool:
    return isinstance(case.op, Elementwise)


def real_only(case: Case) -> bool:
    kinds = {arg.kind for arg in case.args}
    return "real" in kinds and "complex" not in kinds and not any(arg.dtype for arg in case.args)


@pytest.fixture(autouse=True)
def warnings_are_errors():
    """NumPy's warnings (0/0, overflow) must not reach users."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@cases()
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_value_is_what_an_independent_source_gives(case, dtype):
    laws.value_is_expected(case, dtype)


@cases()
def test_infer_promises_what_eval_gives(case):
    for dtype in ("float64", "float32"):
        laws.infer_is_eval(case, dtype)


@cases(has_real)
def test_extremes_are_values_like_others(case):
    laws.extremes_are_values(case)


@cases()
def test_layout_of_operands_is_irrelevant(case):
    laws.layout_is_irrelevant(case)


@cases(smooth)
def test_jvp_is_the_finite_difference(case):
    laws.jvp_is_finite_difference(case)


@cases(derivable)
def test_jvp_and_vjp_are_adjoint(case):
    laws.dot_product_law(case)


@cases(derivable)
def test_derivatives_keep_their_types_in_single_and_half_precision(case):
    laws.derivative_keeps_types(case, "float32")
    laws.derivative_keeps_types(case, "float16")


@cases(derivable)
def test_saves_covers_what_the_derivative_reads(case):
    laws.saves_covers_the_derivative(case)


@cases(smooth)
def test_jvp_of_vjp_is_the_finite_difference(case):
    laws.order_two_is_finite_difference(case)


@cases(lambda case: case.args)
def test_vmap_is_the_stack_of_a_loop(case):
    laws.vmap_is_loop(case)


@cases(lambda case: case.args)
def test_vmap_over_one_example_is_that_example(case):
    laws.vmap_is_loop(case, n=1)


@cases(lambda case: case.args)
def test_vmap_of_vmap_is_the_stack_of_two_loops(case):
    laws.nested_vmap_is_loop(case)


@cases(has_text)
def test_text_of_the_graph_and_of_its_transforms_parses_back(case):
    laws.text_round_trips(case)


@cases(elementwise, has_text, lambda case: len(case.args) > 1)
def test_literal_operand_acts_as_a_tensor(case):
    laws.literal_is_tensor(case)


@cases(elementwise, derivable)
def test_zero_cotangent_stays_zero(case):
    laws.zero_stays_zero(case)


@cases(elementwise, real_only)
def test_half_precision_runs(case):
    laws.half_precision_runs(case)


# Completeness: a rule or a case that is missing is found here and not by a user


@pytest.mark.parametrize("cls", PRIMITIVES, ids=lambda cls: cls.name)
def test_every_primitive_has_a_case(cls):
    with_case = {type(case.op) for case in CASES}
    assert cls in with_case or cls.name in WITHOUT_CASE, (
        f"give {cls.__name__} a Case in tests/cases"
    )


@pytest.mark.parametrize("cls", PRIMITIVES, ids=lambda cls: cls.name)
def test_every_primitive_has_all_rules(cls):
    rules = ["infer", "eval", "batch", *(["jvp", "vjp"] if cls.differentiable else [])]
    missing = [rule for rule in rules if getattr(cls, rule) is getattr(Primitive, rule)]
    for kind, formulas in {
        Elementwise: ["partials"],
        Linear: ["adjoint"],
        Bilinear: ["left", "right"],
    }.items():
        if cls.differentiable and issubclass(cls, kind) and cls.vjp is kind.vjp:
            missing += [rule for rule in formulas if getattr(cls, rule) is getattr(kind, rule)]
    assert not missing, f"{cls.__name__} lacks {', '.join(missing)}"


@pytest.mark.parametrize(
    "cls", [c for c in PRIMITIVES if c.differentiable], ids=lambda cls: cls.name
)
def test_every_derivative_is_compared_with_finite_differences(cls):
    exempt = cls.name in WITHOUT_CASE or cls.name in NOT_THE_SLOPE
    assert exempt or any(type(c.op) is cls and smooth(c) for c in CASES)


def test_reasons_are_given_only_for_primitives_that_exist():
    assert {*WITHOUT_CASE, *NOT_THE_SLOPE} <= set(all_primitives())
