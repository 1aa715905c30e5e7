"""Optimizers, learning-rate schedulers, and update rules as pure functions."""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, "functional", "lr_scheduler", "swa_utils")
