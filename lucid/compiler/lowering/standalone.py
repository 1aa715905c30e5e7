"""Steps that stand alone: what says, for an operation, which types it accepts, and lowers it.

A step's module is imported when a program first has its operation: a process that finds its kernels
in the cache starts in half the time.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from lucid.ops.core.kinds import Elementwise

STEPS = {
    "Argsort": "lowering.index.sort_kernel.SortStep",
    "Cholesky": "lowering.lapack.factorize.CholeskyStep",
    "CombineAlong": "lowering.index.scatter_kernel.CombineAlongStep",
    "Complex": "lowering.index.concatenate_pad.ComplexStep",
    "Concatenate": "lowering.index.concatenate_pad.ConcatenateStep",
    "Convolution": "lowering.conv.conv_step.ConvolutionStep",
    "ConvolutionTranspose": "lowering.conv.conv_step.ConvolutionTransposeStep",
    "ConvolutionWeight": "lowering.conv.weight_gradient_panels.ConvolutionWeightStep",
    "Copy": "lowering.index.concatenate_pad.CopyStep",
    "Cummax": "lowering.index.cumulative_kernel.RunningExtremumStep",
    "Cummin": "lowering.index.cumulative_kernel.RunningExtremumStep",
    "Cumprod": "lowering.index.cumulative_kernel.ScanStep",
    "Cumsum": "lowering.index.cumulative_kernel.ScanStep",
    "Eig": "lowering.lapack.eigen.EigStep",
    "Eigh": "lowering.lapack.eigen.EighStep",
    "Eigvals": "lowering.lapack.eigen.EigStep",
    "Eigvalsh": "lowering.lapack.eigen.EighStep",
    "Fft": "lowering.fft.fft_step.FourierStep",
    "Frexp": "lowering.external.ufunc_calls.FrexpStep",
    "FromNumba": "lowering.external.numba_calls.NumbersStep",
    "Full": "lowering.index.concatenate_pad.FullStep",
    "Irfft": "lowering.fft.fft_step.FourierStep",
    "LastWrite": "lowering.index.scatter_kernel.LastWriteStep",
    "LogCumSumExp": "lowering.index.cumulative_kernel.ScanStep",
    "LuFactor": "lowering.lapack.factorize.LuStep",
    "LuSolve": "lowering.lapack.factorize.LuSolveStep",
    "Matmul": "lowering.matmul.MatmulStep",
    "MaxPool": "lowering.conv.pool_kernel.MaxPoolStep",
    "NumbaArrays": "lowering.external.numba_calls.ArraysStep",
    "Pad": "lowering.index.concatenate_pad.PadStep",
    "Permutation": "lowering.lapack.factorize.PermutationStep",
    "PutAlong": "lowering.index.scatter_kernel.PutAlongStep",
    "Qr": "lowering.lapack.factorize.QrStep",
    "RandomBits": "lowering.random.threefry.RandomBitsStep",
    "Recurrence": "lowering.index.cumulative_kernel.ScanStep",
    "Refuse": "lowering.lapack.factorize.RefuseStep",
    "RepeatedSquare": "lowering.lapack.repeated_square.RepeatedSquareStep",
    "Resample": "lowering.conv.resample_kernel.ResampleStep",
    "Rfft": "lowering.fft.fft_step.FourierStep",
    "Scan": "lowering.loops.control_flow.LoopStep",
    "ScatterAdd": "lowering.index.scatter_kernel.ScatterAddStep",
    "ScatterSet": "lowering.index.scatter_kernel.ScatterSetStep",
    "SliceSet": "lowering.index.concatenate_pad.SliceSetStep",
    "Sort": "lowering.index.sort_kernel.SortStep",
    "Svd": "lowering.lapack.eigen.SvdStep",
    "Svdvals": "lowering.lapack.eigen.SvdStep",
    "Switch": "lowering.loops.control_flow.SwitchStep",
    "TopK": "lowering.index.sort_kernel.SortStep",
    "TriangularSolve": "lowering.lapack.factorize.TriangularStep",
    "While": "lowering.loops.control_flow.WhileStep",
}


def step_of(op: Any) -> Any:
    """What lowers an operation that stands alone, None where nothing does."""
    return _step_of(op.__class__)


@cache
def _step_of(cls: type) -> Any:
    place = STEPS.get(cls.__name__) if cls.__module__.startswith("lucid.ops.") else None
    if place is None and issubclass(cls, Elementwise):
        place = "lowering.external.ufunc_calls.ForeignStep"
    if place is None:
        return None
    module, _, name = place.rpartition(".")
    return getattr(import_module(f"lucid.compiler.{module}"), name)
