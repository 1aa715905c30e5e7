"""Steps that stand alone: what says, for an operation, which types it accepts, and lowers it.

A step's module is imported when a program first has its operation: a process that finds its kernels
in the cache starts in half the time.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from lucid.ops.kinds import Elementwise

STEPS = {
    "Argsort": "steps.ordering.SortStep",
    "Cholesky": "steps.factoring.CholeskyStep",
    "CombineAlong": "steps.indexing.CombineAlongStep",
    "Complex": "steps.joining.ComplexStep",
    "Concatenate": "steps.joining.ConcatenateStep",
    "Convolution": "steps.convolution.ConvolutionStep",
    "ConvolutionTranspose": "steps.convolution.ConvolutionTransposeStep",
    "ConvolutionWeight": "steps.weighing.ConvolutionWeightStep",
    "Copy": "steps.joining.CopyStep",
    "Cummax": "steps.scanning.RunningExtremumStep",
    "Cummin": "steps.scanning.RunningExtremumStep",
    "Cumprod": "steps.scanning.ScanStep",
    "Cumsum": "steps.scanning.ScanStep",
    "Eig": "steps.spectra.EigStep",
    "Eigh": "steps.spectra.EighStep",
    "Eigvals": "steps.spectra.EigStep",
    "Eigvalsh": "steps.spectra.EighStep",
    "Fft": "steps.fourier.FourierStep",
    "Frexp": "steps.foreign.FrexpStep",
    "FromNumba": "steps.from_numba.NumbersStep",
    "Full": "steps.joining.FullStep",
    "Irfft": "steps.fourier.FourierStep",
    "LastWrite": "steps.indexing.LastWriteStep",
    "LogCumSumExp": "steps.scanning.ScanStep",
    "LuFactor": "steps.factoring.LuStep",
    "LuSolve": "steps.factoring.LuSolveStep",
    "Matmul": "products.MatmulStep",
    "MaxPool": "steps.pooling.MaxPoolStep",
    "NumbaArrays": "steps.from_numba.ArraysStep",
    "Pad": "steps.joining.PadStep",
    "Permutation": "steps.factoring.PermutationStep",
    "PutAlong": "steps.indexing.PutAlongStep",
    "Qr": "steps.factoring.QrStep",
    "RandomBits": "steps.random.RandomBitsStep",
    "Recurrence": "steps.scanning.ScanStep",
    "Refuse": "steps.factoring.RefuseStep",
    "RepeatedSquare": "steps.squaring.RepeatedSquareStep",
    "Resample": "steps.resampling.ResampleStep",
    "Rfft": "steps.fourier.FourierStep",
    "Scan": "steps.control.LoopStep",
    "ScatterAdd": "steps.indexing.ScatterAddStep",
    "ScatterSet": "steps.indexing.ScatterSetStep",
    "SliceSet": "steps.joining.SliceSetStep",
    "Sort": "steps.ordering.SortStep",
    "Svd": "steps.spectra.SvdStep",
    "Svdvals": "steps.spectra.SvdStep",
    "Switch": "steps.control.SwitchStep",
    "TopK": "steps.ordering.SortStep",
    "TriangularSolve": "steps.factoring.TriangularStep",
    "While": "steps.control.WhileStep",
}


def step_of(op: Any) -> Any:
    """What lowers an operation that stands alone, None where nothing does."""
    return _step_of(op.__class__)


@cache
def _step_of(cls: type) -> Any:
    place = STEPS.get(cls.__name__) if cls.__module__.startswith("lucid.ops.") else None
    if place is None and issubclass(cls, Elementwise):
        place = "steps.foreign.ForeignStep"
    if place is None:
        return None
    module, _, name = place.rpartition(".")
    return getattr(import_module(f"lucid.compiler.{module}"), name)
