"""PyTorch-style automatic differentiation: backward, grad, Function, hooks, modes, gradcheck."""

from typing import Any

from lucid.autograd.engine import backward, grad
from lucid.autograd.function import Function, FunctionCtx, once_differentiable
from lucid.autograd.gradient_check import GradcheckError, gradcheck, gradgradcheck
from lucid.autograd.modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
)

__all__ = [
    "Function",
    "FunctionCtx",
    "GradcheckError",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "once_differentiable",
    "set_detect_anomaly",
    "set_grad_enabled",
]


def __getattr__(name: str) -> Any:
    """Import `forward_ad` and `functional` on first use: they depend on this package."""
    if name in ("forward_ad", "functional"):
        import importlib

        return importlib.import_module(f"lucid.autograd.{name}")
    raise AttributeError(f"module 'lucid.autograd' has no attribute {name!r}")
