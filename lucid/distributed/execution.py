"""Execution of a collective: it is posted without blocking, then waited for.

Waiting polls, so it answers Ctrl-C, notices failures of other ranks, and respects the timeout;
polling takes no longer than a blocking MPI call. Several may be in flight, posted in program order;
they are waited for in that order too, so that all ranks wait for the same one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.compiler.runtime.results import MAPPED_FROM, empty
from lucid.distributed.board import NOBODY, broken_error, key_of
from lucid.distributed.runtime import Group, Runtime, group_named, runtime
from lucid.errors import CollectiveMismatchError, CollectiveTimeoutError
from lucid.ir.types import Type
from lucid.support.caches import new_cache
from lucid.support.source import caller

SPINS = 20_000  # polls before the core is yielded to other processes: some milliseconds
CROWDED_SPINS = 400  # where ranks share cores
CHECK_EVERY = 0.1  # seconds between checks of the other ranks
HEADER = 512  # bytes that ranks compare in debug mode


class Call:
    """The facts known about a collective before it runs: its text and its key, for one line.

    text    name, types and line, as errors show them
    key     what all ranks of the group must agree on
    """

    __slots__ = ("bytes", "dest", "key", "number", "source", "text")

    def __init__(self, op: Any, x: Any, source: Any) -> None:
        place = "" if source is None else f"   [{source}]"
        signature = f"{op!r} of {Type(x.dtype, x.shape)}"
        self.text = f"{signature}{place}"
        self.bytes = self.text.encode()
        self.key = signature
        self.number = key_of(signature)
        self.dest, self.source = op.partners(group_named(op.group))


_calls: dict[Any, Call] = new_cache(f"{__name__}._calls", {})
_LIMIT = 4096


def call_of(op: Any, x: np.ndarray, source: Any) -> Call:
    """Return the Call of an operation on an array at a line, cached."""
    place = None if source is None else (getattr(source, "code", source), str_offset(source))
    key = (op, x.dtype, x.shape, place)
    found = _calls.get(key)
    if found is None:
        if len(_calls) >= _LIMIT:
            _calls.clear()
        found = _calls[key] = Call(op, x, source)
    return found


def str_offset(source: Any) -> Any:
    return getattr(source, "offset", None)


def run(op: Any, x: np.ndarray) -> np.ndarray:
    """Run a collective of an array and return its result."""
    result = op.infer(Type(x.dtype, x.shape))
    out = empty(result.shape, result.dtype, MAPPED_FROM)
    run_into(op, x, out, caller())
    return out


def run_into(op: Any, x: np.ndarray, out: np.ndarray, source: Any = None) -> None:
    """Run a collective of an array and write its result to another, which is contiguous."""
    if op.size == 1:
        out[...] = op.alone(x)
        return
    finish(begin(op, x, out, source))


class Started:
    """A collective under way.

    requests    of MPI
    after       what is to be done when they are complete
    memory      what MPI reads and writes until then
    """

    __slots__ = ("after", "call", "group", "memory", "number", "requests")

    def __init__(self, *requests: Any, after: Any = None) -> None:
        self.requests = requests
        self.after = after
        self.call: Any = None
        self.group: Any = None
        self.memory: Any = None
        self.number = 0


def begin(op: Any, x: np.ndarray, out: np.ndarray, source: Any) -> Started:
    """Post a collective whose memory stays as it is until `finish`."""
    world = runtime()
    group = group_named(op.group)
    call = call_of(op, x, source)
    if world.broken:
        raise broken_error(world.broken, call.text)
    if not x.flags.c_contiguous:
        x = np.ascontiguousarray(x)
    try:
        number = world.board.post(call.bytes)
        if world.debug:
            enter(world, group, call, number)
            compare(world, group, op, call)
            world.board.leave()
        started: Started = op.start(world.mpi, group, x, out)
    except BaseException as error:
        world.broken = f"{type(error).__name__} in {call.text}"
        raise
    started.call, started.group, started.number = call, group, number
    started.memory = x, out
    world.in_flight.append(started)
    return started


def finish(started: Started) -> None:
    """Wait for a collective, and before it for those that were posted earlier."""
    world = runtime()
    while started in world.in_flight:
        first = world.in_flight[0]
        enter(world, first.group, first.call, first.number)
        try:
            wait(world, first.group, first.requests, first.call)
            if first.after is not None:
                first.after()
        except BaseException as error:
            world.broken = f"{type(error).__name__} in {first.call.text}"
            raise
        world.in_flight.pop(0)
        world.board.leave()


def enter(world: Runtime, group: Group, call: Call, number: int) -> None:
    world.board.enter(number, call.bytes, group.number, call.number, call.dest, call.source)


def wait(world: Runtime, group: Group, requests: Sequence[Any], call: Call) -> None:
    """Wait until the requests are complete."""
    spins = CROWDED_SPINS if world.board.crowded else SPINS
    for request in requests:
        test = request.Test
        for _ in range(spins):
            if test():
                break
        else:
            wait_patiently(world, group, request, call)


def wait_patiently(world: Runtime, group: Group, request: Any, call: Call) -> None:
    """Wait, letting other processes run, and check now and then that the other ranks are alive."""
    test, give_way, now = request.Test, os.sched_yield, time.monotonic
    begin = now()
    look = begin + CHECK_EVERY
    partners = partners_of(group, call)
    while not test():
        give_way()
        time_now = now()
        if time_now < look:
            continue
        world.board.check(call.text, partners)
        if world.timeout is not None and time_now - begin > world.timeout:
            raise CollectiveTimeoutError(
                f"{call.text}: rank {world.rank} has waited {time_now - begin:.1f} s; "
                f"{world.board.describe_all()}; pass a longer timeout to init, or find the cause"
            )
        look = time_now + CHECK_EVERY


def partners_of(group: Group, call: Call) -> tuple[int, ...]:
    if call.dest == call.source == NOBODY:
        return group.ranks
    return tuple([r for r in (call.dest, call.source) if r != NOBODY])


def compare(world: Runtime, group: Group, op: Any, call: Call) -> None:
    """Raise an error if the ranks of a group are about to do different things."""
    mine = np.zeros(HEADER, np.uint8)
    text = call.bytes[:HEADER]
    mine[: len(text)] = np.frombuffer(text, np.uint8)
    all_of_them = np.zeros((group.size, HEADER), np.uint8)
    if call.dest == call.source == NOBODY:
        requests = [group.checks.Iallgather(mine, all_of_them)]
        others = list(range(group.size))
    else:
        requests = op.exchange(group, mine, all_of_them)
        others = [] if op.source < 0 else [op.source]
    wait(world, group, requests, call)
    texts = {r: bytes(all_of_them[r]).rstrip(b"\0").decode(errors="replace") for r in others}
    wanted = op.expected(call.key)
    wrong = [r for r, t in texts.items() if not wanted(t.rpartition("   [")[0] or t)]
    if wrong:
        found = "; ".join([f"rank {group.ranks[r]}: {t}" for r, t in texts.items()])
        raise CollectiveMismatchError(
            f"ranks are about to do different things: {found}; rank {world.rank} is in {call.text}"
        )
