"""Connectionist temporal classification: the loss of sequences without an alignment."""

from __future__ import annotations

import math
from typing import Any

from lucid.errors import ArgumentError, IndexingError, ShapeError
from lucid.func.control_flow import scan
from lucid.nn.functional.arguments import (
    as_integers,
    as_real,
    check_integer,
    concrete_array,
    reduce_loss,
    resolve_reduction,
)
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import cast
from lucid.ops.elementwise.conditional import clamp, where
from lucid.ops.elementwise.exponential import logaddexp
from lucid.ops.index.gather_scatter import TakeAlong
from lucid.ops.shape.creation import arange, full
from lucid.ops.shape.joining import cat, stack
from lucid.tape.bind import bind

LOG_ZERO = -1e30  # log of probability 0: finite, so that no derivative computes inf - inf


@public_function("nn.functional")
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

    `log_probs` is (time, batch, class), or (time, class) for one example; a path reads as what
    remains after repeated classes are merged and blanks removed. Targets are rows (batch, length)
    or concatenated in one vector. `mean` first divides by the lengths of the targets. A target that
    no path produces has the loss inf, or 0 with `zero_infinity`, and no gradient. The gradient is
    that of the formula for any `log_probs`, normalized or not.
    """
    name, x = "ctc_loss", as_real("ctc_loss", log_probs)
    reduction = resolve_reduction(name, reduction)
    single = x.ndim == 2
    if x.ndim not in (2, 3) or not x.shape[0]:
        raise ShapeError(f"{name}: log_probs of shape {x.shape}; they must be (time, batch, class)")
    x = x.reshape(x.shape[0], 1, x.shape[1]) if single else x
    dtype = x.dtype
    x = cast(x, "float32") if dtype.itemsize < 4 else x  # float16 cannot hold LOG_ZERO
    times, batch, classes = x.shape
    blank = check_integer(name, blank, "blank")
    if blank >= classes:
        raise IndexingError(f"{name}: blank={blank} is out of range for {classes} classes")
    steps = check_lengths(name, "input_lengths", input_lengths, batch, times)
    sizes = check_lengths(name, "target_lengths", target_lengths, batch, None)
    labels = padded_targets(name, targets, sizes, batch, classes)
    loss = -log_likelihood(clamp(x, LOG_ZERO), labels, steps, sizes, blank)
    loss = where(loss > -0.1 * LOG_ZERO, 0.0 if zero_infinity else math.inf, loss)
    if reduction == "mean":
        loss = loss / cast(clamp(sizes, 1), x.dtype)
    return cast(reduce_loss(loss.reshape(()) if single else loss, reduction), dtype)


def check_lengths(name: str, what: str, given: Any, batch: int, most: int | None) -> Any:
    """Return lengths as int64, with their count and range checked."""
    lengths = as_integers(name, given, what).reshape(-1)
    if lengths.shape != (batch,):
        raise ShapeError(f"{name}: {lengths.shape[0]} {what} for a batch of {batch}")
    known = concrete_array(lengths)
    if known is not None and known.size:
        if known.min() < 0 or (most is not None and known.max() > most):
            limit = "" if most is None else f" and at most {most}"
            facts = f"{what} from {known.min()} to {known.max()}"
            raise ArgumentError(f"{name}: {facts}; they must not be negative{limit}")
    return cast(lengths, "int64")


def padded_targets(name: str, targets: Any, sizes: Any, batch: int, classes: int) -> Any:
    """Return the targets as a matrix; entries after the end of a row are ignored."""
    targets = as_integers(name, targets, "targets")
    known = concrete_array(targets)
    if known is not None and known.size and not 0 <= known.min() <= known.max() < classes:
        facts = f"targets from {known.min()} to {known.max()} for {classes} classes"
        raise IndexingError(f"{name}: {facts}")
    if targets.ndim == 1 and batch == 1:
        targets = targets.reshape(1, -1)
    elif targets.ndim == 1:
        longest = int(sizes.max()) if batch else 0
        ends = sizes.cumsum(0)
        total = int(ends[-1]) if batch else 0
        if total > targets.shape[0]:
            raise ShapeError(f"{name}: {targets.shape[0]} targets for lengths that sum to {total}")
        places = clamp((ends - sizes)[:, None] + arange(longest), None, max(total - 1, 0))
        targets = targets[places] if total else targets.reshape(-1)[:0].reshape(batch, 0)
    if targets.ndim != 2 or targets.shape[0] != batch:
        facts = f"targets of shape {targets.shape} for a batch of {batch}"
        raise ShapeError(f"{name}: {facts}; give rows or one vector")
    known = concrete_array(sizes)
    if known is not None and known.size and known.max() > targets.shape[1]:
        facts = f"a target of length {known.max()} in rows of {targets.shape[1]}"
        raise ArgumentError(f"{name}: {facts}")
    return targets


def log_likelihood(x: Any, labels: Any, steps: Any, sizes: Any, blank: int) -> Any:
    """Return log P(target) by the forward recursion over the target with blanks between labels.

    alpha[s], the log-probability of having read s symbols, is preceded by two columns of LOG_ZERO,
    so that its neighbors s - 1 and s - 2 are slices.
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
    front = full((batch, 2), LOG_ZERO, dtype=x.dtype)
    place = arange(width)

    def advance(alpha: Any, now: Any) -> Any:
        time, scores = now
        wide = cat([front, alpha], 1)
        reached = logaddexp(alpha, wide[:, 1:-1])
        reached = logaddexp(reached, where(skips, wide[:, :-2], LOG_ZERO))
        return where(time < steps[:, None], reached + scores, alpha), None

    alpha = where(place < 2, emitted[0], LOG_ZERO)
    if times > 1:
        alpha, _ = scan(advance, alpha, (arange(1, times), emitted[1:]))
    ends = 2 * sizes[:, None]
    last = where(place == ends, alpha, 0.0).sum(axis=1)
    label = where(place == ends - 1, alpha, 0.0).sum(axis=1)
    return logaddexp(last, where(sizes > 0, label, LOG_ZERO))
