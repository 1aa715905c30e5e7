"""Collectives as primitives. All but the extrema and the product are linear, and their adjoints are
collectives again.

The convention: the inner product of two values is the sum over all ranks of the inner products of
their parts, so a derivative is that of the sum over all ranks' results, with respect to what this
rank holds. Every adjoint here follows from it (docs/distributed.md).

    all_reduce sum      all_reduce sum          all_to_all           all_to_all
    all_gather          reduce_scatter          reduce_scatter       all_gather
    broadcast_from      reduce_to               reduce_to            broadcast_from
    scatter_from        gather_to               gather_to            scatter_from
    send to r           recv from r             recv from r          send to r
    sendrecv            sendrecv, back

Each is `ordered`: no pass drops, merges or reorders it. `group` names the group, `size` is its
number of ranks; `root`, `dest` and `source` are ranks in the group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.distributed.board import NOBODY
from lucid.distributed.execution import Started, run
from lucid.errors import DTypeError, ShapeError
from lucid.ir.primitive import NEVER
from lucid.ir.types import Type
from lucid.ops.core.kinds import Linear
from lucid.ops.shape.movement import Transpose
from lucid.support.caches import new_cache
from lucid.tape.bind import bind

LOWERING = "lucid.distributed.lowering:CollectiveLowering"
TAG = 7


def as_bytes(x: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array, as bytes: data that only moves needs no type."""
    return x.reshape(-1).view(np.uint8)


def move_batch(x: Any) -> Any:
    """Swap the first two axes: the examples of a batch, and the ranks."""
    return bind(Transpose((1, 0, *range(2, x.ndim))), x)


class Collective(Linear, abstract=True):
    """A collective call of all ranks of a group, linear in its operand."""

    group: str
    size: int

    ordered = True
    asynchronous = True
    native_from = NEVER
    lowering = LOWERING
    operand_layout = "dense"
    ranks_first = ""  # "x", "y": the operand, the result has an axis of ranks in front

    def infer(self, x: Type) -> Type:
        shape = x.shape
        if "x" in self.ranks_first:
            if not shape or shape[0] != self.size:
                raise ShapeError(
                    f"{self.name}: the first axis of {x} must have one row for each of the "
                    f"{self.size} ranks"
                )
            shape = shape[1:]
        return Type(x.dtype, (self.size, *shape) if "y" in self.ranks_first else shape)

    def eval(self, x: np.ndarray) -> np.ndarray:
        return run(self, x)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        x = move_batch(x) if "x" in self.ranks_first else x
        y = bind(self, x)
        return move_batch(y) if "y" in self.ranks_first else y

    def alone(self, x: np.ndarray) -> Any:
        """Return the result in a group of one rank."""
        x = x[0] if "x" in self.ranks_first else x
        return x[None] if "y" in self.ranks_first else x

    def start(self, mpi: Any, group: Any, x: np.ndarray, out: np.ndarray) -> Started:
        """Post the operation on contiguous arrays."""
        raise NotImplementedError

    def partners(self, group: Any) -> tuple[int, int]:
        """Return the ranks of the world that a message goes to and comes from."""
        return NOBODY, NOBODY

    def expected(self, key: str) -> Callable[[str], bool]:
        """Return what the description of another rank must satisfy."""
        return key.__eq__


class AllReduce(Collective):
    """The elementwise sum of all ranks' operands, on every rank."""

    def infer(self, x: Type) -> Type:
        if x.dtype.kind == "b":
            raise DTypeError(f"{self.name}: the sum of {x} has another dtype; cast it first")
        return x

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(self, ct)

    def start(self, mpi: Any, group: Any, x: np.ndarray, out: np.ndarray) -> Started:
        return reduction(x, out, lambda a, b: group.comm.Iallreduce(a, b, op=mpi.SUM))


def reduction(x: np.ndarray, out: np.ndarray, post: Callable[[Any, Any], Any]) -> Started:
    """Post a reduction; float16, which MPI does not add, is added in float32."""
    if x.dtype != np.float16:
        return Started(post(x.reshape(-1), out.reshape(-1)))
    wide = np.empty(out.shape, np.float32)

    def narrow() -> None:
        out[...] = wide

    return Started(post(x.reshape(-1).astype(np.float32), wide.reshape(-1)), after=narrow)


class AllGather(Collective):
    """The operands of all ranks, stacked along a new first axis, on every rank."""

    ranks_first = "y"

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(ReduceScatter(self.group, self.size), ct)

    def start(self, mpi: Any, group: Any, x: np.ndarray, out: np.ndarray) -> Started:
        return Started(group.comm.Iallgather(as_bytes(x), as_bytes(out)))


class ReduceScatter(Collective):
    """Row r of the sum of all ranks' operands, on rank r."""

    ranks_first = "x"

    def infer(self, x: Type) -> Type:
        if x.dtype.kind == "b":
            raise DTypeError(f"{self.name}: the sum of {x} has another dtype; cast it first")
        return Collective.infer(self, x)

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(AllGather(self.group, self.size), ct)

    def start(self, mpi: Any, group: Any, x: np.ndarray, out: np.ndarray) -> Started:
        return reduction(x, out, lambda a, b: group.comm.Ireduce_scatter_block(a, b, op=mpi.SUM))


class AllToAll(Collective):
    """Row s of the result on rank r is row r of the operand on rank s."""

    ranks_first = "xy"

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(self, ct)

    def start(self, mpi: Any, group: Any, x: np.ndarray, out: np.ndarray) -> Started:
        return Started(group.comm.Ialltoall(as_bytes(x), as_bytes(out)))


class BroadcastFrom(Collective):
    """The operand of rank `root`, on every rank."""

    root: int = 0

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(ReduceTo(self.group, self.size, self.root), ct)

    def start(self, mpi: Any, group: Any, x: np.ndarray, out: np.ndarray) -> Started:
        if group.rank == self.root:
            out[...] = x
        return Started(group.comm.Ibcast(as_bytes(out), self.root))


class ReduceTo(Collective):
    """The sum of all ranks' operands on rank `root`, zeros on the others."""

    root: int = 0

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(BroadcastFrom(self.group, self.size, self.root), ct)

    def start(self, mpi: Any, group: Any, x: np.ndarray, out: np.ndarray) -> Started:
        if group.rank != self.root:
            out[...] = 0
        target = group.rank == self.root

        def post(a: Any, b: Any) -> Any:
            return group.comm.Ireduce(a, b if target else None, op=mpi.SUM, root=self.root)

        if target or x.dtype != np.float16:
            return reduction(x, out, post)
        return Started(post(x.reshape(-1).astype(np.float32), None))


class ScatterFrom(Collective):
    """Row r of the operand of rank `root`, on rank r."""

    root: int = 0
    ranks_first = "x"

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(GatherTo(self.group, self.size, self.root), ct)

    def start(self, mpi: Any, group: Any, x: np.ndarray, out: np.ndarray) -> Started:
        given = as_bytes(x) if group.rank == self.root else None
        return Started(group.comm.Iscatter(given, as_bytes(out), self.root))


class GatherTo(Collective):
    """All operands, stacked along a new first axis, on rank `root`; zeros elsewhere."""

    root: int = 0
    ranks_first = "y"

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(ScatterFrom(self.group, self.size, self.root), ct)

    def start(self, mpi: Any, group: Any, x: np.ndarray, out: np.ndarray) -> Started:
        target = group.rank == self.root
        if not target:
            out[...] = 0
        return Started(
            group.comm.Igather(as_bytes(x), as_bytes(out) if target else None, self.root)
        )


class Barrier(Collective):
    """The operand, once all ranks have reached this point."""

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(self, ct)

    def start(self, mpi: Any, group: Any, x: np.ndarray, out: np.ndarray) -> Started:
        out[...] = x
        return Started(group.comm.Ibarrier())


class PointToPoint(Collective, abstract=True):
    """A message between two ranks of a group; -1 is nobody."""

    dest: int = -1
    source: int = -1

    def partners(self, group: Any) -> tuple[int, int]:
        return tuple([NOBODY if r < 0 else group.ranks[r] for r in (self.dest, self.source)])  # type: ignore[return-value]

    def expected(self, key: str) -> Callable[[str], bool]:
        type_here = key.rpartition(" of ")[2]
        return lambda text: text.rpartition(" of ")[2] == type_here

    def exchange(self, group: Any, mine: np.ndarray, others: np.ndarray) -> list[Any]:
        """Post the messages by which two ranks compare what they are about to do."""
        requests = []
        if self.source >= 0:
            requests.append(group.checks.Irecv(others[self.source], self.source, TAG))
        if self.dest >= 0:
            requests.append(group.checks.Isend(mine, self.dest, TAG))
        return requests

    def start(self, mpi: Any, group: Any, x: np.ndarray, out: np.ndarray) -> Started:
        requests = []
        if self.source >= 0:
            requests.append(group.comm.Irecv(as_bytes(out), self.source, TAG))
        elif out.shape == x.shape:
            out[...] = 0
        if self.dest >= 0:
            requests.append(group.comm.Isend(as_bytes(x), self.dest, TAG))
        return Started(*requests)


class SendRecv(PointToPoint):
    """The operand goes to rank `dest`; the result is that of rank `source`, zeros for nobody."""

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(SendRecv(self.group, self.size, self.source, self.dest), ct)

    def alone(self, x: np.ndarray) -> Any:
        return x if self.source >= 0 and self.dest >= 0 else np.zeros_like(x)


class Send(PointToPoint):
    """The operand goes to rank `dest`; the result is a zero that stands for the message."""

    def infer(self, x: Type) -> Type:
        return Type(x.dtype, ())

    def adjoint(self, ct: Any, x: Any) -> Any:
        like = ct.expand(x.shape)
        return bind(Recv(self.group, self.size, -1, self.dest), like)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x).expand((n,))

    def start(self, mpi: Any, group: Any, x: np.ndarray, out: np.ndarray) -> Started:
        out[...] = 0
        return Started(group.comm.Isend(as_bytes(x), self.dest, TAG))

    def alone(self, x: np.ndarray) -> Any:
        return np.zeros((), x.dtype)


class Recv(PointToPoint):
    """What rank `source` sends; the operand gives its type."""

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(Send(self.group, self.size, self.source, -1), ct).expand(ct.shape)

    def alone(self, x: np.ndarray) -> Any:
        return np.zeros_like(x)


class AllReduceExtremum(Collective):
    """The elementwise maximum or minimum of all ranks' operands, on every rank.

    Its derivative is that of `amax` over the gathered operands: shared equally where ranks tie.
    """

    largest: bool = True
    saves = "x"

    def infer(self, x: Type) -> Type:
        if x.dtype.kind == "c":
            raise DTypeError(f"{self.name}: {x} has no order; reduce its real or imaginary part")
        return x

    def share(self, x: Any) -> Any:
        """Return this rank's share of the extremum: 0, 1, or a fraction at a tie."""
        rows = bind(AllGather(self.group, self.size), x)
        best = rows.amax(dim=0) if self.largest else rows.amin(dim=0)
        ties = ((rows == best) | ((rows != rows) & (best != best))).to(x.dtype)
        return ties[my_rank(self.group)] / ties.sum(dim=0)

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return bind(AllReduce(self.group, self.size), ts[0] * self.share(x))

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (bind(AllReduce(self.group, self.size), ct) * self.share(x),)

    def start(self, mpi: Any, group: Any, x: np.ndarray, out: np.ndarray) -> Started:
        if x.dtype.kind == "b":
            op = mpi.LOR if self.largest else mpi.LAND
        else:
            op = (
                nan_aware(mpi, self.largest) if x.dtype.kind == "f" else extremum(mpi, self.largest)
            )
        return reduction(x, out, lambda a, b: group.comm.Iallreduce(a, b, op=op))


_ops: dict[bool, Any] = new_cache(f"{__name__}._ops", {})


def extremum(mpi: Any, largest: bool) -> Any:
    return mpi.MAX if largest else mpi.MIN


def nan_aware(mpi: Any, largest: bool) -> Any:
    """Return the MPI operation of np.maximum or np.minimum, in which a nan wins."""
    if largest not in _ops:
        function = np.maximum if largest else np.minimum

        def combine(a: Any, b: Any, datatype: Any) -> None:
            dtype = np.float32 if datatype.Get_size() == 4 else np.float64
            x, y = np.frombuffer(a, dtype), np.frombuffer(b, dtype)
            function(x, y, out=y)

        _ops[largest] = mpi.Op.Create(combine, commute=True)
    return _ops[largest]


class AllReduceProd(Collective):
    """The elementwise product of all ranks' operands, on every rank."""

    saves = "x"

    def infer(self, x: Type) -> Type:
        if x.dtype.kind == "b":
            raise DTypeError(f"{self.name}: the product of {x} has another dtype; cast it first")
        return x

    def others(self, x: Any) -> Any:
        """Return the product of the other ranks' operands; no quotient occurs."""
        rows, me = bind(AllGather(self.group, self.size), x), my_rank(self.group)
        return rows[:me].prod(dim=0) * rows[me + 1 :].prod(dim=0)

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return bind(AllReduce(self.group, self.size), ts[0] * self.others(x))

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (bind(AllReduce(self.group, self.size), ct) * self.others(x).conj(),)

    def start(self, mpi: Any, group: Any, x: np.ndarray, out: np.ndarray) -> Started:
        return reduction(x, out, lambda a, b: group.comm.Iallreduce(a, b, op=mpi.PROD))


def my_rank(group: str) -> int:
    from lucid.distributed.runtime import group_named

    found = group_named(group).rank
    assert found is not None
    return found
