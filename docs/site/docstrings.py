"""Docstrings of the package as reStructuredText.

A docstring has paragraphs, `code`, examples that start with `>>>`, indented text that is shown as
it is, and tables of parameters: lines of a name, two spaces or more, and what it means.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

CODE = re.compile(r"(``?)([^`]+)\1")
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) {2,}(\S.*)$")


def escape(text: str) -> str:
    """Return a line with its characters taken literally, and `code` as code."""
    out, place = [], 0
    for match in CODE.finditer(text):
        out += [plain(text[place : match.start()]), f"``{match[2]}``"]
        place = match.end()
        if place < len(text) and text[place].isalnum():
            out.append("\\ ")
    return "".join([*out, plain(text[place:])])


def plain(text: str) -> str:
    return re.sub(r"([\\*_`|])", r"\\\1", text)


def sentence(doc: str) -> str:
    """Return the first paragraph of a docstring as one line."""
    return " ".join(doc.partition("\n\n")[0].split())


def paragraphs(doc: str) -> list[list[str]]:
    """Return the lines of a docstring between its blank lines."""
    return [part.splitlines() for part in re.split(r"\n\s*\n", doc.strip("\n")) if part]


def body(doc: str, parameters: Collection[str]) -> Iterator[str]:
    """Return the lines of a docstring as reStructuredText."""
    for lines in paragraphs(doc):
        yield ""
        if lines[0].lstrip().startswith(">>>"):
            yield from lines
        elif lines[0].startswith(" "):
            yield from ["::", "", *[f"    {line}" for line in lines]]
        elif ENTRY.match(lines[0]):
            yield from table(lines, parameters)
        else:
            yield from [escape(line) for line in lines]
    yield ""


def table(lines: list[str], parameters: Collection[str]) -> Iterator[str]:
    """Return a table of parameters as fields; other names as a list of definitions."""
    entries: list[tuple[str, list[str]]] = []
    for line in lines:
        match = ENTRY.match(line)
        if match:
            entries.append((match[1], [match[2]]))
        else:
            entries[-1][1].append(line.strip())
    known = all(name.strip("* ") in parameters for names, _ in entries for name in names.split(","))
    for names, text in entries:
        shown = " ".join(map(escape, text))
        if known:
            yield f":param {plain(names)}: {shown}"
        else:
            yield from [plain(names), f"    {shown}"]
