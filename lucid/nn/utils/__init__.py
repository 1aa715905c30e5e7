"""Utilities for modules: clipping, flat parameters, packed sequences, parametrizations, pruning."""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, "parametrizations", "parametrize", "prune", "rnn")
