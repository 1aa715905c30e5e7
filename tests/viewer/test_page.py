"""The data of the page: what is shown, where it comes from, and that nothing is changed."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError
from lucid.ir import evaluate
from lucid.viewer.collect import Files, program_data
from lucid.viewer.subjects import programs_of
from tests.viewer.models import loss_of_gpt, training_step_of_gpt


def data_of(page: Any) -> Any:
    packed = re.search(r'type="text/plain">([^<]*)<', page.path.read_text())
    assert packed is not None
    return json.loads(zlib.decompress(base64.b64decode(packed.group(1))))


def shown(subject: Any, *args: Any) -> Any:
    return [program_data(program, Files()) for program in programs_of(subject, args, {})]


def chain(x: Any, w: Any) -> Any:
    y = lucid.tanh(x @ w)
    return (y * y).sum()


X, W = lucid.ones(3, 4), lucid.ones(4, 2)


def test_a_page_has_the_source_the_stages_the_kernels_and_the_memory(tmp_path: Path) -> None:
    data = data_of(lucid.view(chain, X, W, path=tmp_path / "page.html"))
    assert data["title"] == "chain" and data["files"][0]["name"] == "test_page.py"
    forward, gradient = data["programs"]
    assert [row["op"] for row in forward["rows"][:4]] == ["matmul", "tanh", "mul", "sum"]
    line = data["files"][0]["lines"][forward["rows"][1]["at"][1] - 1]
    assert "tanh(x @ w)" in line
    assert [stage["name"] for stage in forward["stages"]][:2] == ["traced", "decomposed"]
    (kernel,) = [k for k in forward["kernels"] if "tanh" in k["label"]]
    assert "def kernel" in kernel["listing"] and "define" in kernel["llvm"] and kernel["assembly"]
    assert forward["runs"] > 0 and all(i["ns"] >= 0 for i in forward["instructions"])
    assert forward["memory"][0]["bytes"] > 0
    assert set(gradient["forward"].values()) <= {n for r in forward["rows"] for n in r["from"]}


def test_every_equation_of_every_stage_says_where_it_comes_from() -> None:
    loss, args = loss_of_gpt(1)
    for program in shown(loss, *args):
        traced = {n for r in program["stages"][0]["rows"] for n in program["rows"][r]["from"]}
        assert traced == set(range(len(program["stages"][0]["rows"])))
        for stage in program["stages"]:
            for r in stage["rows"]:
                assert program["rows"][r]["from"] and set(program["rows"][r]["from"]) <= traced


def test_every_computed_equation_is_in_an_instruction() -> None:
    loss, args = loss_of_gpt(1)
    for program in shown(loss, *args):
        covered = {r for i in program["instructions"] for r in i["rows"]}
        views = {"reshape", "transpose", "broadcast", "full", "slice", "iota"}
        for r in program["stages"][-1]["rows"]:
            assert r in covered or program["rows"][r]["op"] in views


def test_an_unchanged_equation_is_the_same_row_in_all_stages() -> None:
    (program, _) = shown(lucid.ir.trace(lambda x: lucid.exp(x) + 1.0)(X))
    assert all(stage["rows"] == [0, 1] for stage in program["stages"])


def test_buffers_that_live_at_the_same_time_do_not_overlap() -> None:
    step, args = training_step_of_gpt(1)
    (program,) = shown(step, *args)
    for arena in program["memory"]:
        buffers = [tuple(buffer[2:]) for buffer in arena["buffers"]]
        assert buffers and max(o + n for o, n, _, _ in buffers) <= arena["bytes"]
        for i, (offset, size, first, last) in enumerate(buffers):
            for other, n, begin, end in buffers[:i]:
                apart = offset + size <= other or other + n <= offset
                assert apart or last < begin or end < first


def test_the_gradient_that_is_shown_is_the_gradient() -> None:
    values = [np.random.default_rng(0).random(x.shape, "float32") for x in (X, W)]
    _, gradient = programs_of(chain, tuple(map(lucid.tensor, values)), {})
    found = evaluate(gradient.graph, *values, np.ones((), "float32"))
    hidden = np.tanh(values[0] @ values[1])
    back = 2 * hidden * (1 - hidden**2)
    np.testing.assert_allclose(found[0], back @ values[1].T, rtol=1e-5)
    np.testing.assert_allclose(found[1], values[0].T @ back, rtol=1e-5)


def test_every_line_of_a_gradient_is_a_line_of_the_function() -> None:
    def pendulum(angle: Any, steps: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            angle, speed = state
            speed = speed - 0.01 * lucid.sin(angle)
            return (angle + 0.01 * speed, speed), angle

        return lucid.func.scan(step, (angle, angle * 0.0), steps)[1].sum()

    forward, gradient = shown(pendulum, lucid.tensor(1.0), lucid.zeros(5))
    lines = {program["title"]: {tuple(row["at"]) for row in program["rows"]}
             for program in (forward, gradient)}  # fmt: skip
    assert lines["gradient"] <= lines["pendulum"] | {(-1, 0)}


def test_a_training_step_is_one_program_and_its_state_is_not_measured_away() -> None:
    weight = lucid.nn.Parameter(lucid.ones(2))
    optimizer = lucid.optim.SGD([weight], lr=0.5)

    @lucid.jit
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (weight * x).sum()
        loss.backward()
        optimizer.step()
        return loss

    step(lucid.ones(2))
    before = weight.detach().numpy().copy()
    (program,) = shown(step, lucid.ones(2))
    assert program["runs"] > 0 and "overwritten" in {row["op"] for row in program["rows"]}
    np.testing.assert_array_equal(weight.detach().numpy(), before)


def test_a_tensor_shows_its_history_with_the_names_of_parameters() -> None:
    model = lucid.nn.Linear(4, 2)
    forward, gradient = shown(model(X).sum())
    assert {name for name, _ in forward["stages"][0]["inputs"]} >= {"weight", "bias"}
    assert forward["scopes"] == [("Linear", "", -1)] and gradient["runs"] > 0


def test_a_graph_is_measured_only_on_given_arrays() -> None:
    graph = lucid.ir.trace(chain)(X, W)
    assert shown(graph)[0]["runs"] == 0
    assert shown(graph, np.ones((3, 4), "float32"), np.ones((4, 2), "float32"))[0]["runs"] > 0
    parsed = lucid.ir.parse(str(graph))
    assert [row["op"] for row in shown(parsed)[0]["rows"]][:2] == ["matmul", "tanh"]


def test_bodies_of_loops_are_shown() -> None:
    def total(xs: Any) -> Any:
        return lucid.func.scan(lambda c, x: (c + lucid.sin(x), c), lucid.tensor(0.0), xs)[0]

    program = shown(total, lucid.ones(5))[0]
    (scan,) = [row for row in program["rows"] if row["op"] == "scan" and row["bodies"]][:1]
    body = program["bodies"][scan["bodies"][0]]
    assert "sin" in {program["rows"][r]["op"] for r in body["rows"]}


def test_a_program_without_a_gradient_says_why_or_shows_none() -> None:
    assert len(shown(lambda x: x > 0.0, X)) == 1
    (program,) = programs_of(lambda x: lucid.bincount(x), (lucid.tensor([1, 2]),), {})
    assert program.note == ""


def test_a_thousand_equations_take_at_most_a_megabyte(tmp_path: Path) -> None:
    step, args = training_step_of_gpt(3)
    page = lucid.view(step, *args, path=tmp_path / "step.html")
    data = data_of(page)
    assert len(data["programs"][0]["stages"][0]["rows"]) >= 900
    assert page.path.stat().st_size <= 1_000_000


def test_the_page_needs_no_network(tmp_path: Path) -> None:
    text = lucid.view(chain, X, W, path=tmp_path / "page.html").path.read_text()
    links = set(re.findall(r"https?://[^\s\"'<>)]+", text))
    assert links <= {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text and " src=" not in text and "<link" not in text


def test_a_notebook_shows_the_page_inline(tmp_path: Path) -> None:
    page = lucid.view(chain, X, W, path=tmp_path / "page.html")
    inline = page._repr_html_()
    assert inline.startswith('<iframe srcdoc="&lt;!doctype html&gt;') and inline.count("<") == 2


def test_what_cannot_be_viewed_is_refused_with_the_remedy() -> None:
    with pytest.raises(ArgumentError, match="not a function, a Graph or a tensor"):
        lucid.view(3)
    with pytest.raises(ArgumentError, match="has no history; compute it from one that requires"):
        lucid.view(X)
    with pytest.raises(ArgumentError, match="has 2 inputs, and 1 are given"):
        lucid.view(lucid.ir.trace(chain)(X, W), np.ones(3))


def test_the_front_end_code_of_others_has_its_license_and_version() -> None:
    vendor = Path(lucid.__file__).parent / "viewer" / "vendor"
    table = (vendor / "README.md").read_text()
    for file in vendor.glob("*.js"):
        assert (
            f"`{file.name}`" in table and (vendor / f"{file.name.split('.')[0]}.LICENSE").exists()
        )
