"""The classes that lower ops on their own, with `accepts(eqn)` and `lower(layout, eqn)`.

The module of a lowering is imported when a program first has the op, so that a process that finds
its kernels in the cache starts in half the time.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from lucid.ops.core.kinds import Elementwise

LOWERINGS = {
    "Argsort": "lowering.index.sort_kernel.SortLowering",
    "Cholesky": "lowering.lapack.factorize.CholeskyLowering",
    "CombineAlong": "lowering.index.scatter_kernel.CombineAlongLowering",
    "Complex": "lowering.index.concatenate_pad.ComplexLowering",
    "Concatenate": "lowering.index.concatenate_pad.ConcatenateLowering",
    "Convolution": "lowering.conv.conv_lowering.ConvolutionLowering",
    "ConvolutionTranspose": "lowering.conv.conv_lowering.ConvolutionTransposeLowering",
    "ConvolutionWeight": "lowering.conv.weight_gradient_panels.ConvolutionWeightLowering",
    "Copy": "lowering.index.concatenate_pad.CopyLowering",
    "Cummax": "lowering.index.cumulative_kernel.CumulativeExtremumLowering",
    "Cummin": "lowering.index.cumulative_kernel.CumulativeExtremumLowering",
    "Cumprod": "lowering.index.cumulative_kernel.CumulativeLowering",
    "Cumsum": "lowering.index.cumulative_kernel.CumulativeLowering",
    "Eig": "lowering.lapack.eigen.EigLowering",
    "Eigh": "lowering.lapack.eigen.EighLowering",
    "Eigvals": "lowering.lapack.eigen.EigLowering",
    "Eigvalsh": "lowering.lapack.eigen.EighLowering",
    "Fft": "lowering.fft.fft_lowering.FftLowering",
    "Frexp": "lowering.external.ufunc_calls.FrexpLowering",
    "FromNumba": "lowering.external.numba_calls.NumbaScalarLowering",
    "Full": "lowering.index.concatenate_pad.FullLowering",
    "Irfft": "lowering.fft.fft_lowering.FftLowering",
    "LastWrite": "lowering.index.scatter_kernel.LastWriteLowering",
    "LogCumSumExp": "lowering.index.cumulative_kernel.CumulativeLowering",
    "LuFactor": "lowering.lapack.factorize.LuFactorLowering",
    "LuSolve": "lowering.lapack.factorize.LuSolveLowering",
    "Matmul": "lowering.matmul.MatmulLowering",
    "MaxPool": "lowering.conv.pool_kernel.MaxPoolLowering",
    "NumbaArrays": "lowering.external.numba_calls.NumbaArrayLowering",
    "Pad": "lowering.index.concatenate_pad.PadLowering",
    "Permutation": "lowering.lapack.factorize.PermutationLowering",
    "PutAlong": "lowering.index.scatter_kernel.PutAlongLowering",
    "Qr": "lowering.lapack.factorize.QrLowering",
    "RandomBits": "lowering.random.threefry.RandomBitsLowering",
    "Recurrence": "lowering.index.cumulative_kernel.CumulativeLowering",
    "Refuse": "lowering.lapack.factorize.RefuseLowering",
    "RepeatedSquare": "lowering.lapack.repeated_square.RepeatedSquareLowering",
    "Resample": "lowering.conv.resample_kernel.ResampleLowering",
    "Rfft": "lowering.fft.fft_lowering.FftLowering",
    "Scan": "lowering.loops.control_flow.ScanLowering",
    "ScatterAdd": "lowering.index.scatter_kernel.ScatterAddLowering",
    "ScatterSet": "lowering.index.scatter_kernel.ScatterSetLowering",
    "SliceSet": "lowering.index.concatenate_pad.SliceSetLowering",
    "Sort": "lowering.index.sort_kernel.SortLowering",
    "Svd": "lowering.lapack.eigen.SvdLowering",
    "Svdvals": "lowering.lapack.eigen.SvdLowering",
    "Switch": "lowering.loops.control_flow.SwitchLowering",
    "TopK": "lowering.index.sort_kernel.SortLowering",
    "TriangularSolve": "lowering.lapack.factorize.TriangularSolveLowering",
    "While": "lowering.loops.control_flow.WhileLowering",
}


def lowering_of(op: Any) -> Any:
    """Return the class that lowers an op on its own, or None."""
    return _lowering_of(op.__class__)


@cache
def _lowering_of(cls: type) -> Any:
    path = LOWERINGS.get(cls.__name__) if cls.__module__.startswith("lucid.ops.") else None
    if path is None and issubclass(cls, Elementwise):
        path = "lowering.external.ufunc_calls.UfuncLowering"
    if path is None:
        return None
    module, _, name = path.rpartition(".")
    return getattr(import_module(f"lucid.compiler.{module}"), name)
