"""The packages that users install: complete, reproducible, usable outside of the source tree."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import lucid

pytest.importorskip("hatchling")
ROOT = Path(lucid.__file__).parent.parent
BUILD = "from hatchling import build; import sys; print(build.build_{}(sys.argv[1]))"
PROGRAM = """
import lucid
f = lucid.jit(lucid.func.grad(lambda x: (x**3).sum()))
print(f(lucid.tensor([1.0, 2.0])), f(lucid.tensor([2.0, 3.0])).tolist(), lucid.__version__)
"""


def build(kind: str, target: Path, source: Path = ROOT) -> Path:
    """Build a package as pip does, without the network."""
    environ = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}
    code = [sys.executable, "-c", BUILD.format(kind), str(target)]
    run = subprocess.run(code, cwd=source, env=environ, capture_output=True, text=True, check=True)
    return target / run.stdout.split()[-1]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build("sdist", tmp_path_factory.mktemp("sdist"))


def test_a_wheel_is_built_to_the_same_bytes_again(wheel, tmp_path):
    assert digest(build("wheel", tmp_path)) == digest(wheel)


def test_a_wheel_built_from_the_sdist_is_the_same(wheel, sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    (tmp_path / "out").mkdir()
    assert digest(build("wheel", tmp_path / "out", source)) == digest(wheel)


def test_an_sdist_is_built_to_the_same_bytes_again(sdist, tmp_path):
    assert digest(build("sdist", tmp_path)) == digest(sdist)


def test_a_wheel_holds_the_package_its_types_and_its_native_sources(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    tracked = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "lucid").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == tracked
    for ending in (".py", ".pyi", ".ll", "py.typed"):
        assert any(name.endswith(ending) for name in names), ending


def test_metadata_names_the_version_the_license_and_the_extras(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith("/METADATA")]
        metadata = Parser().parsestr(archive.read(name).decode())
        assert any(n.endswith("licenses/LICENSE") for n in archive.namelist())
    assert metadata["Name"] == "lucid-autodiff"
    assert metadata["Version"] == lucid.__version__
    assert metadata["License-Expression"] == "MIT"
    assert {"docs", "examples", "test", "dev"} <= set(metadata.get_all("Provides-Extra"))


def test_the_sdist_holds_what_a_user_reads_and_runs(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("README.md", "LICENSE", "SECURITY.md", "CITATION.cff", "CHANGELOG.md", "Makefile"):
        assert name in names
    for folder in ("tests/", "docs/", "examples/", "benchmarks/"):
        assert any(name.startswith(folder) for name in names), folder
    assert not any("__pycache__" in name or name.startswith(("build/", ".venv")) for name in names)


def test_the_version_is_written_in_one_place():
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]
    for name in ("pyproject.toml", "CITATION.cff", "docs/site/conf.py", "README.md"):
        assert lucid.__version__ not in re.findall(r"\b\d+\.\d+\.\d+\b", (ROOT / name).read_text())


def test_an_installed_wheel_runs_outside_of_the_source_tree(wheel, tmp_path):
    target = tmp_path / "site"
    install = ["-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-index"]
    subprocess.run(
        [sys.executable, *install, "--no-deps", "--target", str(target), str(wheel)], check=True
    )
    environ = {**os.environ, "PYTHONPATH": str(target), "LUCID_CACHE_DIR": str(tmp_path / "cache")}
    code = PROGRAM + f"assert lucid.__file__.startswith({str(target)!r}), lucid.__file__\n"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environ, capture_output=True, text=True
    )
    assert run.stderr == "" and run.returncode == 0
    assert run.stdout.strip() == f"Tensor([ 3., 12.]) [12.0, 27.0] {lucid.__version__}"
