"""markup: texts for people, colored in a terminal and as HTML in a notebook; all of it escaped."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

# Kinds of words in the text of a Graph: ANSI code, and a color that light and dark pages can show.
STYLES = {
    "comment": ("90", "#8a8f98"),
    "keyword": ("35", "#a05bc0"),
    "op": ("1;34", "#4f6bd8"),
    "type": ("36", "#2a8f9d"),
    "result": ("33", "#b0801f"),
}
_WORD = re.compile(
    r"(?P<comment>#\s.*$)"
    r"|(?P<keyword>^graph\b|^\s*return\b)"
    r"|(?<= = )(?P<op>\w+)"
    r"|(?P<type>\b(?:bool|[iufc]\d+)\[[\d,]*\])"
    r"|(?P<result>%\d+)",
    re.M,
)


def words(text: str) -> Iterator[tuple[str, str]]:
    """Split the text of a Graph into (kind, piece); text between words has kind ""."""
    at = 0
    for match in _WORD.finditer(text):
        if match.start() > at:
            yield "", text[at : match.start()]
        yield match.lastgroup or "", match.group()
        at = match.end()
    if at < len(text):
        yield "", text[at:]


def colored(text: str) -> str:
    """Return the text of a Graph with ANSI colors."""
    return "".join(
        f"\x1b[{STYLES[kind][0]}m{piece}\x1b[0m" if kind else piece for kind, piece in words(text)
    )


def is_color_terminal(file: Any = None) -> bool:
    """True if a file, by default the standard output, is a terminal with colors.

    NO_COLOR and FORCE_COLOR decide it where they are set, as in other programs.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    file = sys.stdout if file is None else file
    return os.environ.get("TERM") != "dumb" and bool(getattr(file, "isatty", lambda: False)())


def escape(text: str) -> str:
    """Return text for HTML. Few programs need it, so its module is imported here."""
    from html import escape as escaped

    return escaped(text)


def graph_html(text: str) -> str:
    """Return the text of a Graph as HTML."""
    pieces = [
        f'<span style="color: {STYLES[kind][1]}">{escape(piece)}</span>' if kind else escape(piece)
        for kind, piece in words(text)
    ]
    return text_html("".join(pieces))


def text_html(escaped: str, caption: str = "") -> str:
    """Return HTML of a text that is escaped already, with a caption that is not."""
    below = f'<div style="color: #8a8f98">{escape(caption)}</div>' if caption else ""
    return f'<pre style="overflow: auto; max-height: 30em">{escaped}</pre>{below}'


def table_html(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return an HTML table; numbers are passed as strings of digits."""

    def cells(tag: str, row: Sequence[Any]) -> str:
        return "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in row)

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f"<table><caption>{escape(title)}</caption>"
        f"<thead><tr>{cells('th', head)}</tr></thead><tbody>{body}</tbody></table>"
    )


def bars_html(title: str, rows: Sequence[tuple[str, float, str]]) -> str:
    """Return a picture in HTML: a bar for each (label, size, note), the longest one full."""
    largest = max((size for _, size, _ in rows), default=0.0) or 1.0
    lines = [
        f'<div style="display: flex; gap: 0.6em; font-family: monospace">'
        f'<span style="flex: 0 0 16em; text-align: right; overflow-wrap: anywhere">'
        f"{escape(label)}</span>"
        f'<span style="flex: 3 1 10em"><span style="display: block; height: 1em; margin: 0.15em 0; '
        f'background: #4f6bd8; width: {100 * size / largest:.2f}%"></span></span>'
        f'<span style="flex: 1 1 12em; overflow-wrap: anywhere">{escape(note)}</span></div>'
        for label, size, note in rows
    ]
    return f"<div><div><b>{escape(title)}</b></div>{''.join(lines)}</div>"


def document(title: str, body: str) -> str:
    """Return a page around HTML; it loads nothing, and is light or dark as the reader's system."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        f'</title><meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<style>:root { color-scheme: light dark } body { font: 14px/1.5 system-ui, sans-serif; "
        "margin: 1em } table { border-collapse: collapse; width: 100% } "
        "td { vertical-align: top }</style></head>"
        f"<body>{body}</body></html>"
    )
