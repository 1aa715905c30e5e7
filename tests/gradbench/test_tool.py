"""The tool answers GradBench's messages, with derivatives that formulas give."""

from __future__ import annotations

import io
import json

import numpy as np

from benchmarks.gradbench import tool


def answers(*messages):
    """The responses to messages, which are numbered here."""
    lines = [json.dumps({"id": i, **message}) for i, message in enumerate(messages)]
    sink = io.StringIO()
    tool.serve(io.StringIO("\n".join(lines)), sink)
    found = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [response["id"] for response in found] == list(range(len(messages)))
    return found


def evaluated(module, function, **given):
    runs = {"min_runs": 3, "min_seconds": 0}
    message = {"kind": "evaluate", "module": module, "function": function}
    (response,) = answers({**message, "input": {**given, **runs}})
    assert response["success"], response
    assert [timing["name"] for timing in response["timings"]] == ["evaluate"] * 3
    return np.array(response["output"])


def test_every_message_is_answered_and_unknown_modules_are_refused():
    start, known, unknown, analysis, wrong = answers(
        {"kind": "start"},
        {"kind": "define", "module": "det"},
        {"kind": "define", "module": "nothing"},
        {"kind": "analysis", "of": 1, "valid": True},
        {"kind": "evaluate", "module": "lse", "function": "gradient", "input": {}},
    )
    assert start["tool"] == "lucid" and known["success"] and analysis == {"id": 3}
    assert not unknown["success"] and "nothing" in unknown["error"]
    assert not wrong["success"] and wrong["error"]


def test_the_gradient_of_a_determinant_is_its_cofactors():
    a = np.random.default_rng(0).normal(size=(4, 4))
    given = {"A": a.ravel().tolist(), "ell": 4}
    np.testing.assert_allclose(evaluated("det", "primal", **given), np.linalg.det(a), rtol=1e-10)
    want = np.linalg.det(a) * np.linalg.inv(a).T
    np.testing.assert_allclose(evaluated("det", "gradient", **given), want.ravel(), rtol=1e-9)


def test_the_gradient_of_logsumexp_is_softmax():
    x = np.random.default_rng(1).normal(size=7)
    want = np.exp(x) / np.exp(x).sum()
    np.testing.assert_allclose(evaluated("lse", "gradient", x=x.tolist()), want, rtol=1e-12)


def test_the_saddle_of_a_difference_of_squares_is_zero():
    assert np.abs(evaluated("saddle", "ff", start=[1.0, 1.0])).max() < 1e-4
