"""Cases for comparisons, logic, bits, and for choosing between operands."""

import numpy as np

from lucid.ops.elementwise import conditional as c
from lucid.ops.elementwise import logic as g
from tests.cases.case import Case, boolean, complex_, integer, real
from tests.cases.elementwise import binary, unary

COMPARISONS = [
    case
    for op, numpy in [
        (g.EQ, np.equal),
        (g.NE, np.not_equal),
        (g.LT, np.less),
        (g.LE, np.less_equal),
        (g.GT, np.greater),
        (g.GE, np.greater_equal),
    ]
    for case in [
        *binary(op, numpy, real(), real()),
        Case(op, (integer(9, high=0), integer(9, high=0)), numpy),
        Case(op, (boolean(4), boolean(2, 1)), numpy, label="bool"),
    ]
] + [
    Case(g.EQ, (complex_(3), complex_(3)), np.equal),
    Case(g.NE, (complex_(3), complex_(3)), np.not_equal),
]

TESTS = [
    case
    for op, numpy in [(g.ISNAN, np.isnan), (g.ISINF, np.isinf), (g.ISFINITE, np.isfinite)]
    for case in unary(op, numpy, real(2, 3), complex_(3), integer(3), boolean(3))
]

BITS = [
    *[
        case
        for op, numpy in [
            (g.AND, np.bitwise_and),
            (g.OR, np.bitwise_or),
            (g.XOR, np.bitwise_xor),
        ]
        for case in [
            *binary(op, numpy, integer(low=-99, high=99), integer(low=-99, high=99)),
            Case(op, (boolean(4), boolean(2, 1)), numpy, label="bool"),
            Case(op, (integer(4, low=0, dtype="uint8"), integer(4, low=0, dtype="uint8")), numpy),
        ]
    ],
    *unary(g.NOT, np.invert, integer(5), boolean(5)),
    *binary(g.LEFT_SHIFT, np.left_shift, integer(), integer(low=0, high=9)),
    *binary(g.RIGHT_SHIFT, np.right_shift, integer(low=-999, high=999), integer(low=0, high=9)),
]

CHOICES = [
    Case(c.WHERE, (boolean(2, 3), real(2, 3), real(2, 3)), np.where),
    Case(c.WHERE, (boolean(2, 3), real(3), real()), np.where),
    Case(c.WHERE, (boolean(), real(2, 1), real(3)), np.where),
    Case(c.WHERE, (boolean(3), complex_(3), complex_(2, 3)), np.where, label="complex"),
    Case(c.WHERE, (boolean(3), integer(3), integer(3)), np.where, label="int"),
    Case(c.WHERE, (boolean(0), real(1), real(0)), np.where, label="empty"),
    Case(c.WHERE, (boolean(), real(), real()), np.where),
    *unary(c.RELU, lambda x: np.maximum(x, 0), real(2, 3, avoid=0.2), integer(5)),
    *binary(c.MAXIMUM, np.maximum, real(), real()),
    Case(c.MAXIMUM, (integer(5), integer(2, 1)), np.maximum),
    Case(c.MAXIMUM, (boolean(5), boolean(2, 1)), np.maximum, label="bool"),
    *binary(c.MINIMUM, np.minimum, real(), real()),
    Case(c.MINIMUM, (integer(5), integer(2, 1)), np.minimum),
    Case(c.CLAMP, (real(20), real(low=-1, high=-0.5), real(low=0.5, high=1)), np.clip),
    Case(c.CLAMP, (real(2, 3), real(3, high=0), real(2, 1, low=0)), np.clip),
    Case(c.CLAMP, (real(9, low=0), real(9, low=0), real(9, high=0)), np.clip, label="crossed"),
    Case(c.CLAMP, (real(0), real(1), real()), np.clip, label="empty"),
    Case(c.CLAMP, (integer(9), integer(low=-2, high=0), integer(low=1)), np.clip, label="int"),
]

CASES = [*COMPARISONS, *TESTS, *BITS, *CHOICES]
