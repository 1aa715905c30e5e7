"""The modes of a thread: gradient recording, inference, anomaly checks, tracing and replay."""

from __future__ import annotations

import threading
from typing import Any

from lucid.ir.source import Replay


class _Modes(threading.local):
    fast_record = True  # grad mode without recorder or replay: operations record on the fast path
    no_observers = True  # no transform, recorder, replay or anomaly check needs every equation
    grad = True  # record equations for `backward`
    inference = False  # inference_mode: results can never be tracked
    anomaly = False  # check every value for nan and name the line
    source: Any = None  # the Source that replayed equations inherit
    staging: Any = None  # the Trace of a transform whose rules run: constants are equations too
    recorder: Any = None  # the active Recorder, while a jitted function is recorded
    maps: tuple[Any, ...] = ()  # the active vmaps, innermost last

    def __setattr__(self, name: str, value: Any) -> None:
        modes = self.__dict__
        modes[name] = value
        direct = self.source is None and self.recorder is None
        modes["fast_record"] = self.grad and direct
        modes["no_observers"] = (
            direct and self.staging is None and not self.anomaly and not self.maps
        )


local = _Modes()
Replay.source = staticmethod(lambda: local.source)
