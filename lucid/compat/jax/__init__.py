"""lucid.compat.jax: JAX's namespace, for programs that change only their imports.

    import lucid.compat.jax as jax
    import lucid.compat.jax.numpy as jnp
    from lucid.compat.jax import grad, jit, lax, random, vmap

Everything is Lucid's own: arrays are its tensors and keys its keys, so random numbers differ.
"""

import functools
import sys
from typing import Any

from lucid import tree
from lucid.compat.jax import lax, nn, numpy, random, tree_util
from lucid.compiler.jit.jit import jit
from lucid.func import (
    checkpoint,
    closure_convert,
    custom_jvp,
    custom_vjp,
    eval_shape,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from lucid.func import vmap as _vmap
from lucid.ir import trace as make_jaxpr
from lucid.ir.types import Type as ShapeDtypeStruct
from lucid.tensors.tensor import Tensor as Array

__all__ = [
    "Array", "ShapeDtypeStruct", "checkpoint", "closure_convert", "custom_jvp", "custom_vjp",
    "device_get", "device_put", "devices", "eval_shape", "grad", "hessian", "jacfwd", "jacobian",
    "jacrev", "jit", "jvp", "lax", "linear_transpose", "linearize", "make_jaxpr", "nn", "numpy",
    "random", "remat", "tree", "tree_util", "value_and_grad", "vjp", "vmap",
]  # fmt: skip

remat, jacobian = checkpoint, jacrev
sys.modules[f"{__name__}.tree"] = tree


def vmap(
    fun: Any, in_axes: Any = 0, out_axes: Any = 0, axis_name: Any = None,
    axis_size: int | None = None, spmd_axis_name: Any = None,
) -> Any:  # fmt: skip
    """Map over an axis of the arguments; arguments by keyword are mapped over their axis 0."""
    options = {"out_dims": out_axes, "axis_name": axis_name, "axis_size": axis_size}
    plain = _vmap(fun, in_axes, **options)

    @functools.wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            return plain(*args)
        axes = tuple(in_axes) if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        both = _vmap(lambda args, kwargs: fun(*args, **kwargs), (axes, 0), **options)
        return both(args, kwargs)

    return mapped


def device_put(x: Any, device: Any = None) -> Any:
    """Return a pytree with its arrays as tensors; there is one device."""
    return tree.map(numpy.asarray, x)


def device_get(x: Any) -> Any:
    """Return a pytree with its tensors as NumPy arrays."""
    return tree.map(lambda leaf: leaf.numpy() if isinstance(leaf, Array) else leaf, x)


def devices(backend: str | None = None) -> list[str]:
    """Return the devices: the CPU."""
    return ["cpu"]


def device_count() -> int:
    """1: the CPU."""
    return 1


def default_backend() -> str:
    """The CPU."""
    return "cpu"


def block_until_ready(x: Any) -> Any:
    """Return `x`; results are computed when they are returned."""
    return x


class config:
    """jax.config: float64 is always enabled, so the switch has no effect."""

    @staticmethod
    def update(name: str, value: Any) -> None:
        """Do nothing."""
