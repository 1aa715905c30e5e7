"""The laws themselves: each one fails for a primitive that breaks it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lucid.ir.types import Type
from lucid.ops.core.kinds import Elementwise, Linear
from lucid.tape.bind import bind
from tests import laws
from tests.cases.case import Case, real


class Square(Elementwise):
    """Right in everything; the broken ones differ from it in one rule each."""

    name = "test_square"
    numpy = np.square
    accepts, saves = "f", "x"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (2.0 * x,)


class WrongValue(Square):
    name = "test_wrong_value"
    numpy = np.cbrt


class WrongDtype(Square):
    name = "test_wrong_dtype"

    def eval(self, x: np.ndarray) -> Any:
        return np.square(x).astype("float64")


class WrongPartial(Square):
    name = "test_wrong_partial"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (3.0 * x,)


class WrongSecondOrder(Square):
    name = "test_wrong_second_order"

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (2.0 * x.detach(),)


class WrongVjp(Square):
    name = "test_wrong_vjp"

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (ct,)


class NanFromZero(Elementwise):
    """A square root whose vjp multiplies zero by inf."""

    name = "test_nan_from_zero"
    accepts, saves = "f", "y"

    def eval(self, x: np.ndarray) -> Any:
        with np.errstate(all="ignore"):
            return np.sqrt(x)

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (0.5 / y,)

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (ct * (0.5 / y),)


class WrongSaves(Square):
    name = "test_wrong_saves"
    saves = ""


class WrongLayout(Square):
    name = "test_wrong_layout"

    def eval(self, x: np.ndarray) -> Any:
        return np.frombuffer(x.tobytes("A"), x.dtype).reshape(x.shape) ** 2


class Overwrites(Square):
    name = "test_overwrites"

    def eval(self, x: np.ndarray) -> Any:
        return np.square(x, out=x)


class Total(Linear):
    """A sum whose batch rule adds up the examples too."""

    name = "test_total"

    def infer(self, x: Type) -> Type:
        return Type(x.dtype, ())

    def eval(self, x: np.ndarray) -> Any:
        return np.sum(x)

    def adjoint(self, ct: Any, x: Any) -> Any:
        return ct.expand(x.shape)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x).expand((n,))


def case_of(op: Any, expected: Any = np.square) -> Case:
    return Case(op, (real(2, 3),), expected)


ALL = [
    lambda case: laws.value_is_expected(case, "float64"),
    lambda case: laws.infer_is_eval(case, "float32"),
    laws.layout_is_irrelevant,
    laws.jvp_is_finite_difference,
    laws.dot_product_law,
    laws.saves_covers_the_derivative,
    laws.order_two_is_finite_difference,
    laws.vmap_is_loop,
    laws.nested_vmap_is_loop,
    laws.text_round_trips,
    laws.half_precision_runs,
    laws.zero_stays_zero,
]


@pytest.mark.parametrize("law", ALL)
def test_right_primitive_obeys_every_law(law):
    law(case_of(Square()))


@pytest.mark.parametrize(
    ("case", "law"),
    [
        (case_of(WrongValue()), lambda case: laws.value_is_expected(case, "float64")),
        (case_of(WrongDtype()), lambda case: laws.infer_is_eval(case, "float32")),
        (case_of(WrongDtype()), laws.half_precision_runs),
        (case_of(WrongPartial()), laws.jvp_is_finite_difference),
        (case_of(WrongSecondOrder()), laws.order_two_is_finite_difference),
        (case_of(WrongVjp()), laws.dot_product_law),
        (case_of(NanFromZero(), np.sqrt), laws.zero_stays_zero),
        (case_of(WrongSaves()), laws.saves_covers_the_derivative),
        (case_of(WrongLayout()), laws.layout_is_irrelevant),
        (case_of(Total(), np.sum), laws.vmap_is_loop),
        (case_of(Total(), np.sum), laws.nested_vmap_is_loop),
    ],
    ids=lambda value: str(value) if isinstance(value, Case) else value.__name__,
)
def test_law_fails_for_a_primitive_that_breaks_it(case, law):
    with pytest.raises(AssertionError):
        law(case)


def test_eval_that_overwrites_its_operand_is_found():
    with pytest.raises(ValueError, match="read-only"):
        laws.layout_is_irrelevant(case_of(Overwrites()))
