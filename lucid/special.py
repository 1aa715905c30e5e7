"""lucid.special: elementwise functions of mathematical physics, statistics, information theory.

Names and arguments are those of torch.special. Every function is differentiable to any order in
each of its operands (gammainc and zeta in both), in eager and compiled programs.
"""

from __future__ import annotations

from typing import Any

from lucid.ops.core.apply import dtype_error
from lucid.ops.core.promote import to_floating
from lucid.ops.elementwise.exponential import exp2, expit, expm1, log1p
from lucid.ops.elementwise.logarithms import logit, sinc, unnormalized_sinc_at_inf, xlogy
from lucid.ops.elementwise.rounding import round
from lucid.ops.nn.softmax import log_softmax, softmax
from lucid.ops.reduce.reduction import logsumexp
from lucid.ops.special.bessel import (
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    i0,
    i0e,
    i1,
    i1e,
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
)
from lucid.ops.special.entropies import entr, xlog1py
from lucid.ops.special.error_and_gamma import (
    digamma,
    erf,
    erfc,
    erfinv,
    gammaln,
    multigammaln,
    polygamma,
    psi,
)
from lucid.ops.special.incomplete_gamma import gammainc, gammaincc
from lucid.ops.special.normal import erfcx, log_ndtr, ndtr, ndtri
from lucid.ops.special.polynomials import (
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)
from lucid.ops.special.zeta import zeta

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]


def spherical_bessel_j0(x: Any) -> Any:
    """sin(x) / x, elementwise, and 1 at 0: the spherical Bessel function of order 0."""
    x = to_floating(x)
    if x.dtype.kind == "c":
        raise dtype_error("spherical_bessel_j0", x.dtype, "it takes floating dtypes")
    return unnormalized_sinc_at_inf(x)
