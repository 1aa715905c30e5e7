"""Rows of questions about tensors and dtypes, whose answers are Python values."""

import numpy as np

from lucid.errors import DTypeError, ShapeError
from tests.cases.case import boolean, complex_, integer, real
from tests.table.row import Row, bad, call

NOT_A_TENSOR = bad(DTypeError, "numeric", "text")
F64, F32, F16, I64, I32, BOOL = map(np.dtype, ("f8", "f4", "f2", "i8", "i4", "?"))


def answer(value):
    return np.array(value)


def question(name, expected, *calls, refused=(), torch=None, unmapped=""):
    """The answer is the same inside transforms: it depends on types alone."""
    return Row(
        name,
        lambda *args: np.array(expected(*args)),
        calls,
        refused,
        smooth=False,
        result=answer,
        torch=torch or (lambda t, *args: t.tensor(getattr(t, name)(*args))),
        unmapped=unmapped,
    )


def of_any_kind(name, expected, torch=None):
    calls = [call(real(2, 3)), call(integer(2)), call(complex_(2)), call(boolean(2)), call(real(0))]
    return question(name, expected, *calls, refused=[NOT_A_TENSOR], torch=torch)


def dtype_row(name, expected, *calls):
    return Row(
        name,
        lambda *args: np.array(np.dtype(expected(*args)).name),
        calls,
        [bad(DTypeError, "nonsense", "nonsense", "float32")]
        if name != "result_type"
        else [NOT_A_TENSOR],
        smooth=False,
        result=lambda dtype: np.array(str(dtype).replace("torch.", "")),
        unmapped="a dtype is no result of a mapped function",
        unjitted="a dtype is no result of a compiled function",
        torch=None,
    )


ROWS = [
    of_any_kind("numel", lambda x: x.size),
    of_any_kind("is_complex", lambda x: x.dtype.kind == "c"),
    of_any_kind("is_floating_point", lambda x: x.dtype.kind == "f"),
    of_any_kind(
        "is_signed", lambda x: x.dtype.kind in "ifc", torch=lambda t, x: t.tensor(x.is_signed())
    ),
    of_any_kind("is_conj", lambda x: False),
    of_any_kind("is_neg", lambda x: False),
    of_any_kind("is_inference", lambda x: False),
    question(
        "is_tensor", lambda x: isinstance(x, np.ndarray), call(real(2)), call(1.5), call("text")
    ),
    question(
        "is_same_size",
        lambda x, other: x.shape == other.shape,
        call(real(2), real(2)),
        call(real(2), real(1)),
        call(real(0), real()),
        refused=[bad(DTypeError, "numeric", real(2), "text")],
        torch=lambda t, x, other: t.tensor(x.is_same_size(other)),
    ),
    question(
        "is_nonzero",
        lambda x: bool(x),
        call(real()),
        call(real(1, 1)),
        call(integer(1, low=0, high=1)),
        refused=[bad(ShapeError, "one number", real(2)), bad(ShapeError, "one number", real(0))],
        unmapped="the answer depends on the value",
    ),
    question(
        "can_cast",
        lambda a, b: "biufc".replace("iu", "i").index(a.kind) <= "bifc".index(b.kind),
        call(F64, F32),
        call(F32, I64),
        call(BOOL, I32),
        call(I64, F16),
        refused=[bad(DTypeError, "nonsense", "nonsense", "float32")],
    ),
    dtype_row("promote_types", lambda a, b: b, call(I32, F16), call(BOOL, I32), call(F32, F64)),
    dtype_row(
        "result_type",
        lambda *xs: xs[0].dtype,
        call(real(2, dtype="float16"), 1.5),
        call(integer(2), 3),
        call(real(2, dtype="float16"), integer(2)),
    ),
]
