"""The modes of a thread, all in one place: is gradient recorded, which equation is being replayed."""

from __future__ import annotations

import threading
from typing import Any


class _Modes(threading.local):
    grad = True  # record equations for `backward`
    inference = False  # inference_mode: results can never be tracked
    anomaly = False  # check every value for nan and name the line
    source: Any = None  # the Source that replayed equations inherit
    staging: Any = (
        None  # the Trace of a transform whose rules are running: constants are equations too
    )
    recorder: Any = None  # the Recorder of a run that is to be repeated natively
    maps: tuple[Any, ...] = ()  # the running vmaps, innermost last


local = _Modes()
