"""odeint: ordinary differential equations by Dormand and Prince's method of order 5(4).

Steps are chosen so that the difference of the two orders stays within the tolerances, and end at
the requested times. Derivatives go through the steps ("direct", any order, both modes), or
solve the adjoint equation back in time ("adjoint", memory independent of the number of steps).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, ShapeError
from lucid.func.control_flow import scan, while_loop
from lucid.func.custom_rules.reverse import custom_vjp
from lucid.func.derivatives import vjp
from lucid.func.numpy_results import numpy_like
from lucid.func.solvers.implicit import Vector
from lucid.ir.pytree import flatten, unflatten
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor, cast, to_floating
from lucid.ops.elementwise.arithmetic import abs
from lucid.ops.elementwise.conditional import clamp, maximum, minimum, where
from lucid.ops.reduce.extrema import amax
from lucid.ops.shape.joining import cat, stack

# Dormand and Prince (1980): stages, weights of order 5, and their difference from order 4.
NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0)
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
)
WEIGHTS = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
ERRORS = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
SAFETY, SMALLEST, LARGEST = 0.9, 0.2, 5.0

Field = Callable[[Any, Any], Any]


def combination(factors: tuple[float, ...], ks: list[Any]) -> Any:
    parts = [factor * k for factor, k in zip(factors, ks) if factor]
    return sum(parts[1:], parts[0])


def dormand_prince(f: Field, y: Any, k: Any, t: Any, h: Any) -> tuple[Any, Any, Any]:
    """Return the state after a step of length h, the slope there, and the estimated error."""
    ks = [k]
    for node, factors in zip(NODES, STAGES):
        ks.append(f(y + h * combination(factors, ks), t + node * h))
    after = y + h * combination(WEIGHTS, ks)
    ks.append(f(after, t + h))
    return after, ks[-1], h * combination(ERRORS, ks)


def ratio_to_tolerance(error: Any, y: Any, after: Any, rtol: float, atol: float) -> Any:
    """Return the greatest error of a component, relative to its tolerance."""
    return amax(abs(error) / (atol + rtol * maximum(abs(y), abs(after))))


def first_step(f: Field, y: Any, k: Any, t: Any, rtol: float, atol: float) -> Any:
    """Return a first step length from the sizes of the slope and of its change (Hairer et al.)."""
    scale = atol + rtol * abs(y)
    size, slope = amax(abs(y) / scale), amax(abs(k) / scale)
    h = where(minimum(size, slope) < 1e-5, 1e-6, 0.01 * size / where(slope == 0.0, 1.0, slope))
    change = amax(abs(f(y + h * k, t + h) - k) / scale) / h
    steepest = maximum(slope, change)
    found = where(
        steepest <= 1e-15,
        maximum(h * 1e-3, 1e-6),
        (0.01 / where(steepest <= 1e-15, 1.0, steepest)) ** 0.2,
    )
    return minimum(100.0 * h, found)


def solve(f: Field, y: Any, ts: Any, rtol: float, atol: float, max_steps: int) -> Any:
    """Return the states at increasing times; nan after `max_steps` steps between two of them."""
    k = f(y, ts[0])
    h = first_step(f, y, k, ts[0], rtol, atol).detach()

    def advance(carry: Any, end: Any) -> tuple[Any, Any]:
        def unfinished(state: Any) -> Any:
            _, _, t, _, count = state
            return (t < end) & (count < max_steps)

        def step(state: Any) -> Any:
            y, k, t, h, count = state
            last = t + h >= end
            length = where(last, end - t, h)
            after, slope, error = dormand_prince(f, y, k, t, length)
            ratio = ratio_to_tolerance(error, y, after, rtol, atol).detach()
            accepted = ratio <= 1.0
            factor = SAFETY * maximum(ratio, 1e-10) ** -0.2
            factor = clamp(where(ratio == ratio, factor, SMALLEST), SMALLEST, LARGEST)
            # The last step of an interval may be short for its end alone: h is kept then.
            longer = where(accepted & last, maximum(h, length * factor), length * factor)
            t = where(accepted, where(last, end, t + length), t)
            y, k = where(accepted, after, y), where(accepted, slope, k)
            return y, k, t, longer.detach(), count + 1

        y, k, t, h = carry
        y, k, t, h, _ = while_loop(unfinished, step, (y, k, t, h, as_tensor(0)))
        y = where(t < end, np.nan, y)
        return (y, k, end, h), y

    _, ys = scan(advance, (y, k, ts[0], h), ts[1:])
    return cat([y[None], ys])


def solve_either_way(f: Field, y: Any, ts: Any, *options: Any) -> Any:
    """`solve` for increasing or decreasing times."""
    sign = cast(where(ts[-1] >= ts[0], 1.0, -1.0), ts.dtype)
    return solve(lambda y, s: sign * f(y, sign * s), y, sign * ts, *options)


@public_function("func")
def odeint(
    f: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    max_steps: int = 10_000,
    derivative: str = "direct",
) -> Any:
    """Solve dy/dt = f(y, t, *args) with y(t[0]) = y0, and return y at all times `t`.

    y0, args      pytrees; the result is `y0` with the times as a new first axis
    t             a vector of increasing or of decreasing times
    rtol, atol    each step's error stays below atol + rtol |y|
    max_steps     the maximum number of steps between two times; beyond it the result is nan
    derivative    "direct": through the steps, in both modes and of any order; "adjoint": by the
                  adjoint equation, in memory that does not grow with the steps, for y0, t and args
                  (not for tensors that `f` closes over), in reverse mode

    It is differentiable with respect to y0, t and args, and can be jitted and batched.

    >>> import lucid, numpy as np
    >>> y = lucid.func.odeint(lambda y, t, k: -k * y, np.array(1.0), np.array([0.0, 1.0]), 2.0)
    >>> y.round(5)
    array([1.     , 0.13534])
    """
    if derivative not in ("direct", "adjoint"):
        raise ArgumentError(f"odeint: derivative={derivative!r} is not 'direct' or 'adjoint'")
    state = Vector("odeint", y0)
    ts = cast(to_floating(t), state.dtype)
    if ts.ndim != 1 or not ts.shape[0]:
        raise ShapeError(f"odeint: t of shape {ts.shape} is not a vector of times")
    options = (rtol, atol, max_steps)

    def field(y: Any, time: Any, *args: Any) -> Any:
        return state.ravel(f(state.unravel(y), time, *args))

    start = state.ravel(unflatten(state.tree, state.leaves))
    if derivative == "direct":
        ys = solve_either_way(lambda y, s: field(y, s, *args), start, ts, *options)
    else:
        ys = by_adjoint(field, start, ts, args, options)
    return numpy_like((y0, t, args), unravel_rows(state, ys))


def unravel_rows(state: Vector, ys: Any) -> Any:
    leaves, start = [], 0
    for kind in state.types:
        part = ys[:, start : start + kind.size]
        leaves.append(part.reshape(ys.shape[0], *kind.shape).to(kind.dtype))
        start += kind.size
    return unflatten(state.tree, leaves)


def by_adjoint(field: Callable[..., Any], start: Any, ts: Any, args: Any, options: Any) -> Any:
    """Return the states; the derivative solves for the cotangents of y and args back in time."""
    given, tree = flatten(args)
    leaves = [as_tensor(x) for x in given]
    floats = [i for i, x in enumerate(leaves) if x.dtype.kind == "f"]

    @custom_vjp
    def states(y: Any, ts: Any, *leaves: Any) -> Any:
        return solve_either_way(
            lambda y, s: field(y, s, *unflatten(tree, list(leaves))), y, ts, *options
        )

    def forward(y: Any, ts: Any, *leaves: Any) -> Any:
        ys = states(y, ts, *leaves)
        return ys, (ys, ts, leaves)

    def backward(residuals: Any, ct: Any) -> Any:
        ys, ts, leaves = residuals
        chosen = [leaves[i] for i in floats]

        def slope(y: Any, t: Any, chosen: Any) -> Any:
            full = list(leaves)
            for i, x in zip(floats, chosen):
                full[i] = x
            return field(y, t, *unflatten(tree, full))

        zeros_like = [x * 0.0 for x in chosen]
        whole = Vector("odeint", (ys[0], ys[0], zeros_like))

        def augmented(vector: Any, s: Any) -> Any:
            y, a, _ = whole.unravel(vector)
            value, pull = vjp(lambda y, chosen: slope(y, -s, chosen), y, chosen)
            in_y, in_args = pull(a)
            return whole.ravel((-value, in_y, in_args))

        def interval(carry: Any, row: Any) -> tuple[Any, Any]:
            a, totals = carry
            y, g, late, early = row
            in_t = (g * slope(y, late, chosen)).sum()
            begin = whole.ravel((y, a + g, totals))
            times = stack([-late, -early])
            _, a, totals = whole.unravel(solve_either_way(augmented, begin, times, *options)[1])
            return (a, totals), in_t

        rows = (ys[1:], ct[1:], ts[1:], ts[:-1])
        (a, totals), in_ts = scan(interval, (ys[0] * 0.0, zeros_like), rows, reverse=True)
        a = a + ct[0]
        at_start = (ct[0] * slope(ys[0], ts[0], chosen)).sum()
        # y0 is held at t[0], so a later start takes away what the states would have moved.
        first = at_start - (a * slope(ys[0], ts[0], chosen)).sum()
        in_leaves: list[Any] = [None] * len(leaves)
        for i, total in zip(floats, totals):
            in_leaves[i] = total
        return (a, cat([first[None], in_ts]), *in_leaves)

    states.defvjp(forward, backward)
    return states(start, ts, *leaves)
