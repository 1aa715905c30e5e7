"""The world: this process's rank, groups of ranks, and how MPI starts and ends.

Without mpiexec, or without mpi4py, the world is this process alone, and every collective is a
local computation: a program runs unchanged.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from typing import Any

from lucid.distributed.board import Board, LocalBoard
from lucid.errors import ArgumentError, DistributedError
from lucid.public.declare import public
from lucid.support.settings import setting

WORLD = "world"
LAUNCHERS = ("PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE")  # set by mpiexec


@public("distributed")
class Group:
    """Ranks that communicate with one another; `rank` is this process's number among them.

    name     how the text of a Graph names it: "world", or its ranks
    ranks    the members, as ranks of the world
    rank     this process's position among them, None if it is not a member
    """

    def __init__(self, name: str, ranks: Sequence[int], me: int, comm: Any, number: int) -> None:
        self.name = name
        self.ranks = tuple(ranks)
        self.rank = self.ranks.index(me) if me in self.ranks else None
        self.comm = comm
        self.number = number
        self.checks: Any = comm.Dup() if comm is not None and self.rank is not None else None

    @property
    def size(self) -> int:
        return len(self.ranks)

    def __repr__(self) -> str:
        return f"Group({self.name}: rank {self.rank} of {self.size})"


class Runtime:
    """What a process knows about the world.

    mpi        the module mpi4py.MPI, None if the process is alone
    board      what every rank is doing
    groups     by name
    timeout    seconds after which a collective raises, None for never
    debug      whether ranks compare what they are about to do
    broken     why collectives can no longer run; "" if they can
    in_flight  collectives that were posted and not waited for yet, in order
    """

    def __init__(self, mpi: Any, timeout: float | None, debug: bool) -> None:
        self.mpi = mpi
        self.timeout = timeout
        self.debug = debug
        self.broken = ""
        self.in_flight: list[Any] = []
        comm: Any = None if mpi is None else mpi.COMM_WORLD.Dup()
        self.comm = comm
        self.rank = 0 if comm is None else comm.Get_rank()
        self.size = 1 if comm is None else comm.Get_size()
        alone = self.size == 1
        self.board: Any = LocalBoard() if alone else Board(mpi, comm)
        self.groups: dict[str, Group] = {}
        self.add_group(WORLD, range(self.size), comm)

    def add_group(self, name: str, ranks: Sequence[int], comm: Any) -> Group:
        group = Group(name, ranks, self.rank, comm, len(self.groups))
        self.groups[name] = group
        self.board.groups.append(group.ranks)
        return group

    def install_hooks(self) -> None:
        """Let an uncaught error of this rank end the job, and let others know if it finishes."""
        if self.size == 1:
            return
        before = sys.excepthook

        def report(kind: type[BaseException], error: BaseException, trace: Any) -> None:
            print(f"rank {self.rank} of {self.size}:", file=sys.stderr)
            before(kind, error, trace)
            sys.stderr.flush()
            self.board.fail(error)
            self.comm.Abort(1)

        sys.excepthook = report
        atexit.register(self.finish)

    def finish(self) -> None:
        """End this rank's part of the job at the exit of the process."""
        self.board.finish()
        if self.broken:
            sys.stderr.flush()
            self.comm.Abort(1)


_runtime: list[Runtime] = []


def runtime() -> Runtime:
    """Return the Runtime of this process, starting MPI if it has not been."""
    return _runtime[0] if _runtime else start()


def start(timeout: float | None = None, debug: bool | None = None) -> Runtime:
    mpi = load_mpi()
    if timeout is None:
        timeout = setting("LUCID_DISTRIBUTED_TIMEOUT")
    if debug is None:
        debug = setting("LUCID_DISTRIBUTED_DEBUG")
    found = Runtime(mpi, timeout, debug)
    _runtime.append(found)
    found.install_hooks()
    return found


def load_mpi() -> Any:
    """Return mpi4py.MPI, or None if the process was not started by mpiexec."""
    launched = any([name in os.environ for name in LAUNCHERS])
    if not launched:
        return None
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise DistributedError(
            f"init: mpiexec started this process, but MPI is not available: {error}; install "
            "lucid-autodiff[mpi]"
        ) from error
    return MPI


@public("distributed")
def init(timeout: float | None = None, debug: bool | None = None) -> None:
    """Start MPI on every rank; otherwise the first collective starts it with the defaults.

    timeout    seconds that a collective may wait for other ranks; 1800, or
               LUCID_DISTRIBUTED_TIMEOUT
    debug      compare every collective between ranks before it runs, so that a mismatch is an
               error that names both; also LUCID_DISTRIBUTED_DEBUG=1
    """
    if not _runtime:
        start(timeout, debug)
        return
    found = runtime()
    found.timeout = found.timeout if timeout is None else timeout
    found.debug = found.debug if debug is None else debug


@public("distributed")
def rank(group: Group | None = None) -> int:
    """Return this process's number, from 0, in the world or in a group of which it is a member."""
    if group is None:
        return runtime().rank
    if group.rank is None:
        raise ArgumentError(f"rank: this process is not a member of {group.name}")
    return group.rank


@public("distributed")
def world_size(group: Group | None = None) -> int:
    """Return the number of processes in the world or in a group."""
    return runtime().size if group is None else group.size


@public("distributed")
def new_group(ranks: Sequence[int]) -> Group:
    """Return a group of some ranks of the world. Every rank of the world calls it.

    Collectives with `group=` run among its members only; ranks in the group follow the order of
    the world.
    """
    world = runtime()
    members = sorted({int(r) for r in ranks})
    if not members or members[0] < 0 or members[-1] >= world.size:
        raise ArgumentError(f"new_group: ranks {list(ranks)} in a world of {world.size}")
    name = ",".join(map(str, members))
    if name in world.groups:
        return world.groups[name]
    comm = None
    if world.comm is not None:
        inside = world.rank in members
        comm = world.comm.Split(0 if inside else world.mpi.UNDEFINED, world.rank)
    return world.add_group(name, members, comm if world.rank in members else None)


def group_named(name: str) -> Group:
    """Return the group that the text of a Graph names."""
    found = runtime().groups.get(name)
    if found is None:
        raise DistributedError(f"there is no group {name!r} in this process; call new_group first")
    return found


@public("distributed")
def manual_seed(seed: int, *, same: bool = False) -> None:
    """Seed the random numbers of this rank: differently on each one, unless `same`.

    Use `same=True` to initialize parameters, and the default for dropout and data augmentation.
    """
    from lucid.random.draws import manual_seed as set_seed

    set_seed(seed if same else seed * 1_000_003 + runtime().rank)
