"""What tests of passes share: text in, text out, and the numbers of both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lucid.ir import Graph, evaluate, parse, verify


def after(run: Callable[[Graph], Graph], text: str) -> str:
    """The text of a Graph after a pass, which must verify and compute the same numbers."""
    before = verify(parse(text))
    graph = verify(run(before))
    for x, y in zip(evaluate(before, *inputs(before)), evaluate(graph, *inputs(before))):
        np.testing.assert_allclose(y, x, rtol=2e-6)
    return str(graph.stripped())


def inputs(graph: Graph) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    made = [rng.uniform(0.5, 1.5, t.shape) for t in graph.in_types]
    return [np.asarray(x > 1 if t.dtype == bool else x, t.dtype)
            for x, t in zip(made, graph.in_types)]  # fmt: skip
