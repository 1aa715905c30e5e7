"""Equations carry the scope they were made in, and tensors their names, in every text."""

from __future__ import annotations

import contextvars
import threading
from typing import Any

import pytest

import lucid
from lucid import nn
from lucid.ir import Graph, parse, trace
from lucid.ir.primitive import graphs_of


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(4)
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return x + self.fc(self.norm1(x))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.register_buffer("scale", lucid.tensor(2.0))

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x * self.scale


def scopes(graph: Graph) -> list[str]:
    found = [str(e.source.scope) for e in graph.equations if e.source and e.source.scope]
    return list(dict.fromkeys(found))


def names(graph: Graph) -> list[str]:
    return [x.name for x in graph.inputs]


FORWARD = [
    "blocks.0.norm1: LayerNorm", "blocks.0.fc: Linear", "blocks.0: Block",
    "blocks.1.norm1: LayerNorm", "blocks.1.fc: Linear", "blocks.1: Block", "Net",
]  # fmt: skip


def test_equations_of_a_module_carry_its_path_and_class():
    assert scopes(trace(Net())(lucid.ones(2, 4))) == FORWARD


def test_a_recorded_function_has_the_same_scopes_on_later_calls_too():
    model = Net()
    f = lucid.jit(lambda x: model(x))
    for n in (2, 3, 2):
        f(lucid.ones(n, 4))
        assert scopes(f.graph(lucid.ones(n, 4))) == FORWARD


def test_an_eager_result_has_the_scopes_of_its_history():
    model = Net()
    graph = Graph.between([model.blocks[0].norm1.weight], [model(lucid.ones(2, 4)).sum()])
    assert set(scopes(graph)) == set(FORWARD)
    assert names(graph)[0] == "blocks.0.norm1.weight" and "scale" in names(graph)
    assert "blocks.0.fc.weight.transpose" in names(graph)


def test_gradients_and_batches_keep_the_scopes():
    model = Net()

    def loss(p: Any, x: Any) -> Any:
        return (lucid.func.functional_call(model, p, x) ** 2).sum()

    params = dict(model.named_parameters())
    assert set(scopes(trace(lucid.func.grad(loss))(params, lucid.ones(2, 4)))) == set(FORWARD)
    assert scopes(trace(lucid.func.vmap(model))(lucid.ones(2, 4))) == FORWARD
    batched = lucid.func.vmap(lucid.func.grad(loss), in_dims=(None, 0))
    assert set(scopes(trace(batched)(params, lucid.ones(2, 4)))) == set(FORWARD)


def test_a_training_step_names_parameters_buffers_and_optimizer_state():
    model = Net()
    optimizer = lucid.optim.Adam(model.parameters(), lr=0.1)

    @lucid.jit
    def step(x: Any, batch: Any) -> Any:
        optimizer.zero_grad()
        loss = ((model(x) - batch["y"]) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    x = lucid.ones(2, 4)
    step(x, {"y": x})
    graph = step.graph(x, {"y": x})
    found = names(graph)
    assert found[:2] == ["x", "batch['y']"]
    assert {"blocks.0.norm1.weight", "blocks.1.fc.bias", "scale", "Adam.lr"} <= set(found)
    assert "Adam.exp_avg[blocks.1.fc.weight]" in found
    assert "Adam.betas[1]" in found
    assert set(scopes(graph)) == {*FORWARD, "Adam"}
    text = str(graph)
    assert parse(text).key == graph.key and str(parse(text)) == text
    assert scopes(parse(text)) == scopes(graph)


def test_accumulated_gradients_are_inputs_with_the_name_of_their_parameter():
    model = nn.Linear(2, 1)

    @lucid.jit
    def accumulate(x: Any) -> None:
        model(x).sum().backward()

    accumulate(lucid.ones(3, 2))
    accumulate(lucid.ones(3, 2))  # now there are gradients to add to
    assert "weight.grad" in names(accumulate.graph(lucid.ones(3, 2)))


def test_arguments_have_the_paths_of_their_pytrees():
    def f(params: Any, pair: Any, *rest: Any, scale: Any) -> Any:
        return params["a b"]["w"] * pair[0] + rest[0] * scale

    one = lucid.ones(2)
    graph = trace(f)({"a b": {"w": one}}, (one, one), one, scale=one)
    assert str(graph).startswith(
        "graph f(params['a_b']['w']: f32[2], pair[0]: f32[2], pair[1]: f32[2], "
        "rest[0]: f32[2], scale: f32[2]):"
    )
    assert parse(str(graph)).key == graph.key


def test_keyword_arguments_keep_their_names_in_any_order():
    def f(x, b, a):
        return x * b + a

    graph = trace(f)(lucid.ones(2), b=lucid.ones(2), a=lucid.ones(1))
    assert [str(x.type) for x in graph.inputs if x.name == "a"] == ["f32[1]"]
    assert [x.name for x in graph.inputs] == ["x", "a", "b"]
    layer = lucid.nn.Linear(2, 3)
    assert trace(layer)(lucid.ones(4, 2)).inputs[0].name == "input"


def test_tensors_that_a_function_closes_over_have_their_python_names():
    weights = {"w": lucid.ones(2), "b": lucid.ones(2)}
    other = lucid.ones(2)

    def helper(x: Any) -> Any:
        return x * weights["w"] + weights["b"]

    f = lucid.jit(lambda x: helper(x) + other)
    f(lucid.ones(2))
    assert names(f.graph(lucid.ones(2))) == ["x", "weights['w']", "weights['b']", "other"]


def test_two_modules_with_equal_paths_are_told_apart():
    first, second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    graph = trace(lambda x: second(first(x)))(lucid.ones(1, 2))
    text = str(graph)
    assert len(set(names(graph))) == 3 and parse(text).key == graph.key


def test_named_scopes_nest_and_join_the_paths_of_modules():
    model = nn.Sequential(nn.Linear(2, 2))

    @lucid.named_scope("head")
    def f(x: Any) -> Any:
        with lucid.named_scope("inner  part"):
            x = x * 2.0
        return model(x)

    graph = trace(f)(lucid.ones(1, 2))
    assert scopes(graph) == ["head/inner part", "head/Sequential.0: Linear"]
    assert scopes(parse(str(graph))) == scopes(graph)


def test_a_scope_ends_with_an_error_and_leaves_modes_that_were_set_inside():
    class Failing(nn.Module):
        def forward(self, x: Any) -> Any:
            lucid.autograd.set_grad_enabled(False)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Failing()(lucid.ones(1))
    try:
        assert not lucid.is_grad_enabled()
        x = lucid.ones(1, requires_grad=True)
        with lucid.enable_grad():
            assert (x * 2.0).node.source[2] is None
    finally:
        lucid.autograd.set_grad_enabled(True)


def test_a_thread_has_its_own_scope():
    found = []

    def work() -> None:
        found.append((lucid.ones(1, requires_grad=True) * 2.0).node.source[2])

    with lucid.named_scope("outer"):
        thread = threading.Thread(target=contextvars.Context().run, args=(work,))
        thread.start()
        thread.join()
    assert found == [None]


def test_modules_that_are_made_for_one_call_are_freed():
    import gc
    import weakref

    model = Net()
    y = model(lucid.ones(2, 4))
    kept = weakref.ref(model)
    del model
    gc.collect()
    assert kept() is None and y.shape == (2, 4)


def test_a_named_scope_needs_a_name():
    for bad in ("", " ", 3, None):
        with pytest.raises(lucid.errors.ArgumentError, match="nonempty string"):
            lucid.named_scope(bad)  # type: ignore[arg-type]


def test_what_bodies_of_loops_and_branches_capture_has_its_outer_name():
    layer = lucid.nn.Linear(3, 3)

    def loops(params, x):
        def step(c, t):
            return lucid.tanh(c @ params["w"] + layer(c)) * t, c.sum()

        y, _ = lucid.func.scan(step, x, lucid.arange(3.0))
        y = lucid.func.cond(y.sum() > 0, lambda y: y * params["w"].sum(), lambda y: y - x, y)
        return lucid.func.while_loop(lambda s: s.sum() > 9, lambda s: s * 0.5 - layer.bias, y)

    params, x = {"w": lucid.ones(3, 3)}, lucid.ones(2, 3)
    graph = lucid.ir.trace(loops)(params, x)
    bodies = [sub for eqn in graph.equations for sub in graphs_of(eqn.op)]
    assert len(bodies) == 5  # of scan, two branches, a condition and a body
    names = [{v.name for v in body.inputs} for body in bodies]
    assert {"params['w']", "bias", "weight.transpose", "c", "t"} == names[0]
    assert all("params['w']" in n or "x" in n for n in names[1:3])
    assert "bias" in names[4]
    assert lucid.ir.parse(str(graph)) == graph
    gradient = lucid.ir.trace(lucid.func.grad(lambda p, x: loops(p, x).sum()))(params, x)
    assert any("p['w']" in {v.name for v in sub.inputs} for eqn in gradient.equations
               for sub in graphs_of(eqn.op))  # fmt: skip
    assert lucid.ir.parse(str(gradient)) == gradient


def test_backward_equations_are_in_the_scope_of_their_module():
    net = lucid.nn.Sequential(lucid.nn.Linear(3, 4), lucid.nn.Tanh())
    graph = lucid.ir.trace(lucid.func.grad(lambda x: net(x).sum()))(lucid.ones(2, 3))
    last = graph.equations[-1]  # the cotangent of x, made by the rule of the first matmul
    assert last.op.name == "matmul" and str(last.source.scope).startswith("0")
