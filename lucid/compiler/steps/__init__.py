"""Steps that stand alone: what says, for an operation, which types it accepts, and lowers it."""

from __future__ import annotations

from typing import Any

from lucid.compiler.products import MatmulStep
from lucid.compiler.steps.control import LoopStep, SwitchStep, WhileStep
from lucid.compiler.steps.convolving import ConvolutionStep, ConvolutionTransposeStep
from lucid.compiler.steps.correlating import ConvolutionWeightStep
from lucid.compiler.steps.factoring import (
    CholeskyStep,
    LuSolveStep,
    LuStep,
    PermutationStep,
    QrStep,
    RefuseStep,
    TriangularStep,
)
from lucid.compiler.steps.foreign import ForeignStep
from lucid.compiler.steps.fourier import FourierStep
from lucid.compiler.steps.indexing import (
    LastWriteStep,
    PutAlongStep,
    ScatterAddStep,
    ScatterSetStep,
)
from lucid.compiler.steps.joining import (
    ComplexStep,
    ConcatenateStep,
    CopyStep,
    FullStep,
    PadStep,
    SliceSetStep,
)
from lucid.compiler.steps.ordering import SortStep
from lucid.compiler.steps.pooling import MaxPoolStep
from lucid.compiler.steps.random import RandomBitsStep
from lucid.compiler.steps.scanning import RunningExtremumStep, ScanStep
from lucid.compiler.steps.spectra import EighStep, EigStep, SvdStep
from lucid.ops.complexes import Complex
from lucid.ops.contraction import Matmul
from lucid.ops.control.loops import While
from lucid.ops.control.scan import Scan
from lucid.ops.control.switch import Switch
from lucid.ops.convolution import Convolution, ConvolutionTranspose, ConvolutionWeight
from lucid.ops.copying import Copy
from lucid.ops.creation import Full
from lucid.ops.cumulative import Cummax, Cummin, Cumprod, Cumsum, LogCumSumExp, Recurrence
from lucid.ops.eigenvalues import Eig, Eigvals
from lucid.ops.factorisations import Cholesky, LuFactor, Permutation, Qr
from lucid.ops.fourier import Fft, Irfft, Rfft
from lucid.ops.indexing import PutAlong, ScatterAdd
from lucid.ops.kinds import Elementwise
from lucid.ops.movement import Concatenate, Pad
from lucid.ops.pooling import MaxPool
from lucid.ops.random import RandomBits
from lucid.ops.refusal import Refuse
from lucid.ops.sorting import Argsort, Sort, TopK
from lucid.ops.spectra import Eigh, Eigvalsh, Svd, Svdvals
from lucid.ops.triangular import LuSolve, TriangularSolve
from lucid.ops.writing import LastWrite, ScatterSet, SliceSet

STEPS: dict[type, Any] = {
    Argsort: SortStep,
    Cholesky: CholeskyStep,
    Complex: ComplexStep,
    Concatenate: ConcatenateStep,
    Convolution: ConvolutionStep,
    ConvolutionTranspose: ConvolutionTransposeStep,
    ConvolutionWeight: ConvolutionWeightStep,
    Copy: CopyStep,
    Cummax: RunningExtremumStep,
    Cummin: RunningExtremumStep,
    Cumprod: ScanStep,
    Cumsum: ScanStep,
    Eig: EigStep,
    Eigh: EighStep,
    Eigvals: EigStep,
    Eigvalsh: EighStep,
    Fft: FourierStep,
    Full: FullStep,
    Irfft: FourierStep,
    LastWrite: LastWriteStep,
    LogCumSumExp: ScanStep,
    LuFactor: LuStep,
    LuSolve: LuSolveStep,
    Matmul: MatmulStep,
    MaxPool: MaxPoolStep,
    Pad: PadStep,
    Permutation: PermutationStep,
    PutAlong: PutAlongStep,
    Qr: QrStep,
    RandomBits: RandomBitsStep,
    Recurrence: ScanStep,
    Refuse: RefuseStep,
    Scan: LoopStep,
    Rfft: FourierStep,
    ScatterAdd: ScatterAddStep,
    ScatterSet: ScatterSetStep,
    SliceSet: SliceSetStep,
    Sort: SortStep,
    Svd: SvdStep,
    Svdvals: SvdStep,
    Switch: SwitchStep,
    TopK: SortStep,
    TriangularSolve: TriangularStep,
    While: WhileStep,
}


def step_of(op: Any) -> Any:
    """What lowers an operation that stands alone, None where nothing does."""
    return STEPS.get(type(op)) or (ForeignStep if isinstance(op, Elementwise) else None)
