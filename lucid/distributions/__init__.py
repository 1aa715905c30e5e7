"""Probability distributions, as in `torch.distributions`."""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, "constraints", "transforms")
