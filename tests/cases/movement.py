"""Cases for reshape, transpose, broadcast and their kin."""

import numpy as np

from lucid.ops.movement import Broadcast, Reshape, Transpose
from tests.cases.case import Case, complex_, integer, real

CASES = [
    Case(Reshape((3, 2)), (real(2, 3),), lambda x: np.reshape(x, (3, 2))),
    Case(Reshape(()), (real(1, 1),), lambda x: np.reshape(x, ())),
    Case(Reshape((0, 5)), (real(2, 0),), lambda x: np.reshape(x, (0, 5)), label="empty"),
    Case(Transpose((1, 0)), (real(2, 3),), np.transpose),
    Case(Transpose((2, 0, 1)), (complex_(2, 3, 4),), lambda x: np.transpose(x, (2, 0, 1))),
    Case(Transpose(()), (integer(),), lambda x: x),
    Case(Broadcast((4, 3), (1,)), (real(3),), lambda x: np.broadcast_to(x, (4, 3))),
    Case(Broadcast((2, 3), (0, 1)), (real(2, 1),), lambda x: np.broadcast_to(x, (2, 3))),
]
