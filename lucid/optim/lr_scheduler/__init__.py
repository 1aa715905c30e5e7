"""Learning-rate schedulers."""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
