"""Utilities for training loops: data loading, progress bars, checkpointing."""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, "checkpoint", "data")
