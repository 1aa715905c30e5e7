"""progress: what is shown, where, and how often."""

from __future__ import annotations

import io
import sys

import pytest

import lucid
from lucid.errors import ArgumentError
from lucid.utils import Progress, progress, progress_bar
from lucid.utils.progress_bar import rate_text, time_text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Time that passes by `step` at every look."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def run(file, n=10, step=1.0, **options) -> str:
    loop = Progress(range(n), "train", file=file, clock=Clock(step), **options)
    for i in loop:
        loop.show(loss=lucid.tensor(1.0 / (i + 1)))
    return file.getvalue()


def test_elsewhere_it_is_a_plain_line_now_and_then():
    lines = run(io.StringIO()).splitlines()
    assert len(lines) == 2  # after five seconds, and the end, which is said once
    assert lines[0] == "train 5/10  1/s  5.0 s left  loss 0.2"
    assert lines[-1].startswith("train 10/10") and lines[-1].endswith("loss 0.1")


def test_on_a_terminal_one_line_is_rewritten():
    text = run(Terminal())
    assert text.count("\n") == 1 and text.count("\r") == 10
    assert "━" in text and "left" in text


def test_fast_loops_are_not_drawn_at_every_step():
    assert run(Terminal(), n=1000, step=0.001).count("\r") < 20


def test_a_loop_without_a_length_counts():
    loop = Progress(iter("ab"), file=io.StringIO(), clock=Clock(1.0))
    assert list(loop) == ["a", "b"]
    assert loop.file.getvalue().startswith("2  ")
    with pytest.raises(TypeError):
        len(loop)


def test_the_last_line_is_drawn_when_the_loop_is_left_early():
    file = io.StringIO()
    for i in progress(10, "some", file=file):
        if i == 3:
            break
    assert file.getvalue().startswith("some 3/10")


def test_a_number_of_steps_is_a_loop():
    assert list(progress(3, file=io.StringIO())) == [0, 1, 2]


def test_times_and_rates_are_short():
    assert [time_text(s) for s in (2.34, 59, 61, 3725)] == ["2.3 s", "59 s", "1:01", "1:02:05"]
    assert [rate_text(r) for r in (0.512, 9.9, 1234.5)] == ["0.51/s", "9.9/s", "1,234/s"]


def test_a_loop_goes_on_where_nothing_can_be_shown(monkeypatch):
    closed = io.StringIO()
    closed.close()
    assert list(progress(range(3), file=closed)) == [0, 1, 2]
    monkeypatch.setattr(sys, "stderr", None)
    assert list(progress(range(3))) == [0, 1, 2]

    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    assert list(progress(range(3), file=Gone())) == [0, 1, 2]


class EncodedTerminal(io.TextIOWrapper):
    """A terminal of some encoding."""

    def __init__(self, encoding):
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)

    def isatty(self):
        return True


def test_a_terminal_without_lines_gets_another_bar():
    file, clock = EncodedTerminal("ascii"), iter(range(100))
    list(Progress(range(3), "epoch", file=file, clock=lambda: next(clock)))
    shown = file.buffer.getvalue().decode("ascii")
    assert "epoch #######............. 1/3" in shown


def test_a_line_is_one_line_and_fits_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "31")
    file, clock = EncodedTerminal("utf-8"), iter(range(100))
    for _ in (steps := Progress(range(2), "学習\n", file=file, clock=lambda: next(clock))):
        steps.show(note="a\nb" * 50)
    lines = file.buffer.getvalue().decode("utf-8").removesuffix("\n").split("\r")[1:]
    assert lines and all("\n" not in line and len(line) + 2 == 30 for line in lines)


def test_what_is_no_loop_is_told():
    with pytest.raises(ArgumentError, match=r"5\.5 is not iterable"):
        progress(5.5)


def test_tqdm_draws_on_a_terminal_where_it_is_installed(monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(progress_bar, "in_notebook", lambda: False)
    terminal = Terminal()
    seen = []
    for i in (loop := progress(5, "epoch", file=terminal)):
        loop.show(loss=lucid.tensor(0.5))
        seen.append(i)
    text = terminal.getvalue()
    assert seen == [0, 1, 2, 3, 4]
    assert "epoch: 100%" in text and "5/5" in text and "loss=0.5" in text


def test_without_tqdm_the_bar_is_our_own(monkeypatch):
    monkeypatch.setattr(progress_bar.importlib.util, "find_spec", lambda name: None)
    terminal = Terminal()
    assert list(progress(3, "epoch", file=terminal)) == [0, 1, 2]
    assert "epoch" in terminal.getvalue() and "%" not in terminal.getvalue()
