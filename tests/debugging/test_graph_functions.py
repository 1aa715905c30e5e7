"""From a Graph to a function: eager results, parsed texts, and files."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, FileFormatError, GraphError

TEXT = """graph f(x: f32[2], w: f32[2]):
    %0: f32[2] = mul x w
    %1: f32[]  = sum[axes=(0,)] %0
    return %1"""


def test_an_eager_result_is_a_pure_function_of_its_inputs():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    w = lucid.tensor([3.0, 4.0])
    loss = lucid.sin(x * w).sum()
    f = lucid.func.from_graph(loss, x)
    for values in ([1.0, 2.0], [0.5, -1.0], [2.0, 3.0]):
        y = np.array(values, "float32")
        want = np.sin(y * [3, 4]).sum()
        np.testing.assert_allclose(f(y).numpy(), want, rtol=1e-5)
        np.testing.assert_allclose(lucid.jit(f)(lucid.tensor(y)).numpy(), want, rtol=1e-5)
        gradient = lucid.func.grad(f)(lucid.tensor(y)).numpy()
        np.testing.assert_allclose(gradient, np.cos(y * [3, 4]) * [3, 4], rtol=1e-4)
    batch = lucid.func.vmap(f)(lucid.tensor([[1.0, 2.0], [0.0, 0.0]]))
    np.testing.assert_allclose(batch.numpy(), [loss.item(), 0.0], rtol=1e-5)
    assert "sin" in str(f.graph)


def test_several_inputs_and_results_keep_their_order():
    x, w = (lucid.tensor([float(i)], requires_grad=True) for i in (2, 3))
    f = lucid.func.from_graph((x * w, x - w), [w, x])
    product, difference = f(lucid.tensor([10.0]), lucid.tensor([1.0]))
    assert (product.item(), difference.item()) == (10.0, -9.0)
    with pytest.raises(GraphError, match="1 arguments given, 2 expected"):
        f(x)


def test_a_result_without_history_is_refused():
    with pytest.raises(GraphError, match="no history"):
        lucid.func.from_graph(lucid.ones(2).sum(), lucid.ones(2))


def test_a_parsed_graph_is_a_function():
    f = lucid.ir.parse(TEXT)
    x, w = lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 4.0])
    assert f(x, w).item() == 11.0
    assert lucid.func.grad(f)(x, w).numpy().tolist() == [3.0, 4.0]
    jitted = lucid.jit(lambda x, w: f(x, w))
    assert [jitted(x, w).item() for _ in range(3)] == [11.0] * 3
    with pytest.raises(ArgumentError, match="1 arguments given, 2 expected"):
        f(x)
    with pytest.raises(ArgumentError, match=r"x is f32\[3\], not f32\[2\]"):
        f(lucid.ones(3), w)


def test_graphs_are_saved_and_loaded_as_text(tmp_path):
    graph = lucid.ir.trace(lambda x: lucid.softmax(x, 0) * 2)(lucid.ones(3))
    path = tmp_path / "f.graph"
    lucid.ir.save(graph, path)
    assert path.read_text().startswith("graph ")
    assert lucid.ir.load(path) == graph
    assert [p.name for p in tmp_path.iterdir()] == ["f.graph"]
    path.write_text("graph f(x: f32[3]):\n    return y")
    with pytest.raises(FileFormatError, match="f.graph"):
        lucid.ir.load(path)
