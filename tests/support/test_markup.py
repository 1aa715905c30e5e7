"""Graphs in color in a terminal; graphs, tensors, profiles and jitted functions in a notebook."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import lucid
from lucid.support.markup import colored, graph_html, is_color_terminal

HOSTILE = "<script>alert(1)</script>"


class Text(HTMLParser):
    """The text and the tags of a piece of HTML."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.text, self.tags, self.depth = "", set[str](), 0
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.add(tag)
        self.depth += 1

    def handle_endtag(self, tag: str) -> None:
        self.depth -= 1

    def handle_data(self, data: str) -> None:
        self.text += data


def graph() -> Any:
    with lucid.named_scope(HOSTILE):
        return lucid.ir.trace(lambda x: (lucid.sin(x) * 2.0).sum())(lucid.ones(3))


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_color_adds_nothing_but_color() -> None:
    text = str(graph())
    assert plain(colored(text)) == text and "\x1b[1;34msin\x1b[0m" in colored(text)


def test_show_colors_only_where_it_is_asked_to(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    graph().show()
    assert "\x1b" not in capsys.readouterr().out
    graph().show(color=True)
    assert "\x1b" in capsys.readouterr().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    graph().show()
    assert "\x1b" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    graph().show()
    assert "\x1b" not in capsys.readouterr().out


def test_a_terminal_has_color_unless_it_is_dumb(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert is_color_terminal(Terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert not is_color_terminal(Terminal())


def test_ipython_in_a_terminal_shows_the_text_in_color(monkeypatch: pytest.MonkeyPatch) -> None:
    class Printer:
        shown = ""

        def text(self, text: str) -> None:
            self.shown += text

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    printer = Printer()
    graph()._repr_pretty_(printer, False)
    assert plain(printer.shown) == str(graph()) != printer.shown


def test_a_graph_in_a_notebook_is_its_text() -> None:
    page = Text(graph()._repr_html_())
    assert page.text == str(graph()) or plain(page.text) == str(graph())
    assert page.tags == {"pre", "span"} and page.depth == 0
    assert "<script" not in graph_html(HOSTILE)


def test_a_tensor_in_a_notebook_is_its_repr_and_its_type() -> None:
    x = lucid.ones(2, requires_grad=True)
    page = Text(x._repr_html_())
    assert page.text == f"{x!r}f32[2] · 8 bytes · requires a gradient" and page.depth == 0
    made = Text((x * 2.0)._repr_html_())
    assert "mul at test_markup.py:" in made.text
    assert "24 bytes" in lucid.zeros(3, dtype=lucid.float64)._repr_html_()


def test_a_jitted_function_in_a_notebook_shows_its_paths_and_why_there_are_several() -> None:
    def f(x: Any) -> Any:
        return x * 2.0 if float(x.sum()) > 0 else x * 3.0

    f.__name__ = HOSTILE
    jitted = lucid.jit(f)
    assert Text(jitted._repr_html_()).depth == 0
    for sign in (1.0, -1.0):
        jitted(lucid.full((2,), sign))
    source = jitted._repr_html_()
    assert "<script" not in source and source.count("<tr>") == 3
    assert "was 2.0 and is now -2.0" in Text(source).text


def test_a_profile_is_a_table_in_a_notebook_and_saves_as_a_chrome_trace(tmp_path: Path) -> None:
    f = lucid.jit(lambda x: lucid.tanh(x @ x).sum())
    x = lucid.ones(8, 8)
    f(x)
    with lucid.profile() as profile:
        f(x), f(x)
    page = Text(profile._repr_html_())
    assert "matmul" in page.text and page.depth == 0
    profile.save(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert {"matmul", "tanh sum"} <= {event["name"] for event in events}
    mine = [event for event in events if event["name"] in ("matmul", "tanh sum")]
    assert all(event["args"]["calls"] == 2 for event in mine)
    by_row: dict[int, float] = {}
    for event in events:  # the instructions of a program follow one another
        assert event["ts"] == pytest.approx(by_row.get(event["tid"], 0.0))
        by_row[event["tid"]] = event["ts"] + event["dur"]
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]
