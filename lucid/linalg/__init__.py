"""Linear algebra: factorizations, linear systems, eigenvalues, norms, with PyTorch's names.

All functions work on the last two axes; leading axes are batch axes. If a matrix is singular or not
positive definite, LinAlgError names the matrix in the batch and the reason.
"""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
