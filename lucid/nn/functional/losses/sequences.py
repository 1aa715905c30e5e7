"""The loss of sequences without an alignment: connectionist temporal classification."""

from __future__ import annotations

import math
from typing import Any

from lucid.errors import ArgumentError, IndexingError, ShapeError
from lucid.func.control_flow import scan
from lucid.ir.source import at_line
from lucid.nn.functional.arguments import integers, known_array, real, reduced, reduction_of, whole
from lucid.ops.core.arguments import explained
from lucid.ops.core.promote import cast
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.exponential import logaddexp
from lucid.ops.index.gather_scatter import TakeAlong
from lucid.ops.shape.creation import arange, full
from lucid.ops.shape.joining import cat, stack
from lucid.tape.bind import bind

NEVER = -1e30  # the log of no probability: finite, so that no derivative meets inf - inf


@explained
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """-log of the probability that a path through `log_probs` reads as the target.

    `log_probs` is (time, batch, class), or (time, class) for one example; a path reads as what is
    left when repeated classes are joined and blanks taken away. Targets are rows (batch, length) or
    all in one vector. `mean` divides by the lengths of the targets first. A target that no path
    gives has the loss inf, or 0 with `zero_infinity`, and no gradient. The gradient is that of the
    formula for any `log_probs`, whether or not they are normalised.
    """
    name, x = "ctc_loss", real("ctc_loss", log_probs)
    reduction = reduction_of(name, reduction)
    single = x.ndim == 2
    if x.ndim not in (2, 3) or not x.shape[0]:
        facts = f"log_probs of shape {x.shape}; they must be (time, batch, class)"
        raise ShapeError(f"{name}: {facts}{at_line()}")
    x = x.reshape(x.shape[0], 1, x.shape[1]) if single else x
    dtype = x.dtype
    x = cast(x, "float32") if dtype.itemsize < 4 else x  # float16 holds no NEVER
    times, batch, classes = x.shape
    blank = whole(name, blank, "blank")
    if blank >= classes:
        raise IndexingError(f"{name}: blank={blank} of {classes} classes{at_line()}")
    steps = lengths_of(name, "input_lengths", input_lengths, batch, times)
    sizes = lengths_of(name, "target_lengths", target_lengths, batch, None)
    labels = rows_of(name, targets, sizes, batch, classes)
    loss = -log_likelihood(clamp(x, NEVER), labels, steps, sizes, blank)
    loss = where(loss > -0.1 * NEVER, 0.0 if zero_infinity else math.inf, loss)
    if reduction == "mean":
        loss = loss / cast(clamp(sizes, 1), x.dtype)
    return cast(reduced(loss.reshape(()) if single else loss, reduction), dtype)


def lengths_of(name: str, what: str, given: Any, batch: int, most: int | None) -> Any:
    lengths = integers(name, given, what).reshape(-1)
    if lengths.shape != (batch,):
        facts = f"{lengths.shape[0]} {what} for a batch of {batch}"
        raise ShapeError(f"{name}: {facts}{at_line()}")
    known = known_array(lengths)
    if known is not None and known.size:
        if known.min() < 0 or (most is not None and known.max() > most):
            limit = "" if most is None else f" and at most {most}"
            facts = f"{what} from {known.min()} to {known.max()}"
            raise ArgumentError(f"{name}: {facts}; they must not be negative{limit}{at_line()}")
    return cast(lengths, "int64")


def rows_of(name: str, targets: Any, sizes: Any, batch: int, classes: int) -> Any:
    """Targets as a matrix; what lies behind the end of a row is of no account."""
    targets = integers(name, targets, "targets")
    known = known_array(targets)
    if known is not None and known.size and not 0 <= known.min() <= known.max() < classes:
        facts = f"targets from {known.min()} to {known.max()} for {classes} classes"
        raise IndexingError(f"{name}: {facts}{at_line()}")
    if targets.ndim == 1 and batch == 1:
        targets = targets.reshape(1, -1)
    elif targets.ndim == 1:
        longest = int(sizes.max()) if batch else 0
        ends = sizes.cumsum(0)
        total = int(ends[-1]) if batch else 0
        if total > targets.shape[0]:
            facts = f"{targets.shape[0]} targets for lengths that add up to {total}"
            raise ShapeError(f"{name}: {facts}{at_line()}")
        places = clamp((ends - sizes)[:, None] + arange(longest), None, max(total - 1, 0))
        targets = targets[places] if total else targets.reshape(-1)[:0].reshape(batch, 0)
    if targets.ndim != 2 or targets.shape[0] != batch:
        facts = f"targets of shape {targets.shape} for a batch of {batch}"
        raise ShapeError(f"{name}: {facts}: rows, or one vector{at_line()}")
    known = known_array(sizes)
    if known is not None and known.size and known.max() > targets.shape[1]:
        facts = f"a target of length {known.max()} in rows of {targets.shape[1]}"
        raise ArgumentError(f"{name}: {facts}{at_line()}")
    return targets


def log_likelihood(x: Any, labels: Any, steps: Any, sizes: Any, blank: int) -> Any:
    """log P(target) by the forward recursion over the target with blanks around every label.

    alpha[s], the log-probability of having read s symbols of it, has two columns NEVER in front, so
    that its neighbours s - 1 and s - 2 are slices.
    """
    times, batch, _ = x.shape
    count = labels.shape[1]
    blanks = full((batch, count), blank, dtype="int64")
    pairs = stack([cast(labels, "int64"), blanks], 2).reshape(batch, 2 * count)
    symbols = cat([full((batch, 1), blank, dtype="int64"), pairs], 1)
    width = 2 * count + 1
    emitted = bind(TakeAlong(2), x, symbols.expand(times, batch, width))
    before = cat([full((batch, 2), blank, dtype="int64"), symbols], 1)[:, :width]
    skips = (symbols != blank) & (symbols != before)
    front = full((batch, 2), NEVER, dtype=x.dtype)
    place = arange(width)

    def advance(alpha: Any, now: Any) -> Any:
        time, scores = now
        wide = cat([front, alpha], 1)
        reached = logaddexp(alpha, wide[:, 1:-1])
        reached = logaddexp(reached, where(skips, wide[:, :-2], NEVER))
        return where(time < steps[:, None], reached + scores, alpha), None

    alpha = where(place < 2, emitted[0], NEVER)
    if times > 1:
        alpha, _ = scan(advance, alpha, (arange(1, times), emitted[1:]))
    ends = 2 * sizes[:, None]
    last = where(place == ends, alpha, 0.0).sum(axis=1)
    label = where(place == ends - 1, alpha, 0.0).sum(axis=1)
    return logaddexp(last, where(sizes > 0, label, NEVER))
