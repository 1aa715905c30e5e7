"""lucid.special: elementwise functions of mathematical physics, statistics, information theory.

Names and arguments are those of torch.special. Every function is differentiable to any order in
each of its operands (gammainc and zeta in both), in eager and compiled programs.
"""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
