"""Neural networks: layers as Modules, and the functions they are made of."""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, "functional", "init", "utils")
