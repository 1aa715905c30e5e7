"""show: `lucid.view`, which writes a page about a program and opens it."""

from __future__ import annotations

import html
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from lucid.debugging.graph_diff import GraphDiff
from lucid.func.checkpointing import Residuals
from lucid.public.declare import public
from lucid.saving.atomic import write_atomically
from lucid.support.markup import document
from lucid.viewer.subjects import programs_of
from lucid.viewer.write import page


class Page:
    """A page that was written: `path` is its file; a notebook shows it inline."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._text = text

    def __repr__(self) -> str:
        return f"Page({str(self.path)!r})"

    def _repr_html_(self) -> str:
        frame = f'<iframe srcdoc="{html.escape(self._text)}" title="lucid"'
        return f'{frame} style="width: 100%; height: 640px; border: 1px solid #ccc"></iframe>'


@public()
def view(f: Any, *args: Any, path: Any = None, **kwargs: Any) -> Page:
    """Write a page that shows how a program was compiled, and open it in the browser.

    f       a function, a jitted function, a Module or a training step, which runs once on `args`
            as `jit` records it; a Graph, measured if arrays for its inputs are given; a tensor
            with a history; or the result of `lucid.diff` or `func.saved_residuals`, as a picture
    path    the HTML file to write; without it a temporary file is opened in the browser, or shown
            inline in a notebook

    The page has linked panes: the source, the graph folded by scope, every stage of the compiler
    with its changes, the kernels with listing, LLVM IR and assembly, the memory plan, and the
    measured time of every instruction. It is one file, and loads nothing from the network.

    >>> import lucid, os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "page.html")
    >>> lucid.view(lambda x: lucid.sin(x) * 2.0, lucid.ones(3), path=file).path.name
    'page.html'
    """
    if isinstance(f, GraphDiff | Residuals):
        text = document(f"{type(f).__name__} · lucid", f._repr_html_())
    else:
        text = page(programs_of(f, args, kwargs))
    if path is not None:
        target = Path(path)
        write_atomically(target, lambda file: file.write(text.encode()))
        return Page(target, text)
    file, name = tempfile.mkstemp(prefix="lucid-", suffix=".html")
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(text)
    made = Page(Path(name), text)
    if not in_notebook():
        import webbrowser

        webbrowser.open(made.path.as_uri())
    return made


def in_notebook() -> bool:
    """True in a notebook, which shows the page as the value of its cell."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
