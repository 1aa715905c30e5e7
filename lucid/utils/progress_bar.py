"""Progress bars with values, rate and remaining time, drawn by tqdm if it is installed.

A terminal rewrites one line, a notebook updates one output, and anything else (a file, a pipe)
gets a plain line from time to time. A displayed tensor is read only when a line is drawn, a few
times a second, so the loop does not wait for its values. Errors of a closed stream are ignored.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import sys
import time
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from lucid.errors import ArgumentError
from lucid.public.declare import public

BAR, FULL, EMPTY = 20, "━", "╌"
REDRAW_SECONDS = {"terminal": 0.1, "notebook": 0.25, "plain": 5.0}


@public("utils")
class Progress:
    """An iterable that displays its progress.

    >>> import sys
    >>> from lucid.utils import Progress
    >>> for i in (steps := Progress(range(3), "epoch 1", file=sys.stdout, clock=lambda: 0.0)):
    ...     steps.show(loss=0.5 / (i + 1))
    epoch 1 3/3  loss 0.1667
    """

    def __init__(
        self,
        items: Iterable[Any] | int,
        title: str = "",
        *,
        total: int | None = None,
        file: TextIO | None = None,
        clock: Any = time.perf_counter,
    ) -> None:
        self.items = range(items) if isinstance(items, int) else items
        if not hasattr(self.items, "__iter__") and not hasattr(self.items, "__getitem__"):
            raise ArgumentError(f"progress: {items!r} is not iterable")
        self.title, self.file, self.clock = title, file or sys.stderr, clock
        self.total = total if total is not None else length_of(self.items)
        self.values: dict[str, Any] = {}
        self.done = 0
        self.display = display_kind(self.file)
        self.output: Any = None

    def __len__(self) -> int:
        if self.total is None:
            raise TypeError("the length of this loop is unknown")
        return self.total

    def __iter__(self) -> Iterator[Any]:
        self.done, self.start = 0, self.clock()
        self.drawn = self.start if self.display == "plain" else -float("inf")
        try:
            for item in self.items:
                yield item
                self.done += 1
                self.draw_if_due()
        finally:
            self.finish()

    def show(self, **values: Any) -> None:
        """Display these numbers or strings until the next call."""
        self.values.update(values)

    def draw_if_due(self) -> None:
        now = self.clock()
        if now - self.drawn >= REDRAW_SECONDS[self.display] and self.done != self.total:
            self.drawn = now
            self.draw(now)

    def draw(self, now: float, last: bool = False) -> None:
        text = self.text(now, last)
        if self.display == "notebook":
            self.output = show_in_notebook(text, self.output)
        elif self.file is not None:
            if self.display == "terminal":
                width = max(shutil.get_terminal_size().columns - 1, 20)
                text = "\r" + fit_to_width(text, width) + ("\n" if last else "")
            else:
                text += "\n"
            with contextlib.suppress(OSError, ValueError):
                self.file.write(text)
                self.file.flush()

    def finish(self) -> None:
        self.draw(self.clock(), last=True)

    def text(self, now: float, last: bool = False) -> str:
        """Return the line: title, position, rate, remaining time, values."""
        elapsed = now - self.start
        parts = [self.title] if self.title else []
        if self.total:
            if self.display != "plain" and not last:
                parts.append(bar(self.done / self.total, can_encode(self.file, FULL + EMPTY)))
            parts.append(f"{self.done}/{self.total}")
        else:
            parts.append(str(self.done))
        line = " ".join(parts)
        if elapsed > 0 and self.done:
            rate = self.done / elapsed
            line += f"  {rate_text(rate)}"
            if last:
                line += f"  {time_text(elapsed)}"
            elif self.total:
                line += f"  {time_text(max(self.total - self.done, 0) / rate)} left"
        for name, value in self.values.items():
            line += f"  {name} {value_text(value)}"
        return "".join([c if c.isprintable() else " " for c in line])


class TqdmProgress(Progress):
    """A Progress that tqdm draws."""

    def __iter__(self) -> Iterator[Any]:
        from tqdm.auto import tqdm  # type: ignore[import-untyped]

        self.drawn = -float("inf")
        with tqdm(self.items, self.title, total=self.total, file=self.file) as bar:
            for item in bar:
                yield item
                now = self.clock()
                if now - self.drawn >= REDRAW_SECONDS[self.display]:
                    self.drawn = now
                    self.show_values(bar)
            self.show_values(bar)

    def show_values(self, bar: Any) -> None:
        shown = {name: value_text(value) for name, value in self.values.items()}
        bar.set_postfix(shown, refresh=False)


@public("utils")
def progress(items: Iterable[Any] | int, title: str = "", **options: Any) -> Progress:
    """Return `items` with a progress bar, drawn by tqdm where it is installed; see `Progress`.

    Output that is not a terminal or a notebook gets a plain line from time to time.

    >>> import sys
    >>> from lucid.utils import progress
    >>> for i in (steps := progress(3, "epoch", file=sys.stdout, clock=lambda: 0.0)):
    ...     steps.show(loss=1 / (i + 1))
    epoch 3/3  loss 0.3333
    """
    made = Progress(items, title, **options)
    if made.display != "plain" and importlib.util.find_spec("tqdm") is not None:
        return TqdmProgress(items, title, **options)
    return made


def length_of(items: Any) -> int | None:
    try:
        return len(items)
    except TypeError:
        return None


def display_kind(file: TextIO | None) -> str:
    """Return where the line is displayed: "notebook", "terminal" or "plain"."""
    if in_notebook() and file is sys.stderr:
        return "notebook"
    with contextlib.suppress(ValueError):  # a closed stream is not a terminal
        if file is not None and hasattr(file, "isatty") and file.isatty():
            return "terminal"
    return "plain"


def in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return any(cls.__name__ == "ZMQInteractiveShell" for cls in type(shell).__mro__)


def show_in_notebook(text: str, output: Any) -> Any:
    from html import escape

    from IPython.display import HTML, display  # type: ignore[import-not-found]

    page = HTML(f"<pre style='margin:0'>{escape(text)}</pre>")
    if output is None:
        return display(page, display_id=True)
    output.update(page)
    return output


def bar(share: float, in_lines: bool = True) -> str:
    full = round(min(max(share, 0.0), 1.0) * BAR)
    return (FULL if in_lines else "#") * full + (EMPTY if in_lines else ".") * (BAR - full)


def can_encode(file: Any, text: str) -> bool:
    """True if the encoding of a stream has these characters."""
    try:
        text.encode(getattr(file, "encoding", None) or "utf-8")
    except (UnicodeError, LookupError):
        return False
    return True


def fit_to_width(text: str, width: int) -> str:
    """Cut or pad a text to a number of terminal cells; some characters take two."""
    kept, used = [], 0
    for c in text:
        cells = 2 if unicodedata.east_asian_width(c) in "WF" else 1
        if used + cells > width:
            break
        kept.append(c)
        used += cells
    return "".join(kept) + " " * (width - used)


def rate_text(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"


def time_text(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def value_text(value: Any) -> str:
    try:
        value = value.item() if hasattr(value, "item") else float(value)
        return f"{value:.4g}"
    except (TypeError, ValueError):
        return str(value)
