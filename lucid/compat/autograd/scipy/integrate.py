"""scipy.integrate's odeint, differentiable in the state, the times and the arguments."""

from __future__ import annotations

from typing import Any

from lucid import func
from lucid.compat.autograd.core import in_float64


def odeint(f: Any, y0: Any, t: Any, args: Any = (), **options: Any) -> Any:
    """Solve dy/dt = f(y, t, *args) and return the states at the times `t`."""
    rtol, atol = options.get("rtol") or 1.4e-8, options.get("atol") or 1.4e-8
    y0, t, args = in_float64((y0, t, tuple(args)))
    return func.odeint(f, y0, t, *args, rtol=rtol, atol=atol)
