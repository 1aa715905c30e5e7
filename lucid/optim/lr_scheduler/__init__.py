"""Learning-rate schedulers."""

from lucid.optim.lr_scheduler.base import LRScheduler
from lucid.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from lucid.optim.lr_scheduler.cycles import CyclicLR, OneCycleLR
from lucid.optim.lr_scheduler.decay import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from lucid.optim.lr_scheduler.joined import ChainedScheduler, SequentialLR
from lucid.optim.lr_scheduler.plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
