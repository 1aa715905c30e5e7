"""source: the user's line an equation comes from, kept as (code, offset) and resolved lazily."""

from __future__ import annotations

import os
import sys
from bisect import bisect_right
from types import CodeType, FrameType
from typing import Any

from lucid.caches import memoize

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Source:
    """A position in the user's program. `str(source)` is `train.py:12`."""

    __slots__ = ("code", "offset")

    def __init__(self, code: CodeType, offset: int) -> None:
        self.code = code
        self.offset = offset

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def line(self) -> int:
        return _line(self.code, self.offset)

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


class ParsedSource:
    """A source position parsed from the text of a Graph."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


@memoize(maxsize=4096)
def _starts(code: CodeType) -> tuple[list[int], list[int]]:
    rows = [(start, line) for start, _, line in code.co_lines() if line is not None]
    return [start for start, _ in rows], [line for _, line in rows]


def _line(code: CodeType, offset: int) -> int:
    starts, lines = _starts(code)
    return lines[max(bisect_right(starts, offset) - 1, 0)]


@memoize(maxsize=4096)
def is_internal(filename: str) -> bool:
    """True for files of the lucid package."""
    return filename.startswith((PACKAGE, "<frozen"))


class InternalFiles(dict[str, bool]):
    """filename -> whether it is Lucid's own, cached: every recorded operation looks it up."""

    def __missing__(self, filename: str) -> bool:
        self[filename] = found = is_internal(filename)
        return found


def user_frame(depth: int = 2) -> FrameType | None:
    """Return the innermost frame outside Lucid, starting `depth` frames up."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


class Replay:
    """`source()` is the Source of the equation being replayed, if any; set by the tape."""

    source: Any = staticmethod(lambda: None)


def caller(depth: int = 3) -> Source | None:
    """Return the Source of the equation being replayed, else of the user's innermost line."""
    replayed = Replay.source()
    if replayed is not None:
        return replayed
    frame = user_frame(depth)
    return None if frame is None else Source(frame.f_code, frame.f_lasti)


def at_line() -> str:
    """Return `   [train.py:41]` for the end of an error message, or "" if the line is unknown."""
    source = caller()
    return "" if source is None else f"   [{source}]"
