"""`out=`: functions of PyTorch that write their results to given tensors.

Their public names are wrapped where a namespace loads them (`lazy.attach`); the functions
themselves know nothing of `out`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

_NAMES = {
    "lucid": """
        abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr all amax amin
        aminmax angle any arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax
        argmin argsort as_strided_copy asin asinh atan atan2 atanh baddbmm bernoulli bitwise_and
        bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm bucketize
        cat ceil cholesky cholesky_inverse cholesky_solve clamp clamp_max clamp_min clip
        column_stack complex concat concatenate conj_physical copysign cos cosh cross cummax
        cummin cumprod cumsum deg2rad det diag diff digamma div divide dot dstack empty eq
        erf erfc erfinv exp exp2 expm1 eye fix float_power floor floor_divide fmax fmin fmod
        frac frexp full gather gcd ge geqrf ger greater greater_equal gt hardshrink heaviside
        histc histogram histogramdd hstack hypot i0 igamma igammac index_add index_copy
        index_reduce index_select inner inverse isin isneginf isposinf kron kthvalue lcm ldexp
        le lerp less less_equal lgamma linspace log log10 log1p log2 log_softmax logaddexp
        logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logit logspace
        logsumexp lt lu lu_solve lu_unpack masked_select matmul matrix_power max maximum mean
        median min minimum mm mode msort mul multinomial multiply mv mvlgamma nan_to_num nanmean
        nanmedian nanquantile nansum narrow_copy ne neg negative nextafter nonzero norm normal
        not_equal ones orgqr ormqr outer polar polygamma pow prod qr quantile rad2deg rand
        randint randn randperm reciprocal remainder renorm round row_stack rsqrt scatter
        scatter_add scatter_reduce searchsorted sgn sigmoid sign signbit sin sinc sinh
        slice_scatter slogdet softmax sort sqrt square stack std std_mean sub subtract sum svd
        take take_along_dim tan tanh tensordot topk triangular_solve tril triu true_divide trunc
        var var_mean vdot vstack where xlogy zeros""",
    "linalg": """
        cholesky cholesky_ex cond cross det eig eigh eigvals eigvalsh householder_product inv
        inv_ex ldl_factor ldl_factor_ex ldl_solve lstsq lu lu_factor lu_factor_ex lu_solve
        matmul matrix_norm matrix_power matrix_rank multi_dot norm pinv qr slogdet solve
        solve_ex solve_triangular svd svdvals tensorinv tensorsolve vecdot vector_norm""",
    "fft": """
        fft fft2 fftfreq fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft irfft2
        irfftn rfft rfft2 rfftfreq rfftn""",
    "special": """
        airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t
        chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w digamma entr erf
        erfc erfcx erfinv exp2 expit expm1 gammainc gammaincc gammaln hermite_polynomial_h
        hermite_polynomial_he i0 i0e i1 i1e laguerre_polynomial_l legendre_polynomial_p log1p
        log_ndtr log_softmax logit logsumexp modified_bessel_i0 modified_bessel_i1
        modified_bessel_k0 modified_bessel_k1 multigammaln ndtr ndtri polygamma psi round
        scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t
        shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
        shifted_chebyshev_polynomial_w sinc softmax spherical_bessel_j0 xlog1py xlogy zeta""",
    "nn.functional": """
        avg_pool2d avg_pool3d gelu hardshrink linear log_softmax logsigmoid normalize sigmoid
        softmax softplus softshrink tanh""",
}
ACCEPTS_OUT = {space: frozenset(names.split()) for space, names in _NAMES.items()}


def accepts_out(function: Callable[..., Any], package: str, name: str) -> Callable[..., Any]:
    """Return a function with the keyword `out`, a tensor or a tuple of them for its results.

    A plain function keeps its parameters: then a call without `out` costs 60 ns more, and not 170.
    """
    if hasattr(function, "accepts_out"):
        return function.accepts_out  # by another of its names
    signature = inspect.signature(function)
    out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Any")
    parameters = list(signature.parameters.values())
    at = next((i for i, p in enumerate(parameters) if p.kind is p.VAR_KEYWORD), len(parameters))
    parameters.insert(at, out)

    is_plain = not hasattr(function, "__wrapped__") and all(
        p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in signature.parameters.values()
    )
    call: Any = with_parameters(function, signature) if is_plain else general(function)
    functools.update_wrapper(call, function)
    call.__module__, call.__qualname__ = package, name  # where a pickle finds it
    call.__signature__ = signature.replace(parameters=parameters)
    function.accepts_out = call  # type: ignore[attr-defined]
    return call


def general(function: Any) -> Any:
    """Return a function of any parameters with the keyword `out`.

    It does what `clear_errors` does too, if that is the outermost wrapper of the function: one
    wrapper costs 0.1 µs less than two, and 0.2 less where the user's line is recorded.
    """
    pair: Any = getattr(function, "clear_errors", (None, None))
    inner, clear_error = pair
    if inner is None or function.__wrapped__ is not inner:

        def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            return result if out is None else store(function.__name__, result, out)

        return call

    def clear_call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        try:
            result = inner(*args, **kwargs) if kwargs else inner(*args)
        except Exception as error:
            if (clear := clear_error(inner, args, kwargs, error)) is error:
                raise
            raise clear from clear.__cause__
        return result if out is None else store(inner.__name__, result, out)

    return clear_call


def with_parameters(function: Any, signature: inspect.Signature) -> Any:
    """`general` with the parameters of the function in place of *args and **kwargs."""
    heads, given, space = [], [], {"function": function, "store": store}
    keyword_only = False
    for i, p in enumerate(signature.parameters.values()):
        if p.kind is p.KEYWORD_ONLY and not keyword_only:
            heads.append("*")
            keyword_only = True
        space[f"default{i}"] = p.default
        heads.append(p.name if p.default is p.empty else f"{p.name}=default{i}")
        given.append(f"{p.name}={p.name}" if keyword_only else p.name)
    heads += ["out=None"] if keyword_only else ["*", "out=None"]
    source = (
        f"def call({', '.join(heads)}):\n"
        f"    result = function({', '.join(given)})\n"
        f"    return result if out is None else store(function.__name__, result, out)\n"
    )
    exec(compile(source, __file__, "exec"), space)
    return space["call"]


def store(name: str, result: Any, out: Any) -> Any:
    """Write the results of a function to the tensors given as `out`, and return these."""
    from lucid.errors import ArgumentError  # which is a lazy namespace itself

    if not isinstance(result, (tuple, list)):
        store_one(name, result, out)
        return out
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise ArgumentError(f"{name}: out must be a tuple of {len(result)} tensors")
    stored = [store(name, y, target) for y, target in zip(result, out)]
    return result._make(stored) if hasattr(result, "_make") else type(result)(stored)


def store_one(name: str, result: Any, out: Any) -> None:
    import numpy as np

    from lucid.errors import ArgumentError, DTypeError, ShapeError

    if not hasattr(out, "copy_"):
        raise ArgumentError(f"{name}: out is a {type(out).__name__}, not a tensor")
    if out.shape != result.shape:
        facts = f"out has shape {out.shape}, and the result has shape {result.shape}"
        raise ShapeError(f"{name}: {facts}; pass lucid.empty({result.shape})")
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        facts = f"out has dtype {out.dtype}, and the result has dtype {result.dtype}"
        raise DTypeError(f"{name}: {facts}, which cannot be cast to it")
    out.copy_(result)
