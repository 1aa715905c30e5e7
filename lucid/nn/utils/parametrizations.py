"""Parametrizations of weights: weight norm, spectral norm, orthogonal."""

from __future__ import annotations

from typing import Any

import lucid.nn.functional as F
from lucid.autograd import no_grad
from lucid.errors import ArgumentError, ShapeError
from lucid.linalg import matrix_exp, qr, solve
from lucid.nn.layers.conv import TransposedConvolution
from lucid.nn.module import Module
from lucid.nn.utils.parametrize import register_parametrization, remove_parametrizations
from lucid.ops.core.arguments import public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.reduce.statistics import norm
from lucid.ops.shape.creation import eye, zeros_like
from lucid.ops.shape.joining import pad
from lucid.ops.shape.shaping import movedim
from lucid.public.declare import public
from lucid.public.lazy import attach
from lucid.random import randn
from lucid.tape.writes import is_argument

MAX_ITERATIONS = 10_000  # of power iteration, whenever the weight is read


class WeightNorm(Module):
    """w = g v / |v|, with one norm g per slice along `dim`, or one in total (None)."""

    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def norms(self, v: Any) -> Any:
        """Return the norms of the slices of v."""
        if self.dim is None:
            return norm(v)
        kept = canonicalize_axis("weight_norm", self.dim, v.ndim)
        return norm(v, axis=tuple(i for i in range(v.ndim) if i != kept), keepdim=True)

    def forward(self, g: Any, v: Any) -> Any:
        return v * (g / self.norms(v))

    def right_inverse(self, w: Any) -> tuple[Any, Any]:
        return self.norms(w), w


class SpectralNorm(Module):
    """w divided by its largest singular value, which is tracked by power iteration.

    In training the vectors `_u` and `_v` are updated in place whenever the weight is read.
    """

    def __init__(self, weight: Any, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        if not 1 <= n_power_iterations <= MAX_ITERATIONS:
            facts = f"n_power_iterations={n_power_iterations} is not from 1 to {MAX_ITERATIONS}"
            raise ArgumentError(f"spectral_norm: {facts}")
        self.dim, self.eps = canonicalize_axis("spectral_norm", dim, weight.ndim), eps
        self.n_power_iterations = n_power_iterations
        if weight.ndim > 1:
            w = self.as_matrix(weight.detach())
            self.register_buffer("_u", self.normalize(randn(w.shape[0], dtype=w.dtype)))
            self.register_buffer("_v", self.normalize(randn(w.shape[1], dtype=w.dtype)))
            with no_grad():
                self.power_iteration(w, 15)

    def normalize(self, x: Any) -> Any:
        """Scale a vector to norm 1."""
        return F.normalize(x, dim=0, eps=self.eps)

    def as_matrix(self, w: Any) -> Any:
        """Return the weight as a matrix with rows along `dim`."""
        return movedim(w, self.dim, 0).reshape(w.shape[self.dim], -1)

    def power_iteration(self, w: Any, n: int) -> None:
        """Run `n` steps of power iteration, in place, or on copies of the caller's vectors."""
        for name in ("_u", "_v"):
            if is_argument(self._buffers[name]):
                self._buffers[name] = self._buffers[name].detach().clone()
        with no_grad():
            for _ in range(n):
                self._u.copy_(self.normalize(w @ self._v))
                self._v.copy_(self.normalize(w.T @ self._u))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return self.normalize(weight)
        w = self.as_matrix(weight)
        if self.training:
            self.power_iteration(w.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / (u @ (w @ v))


class Orthogonal(Module):
    """The first columns (or rows) of base times an orthogonal function of a skew matrix."""

    def __init__(self, weight: Any, map: str, use_base: bool) -> None:
        super().__init__()
        self.map, self.use_base = map, use_base
        self.is_wide = weight.shape[-2] < weight.shape[-1]
        self.register_buffer("base", None)

    def forward(self, x: Any) -> Any:
        x = x.mT if self.is_wide else x
        n, k = x.shape[-2:]
        lower = pad(x.tril(), [0, n - k])
        skew = lower - lower.mT
        one = eye(n, dtype=x.dtype)
        if self.map == "matrix_exp":
            q = matrix_exp(skew)
        else:
            q = solve(one + skew * 0.5, (one - skew * 0.5).expand(skew.shape))
        q = q[..., :k] if self.base is None else (self.base @ q)[..., :k]
        return q.mT if self.is_wide else q

    def right_inverse(self, q: Any) -> Any:
        if not self.use_base:  # then the skew matrix is made of the value
            return q
        tall = (q.mT if self.is_wide else q).detach()
        n, k = tall.shape[-2:]
        base, r = qr(tall, mode="complete")
        signs = r[..., :k, :k].diagonal(dim1=-2, dim2=-1).sign()
        ends = pad(signs, [0, n - k], value=1.0)
        self.base = (base * ends[..., None, :]).clone()
        return zeros_like(q)


@public_function("nn.utils.parametrizations", "nn.utils")
def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train the norm and the direction of a weight separately: `original0` and `original1`.

    >>> import lucid
    >>> layer = lucid.nn.utils.parametrizations.weight_norm(lucid.nn.Linear(3, 2))
    >>> [(name, x.shape) for name, x in layer.parametrizations.weight.state_dict().items()]
    [('original0', (2, 1)), ('original1', (2, 3))]
    """
    return register_parametrization(module, name, WeightNorm(dim), unsafe=True)


@public_function("nn.utils")
def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Turn the weight back into an ordinary parameter, with its current value."""
    return remove_parametrizations(module, name)


@public_function("nn.utils.parametrizations", "nn.utils")
def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value."""
    if dim is None:
        dim = 1 if isinstance(module, TransposedConvolution) else 0
    made = SpectralNorm(get_weight(module, name), n_power_iterations, dim, eps)
    return register_parametrization(module, name, made)


@public_function("nn.utils")
def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Turn the weight back into an ordinary parameter, with its current value."""
    return remove_parametrizations(module, name)


@public("nn.utils.parametrizations")
def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep the columns of a matrix (or its rows, if there are fewer) orthonormal.

    orthogonal_map        "matrix_exp" (the default) or "cayley"
    use_trivialization    start near the current value of the weight, orthogonalized
    """
    weight = get_weight(module, name)
    if weight.ndim < 2:
        raise ShapeError(f"orthogonal: {name} of shape {weight.shape}; it needs two axes")
    if orthogonal_map not in (None, "matrix_exp", "cayley"):
        facts = f"orthogonal_map must be 'matrix_exp' or 'cayley', not {orthogonal_map!r}"
        raise ArgumentError(f"orthogonal: {facts}")
    made = Orthogonal(weight, orthogonal_map or "matrix_exp", use_trivialization)
    return register_parametrization(module, name, made)


def get_weight(module: Module, name: str) -> Any:
    """Return a tensor of a module; raise ArgumentError if there is none."""
    found = getattr(module, name, None)
    if not hasattr(found, "ndim"):
        raise ArgumentError(f"parametrization: {type(module).__name__} has no parameter {name!r}")
    return found


_, __dir__, __all__ = attach(__name__)
