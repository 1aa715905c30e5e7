"""Functional transforms as in JAX: grad, vjp, jvp, Jacobians, vmap, control flow.

Each runs the function on fresh inputs, extracts the Graph of that run from the tape, transforms it,
and records the result if an outer transform is active. Arguments and results are pytrees.
"""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
