"""Cases for full and iota."""

import numpy as np

from lucid.ops.shape.full_and_iota import Full, Iota
from tests.cases.case import Case, boolean, complex_, integer, real


def full(shape):
    return lambda value: np.full(shape, value)


CASES = [
    Case(Full((2, 3), "f64"), (real(dtype="float64"),), full((2, 3))),
    Case(Full((2,), "f32"), (real(dtype="float32"),), full((2,))),
    Case(Full((), "f64"), (real(dtype="float64"),), full(())),
    Case(Full((0, 2), "f64"), (real(dtype="float64"),), full((0, 2))),
    Case(Full((2,), "c128"), (complex_(dtype="complex128"),), full((2,))),
    Case(Full((2,), "i64"), (integer(),), full((2,))),
    Case(Full((3,), "bool"), (boolean(),), full((3,))),
    Case(Iota((4,), 0, "i64"), (), lambda: np.arange(4)),
    Case(Iota((2, 3), 1, "f32"), (), lambda: np.array([[0, 1, 2]] * 2, "float32")),
    Case(Iota((2, 3), 0, "u8"), (), lambda: np.array([[0] * 3, [1] * 3], "uint8")),
    Case(Iota((0, 3), 0, "i32"), (), lambda: np.zeros((0, 3), "int32")),
]
