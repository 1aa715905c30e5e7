"""source: the line and the scope an equation comes from, kept cheaply and resolved lazily."""

from __future__ import annotations

import os
import sys
from bisect import bisect_right
from types import CodeType, FrameType
from typing import Any
from weakref import ref

from lucid.support.caches import memoize, new_cache

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Scope:
    """The part of a program that an equation was made in: `blocks.0.norm1: LayerNorm`.

    path     the path from the outermost module, "" for that one; a named scope follows a slash
    kind     the class of the module or the optimizer, "" for a named scope
    owner    a function that returns the module or the optimizer while it exists
    outer    the Scope around this one
    """

    __slots__ = ("kind", "outer", "owner", "path")

    def __init__(
        self, path: str, kind: str = "", owner: Any = None, outer: Scope | None = None
    ) -> None:
        self.path = path
        self.kind = kind
        self.owner = owner
        self.outer = outer

    @staticmethod
    def of(owner: Any, outer: Scope | None) -> Scope:
        """Return the Scope of a module that is called inside `outer`."""
        kind = type(owner).__name__
        around = outer
        while around is not None:
            above = around.owner() if around.owner is not None else None
            if above is not None:
                name = above.path_of(owner)
                if name:
                    return Scope(outer.join(name), kind, ref(owner), outer)  # type: ignore[union-attr]
                break
            around = around.outer
        return Scope("" if outer is None else outer.join(kind, "/"), kind, ref(owner), outer)

    def join(self, name: str, separator: str = "") -> str:
        """Return the path of something inside this scope."""
        return f"{self.path}{separator or ('.' if self.kind else '/')}{name}" if self.path else name

    @property
    def outermost(self) -> Scope:
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        return scope

    def __str__(self) -> str:
        if not self.path or self.path.endswith(self.kind):
            return self.path or self.kind
        return f"{self.path}: {self.kind}"


class Source:
    """A position in the user's program. `str(source)` is `train.py:12`."""

    __slots__ = ("code", "offset", "scope")

    def __init__(self, code: CodeType, offset: int, scope: Scope | None = None) -> None:
        self.code = code
        self.offset = offset
        self.scope = scope

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def line(self) -> int:
        return _line(self.code, self.offset)

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


class ParsedSource:
    """A source position parsed from the text of a Graph, as `comment` writes it."""

    __slots__ = ("scope", "text")

    def __init__(self, text: str) -> None:
        self.text, _, scope = text.partition("  ")
        path, _, kind = scope.strip().rpartition(": ")
        self.scope = Scope(path or kind, kind if path else "") if scope.strip() else None

    @property
    def file(self) -> str:
        return self.text.rpartition(":")[0]

    @property
    def line(self) -> int:
        number = self.text.rpartition(":")[2]
        return int(number) if number.isdecimal() else 0

    def __str__(self) -> str:
        return self.text


def comment(source: Any) -> str:
    """Return a Source as the text of a Graph has it: `train.py:12  blocks.0.norm1: LayerNorm`."""
    return str(source) if source.scope is None else f"{source}  {source.scope}"


@memoize(maxsize=4096)
def _starts(code: CodeType) -> tuple[list[int], list[int]]:
    rows = [(start, line) for start, _, line in code.co_lines() if line is not None]
    return [start for start, _ in rows], [line for _, line in rows]


def _line(code: CodeType, offset: int) -> int:
    starts, lines = _starts(code)
    return lines[max(bisect_right(starts, offset) - 1, 0)]


class InternalFiles(dict[str, bool]):
    """filename -> whether it is Lucid's own, cached: every recorded operation looks it up."""

    def __missing__(self, filename: str) -> bool:
        self[filename] = found = filename.startswith((PACKAGE, "<frozen"))
        return found


internal_files = new_cache(f"{__name__}.internal_files", InternalFiles())
is_internal = internal_files.__getitem__


def user_frame(depth: int = 2) -> FrameType | None:
    """Return the innermost frame outside Lucid, starting `depth` frames up."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


class Replay:
    """The Source of the equation being replayed, if any, and the Scope of code; set by the tape."""

    source: Any = staticmethod(lambda: None)
    scope: Any = staticmethod(lambda: None)


def caller(depth: int = 3) -> Source | None:
    """Return the Source of the equation being replayed, else of the user's innermost line."""
    replayed = Replay.source()
    if replayed is not None:
        return replayed
    frame = user_frame(depth)
    return None if frame is None else Source(frame.f_code, frame.f_lasti, Replay.scope())


def at_line() -> str:
    """Return `   [train.py:41]` for the end of an error message, or "" if the line is unknown."""
    source = caller()
    return "" if source is None else f"   [{source}]"
