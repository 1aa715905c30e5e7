"""The state of traced bodies outside them: read before a program runs, written back after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from lucid.autograd.modes import no_grad
from lucid.ir.types import is_differentiable
from lucid.ops.shape.copying import COPY
from lucid.support.locks import Locks
from lucid.tape.bind import bind
from lucid.tape.node import is_recording, wrap
from lucid.tape.recording.body import State
from lucid.tensors.mutation import assign


def write_back(state: Sequence[State], values: Sequence[Any], what: str) -> None:
    """Write the values that a program leaves to its state, once."""
    for s, value in zip(state, values):
        if value.raw is not None and not is_recording():
            if s.detached or not is_differentiable(value.dtype):
                value = wrap(value.value)  # no derivative needs how it was computed
        with no_grad() if s.detached else nullcontext():
            assign(s.tensor, value, what)


def locks_of(state: Sequence[State], traces: bool = False) -> Locks:
    """Return the locks to hold from reading the state to writing it back."""
    return Locks([lock for s in state for lock in s.locks], traces)


def run_with_state(
    what: str, state: Sequence[State], run: Callable[[list[Any]], Sequence[Any]]
) -> Sequence[Any]:
    """Run a program on its state, write back what it leaves there, and return its other results."""
    if not state:
        return run([])

    def run_and_write() -> Sequence[Any]:
        outs = run([bind(COPY, s.tensor) for s in state])  # a derivative may need the value before
        write_back(state, outs, what)
        return outs[len(state) :]

    return locks_of(state).run(run_and_write)  # type: ignore[no-any-return]
