"""Graphs in files: their text, written atomically and parsed back."""

from __future__ import annotations

import os
from pathlib import Path

from lucid.errors import FileFormatError, ParseError
from lucid.ir.graph import Graph
from lucid.ir.text import parse
from lucid.ir.verify import verify
from lucid.public.declare import public
from lucid.saving.atomic import write_atomically


@public("ir")
def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write the text of a Graph to a file, which is replaced as a whole.

    >>> import lucid, os, tempfile
    >>> graph = lucid.ir.trace(lambda x: lucid.sin(x))(lucid.ones(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lucid.ir.save(graph, os.path.join(folder, "f.graph"))
    ...     lucid.ir.load(os.path.join(folder, "f.graph")) == graph
    True
    """
    text = f"{graph}\n".encode()

    def write(file: object) -> None:
        file.write(text)  # type: ignore[attr-defined]

    write_atomically(path, write)


@public("ir")
def load(path: str | os.PathLike[str]) -> Graph:
    """Read a Graph that `save` wrote; an invalid file raises an error that names the line."""
    try:
        return verify(parse(Path(path).read_text()))
    except (ParseError, UnicodeDecodeError) as error:
        raise FileFormatError(f"load: {os.fspath(path)}: {error}") from None
