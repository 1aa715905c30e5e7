"""Tutorials as Jupyter notebooks: prose becomes Markdown cells, code blocks become code cells.

    python -m docs.site.notebooks build/site/notebooks

A tutorial is the only source. The output that it shows, which the tests check, is the output of the
cell; a block that shows several results becomes several cells.
"""

from __future__ import annotations

import doctest
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.site.contents import ROOT

BLOCK = re.compile(r"^```python[ \t]*\n(.*?)^```[ \t]*$\n?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\((?!http)[^)]+\)")
Cell = dict[str, Any]


def tutorials() -> list[Path]:
    return sorted((ROOT / "docs" / "tutorials").glob("*.md"))


def lines(text: str) -> list[str]:
    return text.strip("\n").splitlines(keepends=True)


def markdown(text: str) -> Iterator[Cell]:
    """Return a Markdown cell; links to other pages, which are not beside a notebook, are text."""
    if text.strip():
        yield {"cell_type": "markdown", "metadata": {}, "source": lines(LINK.sub(r"\1", text))}


def code(source: str, shown: str = "") -> Cell:
    outputs = []
    if shown:
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines(shown)})
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {"tags": ["raises-exception"]} if shown.startswith("Traceback") else {},
        "outputs": outputs,
        "source": lines(source),
    }


def code_cells(block: str) -> Iterator[Cell]:
    """Return the cells of one code block: a cell ends where output is shown."""
    if ">>>" not in block:
        yield code(block)
        return
    waiting = ""
    for example in doctest.DocTestParser().get_examples(block):
        waiting += example.source
        shown = f"Traceback: {example.exc_msg}" if example.exc_msg else example.want
        if shown:
            yield code(waiting, shown)
            waiting = ""
    if waiting:
        yield code(waiting)


def notebook(text: str) -> dict[str, Any]:
    """Return a tutorial as a notebook, version 4 of the format."""
    cells: list[Cell] = []
    end = 0
    for block in BLOCK.finditer(text):
        cells += [*markdown(text[end : block.start()]), *code_cells(block[1])]
        end = block.end()
    cells += markdown(text[end:])
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def write(target: Path) -> None:
    """Write every tutorial as a notebook into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    for page in tutorials():
        text = json.dumps(notebook(page.read_text()), indent=1, ensure_ascii=False)
        (target / f"{page.stem}.ipynb").write_text(text + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
