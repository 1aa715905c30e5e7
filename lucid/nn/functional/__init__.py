"""The functions of neural networks."""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
