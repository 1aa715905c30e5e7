"""The LUCID_* variables: read in one place, documented, and checked."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import lucid
from lucid.errors import SettingError, SettingWarning
from lucid.support.settings import SETTINGS, setting

PACKAGE = Path(lucid.__file__).parent
DOCS = PACKAGE.parent / "docs"
OF_THE_TESTS = {"LUCID_TEST_ALL"}
BAD = {
    "LUCID_DISABLE_JIT": "maybe",
    "LUCID_TIERING": "2",
    "LUCID_TIERING_THRESHOLD": "-1",
    "LUCID_BACKEND": "cuda",
    "LUCID_NUM_THREADS": "0",
    "LUCID_CACHE_BYTES": "1 GB",
    "LUCID_RESULT_POOL_BYTES": "-1",
    "LUCID_VERIFY": "always",
    "LUCID_JACOBIAN_BYTES": "1e9",
    "LUCID_DISTRIBUTED_TIMEOUT": "0",
    "LUCID_DISTRIBUTED_DEBUG": "2",
}


def test_only_settings_reads_the_variables():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call | ast.Subscript) and path.name != "settings.py":
                text = ast.unparse(node)
                assert not re.match(r"os\.(environ|getenv)\b.*LUCID_", text), f"{path}: {text}"


def test_every_variable_that_is_mentioned_exists_and_is_documented():
    files = [*PACKAGE.rglob("*.py"), *DOCS.rglob("*.md"), PACKAGE.parent / "README.md"]
    mentioned = {
        name for path in files for name in re.findall(r"\bLUCID_[A-Z_]+[A-Z]\b", path.read_text())
    }
    assert mentioned - OF_THE_TESTS == set(SETTINGS)
    page = (DOCS / "jit.md").read_text()
    assert {name for name in SETTINGS if f"`{name}" not in page} == set()


@pytest.mark.parametrize("name", SETTINGS)
def test_an_unset_or_empty_variable_has_its_default(name, monkeypatch):
    monkeypatch.delenv(name, raising=False)
    assert setting(name) == SETTINGS[name].default
    monkeypatch.setenv(name, " ")
    assert setting(name) == SETTINGS[name].default


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_is_named(name, monkeypatch):
    monkeypatch.setenv(name, BAD[name])
    with pytest.raises(SettingError, match=f"{name}='{BAD[name]}': expected"):
        setting(name)
    with pytest.warns(SettingWarning, match=f"{name}='{BAD[name]}'"):
        assert setting(name, strict=False) == SETTINGS[name].default


def test_values_are_parsed(monkeypatch):
    for name, text, value in [
        ("LUCID_TIERING", "off", False), ("LUCID_DISABLE_JIT", " 1 ", True),
        ("LUCID_TIERING_THRESHOLD", "0", 0), ("LUCID_NUM_THREADS", "3", 3),
        ("LUCID_CACHE_DIR", "/tmp/x", "/tmp/x"),
    ]:  # fmt: skip
        monkeypatch.setenv(name, text)
        assert setting(name) == value
