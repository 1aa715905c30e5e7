"""np.linalg for tensors: the functions of lucid.linalg with NumPy's signatures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.errors import ArgumentError


def linalg_function(name: str) -> Callable[..., Any]:
    """Return the lucid.linalg function with this name, imported when it is first called."""

    def function(*args: Any, **kwargs: Any) -> Any:
        from lucid import linalg

        return getattr(linalg, name)(*args, **kwargs)

    return function


def solve(a: Any, b: Any) -> Any:
    from lucid import linalg
    from lucid.ops.core.promote import as_tensor

    b = as_tensor(b)
    if b.ndim == 1:
        return linalg.solve(a, b.reshape(-1, 1)).squeeze(-1)
    return linalg.solve(a, b)


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Any, Any, Any, Any]:
    from lucid import linalg

    return tuple(linalg.lstsq(a, b, rcond, driver="gelsd"))  # type: ignore[return-value]


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    from lucid import linalg

    if hermitian:
        a = linalg.eigenvalues.hermitian_from_lower(linalg.arguments.as_matrix("svd", a))
    return linalg.svd(a, full_matrices) if compute_uv else linalg.svdvals(a)


def qr(a: Any, mode: str = "reduced") -> Any:
    from lucid import linalg

    if mode == "raw":
        raise ArgumentError("np.linalg.qr: mode='raw' is not supported for tensors")
    found = linalg.qr(a, mode)
    return found.R if mode == "r" else found


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    from lucid import linalg

    return linalg.tensorsolve(a, b, axes)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.linalg.cholesky: linalg_function("cholesky"),
    np.linalg.cond: linalg_function("cond"),
    np.linalg.det: linalg_function("det"),
    np.linalg.eig: linalg_function("eig"),
    np.linalg.eigh: linalg_function("eigh"),
    np.linalg.eigvals: linalg_function("eigvals"),
    np.linalg.eigvalsh: linalg_function("eigvalsh"),
    np.linalg.inv: linalg_function("inv"),
    np.linalg.lstsq: lstsq,
    np.linalg.matrix_norm: lambda x, /, *, keepdims=False, ord="fro": linalg_function(
        "matrix_norm"
    )(x, ord, keepdims=keepdims),
    np.linalg.matrix_power: lambda a, n: linalg_function("matrix_power")(a, n),
    np.linalg.matrix_rank: linalg_function("matrix_rank"),
    np.linalg.multi_dot: lambda arrays, *, out=None: linalg_function("multi_dot")(arrays),
    np.linalg.pinv: linalg_function("pinv"),
    np.linalg.qr: qr,
    np.linalg.slogdet: linalg_function("slogdet"),
    np.linalg.solve: solve,
    np.linalg.svd: svd,
    np.linalg.svdvals: lambda x, /: linalg_function("svdvals")(x),
    np.linalg.tensorinv: linalg_function("tensorinv"),
    np.linalg.tensorsolve: tensorsolve,
}


def __getattr__(name: str) -> Any:
    if name != "__all__" and not hasattr(np.linalg, name):  # what looks at modules need not import
        facts = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(facts, name=name, obj=sys.modules[__name__])
    from lucid.numpy import namespace

    if name == "__all__":
        return namespace.names("numpy.linalg")
    return namespace.attribute(__name__, name)


def __dir__() -> list[str]:
    from lucid.numpy import namespace

    return namespace.names("numpy.linalg")
