"""Collectives in a world of one rank; tests/distributed has them on several."""

from __future__ import annotations

import numpy as np

from lucid.distributed.collectives import (
    AllGather,
    AllReduce,
    AllReduceExtremum,
    AllReduceProd,
    AllToAll,
    Barrier,
    BroadcastFrom,
    GatherTo,
    Recv,
    ReduceScatter,
    ReduceTo,
    ScatterFrom,
    Send,
    SendRecv,
)
from tests.cases.case import Case, boolean, complex_, integer, real

ONE = ("world", 1)


def same(x):
    return x


CASES = [
    Case(AllReduce(*ONE), (real(2, 3),), same),
    Case(AllReduce(*ONE), (complex_(3),), same, label="complex"),
    Case(AllReduce(*ONE), (integer(3),), same, label="integers"),
    Case(AllReduceExtremum(*ONE, True), (real(2, 3),), same),
    Case(AllReduceExtremum(*ONE, False), (boolean(3),), same, label="bool"),
    Case(AllReduceProd(*ONE), (real(2, 3),), same),
    Case(AllGather(*ONE), (real(2, 3),), lambda x: x[None]),
    Case(AllGather(*ONE), (real(),), lambda x: x[None], label="0-d"),
    Case(ReduceScatter(*ONE), (real(1, 2, 3),), lambda x: x[0]),
    Case(AllToAll(*ONE), (real(1, 3),), same),
    Case(BroadcastFrom(*ONE, 0), (real(2, 3),), same),
    Case(ReduceTo(*ONE, 0), (real(2, 3),), same),
    Case(ScatterFrom(*ONE, 0), (real(1, 3),), lambda x: x[0]),
    Case(GatherTo(*ONE, 0), (real(0, 3),), lambda x: x[None], label="empty"),
    Case(SendRecv(*ONE, 0, 0), (real(2, 3),), same),
    Case(SendRecv(*ONE, -1, -1), (real(2, 3),), np.zeros_like, label="nobody"),
    Case(Send(*ONE, 0, -1), (real(2, 3),), lambda x: np.zeros((), x.dtype)),
    Case(Recv(*ONE, -1, 0), (real(2, 3),), np.zeros_like),
    Case(Barrier(*ONE), (real(),), same),
]
