"""Stateful random numbers: PyTorch's functions, with keys drawn from a Generator.

A Generator is a seed and a counter; its next key is the seed's key with the counter folded in, so a
stream depends only on the seed and the number of previous draws, on every machine. Both are stored
in one tensor, which a jitted function reads and writes back like any other state.
"""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
