"""The modes of a thread, all in one place: is gradient recorded, which equation is replayed."""

from __future__ import annotations

import threading
from typing import Any

from lucid.ir.source import Replay


class _Modes(threading.local):
    plain = True  # grad on, and nothing else going on: operations take the short way
    alone = True  # no transform, recording, replay or check for nan wants to see every equation
    grad = True  # record equations for `backward`
    inference = False  # inference_mode: results can never be tracked
    anomaly = False  # check every value for nan and name the line
    source: Any = None  # the Source that replayed equations inherit
    staging: Any = None  # the Trace of a transform whose rules run: constants are equations too
    recorder: Any = None  # the Recorder of a run that is to be repeated natively
    maps: tuple[Any, ...] = ()  # the running vmaps, innermost last

    def __setattr__(self, name: str, value: Any) -> None:
        modes = self.__dict__
        modes[name] = value
        alone = self.source is None and self.recorder is None
        modes["plain"] = self.grad and alone
        modes["alone"] = alone and self.staging is None and not self.anomaly and not self.maps


local = _Modes()
Replay.source = staticmethod(lambda: local.source)
