"""What training loops need beside the mathematics: data and progress."""

from lucid.utils import data as data

__all__ = ["data"]
