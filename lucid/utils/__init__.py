"""Utilities for training loops: data loading, progress bars, checkpointing."""

from lucid.utils import checkpoint as checkpoint
from lucid.utils import data as data
from lucid.utils.progress_bar import Progress, progress

__all__ = ["Progress", "checkpoint", "data", "progress"]
