"""Optimizers, learning-rate schedulers, and update rules as pure functions."""

from lucid.optim import functional, lr_scheduler, swa_utils
from lucid.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from lucid.optim.adaptive import Adadelta, Adafactor, Adagrad, RMSprop
from lucid.optim.lbfgs import LBFGS
from lucid.optim.optimizer import Optimizer
from lucid.optim.sgd import ASGD, SGD
from lucid.optim.signs import Lion, Muon, Rprop

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Lion",
    "Muon", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "functional", "lr_scheduler",
    "swa_utils",
]  # fmt: skip
