"""NumPy's own functions, called on tensors: the same values, and gradients that flow."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import lucid
from lucid.numpy.protocols import dispatch, ufuncs
from lucid.numpy.protocols.declared import declared_counterparts
from tests.numpy import calls

DECLARED = declared_counterparts()
FUNCTIONS = {*dispatch.ADAPTERS, *[f for f in DECLARED if not isinstance(f, np.ufunc)]}
UFUNCS = [*ufuncs.ADAPTERS, *[f for f in DECLARED if isinstance(f, np.ufunc)]]

X = np.random.default_rng(0).permutation(np.linspace(0.35, 0.95, 12)).reshape(3, 4)
Y = np.random.default_rng(1).permutation(np.linspace(0.3, 0.9, 12)).reshape(3, 4)
M = np.random.default_rng(2).uniform(0.5, 1.5, (3, 3))
V = np.array([0.7, 0.2, 0.5, 0.9])
W = np.array([[0.5, np.nan, 0.7, 0.2], [0.1, 0.9, np.nan, 0.4]])
MASK = np.array([[True, False, True, True], [False, True, False, True], [True] * 4])
EVEN = np.linspace(0.1, 0.8, 8).reshape(2, 4)[:, ::-1].copy()

# For each function, calls with NumPy's signature. `a` is the array or tensor.
CALLS = {
    np.amax: [lambda a: np.amax(a, axis=0)],
    np.amin: [lambda a: np.amin(a, 1, keepdims=True)],
    np.angle: [lambda a: np.angle(a - 0.6), lambda a: np.angle(a * (1 + 2j), deg=True)],
    np.append: [lambda a: np.append(a, a[:1], axis=0), lambda a: np.append(a, 2.0)],
    np.around: [lambda a: np.around(a, 1)],
    np.array_split: [lambda a: np.array_split(a, 3, axis=1), lambda a: np.array_split(a, [1, 2])],
    np.astype: [lambda a: np.astype(a, np.float64)],
    np.atleast_1d: [np.atleast_1d, lambda a: np.atleast_1d(a[0, 0])],
    np.atleast_2d: [np.atleast_2d, lambda a: np.atleast_2d(a[0])],
    np.atleast_3d: [np.atleast_3d, lambda a: np.atleast_3d(a[0])],
    np.average: [lambda a: np.average(a, 1), lambda a: np.average(a, axis=1, weights=V)],
    np.broadcast_arrays: [lambda a: np.broadcast_arrays(a, a[:1])],
    np.block: [
        lambda a: np.block([[a, a * 2], [np.ones(a.shape), a]]),
        lambda a: np.block([a[0], a[1]]),
        lambda a: np.block([[[a]], [[a]]]),
    ],
    np.broadcast_to: [lambda a: np.broadcast_to(a, (2, 3, 4))],
    np.clip: [lambda a: np.clip(a, 0.4, 0.8), lambda a: np.clip(a, None, 0.8)],
    np.column_stack: [lambda a: np.column_stack([a[:, 0], a[:, 1]])],
    np.compress: [lambda a: np.compress([True, False, True], a, axis=0)],
    np.concatenate: [
        lambda a: np.concatenate([a, a], axis=1),
        lambda a: np.concatenate([a, a], None),
    ],
    np.convolve: [
        lambda a: np.convolve(a[0], V[:3]),
        lambda a: np.convolve(a[0], a[1][:2], "same"),
    ],
    np.copy: [np.copy],
    np.corrcoef: [np.corrcoef],
    np.cov: [np.cov, lambda a: np.cov(a, rowvar=False, ddof=0)],
    np.cross: [lambda a: np.cross(a[:, 0], a[:, 1])],
    np.cumprod: [lambda a: np.cumprod(a, 1), np.cumprod],
    np.cumsum: [lambda a: np.cumsum(a, axis=0), np.cumsum],
    np.cumulative_prod: [lambda a: np.cumulative_prod(a, axis=1)],
    np.cumulative_sum: [lambda a: np.cumulative_sum(a, axis=1)],
    np.diag: [np.diag, lambda a: np.diag(a[0], 1)],
    np.diagflat: [lambda a: np.diagflat(a[:2])],
    np.diagonal: [lambda a: np.diagonal(a, 1)],
    np.diff: [np.diff, lambda a: np.diff(a, 2, 0), lambda a: np.diff(a, prepend=0.0)],
    np.dot: [lambda a: np.dot(a, Y.T), lambda a: np.dot(a[0], a[1]), lambda a: np.dot(a, 2.0)],
    np.dsplit: [lambda a: np.dsplit(np.reshape(a, (3, 2, 2)), 2)],
    np.dstack: [lambda a: np.dstack([a, a])],
    np.ediff1d: [np.ediff1d],
    np.einsum: [lambda a: np.einsum("ij,kj->ik", a, Y)],
    np.expand_dims: [lambda a: np.expand_dims(a, 1)],
    np.extract: [lambda a: np.extract(MASK, a)],
    np.fix: [lambda a: np.fix(a * 3)],
    np.flip: [np.flip, lambda a: np.flip(a, 1)],
    np.fliplr: [np.fliplr],
    np.flipud: [np.flipud],
    np.geomspace: [
        lambda a: np.geomspace(abs(a[0, 0]) + 1.0, abs(a[0, 1]) + 3.0, 4),
        lambda a: np.geomspace(1.0, abs(a[0, 1]) + 3.0, 3, endpoint=False),
    ],
    np.linspace: [
        lambda a: np.linspace(a[0, 0], a[0, 1], 4),
        lambda a: np.linspace(0.0, a[0, 1], 3, endpoint=False),
        lambda a: np.linspace(a[0, 0], 1, num=1),
    ],
    np.logspace: [
        lambda a: np.logspace(a[0, 0], a[0, 1], 4),
        lambda a: np.logspace(0.0, 1.0, 3, base=abs(a[0, 1]) + 2.0),
    ],
    np.gradient: [
        np.gradient,
        lambda a: np.gradient(a, 0.5, axis=1),
        lambda a: np.gradient(a, np.array([0.0, 1.0, 3.0, 4.0]), axis=1, edge_order=2),
    ],
    np.hsplit: [lambda a: np.hsplit(a, 2)],
    np.hstack: [lambda a: np.hstack([a, Y])],
    np.imag: [lambda a: np.imag(a * (1 + 2j))],
    np.inner: [lambda a: np.inner(a, Y)],
    np.interp: [lambda a: np.interp(a, np.array([0.4, 0.61, 0.8]), V[:3])],
    np.kron: [lambda a: np.kron(a[:2, :2], Y)],
    np.matrix_transpose: [np.matrix_transpose],
    np.max: [np.max, lambda a: np.max(a, axis=0)],
    np.mean: [np.mean, lambda a: np.mean(a, axis=(0, 1), keepdims=True)],
    np.median: [
        np.median,
        lambda a: np.median(a, axis=1),
        lambda a: np.median(a, 0, keepdims=True),
    ],
    np.meshgrid: [lambda a: np.meshgrid(a[0], a[1]), lambda a: np.meshgrid(a[0], V, indexing="ij")],
    np.min: [lambda a: np.min(a, 1)],
    np.moveaxis: [lambda a: np.moveaxis(a, 0, 1)],
    np.nan_to_num: [np.nan_to_num],
    np.nancumprod: [lambda a: np.nancumprod(a, 1)],
    np.nancumsum: [lambda a: np.nancumsum(a, 1)],
    np.nanmax: [lambda a: np.nanmax(a, 1)],
    np.nanmean: [lambda a: np.nanmean(a, axis=0)],
    np.nanmedian: [lambda a: np.nanmedian(a, 1), np.nanmedian],
    np.nanmin: [np.nanmin],
    np.nanpercentile: [lambda a: np.nanpercentile(a, [10, 75], axis=1)],
    np.nanprod: [lambda a: np.nanprod(a, axis=1)],
    np.nanquantile: [lambda a: np.nanquantile(a, 0.3, axis=0, keepdims=True)],
    np.nanstd: [lambda a: np.nanstd(a, axis=1)],
    np.nansum: [lambda a: np.nansum(a, axis=1)],
    np.nanvar: [np.nanvar, lambda a: np.nanvar(a, axis=1, ddof=1, keepdims=True)],
    np.outer: [lambda a: np.outer(a, V)],
    np.pad: [
        lambda a: np.pad(a, 1),
        lambda a: np.pad(a, ((1, 0), (0, 2)), constant_values=3.0),
        lambda a: np.pad(a, (1, 2), "edge"),
        lambda a: np.pad(a, 1, mode="reflect"),
        lambda a: np.pad(a, 1, mode="wrap"),
    ],
    np.partition: [lambda a: np.partition(a, (0, 1, 2, 3), axis=1)],
    np.percentile: [lambda a: np.percentile(a, [10, 75], axis=1)],
    np.polyval: [lambda a: np.polyval(V, a), lambda a: np.polyval(a[0], 2.0)],
    np.prod: [np.prod, lambda a: np.prod(a, 0)],
    np.ptp: [np.ptp, lambda a: np.ptp(a, axis=1)],
    np.quantile: [
        lambda a: np.quantile(a, 0.3),
        lambda a: np.quantile(a, 0.6, axis=0, keepdims=True),
    ],
    np.ravel: [np.ravel],
    np.real: [lambda a: np.real(a * (1 + 2j))],
    np.repeat: [lambda a: np.repeat(a, 2), lambda a: np.repeat(a, [1, 0, 2], axis=0)],
    np.reshape: [lambda a: np.reshape(a, (2, -1)), lambda a: np.reshape(a, -1)],
    np.roll: [lambda a: np.roll(a, 2), lambda a: np.roll(a, 1, axis=1)],
    np.rollaxis: [lambda a: np.rollaxis(a, 1)],
    np.rot90: [np.rot90],
    np.round: [lambda a: np.round(a, 1)],
    np.select: [lambda a: np.select([MASK, ~MASK], [a, a * 2])],
    np.sinc: [np.sinc],
    np.sort: [np.sort, lambda a: np.sort(a, axis=0), lambda a: np.sort(a, None)],
    np.split: [lambda a: np.split(a, 2, axis=1), lambda a: np.split(a, [1])],
    np.squeeze: [lambda a: np.squeeze(a[None])],
    np.stack: [lambda a: np.stack([a, Y], axis=1)],
    np.std: [np.std, lambda a: np.std(a, 0, ddof=1)],
    np.sum: [np.sum, lambda a: np.sum(a, axis=0), lambda a: np.sum(a, (0, 1), keepdims=True)],
    np.swapaxes: [lambda a: np.swapaxes(a, 0, 1)],
    np.take: [lambda a: np.take(a, [0, 5]), lambda a: np.take(a, [[0, 3]], axis=1)],
    np.take_along_axis: [lambda a: np.take_along_axis(a, np.array([[0], [2], [1]]), axis=1)],
    np.tensordot: [
        lambda a: np.tensordot(a, Y, axes=([0, 1], [0, 1])),
        lambda a: np.tensordot(a, Y.T, 1),
    ],
    np.tile: [lambda a: np.tile(a, 2), lambda a: np.tile(a, (2, 1, 2))],
    np.trace: [np.trace, lambda a: np.trace(a, 1)],
    np.transpose: [np.transpose, lambda a: np.transpose(a, (1, 0))],
    np.trapezoid: [np.trapezoid, lambda a: np.trapezoid(a, np.array([0.0, 1.0, 3.0, 4.0]), axis=1)],
    np.tril: [np.tril, lambda a: np.tril(a, -1)],
    np.triu: [np.triu],
    np.unique: [np.unique],
    np.unstack: [np.unstack],
    np.var: [np.var, lambda a: np.var(a, axis=1)],
    np.vander: [lambda a: np.vander(a[0], 3), lambda a: np.vander(a[0], increasing=True)],
    np.vdot: [lambda a: np.vdot(a, Y)],
    np.vsplit: [lambda a: np.vsplit(a, 3)],
    np.vstack: [lambda a: np.vstack([a, V])],
    np.where: [lambda a: np.where(MASK, a, 0.0)],
    np.linalg.cholesky: [lambda a: np.linalg.cholesky(a @ a.T + np.eye(3))],
    np.linalg.cond: [np.linalg.cond, lambda a: np.linalg.cond(a[:, :3], 1)],
    np.linalg.cross: [lambda a: np.linalg.cross(a[:, 0], Y[:, 1])],
    np.linalg.det: [lambda a: np.linalg.det(a[:, :3])],
    np.linalg.diagonal: [np.linalg.diagonal],
    np.linalg.eig: [lambda a: np.abs(np.linalg.eig(a[:, :3])[0])],
    np.linalg.eigh: [lambda a: np.linalg.eigh(a @ a.T)[0]],
    np.linalg.eigvals: [lambda a: np.abs(np.linalg.eigvals(a[:, :3]))],
    np.linalg.eigvalsh: [lambda a: np.linalg.eigvalsh(a @ a.T)],
    np.linalg.inv: [lambda a: np.linalg.inv(a[:, :3])],
    np.linalg.lstsq: [lambda a: np.linalg.lstsq(a.T, V)[0], lambda a: np.linalg.lstsq(a, Y)[0]],
    np.linalg.matmul: [lambda a: np.linalg.matmul(a, Y.T)],
    np.linalg.matrix_norm: [np.linalg.matrix_norm, lambda a: np.linalg.matrix_norm(a, ord="nuc")],
    np.linalg.matrix_power: [
        lambda a: np.linalg.matrix_power(a[:, :3], 3),
        lambda a: np.linalg.matrix_power(a[:, :3], -2),
    ],
    np.linalg.matrix_transpose: [np.linalg.matrix_transpose],
    np.linalg.multi_dot: [lambda a: np.linalg.multi_dot([a, Y.T, M])],
    np.linalg.norm: [
        np.linalg.norm,
        lambda a: np.linalg.norm(a, axis=1),
        lambda a: np.linalg.norm(a, 1, axis=0),
        lambda a: np.linalg.norm(a, np.inf),
        lambda a: np.linalg.norm(a, 2),
        lambda a: np.linalg.norm(a, -1, axis=(1, 0), keepdims=True),
    ],
    np.linalg.outer: [lambda a: np.linalg.outer(a[0], V)],
    np.linalg.pinv: [np.linalg.pinv],
    np.linalg.qr: [lambda a: np.linalg.qr(a.T), lambda a: np.linalg.qr(a.T, "r")],
    np.linalg.slogdet: [lambda a: np.linalg.slogdet(a[:, :3])[1]],
    np.linalg.solve: [
        lambda a: np.linalg.solve(a[:, :3], Y),
        lambda a: np.linalg.solve(a[:, :3], a[:, 3]),
    ],
    np.linalg.svd: [
        lambda a: np.linalg.svd(a)[1],
        lambda a: np.linalg.svd(a, compute_uv=False),
    ],
    np.linalg.svdvals: [np.linalg.svdvals],
    np.linalg.tensorinv: [lambda a: np.linalg.tensorinv(a[:, :3], 1)],
    np.linalg.tensorsolve: [lambda a: np.linalg.tensorsolve(a[:, :3], Y[:, 0])],
    np.linalg.tensordot: [lambda a: np.linalg.tensordot(a, Y, axes=2)],
    np.linalg.trace: [np.linalg.trace],
    np.linalg.vecdot: [lambda a: np.linalg.vecdot(a, Y)],
    np.fft.fft: [lambda a: np.real(np.fft.fft(a)), lambda a: np.imag(np.fft.fft(a, 5, 0, "ortho"))],
    np.fft.ifft: [lambda a: np.imag(np.fft.ifft(a)), lambda a: np.real(np.fft.ifft(a, axis=0))],
    np.fft.rfft: [lambda a: np.real(np.fft.rfft(a)), lambda a: np.imag(np.fft.rfft(a, n=3))],
    np.fft.irfft: [np.fft.irfft, lambda a: np.fft.irfft(a, 5, axis=0)],
    np.fft.hfft: [np.fft.hfft, lambda a: np.fft.hfft(a, norm="forward")],
    np.fft.ihfft: [lambda a: np.imag(np.fft.ihfft(a))],
    np.fft.fft2: [lambda a: np.real(np.fft.fft2(a)), lambda a: np.imag(np.fft.fft2(a, (2, 5)))],
    np.fft.ifft2: [lambda a: np.real(np.fft.ifft2(a))],
    np.fft.rfft2: [lambda a: np.imag(np.fft.rfft2(a))],
    np.fft.irfft2: [np.fft.irfft2],
    np.fft.fftn: [lambda a: np.imag(np.fft.fftn(a)), lambda a: np.real(np.fft.fftn(a, axes=(0,)))],
    np.fft.ifftn: [lambda a: np.real(np.fft.ifftn(a))],
    np.fft.rfftn: [lambda a: np.real(np.fft.rfftn(a, norm="ortho"))],
    np.fft.irfftn: [np.fft.irfftn],
    np.fft.fftshift: [np.fft.fftshift, lambda a: np.fft.fftshift(a, axes=0)],
    np.fft.ifftshift: [np.fft.ifftshift, lambda a: np.fft.ifftshift(a, (1,))],
    np.linalg.vector_norm: [
        np.linalg.vector_norm,
        lambda a: np.linalg.vector_norm(a, axis=1, ord=3),
    ],
}

CONSTANT_CALLS = {
    np.linalg.matrix_rank: [np.linalg.matrix_rank],
    np.all: [lambda a: np.all(a > 0.4, axis=1), np.all],
    np.allclose: [lambda a: np.allclose(a, a + 1e-12), lambda a: np.allclose(a, 0.5)],
    np.any: [lambda a: np.any(a > 0.9, axis=0, keepdims=True)],
    np.argmax: [np.argmax, lambda a: np.argmax(a, axis=1)],
    np.argmin: [lambda a: np.argmin(a, 0)],
    np.argsort: [np.argsort, lambda a: np.argsort(a, axis=None)],
    np.argwhere: [lambda a: np.argwhere(a > 0.6)],
    np.array2string: [np.array2string],
    np.array_equal: [lambda a: np.array_equal(a, a), lambda a: np.array_equal(a, a[:2])],
    np.array_equiv: [lambda a: np.array_equiv(a, a)],
    np.argpartition: [lambda a: np.argpartition(a, (0, 1, 2, 3), axis=1)],
    np.array_str: [np.array_str],
    np.bincount: [lambda a: np.bincount((a * 5).astype(np.int64).reshape(-1), minlength=9)],
    np.can_cast: [lambda a: np.can_cast(a.dtype, np.float32)],
    np.count_nonzero: [np.count_nonzero, lambda a: np.count_nonzero(a > 0.5, axis=0)],
    np.digitize: [lambda a: np.digitize(a, np.array([0.4, 0.7]))],
    np.flatnonzero: [lambda a: np.flatnonzero(a > 0.6)],
    np.full_like: [lambda a: np.full_like(a, 3)],
    np.histogram: [lambda a: np.histogram(a, 4), lambda a: np.histogram(a, 3, (0.0, 1.0))],
    np.isclose: [lambda a: np.isclose(a, a + 1e-9), lambda a: np.isclose(a, 0.5, atol=0.1)],
    np.iscomplex: [np.iscomplex],
    np.iscomplexobj: [np.iscomplexobj],
    np.isin: [lambda a: np.isin(a, X[0])],
    np.isneginf: [np.isneginf],
    np.isposinf: [np.isposinf],
    np.isreal: [np.isreal],
    np.isrealobj: [np.isrealobj],
    np.may_share_memory: [
        lambda a: np.may_share_memory(a, a[0]),
        lambda a: np.may_share_memory(a, Y),
    ],
    np.ndim: [np.ndim],
    np.nonzero: [lambda a: np.nonzero(a > 0.6)],
    np.ones_like: [np.ones_like],
    np.result_type: [lambda a: np.result_type(a, np.float32)],
    np.searchsorted: [lambda a: np.searchsorted(np.array([0.4, 0.7]), a)],
    np.shape: [np.shape],
    np.shares_memory: [lambda a: np.shares_memory(a, a[0])],
    np.size: [np.size, lambda a: np.size(a, 1)],
    np.unravel_index: [lambda a: np.unravel_index((a * 9).astype(np.int64), (3, 4))],
    np.zeros_like: [np.zeros_like, lambda a: np.zeros_like(a, dtype=np.int64)],
}

WITHOUT_A_VALUE = {np.empty_like, np.copyto, np.array_repr}  # tested on their own

PIECEWISE_CONSTANT = {np.around, np.fix, np.round}


def cases(table):
    return [
        pytest.param(call, id=f"{function.__module__}.{function.__name__}-{i}")
        for function, calls in table.items()
        for i, call in enumerate(calls)
    ]


def leaves(result) -> list:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def same(actual, expected) -> None:
    assert len(leaves(actual)) == len(leaves(expected))
    for a, e in zip(leaves(actual), leaves(expected)):
        if isinstance(e, (np.ndarray, np.generic)):
            assert isinstance(a, lucid.Tensor)
            assert a.dtype == e.dtype and a.shape == e.shape
            np.testing.assert_allclose(a.numpy(), e, rtol=1e-12, atol=1e-14)
        else:
            assert a == e


def weighted_sum(result):
    """One real number that depends on every element of every result."""
    total = 0.0
    for number, part in enumerate(leaves(result)):
        weights = np.cos(np.arange(part.size if isinstance(part, np.ndarray) else part.numel()))
        real = part.real if part.dtype.kind == "c" else part
        total = total + (real.reshape(-1) * weights).sum() * (number + 1)
    return total


def differences(call, x: np.ndarray) -> np.ndarray:
    """The gradient of NumPy's own result, by central differences."""
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = 1e-6
        above, below = ([np.asarray(y) for y in leaves(call(x + d))] for d in (step, -step))
        out[i] = (weighted_sum(above) - weighted_sum(below)) / 2e-6
    return out


@pytest.mark.parametrize("call", cases({**CALLS, **calls.CALLS}))
def test_numpy_function_of_a_tensor_has_numpys_value_and_its_gradient(call, request):
    name = request.node.callspec.id.rpartition("-")[0]
    constant = {f"{f.__module__}.{f.__name__}" for f in PIECEWISE_CONSTANT}
    same(call(lucid.tensor(X)), call(X))
    t = lucid.tensor(X, requires_grad=True)
    result = call(t)
    assert any(y.requires_grad for y in leaves(result)), "the gradient was lost"
    weighted_sum(result).backward()
    expected = np.zeros_like(X) if name in constant else differences(call, X)
    eager = np.zeros_like(X) if t.grad is None else t.grad.numpy()
    np.testing.assert_allclose(eager, expected, rtol=1e-5, atol=1e-7)
    functional = lucid.func.grad(lambda a: weighted_sum(call(a)))(lucid.tensor(X))
    np.testing.assert_allclose(functional.numpy(), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("call", cases({**CONSTANT_CALLS, **calls.CONSTANT_CALLS}))
def test_numpy_function_without_a_derivative_has_numpys_value(call):
    same(call(lucid.tensor(X)), call(X))
    same(call(lucid.tensor(X, requires_grad=True)), call(X))


@pytest.mark.parametrize("call", cases(calls.VALUE_CALLS))
def test_numpy_function_that_reads_values_refuses_to_lose_a_derivative(call):
    same(call(lucid.tensor(X)), call(X))
    with pytest.raises(TypeError, match="lose the gradient"):
        call(lucid.tensor(X, requires_grad=True))


def test_every_row_of_the_table_is_called_and_there_are_more_than_a_hundred():
    called = {*CALLS, *CONSTANT_CALLS, *WITHOUT_A_VALUE, *calls.CALLS, *calls.CONSTANT_CALLS}
    called |= {*calls.VALUE_CALLS, *calls.MADE}
    assert called == set(FUNCTIONS)
    assert len(CALLS) + len(UFUNCS) >= 100


@pytest.mark.parametrize("function", [np.nansum, np.nanmean, np.nanmax, np.nanvar, np.nanstd])
def test_nan_is_left_out_in_value_and_gradient(function):
    t = lucid.tensor(W, requires_grad=True)
    result = function(t, axis=1)
    np.testing.assert_allclose(result.detach().numpy(), function(W, axis=1))
    result.sum().backward()
    assert np.isfinite(t.grad.numpy()).all() and not t.grad.numpy()[np.isnan(W)].any()


def test_empty_like_copyto_and_array_repr_of_tensors():
    t = lucid.zeros(2, 3)
    assert np.empty_like(t).shape == (2, 3)
    np.copyto(t, lucid.ones(3))
    assert t.tolist() == [[1.0] * 3] * 2
    assert np.array_repr(t) == repr(t)
    with pytest.raises(TypeError, match="np.copyto"):
        np.copyto(np.zeros(3), lucid.ones(3))


# Ufuncs

UNIT = {np.arccosh: X + 1.1, np.invert: X > 0.5, np.logical_not: X > 0.5}
INTEGER = {
    np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.gcd, np.lcm, np.left_shift, np.right_shift,
}  # fmt: skip
NO_DERIVATIVE = {
    *INTEGER, np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.frexp,  # of its exponent; the mantissa's is in the table
    np.heaviside, np.invert, np.isfinite, np.isinf, np.isnan, np.logical_and, np.logical_not,
    np.logical_or, np.logical_xor, np.signbit,
}  # fmt: skip


def operands(ufunc) -> list[np.ndarray]:
    if ufunc in INTEGER:
        return [np.arange(6), np.arange(6) % 3]
    if ufunc is np.ldexp:
        return [X, np.full(X.shape, 2)]
    if ufunc in (np.matvec, np.vecmat):
        return [X, Y[0]] if ufunc is np.matvec else [X[:, 0], Y]
    if ufunc is np.matmul:
        return [X, Y.T]
    return [UNIT.get(ufunc, X), Y][: ufunc.nin]


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda f: f.__name__)
def test_ufunc_of_a_tensor_has_numpys_value_and_its_gradient(ufunc):
    first, *rest = operands(ufunc)

    def call(a):
        return ufunc(a, *rest)

    same(call(lucid.tensor(first)), call(first))
    if ufunc in NO_DERIVATIVE:
        return
    t = lucid.tensor(first, requires_grad=True)
    result = call(t)
    assert all(y.requires_grad for y in leaves(result))
    weighted_sum(result).backward()
    eager = np.zeros_like(first) if t.grad is None else t.grad.numpy()
    np.testing.assert_allclose(eager, differences(call, first), rtol=1e-5, atol=1e-7)
    functional = lucid.func.grad(lambda a: weighted_sum(call(a)))(lucid.tensor(first))
    np.testing.assert_allclose(functional.numpy(), eager, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("x", [np.ones(4, "float32"), np.float32(2), np.float64(2), 2.0, 2, True])
def test_numpy_operand_on_the_left_gives_a_tensor_on_the_tape(x):
    t = lucid.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    for y in (x * t, x + t, x - t, x / t, t * x):
        assert isinstance(y, lucid.Tensor) and y.requires_grad and y.dtype == np.float32


def test_matmul_with_arrays_on_either_side():
    t = lucid.tensor(M, requires_grad=True)
    for y in (t @ np.eye(3), np.eye(3) @ t):
        assert y.requires_grad
        np.testing.assert_allclose(y.detach().numpy(), M)


def test_comparison_with_an_array_is_a_tensor():
    y = np.array([1.0, 5.0]) < lucid.tensor([2.0, 3.0])
    assert isinstance(y, lucid.Tensor) and y.tolist() == [True, False]


def test_reduce_accumulate_and_outer_of_ufuncs():
    t = lucid.tensor(X, requires_grad=True)
    for call in (
        np.add.reduce,
        lambda a: np.multiply.reduce(a, axis=1),
        lambda a: np.maximum.reduce(a, axis=None),
        lambda a: np.minimum.reduce(a, axis=0, keepdims=True),
        lambda a: np.logaddexp.reduce(a, axis=1),
        np.add.accumulate,
        lambda a: np.maximum.accumulate(a, axis=1),
        lambda a: np.multiply.outer(a[0], V),
        lambda a: np.subtract.outer(a[0], a),
    ):
        y = call(t)
        assert y.requires_grad
        np.testing.assert_allclose(y.detach().numpy(), call(X), rtol=1e-12)


def test_add_at_adds_where_indices_repeat_and_keeps_gradients():
    values = lucid.tensor([1.0, 2.0, 4.0], requires_grad=True)
    t = lucid.zeros(3)
    np.add.at(t, [0, 2, 0], values)
    assert t.tolist() == [5.0, 0.0, 2.0]
    (t * lucid.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert values.grad.tolist() == [1.0, 100.0, 1.0]


def test_out_may_be_a_tensor():
    t = lucid.zeros(3)
    w = lucid.ones(3, requires_grad=True)
    result = np.multiply(w, 2.0, out=t)
    assert result is t and t.requires_grad and t.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="leaf"):
        np.add(w, 1.0, out=w)


def test_out_may_be_an_array_only_where_nothing_is_tracked():
    a = np.ones(3)
    a += lucid.tensor([1.0, 2.0, 3.0])
    assert a.tolist() == [2.0, 3.0, 4.0]
    with pytest.raises(TypeError, match=r"np\.add: out= is an ndarray.*detach"):
        a += lucid.ones(3, requires_grad=True)


def test_function_without_a_counterpart_names_itself_and_the_remedy():
    t = lucid.ones(3, requires_grad=True)
    with pytest.raises(TypeError, match=r"scimath\.sqrt: .*detach\(\)\.numpy.*test_interop"):
        np.emath.sqrt(t)
    with pytest.raises(TypeError, match=r"np\.spacing: .*not supported"):
        np.spacing(t)
    with pytest.raises(TypeError, match=r"np\.add\.reduceat"):
        np.add.reduceat(t, [0, 1])


def test_argument_that_tensors_do_not_take_is_an_error_with_its_name():
    t = lucid.ones(3)
    with pytest.raises(TypeError, match=r"np\.nanquantile: .*'weights'"):
        np.nanquantile(t, 0.5, weights=np.ones(3), method="inverted_cdf")
    with pytest.raises(ValueError, match=r"np\.max: where= needs initial="):
        np.nanmax(t, where=np.array([True, False, True]))
    with pytest.raises(TypeError, match=r"np\.add: .*where=.*out="):
        np.add(t, 1.0, where=np.array([True, False, True]))


WHERE = np.array([[True, False, True, True], [False, True, True, False], [True] * 4])


@pytest.mark.parametrize(
    "call",
    [
        lambda a: np.sum(a, axis=1, where=WHERE, initial=2.0),
        lambda a: np.prod(a, where=WHERE, keepdims=True),
        lambda a: np.prod(a, 0, initial=3.0),
        lambda a: np.mean(a, axis=0, where=WHERE),
        lambda a: np.var(a, axis=1, where=WHERE, ddof=1),
        lambda a: np.std(a, where=WHERE, keepdims=True),
        lambda a: np.var(a, axis=0, mean=np.mean(a, axis=0, keepdims=True)),
        lambda a: np.max(a, axis=1, where=WHERE, initial=-1.0),
        lambda a: np.min(a, axis=1, where=WHERE, initial=0.5),
        lambda a: np.min(a[:0], initial=0.5) + a,
        lambda a: np.add.reduce(a, axis=1, where=WHERE, initial=1.0),
        lambda a: np.maximum.reduce(a, where=WHERE, initial=0.1),
        lambda a: np.cumulative_sum(a, axis=1, include_initial=True),
        lambda a: np.cumulative_prod(a[0], include_initial=True),
        lambda a: np.ediff1d(a, to_begin=[1.0], to_end=[2.0, 3.0]),
        lambda a: np.einsum(a, [0, 1], a, [2, 1], [0, 2]),
        lambda a: np.einsum(a, [0, 1]),
    ],
)
def test_where_initial_and_other_arguments_have_numpys_value_and_gradient(call):
    same(call(lucid.tensor(X)), call(X))
    functional = lucid.func.grad(lambda a: weighted_sum(call(a)))(lucid.tensor(X))
    np.testing.assert_allclose(functional.numpy(), differences(call, X), rtol=1e-5, atol=1e-7)


def test_any_and_all_take_where():
    assert np.any(lucid.tensor(WHERE), where=~WHERE) == np.any(WHERE, where=~WHERE)
    assert np.all(lucid.tensor(WHERE), where=WHERE, axis=1).tolist() == [True] * 3


def test_out_takes_the_results_of_functions_and_selected_elements():
    target = lucid.zeros(4, dtype="float64")
    assert np.sum(lucid.tensor(X), axis=0, out=target) is target
    np.testing.assert_allclose(target.numpy(), X.sum(0))
    array = np.zeros(4)
    assert np.mean(lucid.tensor(X), 0, out=array) is array
    np.testing.assert_allclose(array, X.mean(0))
    kept = lucid.tensor(X)
    np.multiply(kept, 2.0, out=kept, where=WHERE)
    np.testing.assert_allclose(kept.numpy(), np.where(WHERE, 2.0 * X, X))
    leaf = lucid.tensor(X, requires_grad=True)
    np.sum(leaf, axis=0, out=target)
    target.sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), np.ones_like(X))
    with pytest.raises(TypeError, match="cannot store a tracked result"):
        np.sum(leaf, axis=0, out=array)
    whole, part = lucid.zeros(2), lucid.zeros(2)
    np.modf(lucid.tensor([1.5, 2.25]), out=(part, whole))
    assert whole.tolist() == [1.0, 2.0] and part.tolist() == [0.5, 0.25]


def test_traced_value_given_to_numpy_is_an_error_with_its_name():
    def asks(x):
        return np.asarray(x)

    with pytest.raises(TypeError, match="vmap of asks"):
        lucid.func.vmap(asks)(lucid.ones(2, 3))


def test_numpy_functions_under_vmap_equal_a_loop():
    def f(x):
        return np.sum(np.sin(x) * np.flip(x)) + np.max(x) + np.linalg.norm(x)

    together = lucid.func.vmap(f)(lucid.tensor(X))
    np.testing.assert_allclose(together.numpy(), [f(row) for row in X])


# Arrays in and out


def test_asarray_shares_memory_and_numpy_is_read_only_while_tracked():
    t = lucid.ones(3)
    a = np.asarray(t)
    a[0] = 5
    assert t.tolist() == [5.0, 1.0, 1.0]
    tracked = lucid.ones(3, requires_grad=True).numpy()
    with pytest.raises(ValueError, match="read-only"):
        tracked[0] = 5


def test_array_takes_dtype_and_copy_as_in_numpy_2():
    t = lucid.ones(3)
    assert np.asarray(t, dtype="float64").dtype == np.float64
    copied = np.array(t)
    copied[0] = 7
    assert t.tolist() == [1.0, 1.0, 1.0]
    assert np.shares_memory(np.array(t, copy=False), t.numpy())
    with pytest.raises(ValueError, match="copy"):
        np.array(t, dtype="float64", copy=False)


def test_from_numpy_shares_memory_both_ways():
    a = np.zeros(3)
    t = lucid.from_numpy(a)
    t.add_(1.0)
    a[0] = 5.0
    assert t.tolist() == [5.0, 1.0, 1.0] and a.tolist() == [5.0, 1.0, 1.0]
    with pytest.raises(TypeError, match="from_numpy: list"):
        lucid.from_numpy([1.0])


def test_read_only_array_makes_a_tensor_that_refuses_writes():
    a = np.zeros(3)
    a.flags.writeable = False
    t = lucid.from_numpy(a)
    with pytest.raises(RuntimeError, match="read-only"):
        t.add_(1.0)
    with pytest.raises(RuntimeError, match="read-only"):
        t[0] = 1.0


def test_dlpack_goes_both_ways():
    a = np.arange(3.0)
    t = lucid.from_dlpack(a)
    a[0] = 9.0
    assert t.tolist() == [9.0, 1.0, 2.0]
    back = np.from_dlpack(t)
    assert np.shares_memory(back, a)
    assert t.__dlpack_device__() == a.__dlpack_device__()


def test_dlpack_of_a_tracked_tensor_is_refused():
    with pytest.raises(RuntimeError, match=r"__dlpack__.*detach\(\)"):
        np.from_dlpack(lucid.ones(3, requires_grad=True))
    assert np.from_dlpack(lucid.ones(3, requires_grad=True).detach()).shape == (3,)


def test_dlpack_of_read_only_memory_does_not_let_it_be_written():
    a = np.zeros(3)
    a.flags.writeable = False
    shared = np.from_dlpack(lucid.from_numpy(a))
    assert not shared.flags.writeable or not np.shares_memory(shared, a)


def test_float64_and_float32_are_preserved():
    for dtype in ("float32", "float64"):
        t = lucid.tensor(X, dtype=dtype)
        for call in (np.mean, np.std, np.sum, np.median, np.sin, np.linalg.norm, np.cumsum, np.ptp):
            assert call(t).dtype == dtype


@pytest.mark.parametrize("options", [{}, {"endpoint": False}, {"axis": 1}, {"dtype": "int64"}])
def test_linspace_between_arrays(options):
    low, high = np.array([0.0, 1.0, 2.0]), np.array([[4.0, 5.0, 9.0], [1.0, 1.0, 0.0]])
    got = np.linspace(lucid.tensor(low), lucid.tensor(high), 5, **options)
    np.testing.assert_allclose(got.numpy(), np.linspace(low, high, 5, **options))
    x = lucid.tensor(low, requires_grad=True)
    np.linspace(x, 1.0, 3).sum().backward()  # weights 1, 1/2, 0
    np.testing.assert_allclose(x.grad, [1.5, 1.5, 1.5])


def test_looking_at_a_namespace_imports_nothing():
    code = "import sys, lucid.numpy as np; m = np.fft, np.linalg; before = set(vars(np)); "
    code += "hasattr(m[0], '__wrapped__'), hasattr(m[1], 'nothing'); print(set(vars(np)) - before)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
