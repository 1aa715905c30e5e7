"""Linear algebra: factorizations, linear systems, eigenvalues, norms, with PyTorch's names.

All functions work on the last two axes; leading axes are batch axes. If a matrix is singular or not
positive definite, LinAlgError names the matrix in the batch and the reason.
"""

from lucid.errors import LinAlgError
from lucid.linalg.decompositions import cholesky, cholesky_ex, lu, lu_factor, lu_factor_ex, qr
from lucid.linalg.determinants import det, logdet, slogdet
from lucid.linalg.eigenvalues import eig, eigh, eigvals, eigvalsh, matrix_rank, pinv, svd, svdvals
from lucid.linalg.ldl_systems import ldl_factor, ldl_factor_ex, ldl_solve
from lucid.linalg.norms import cond, matrix_norm, norm, vector_norm
from lucid.linalg.products import (
    cross,
    diagonal,
    matrix_exp,
    matrix_power,
    multi_dot,
    vander,
    vecdot,
)
from lucid.linalg.reflections import householder_product
from lucid.linalg.solving import (
    cholesky_solve,
    inv,
    inv_ex,
    lstsq,
    lu_solve,
    solve,
    solve_ex,
    solve_triangular,
    tensorinv,
    tensorsolve,
)
from lucid.ops.linalg.contraction import matmul

inverse, pinverse = inv, pinv

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cholesky_solve",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "logdet",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]
