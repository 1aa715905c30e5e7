"""Functional transforms as in JAX: grad, vjp, jvp, Jacobians, vmap, control flow.

Each runs the function on fresh inputs, extracts the Graph of that run from the tape, transforms it,
and records the result if an outer transform is active. Arguments and results are pytrees.
"""

from __future__ import annotations

from typing import Any

from lucid.func.associative import associative_scan
from lucid.func.batching import vmap
from lucid.func.checkpointing import checkpoint, checkpoint_name, saved_residuals
from lucid.func.control_flow import cond, fori_loop, map, scan, switch, while_loop
from lucid.func.custom_rules import custom_jvp, custom_vjp
from lucid.func.derivatives import (
    grad,
    grad_and_value,
    hvp,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)
from lucid.func.derivatives import stop_gradient as stop_gradient
from lucid.func.implicit import fixed_point, linear_solve, root
from lucid.func.jacobians import hessian, jacfwd, jacobian, jacrev
from lucid.func.numba_functions import from_numba

__all__ = [
    "associative_scan", "checkpoint", "checkpoint_name", "cond", "custom_jvp", "custom_vjp",
    "fixed_point", "fori_loop", "from_numba", "grad", "grad_and_value", "hessian", "hvp", "jacfwd",
    "jacobian", "jacrev", "jvp", "linear_solve", "linearize", "map", "root", "saved_residuals",
    "scan", "switch", "value_and_grad", "vjp", "vmap", "while_loop",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import the functions of modules when they are first used."""
    if name in ("functional_call", "replace_all_batch_norm_modules_", "stack_module_state"):
        from lucid.nn import stateless

        return getattr(stateless, name)
    raise AttributeError(f"module 'lucid.func' has no attribute {name!r}")
