# Written by `python -m lucid.public.build`.

import builtins as _b
import collections.abc as _abc
import typing as _t

import numpy as _np

from lucid.optim.lr_scheduler.base import LRScheduler as LRScheduler
from lucid.optim.lr_scheduler.cosine import CosineAnnealingLR as CosineAnnealingLR
from lucid.optim.lr_scheduler.cosine import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from lucid.optim.lr_scheduler.cycles import CyclicLR as CyclicLR
from lucid.optim.lr_scheduler.cycles import OneCycleLR as OneCycleLR
from lucid.optim.lr_scheduler.decay import ConstantLR as ConstantLR
from lucid.optim.lr_scheduler.decay import ExponentialLR as ExponentialLR
from lucid.optim.lr_scheduler.decay import LambdaLR as LambdaLR
from lucid.optim.lr_scheduler.decay import LinearLR as LinearLR
from lucid.optim.lr_scheduler.decay import MultiStepLR as MultiStepLR
from lucid.optim.lr_scheduler.decay import MultiplicativeLR as MultiplicativeLR
from lucid.optim.lr_scheduler.decay import PolynomialLR as PolynomialLR
from lucid.optim.lr_scheduler.decay import StepLR as StepLR
from lucid.optim.lr_scheduler.joined import ChainedScheduler as ChainedScheduler
from lucid.optim.lr_scheduler.joined import SequentialLR as SequentialLR
from lucid.optim.lr_scheduler.plateau import ReduceLROnPlateau as ReduceLROnPlateau


