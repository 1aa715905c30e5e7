"""What training loops need beside the mathematics: data and progress."""

from lucid.utils import data as data
from lucid.utils.progress import Progress, progress

__all__ = ["Progress", "data", "progress"]
