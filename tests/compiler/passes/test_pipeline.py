"""The pipeline: which passes run, how often, and what is verified."""

from __future__ import annotations

import numpy as np

import lucid
from lucid.compiler.compile import compile_graph
from lucid.compiler.passes import pipeline
from lucid.ir import trace


def counted(monkeypatch):
    """Count the runs of every stage over the whole Graph, and those of verify."""
    runs = dict.fromkeys([*pipeline.STAGES, "verify"], 0)

    def counting(name, run):
        def wrapped(graph):
            runs[name] += 1
            return run(graph)

        return wrapped

    for name, run in pipeline.STAGES.items():
        monkeypatch.setitem(pipeline.STAGES, name, counting(name, run))
    monkeypatch.setattr(pipeline, "verify", counting("verify", pipeline.verify))
    return runs


def test_every_pass_runs_once(monkeypatch):
    monkeypatch.setenv("LUCID_CACHE_PROGRAMS", "0")
    f = lambda x, w: (lucid.tanh(x @ w) ** 2).sum()  # noqa: E731
    graph = trace(f)(lucid.ones(3, 4), lucid.ones(4, 5))
    runs = counted(monkeypatch)
    program = compile_graph(graph)
    assert all(runs[name] == 1 for name in pipeline.STAGES), runs
    assert 1 <= runs["verify"] <= len(pipeline.STAGES)
    for scale in (0.1, 0.3):
        x, w = np.full((3, 4), scale, "f4"), np.full((4, 5), 0.5, "f4")
        np.testing.assert_allclose(program([x, w])[0], (np.tanh(x @ w) ** 2).sum(), rtol=1e-5)


def test_a_graph_that_no_pass_changes_is_not_verified_again(monkeypatch):
    same = {name: lambda graph: graph for name in pipeline.STAGES}
    monkeypatch.setattr(pipeline, "STAGES", same)
    runs = counted(monkeypatch)
    graph = trace(lambda x: lucid.exp(x))(lucid.ones(3))
    assert set(map(id, pipeline.stages(graph).values())) == {id(graph)}
    assert runs["verify"] == 0
