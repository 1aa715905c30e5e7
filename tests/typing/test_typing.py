"""Types are real: mypy --strict accepts right programs and refuses misspelt and wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.typing import program

mypy = pytest.importorskip("mypy.api")
ROOT = Path(__file__).parents[2]
OPTIONS = ["--strict", "--follow-imports=silent", f"--config-file={ROOT / 'pyproject.toml'}"]

WRONG = {  # a line, and the code of mypy's error
    "lucid.reul(x)": "attr-defined",
    "x.summ()": "attr-defined",
    "lucid.nn.Linaer(2, 3)": "attr-defined",
    "lucid.linalg.inverce(x)": "attr-defined",
    "lucid.nn.functional.rellu(x)": "attr-defined",
    "lucid.sin()": "call-arg",
    "lucid.sin(x, y=2)": "call-arg",
    "x.clamp(minimum=0.0)": "call-arg",
    "n: int = lucid.sin(x)": "assignment",
    "energy(x, 1, 2)": "call-arg",
    "energy(x, scael=1.0)": "call-arg",
    "text: str = energy(x)": "assignment",
    "lucid.func.grad(energy)(x, scael=1.0)": "call-arg",
    "lucid.optim.SGD(lr='fast')": "call-arg",
    "x.grad.sum()": "union-attr",
}


def check(*targets: Path) -> str:
    out, error, _ = mypy.run([*OPTIONS, *map(str, targets)])
    assert not error, error
    return out


def test_mypy_accepts_the_examples_and_a_typed_program():
    files = [*sorted((ROOT / "examples").glob("*.py")), ROOT / "tests" / "typing" / "program.py"]
    out = check(*files)
    assert out.startswith("Success"), out


def test_mypy_refuses_misspelt_names_and_wrong_arguments(tmp_path, monkeypatch):
    head = "import lucid\nfrom tests.typing.program import energy\n\nx = lucid.ones(3)\n"
    file = tmp_path / "wrong.py"
    file.write_text(head + "\n".join(WRONG) + "\n")
    monkeypatch.chdir(ROOT)
    out = check(file)
    first = head.count("\n") + 1
    for number, (line, code) in enumerate(WRONG.items(), first):
        found = [text for text in out.splitlines() if f"wrong.py:{number}: error" in text]
        assert any(f"[{code}]" in text for text in found), f"{line}: {found}"


def test_the_typed_program_runs(capsys):
    program.main()
    assert "first.bias" in capsys.readouterr().out
