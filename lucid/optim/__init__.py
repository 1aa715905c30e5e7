"""Optimizers and schedules of their settings."""

from lucid.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from lucid.optim.optimizer import Optimizer
from lucid.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam"]
