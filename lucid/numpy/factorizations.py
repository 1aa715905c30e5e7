"""np.linalg's functions for tensors, which are those of lucid.linalg with NumPy's signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.ir.source import at_line


def same(name: str) -> Callable[..., Any]:
    """The function of lucid.linalg by this name, imported when it is called."""

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

    return linalg.svd(a, full_matrices) if compute_uv else linalg.svdvals(a)


def qr(a: Any, mode: str = "reduced") -> Any:
    from lucid import linalg

    if mode == "raw":
        raise ArgumentError(f"np.linalg.qr: mode='raw' is not there for tensors{at_line()}")
    found = linalg.qr(a, mode)
    return found.R if mode == "r" else found


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    from lucid import linalg

    return linalg.tensorsolve(a, b, axes)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.linalg.cholesky: same("cholesky"),
    np.linalg.cond: same("cond"),
    np.linalg.det: same("det"),
    np.linalg.eig: same("eig"),
    np.linalg.eigh: same("eigh"),
    np.linalg.eigvals: same("eigvals"),
    np.linalg.eigvalsh: same("eigvalsh"),
    np.linalg.inv: same("inv"),
    np.linalg.lstsq: lstsq,
    np.linalg.matrix_norm: lambda x, /, *, keepdims=False, ord="fro": same("matrix_norm")(
        x, ord, keepdims=keepdims
    ),
    np.linalg.matrix_power: lambda a, n: same("matrix_power")(a, n),
    np.linalg.matrix_rank: same("matrix_rank"),
    np.linalg.multi_dot: lambda arrays, *, out=None: same("multi_dot")(arrays),
    np.linalg.pinv: same("pinv"),
    np.linalg.qr: qr,
    np.linalg.slogdet: same("slogdet"),
    np.linalg.solve: solve,
    np.linalg.svd: svd,
    np.linalg.svdvals: lambda x, /: same("svdvals")(x),
    np.linalg.tensorinv: same("tensorinv"),
    np.linalg.tensorsolve: tensorsolve,
}
