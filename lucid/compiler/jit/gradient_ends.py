"""gradient_ends: what a recorded run leaves as the gradients of tensors from outside."""

from __future__ import annotations

from typing import Any, NamedTuple

from lucid.tape.recording.recorder import Recorder
from lucid.tape.views import node_of


class Gradient(NamedTuple):
    """A leaf of the result that is the gradient of a leaf itself."""

    cell: Any


COMPUTED = object()  # a gradient that the program computes


def gradient_end(cell: Any, recorder: Recorder) -> Any:
    """Return what a recorded run leaves as the gradient in a cell.

    The cell whose gradient it was before (mostly this one), another tensor, COMPUTED or None.
    """
    y = cell.grad
    if y is None:
        return None
    found = recorder.grads.get(id(y))
    if found is not None:
        return found
    return y if id(y) not in recorder.arguments and is_outside(y, recorder) else COMPUTED


def is_outside(y: Any, recorder: Recorder) -> bool:
    """True for a tensor that the run has read or written, and that is older."""
    return id(y) in recorder.written or recorder.captured.get(node_of(y)) is y
