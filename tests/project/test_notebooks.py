"""The tutorials as notebooks: they have the code of the pages, and give the output shown there."""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import json

import pytest

from docs.site import notebooks

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
TUTORIALS = notebooks.tutorials()


def run_cell(source: str, namespace: dict) -> str:
    """Run a cell as a notebook does: the value of a last expression is shown."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(tree, "<cell>", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)
            if value is not None:
                print(repr(value))
    return shown.getvalue()


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_notebook_runs_and_shows_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict = {"__name__": "__main__"}
    for cell in notebooks.notebook(page.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        expected = "".join(line for out in cell["outputs"] for line in out["text"])
        if expected.startswith("Traceback: "):
            with pytest.raises(Exception) as caught:
                run_cell(source, namespace)
            got = f"{type(caught.value).__module__}.{type(caught.value).__name__}: {caught.value}"
            expected = expected.removeprefix("Traceback: ")
        else:
            got = run_cell(source, namespace)
        same = doctest.OutputChecker().check_output(
            expected + "\n", got.rstrip("\n") + "\n", OPTIONS
        )
        assert same, f"{source}\nexpected {expected!r}\ngot {got!r}"


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_notebook_holds_all_of_its_page(page):
    cells = notebooks.notebook(page.read_text())["cells"]
    text = page.read_text()
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    shown = "".join("".join(cell["source"]) + "\n" for cell in cells)
    assert all(line in shown for line in headings)
    assert sum(cell["cell_type"] == "code" for cell in cells) >= text.count("```python")
    assert not any(">>>" in "".join(c["source"]) for c in cells if c["cell_type"] == "code")
    assert len({cell["id"] for cell in cells}) == len(cells)


def test_notebooks_are_written_and_valid(tmp_path):
    notebooks.write(tmp_path)
    assert {p.stem for p in tmp_path.glob("*.ipynb")} == {page.stem for page in TUTORIALS}
    for path in tmp_path.glob("*.ipynb"):
        found = json.loads(path.read_text())
        assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
        with contextlib.suppress(ImportError):
            import nbformat

            nbformat.validate(found)
