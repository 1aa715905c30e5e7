"""Datasets, samplers and the DataLoader, as in `torch.utils.data`."""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
