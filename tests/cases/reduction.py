"""Cases for sums, products, extrema, truth and logsumexp."""

import numpy as np
from scipy import special

from lucid.ops.nn.softmax import LogSoftmax, LogSoftmaxAt, Softmax
from lucid.ops.reduce.extrema import Argmax, Argmin, Max, Min
from lucid.ops.reduce.reduction import AllTrue, AnyTrue, LogSumExp, Prod, Sum
from lucid.ops.reduce.statistics import Variance
from tests.cases.case import Case, boolean, complex_, index, integer, real


def reducing(numpy, axes, **options):
    return lambda x: numpy(x, axis=axes, **options)


SUMS = [
    Case(Sum(()), (real(2, 3),), lambda x: x, label="no-axes"),
    Case(Sum(()), (real(),), lambda x: x),
    Case(Sum((0,)), (real(4),), np.sum),
    Case(Sum((1,)), (real(2, 3, 4),), reducing(np.sum, 1)),
    Case(Sum((0, 2)), (complex_(2, 3, 4),), reducing(np.sum, (0, 2))),
    Case(Sum((0, 1)), (integer(3, 2),), np.sum),
    Case(Sum((1,)), (real(2, 0),), reducing(np.sum, 1), label="empty"),
    Case(Sum((1,)), (real(0, 2),), reducing(np.sum, 1), label="empty-result"),
]

PRODUCTS = [
    Case(Prod(()), (real(2, 3),), lambda x: x, label="no-axes"),
    Case(Prod(()), (real(),), lambda x: x),
    Case(Prod((0,)), (real(5),), np.prod),
    Case(Prod((0,)), (real(1, 3),), reducing(np.prod, 0)),
    Case(Prod((1,)), (real(2, 3, 2),), reducing(np.prod, 1)),
    Case(Prod((0, 2)), (real(2, 3, 2),), reducing(np.prod, (0, 2))),
    Case(Prod((0, 1)), (complex_(2, 2),), np.prod),
    Case(Prod((0,)), (integer(3, 2),), reducing(np.prod, 0)),
    Case(Prod((0, 1)), (real(2, 0),), np.prod, label="empty"),
    Case(Prod((1,)), (real(0, 2),), reducing(np.prod, 1), label="empty-result"),
    Case(Prod((0,)), (real(4, low=0, high=0),), np.prod, label="all-zero"),
    Case(Prod((1,)), (real(3, 2, low=0, high=0),), reducing(np.prod, 1), label="two-zeros"),
]

EXTREMA = [
    case
    for op, numpy in ((Max, np.max), (Min, np.min))
    for case in (
        Case(op(()), (real(),), lambda x: x),
        Case(op((0,)), (real(5, distinct=True),), numpy),
        Case(op((1,)), (real(2, 4, 3, distinct=True),), reducing(numpy, 1)),
        Case(op((0, 2)), (real(2, 3, 4, distinct=True),), reducing(numpy, (0, 2))),
        Case(op((1,)), (integer(3, 4),), reducing(numpy, 1)),
        Case(op((0,)), (boolean(4, 2),), reducing(numpy, 0)),
        Case(op((1,)), (real(0, 3),), reducing(numpy, 1), label="empty-result"),
    )
]

INDICES = [
    case
    for op, numpy in ((Argmax, np.argmax), (Argmin, np.argmin))
    for case in (
        Case(op(0), (real(5),), numpy),
        Case(op(1), (real(2, 4, 3),), reducing(numpy, 1)),
        Case(op(0), (integer(4, 3, low=0, high=3),), reducing(numpy, 0), label="ties"),
        Case(op(1), (boolean(3, 4),), reducing(numpy, 1)),
        Case(op(1), (real(0, 3),), reducing(numpy, 1), label="empty-result"),
    )
]

TRUTH = [
    case
    for op, numpy in ((AnyTrue, np.any), (AllTrue, np.all))
    for case in (
        Case(op((1,)), (boolean(4, 2),), reducing(numpy, 1)),
        Case(op(()), (boolean(),), lambda x: x),
        Case(op((0, 1)), (integer(2, 2, low=0, high=2),), numpy),
        Case(op((0,)), (real(3, 2),), reducing(numpy, 0)),
        Case(op((0,)), (complex_(3, 2),), reducing(numpy, 0)),
        Case(op((0,)), (boolean(0, 2),), reducing(numpy, 0), label="empty"),
    )
]

VARIANCES = [
    Case(Variance((0,)), (real(5),), lambda x: x.var(ddof=1)),
    Case(Variance((1,)), (real(3, 4),), lambda x: x.var(1, ddof=1)),
    Case(Variance((0, 2), 0.0), (real(2, 3, 4),), lambda x: x.var((0, 2))),
    Case(Variance((0,), 2.5), (real(5, 2, low=40, high=60),), lambda x: x.var(0, ddof=2.5)),
    Case(Variance((1,), 0.0), (real(0, 3),), lambda x: x.var(1), label="no rows"),
]

LOGSUMEXP = [
    Case(Softmax((1,)), (real(3, 4),), lambda x: special.softmax(x, 1)),
    Case(Softmax((0,)), (real(5, low=-60, high=60),), special.softmax),
    Case(Softmax((0, 2)), (real(2, 3, 4),), lambda x: special.softmax(x, (0, 2))),
    Case(Softmax(()), (real(),), lambda x: np.ones((), x.dtype)),
    Case(Softmax((1,)), (real(2, 0),), lambda x: x, "empty"),
    Case(LogSoftmax((1,)), (real(3, 4),), lambda x: special.log_softmax(x, 1)),
    Case(LogSoftmax((0,)), (real(5, low=-60, high=60),), special.log_softmax),
    Case(LogSoftmax((1, 2)), (real(2, 3, 4),), lambda x: special.log_softmax(x, (1, 2))),
    Case(LogSoftmax((1,)), (real(2, 0),), lambda x: x, "empty"),
    Case(
        LogSoftmaxAt(1),
        (real(3, 4), index(3, 1, high=4)),
        lambda x, i: np.take_along_axis(special.log_softmax(x, 1), i, 1),
    ),
    Case(
        LogSoftmaxAt(0),
        (real(5, 2, low=-60, high=60), index(3, 2, high=5)),
        lambda x, i: np.take_along_axis(special.log_softmax(x, 0), i, 0),
    ),
    Case(LogSoftmaxAt(1), (real(0, 4), index(0, 1, high=4)), lambda x, i: x[:, :1], "empty"),
    Case(LogSumExp(()), (real(),), lambda x: x),
    Case(LogSumExp((0,)), (real(5),), special.logsumexp),
    Case(LogSumExp((1,)), (real(2, 3, 4),), reducing(special.logsumexp, 1)),
    Case(
        LogSumExp((0, 2)), (real(2, 3, 4, low=-50, high=50),), reducing(special.logsumexp, (0, 2))
    ),
    Case(LogSumExp((1,)), (real(2, 0),), lambda x: np.full(2, -np.inf, x.dtype), "empty", False),
    Case(LogSumExp((1,)), (real(0, 2),), lambda x: np.zeros(0, x.dtype), label="empty-result"),
]

CASES = [*SUMS, *PRODUCTS, *EXTREMA, *INDICES, *TRUTH, *VARIANCES, *LOGSUMEXP]
