"""lucid.signal: window functions, with the names and arguments of torch.signal."""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, "windows")
