"""PyTorch-style automatic differentiation: backward, grad, Function, hooks, modes, gradcheck."""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, "forward_ad", "functional", "graph")
