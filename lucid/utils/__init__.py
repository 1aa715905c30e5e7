"""What training loops need beside the mathematics: data, progress, checkpoints of memory."""

from lucid.utils import checkpoint as checkpoint
from lucid.utils import data as data
from lucid.utils.progress import Progress, progress

__all__ = ["Progress", "checkpoint", "data", "progress"]
