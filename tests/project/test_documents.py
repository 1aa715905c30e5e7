"""Code in documents is true: blocks of README and docs run, docstrings hold.

The blocks of one file run in order in one namespace, in an empty directory. A block with `>>>` is
compared with the output that it shows.
"""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import lucid

ROOT = Path(lucid.__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHERS = ("examples/README.md", "benchmarks/README.md", "CONTRIBUTING.md", "CHANGELOG.md")
LINKED = [*PAGES, *[ROOT / name for name in OTHERS]]
BLOCK = re.compile(r"^```python[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(text: str) -> list[tuple[int, str]]:
    """(line, code) of every python block."""
    return [(text.count("\n", 0, m.start(1)) + 1, m.group(1)) for m in BLOCK.finditer(text)]


def run_page(name: str, text: str) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, code in blocks(text):
        if ">>>" in code:
            check_examples(code, namespace, name, line)
        else:
            exec(compile("\n" * (line - 1) + code, name, "exec"), namespace)


def check_examples(code: str, namespace: dict[str, object], name: str, line: int) -> None:
    test = doctest.DocTestParser().get_doctest(code, namespace, name, name, line - 1)
    test.globs = namespace
    complaints: list[str] = []
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(
        test, out=complaints.append, clear_globs=False
    )
    assert not result.failed, "".join(complaints)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_on_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(str(page), page.read_text())


def anchors(text: str) -> set[str]:
    """The names by which a page's headings are linked to."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", LINKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_on_the_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", page.read_text())):
        name, _, heading = target.partition("#")
        if not name.startswith("http"):
            place = (page.parent / name).resolve() if name else page
            assert place.exists(), target
            assert not heading or heading in anchors(place.read_text()), target


def test_every_decision_stands_in_the_table_of_contents():
    text = (ROOT / "docs" / "decisions.md").read_text()
    listed = set(re.findall(r"\(#([^)]+)\)", text.partition("\n## ")[0]))
    there = anchors(text) - {"decisions-and-their-measurements"}
    assert listed == there, "put a decision under its theme as ###, and into the list at the top"


def test_wrong_output_on_a_page_is_found():
    with pytest.raises(AssertionError, match=r"Got:\n +2"):
        run_page("page.md", "```python\nx = 1\n```\ntext\n```python\n>>> x + 1\n3\n```\n")


MODULES = [
    m.name
    for m in pkgutil.walk_packages(lucid.__path__, "lucid.")
    if not m.name.endswith("__main__")
]


def examples_of(module: ModuleType) -> list[doctest.DocTest]:
    """The doctests of a module, and of the classes and functions that are defined in it."""
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


@pytest.mark.parametrize("name", ["lucid", *MODULES])
def test_examples_in_docstrings_hold(name):
    np.set_printoptions(edgeitems=3, threshold=1000, precision=8, suppress=False, linewidth=75)
    for test in examples_of(importlib.import_module(name)):
        complaints: list[str] = []
        result = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=complaints.append)
        assert not result.failed, "".join(complaints)
