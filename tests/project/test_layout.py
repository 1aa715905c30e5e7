"""The folders of the package show its architecture, and the map in docs/index.md is true."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import lucid

PACKAGE = Path(lucid.__file__).parent
DOCS = PACKAGE.parent / "docs"
FOLDERS = sorted(path.parent for path in PACKAGE.rglob("__init__.py"))
MAX_ENTRIES = 16
MAX_LINES = 500  # about 450 is the aim
CROWDED = {"lucid": "its entries are the layers and the public namespaces, one each"}
SAME_NAME = {  # the attribute is the function; the module is found by its import alone
    "lucid.ir.verify": "the file holds that one function, and importers name the function",
}


def path_of(folder: Path) -> str:
    return folder.relative_to(PACKAGE.parent).as_posix()


def name_of(folder: Path) -> str:
    return path_of(folder).replace("/", ".")


def entries(folder: Path) -> list[str]:
    """Return the names in a folder, without what Python and editors leave there."""
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.name != "__pycache__" and not path.name.startswith(".") and path.suffix != ".pyi"
    )


def mapped() -> dict[str, str]:
    """Return the map of docs/index.md: folder -> its line."""
    section = (DOCS / "index.md").read_text().partition("## Where things are")[2]
    lines = re.findall(r"^(lucid/\S*)/ +(\S.*)$", section, re.MULTILINE)
    assert len(lines) == len(dict(lines)), "a folder is in the map twice"
    return dict(lines)


def test_the_map_and_the_folders_agree():
    assert set(mapped()) == {path_of(folder) for folder in FOLDERS} - {"lucid"}


def test_every_folder_of_modules_is_a_package():
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert folders == set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS, ids=path_of)
def test_a_folder_has_a_docstring_of_one_line(folder):
    doc = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    assert doc, "say in one line what the folder holds"
    assert doc.splitlines()[0].endswith("."), doc


@pytest.mark.parametrize("folder", FOLDERS, ids=path_of)
def test_a_folder_has_few_entries(folder):
    count = len(entries(folder))
    if path_of(folder) in CROWDED:
        assert count > MAX_ENTRIES, "it is no longer crowded; drop the exception"
    else:
        assert count <= MAX_ENTRIES, f"{count} entries; make a folder of those with one theme"


def test_files_are_short():
    generated = PACKAGE / "public" / "index.py"
    lines = {path: len(path.read_text().splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {path: n for path, n in lines.items() if n > MAX_LINES and path != generated} == {}


def hidden_modules(folder: Path) -> set[str]:
    """Return the modules of a package whose name the package gives to something else."""
    package = importlib.import_module(name_of(folder))
    parts = [
        path.stem
        for path in folder.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    ]
    hidden = set()
    for part in parts:
        if part != "__init__":
            importlib.import_module(f"{name_of(folder)}.{part}")
            if not isinstance(getattr(package, part), ModuleType):
                hidden.add(f"{name_of(folder)}.{part}")
    return hidden


def test_no_module_has_the_name_of_a_function_beside_it():
    found = set().union(*[hidden_modules(folder) for folder in FOLDERS])
    assert found == set(SAME_NAME)


@pytest.mark.parametrize(
    "namespace", ["lucid", "lucid.func", "lucid.linalg", "lucid.nn.functional"]
)
def test_no_public_function_is_hidden_by_a_module(namespace):
    package = importlib.import_module(namespace)
    modules = {Path(name).stem for name in entries(Path(package.__file__).parent)}
    public = {
        name for name in package.__all__ if not isinstance(getattr(package, name), ModuleType)
    }
    assert not modules & public


def test_every_file_of_the_compiler_is_on_its_page():
    text = (DOCS / "compiler.md").read_text().partition("## File by file")[2].partition("\n## ")[0]
    words = set(re.findall(r"[\w/]+", text))
    named = {part for word in words for part in word.split("/")}
    for folder in FOLDERS:
        if folder.parent == PACKAGE / "compiler" and folder.name != "lowering":
            missing = {Path(name).stem for name in entries(folder)} - named - {"__init__"}
            assert not missing, f"docs/compiler.md does not name {sorted(missing)} of {folder.name}"


def test_the_core_reads_in_an_afternoon():
    files = [*PACKAGE.glob("ir/*.py"), *PACKAGE.glob("transforms/*.py")]
    files.append(PACKAGE / "ops" / "special" / "zeta.py")  # one primitive and its rules
    assert sum(len(path.read_text().splitlines()) for path in files) <= 2000
