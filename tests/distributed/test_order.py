"""The sequence of collectives is part of a program's meaning: every pass keeps it."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.distributed as dist
from lucid.compiler.fusion.fuse import fuse
from lucid.compiler.fusion.groups import Group
from lucid.compiler.jit.recording import RecompileWarning
from lucid.compiler.passes.cse import cse
from lucid.compiler.passes.fold_constants import fold_constants
from lucid.compiler.passes.pipeline import STAGES, stages
from lucid.distributed import execution
from lucid.ir import parse, verify
from lucid.ir.primitive import graphs_of
from lucid.ir.rewrite import dce
from lucid.transforms.vjp import vjp
from lucid.transforms.vmap import batch_graph

PROGRAM = """graph f(x: f32[4], y: f32[4]):
    %0: f32[4] = all_reduce[group='world', size=2] x
    %1: f32[] = send[group='world', size=2, dest=1, source=-1] y
    %2: f32[4] = exp y
    %3: f32[4] = all_reduce[group='world', size=2] x
    %4: f32[4] = recv[group='world', size=2, dest=-1, source=1] %2
    %5: f32[4] = all_reduce_prod[group='world', size=2] %2
    %6: f32[4] = add %0 %3
    return %6"""
SEQUENCE = ["all_reduce", "send", "all_reduce", "recv", "all_reduce_prod"]


def sequence(graph) -> list[str]:
    """The collectives of a Graph in order, those inside loops and branches included."""
    found = []
    for eqn in graph.equations:
        inner = [name for body in graphs_of(eqn.op) for name in sequence(body)]
        found += inner or ([eqn.op.name] if eqn.op.ordered else [])
    return found


@pytest.fixture
def log(monkeypatch):
    """What runs, in order, in a world of one."""
    ran: list[str] = []
    original = execution.run_into

    def noted(op, x, out, source=None):
        ran.append(op.name)
        original(op, x, out, source)

    monkeypatch.setattr(execution, "run_into", noted)
    monkeypatch.setattr("lucid.distributed.lowering.run_into", noted)
    return ran


def test_dead_code_elimination_keeps_collectives_whose_results_are_unused():
    assert sequence(dce(parse(PROGRAM))) == SEQUENCE


def test_cse_does_not_merge_equal_collectives():
    assert sequence(cse(parse(PROGRAM))) == SEQUENCE


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_of_the_compiler_keeps_the_sequence(stage):
    assert sequence(stages(parse(PROGRAM))[stage]) == SEQUENCE


def test_fusion_schedules_collectives_in_order_whatever_their_operands_wait_for():
    # the operand of the first is ready last
    text = """graph f(x: f32[4,4], y: f32[4,4]):
    %0: f32[4,4] = matmul x y
    %1: f32[4,4] = matmul %0 y
    %2: f32[4,4] = matmul %1 y
    %3: f32[4,4] = all_reduce[group='world', size=2] %2
    %4: f32[4,4] = all_to_all[group='world', size=4] x
    %5: f32[] = send[group='world', size=2, dest=1, source=-1] y
    return %3, %4"""
    steps, _ = fuse(parse(text))
    names = [s.equation.op.name for s in steps if not isinstance(s, Group)]
    assert names == ["matmul", "matmul", "matmul", "all_reduce", "all_to_all", "send"]


def test_constant_folding_does_not_communicate():
    graph = parse("""graph f(x: f32[2], k: f32[2]):
    %0: f32[2] = all_reduce[group='world', size=2] k
    %1: f32[2] = add x %0
    return %1""")
    folded, _ = fold_constants(graph, {graph.inputs[1]: np.ones(2, np.float32)})
    assert sequence(folded) == ["all_reduce"]


def test_loops_that_communicate_are_not_merged():
    def f(x):
        step = lambda carry, row: (dist.all_reduce(carry + row), carry)  # noqa: E731
        first, _ = lucid.func.scan(step, x[0], x)
        second, _ = lucid.func.scan(step, x[1], x)
        return first + second

    graph = lucid.ir.trace(f)(lucid.ones(3, 2))
    found = stages(graph)["copies_inserted"]
    loops = [eqn for eqn in found.equations if eqn.op.name == "scan"]
    assert len(loops) == 2 and sequence(found) == ["all_reduce", "all_reduce"]


def test_merging_other_loops_does_not_reorder_collectives():
    def f(x):
        add = lambda carry, row: (carry + row, carry)  # noqa: E731
        first, _ = lucid.func.scan(add, x[0], x)
        one = dist.all_reduce(first)
        two = dist.all_reduce(x[1], "prod")
        second, _ = lucid.func.scan(add, two, x)
        return one + second

    graph = lucid.ir.trace(f)(lucid.ones(3, 2))
    wanted = ["all_reduce", "all_reduce_prod"]
    assert sequence(graph) == wanted
    assert sequence(verify(stages(graph)["loops_merged"])) == wanted


def test_a_loop_keeps_a_collective_whose_result_is_unused():
    def f(x):
        def step(carry, row):
            dist.all_reduce(row)
            return carry + row, None

        return lucid.func.scan(step, x[0], x)[0]

    graph = lucid.ir.trace(f)(lucid.ones(3, 2))
    assert sequence(stages(graph)["copies_inserted"]) == ["all_reduce"]


def test_a_branch_keeps_a_collective_whose_result_is_unused():
    def f(x):
        def yes(x):
            dist.all_reduce(x)
            return x * 2.0

        return lucid.func.cond(x.sum() > 0.0, yes, lambda x: x, x)

    graph = lucid.ir.trace(f)(lucid.ones(3))
    assert sequence(stages(graph)["copies_inserted"]) == ["all_reduce"]


def test_batching_keeps_a_collective_whose_result_is_unused():
    assert sequence(batch_graph(parse(PROGRAM), 3, [True, True])) == SEQUENCE


def test_the_derivative_runs_the_adjoints_in_reverse_order():
    graph = parse("""graph f(x: f32[2,2]):
    %0: f32[2] = reduce_scatter[group='world', size=2] x
    %1: f32[2,2] = all_gather[group='world', size=2] %0
    %2: f32[2,2] = all_to_all[group='world', size=2] %1
    return %2""")
    found = vjp(graph, graph.inputs).graph
    assert sequence(found) == ["all_to_all", "reduce_scatter", "all_gather"]


def test_a_jitted_function_runs_all_collectives_in_order_at_every_call(log):
    @lucid.jit
    def f(x):
        dist.barrier()
        y = dist.all_reduce(x)
        dist.all_reduce(x)
        dist.all_gather(y)
        return dist.all_reduce(x, "prod") * 2.0

    wanted = ["barrier", "all_reduce", "all_reduce", "all_gather", "all_reduce_prod"]
    for value in (1.0, 2.0, 3.0):
        del log[:]
        assert f(lucid.tensor([value])).item() == 2.0 * value
        assert log == wanted


def test_a_jitted_gradient_runs_each_collective_once_a_call(log):
    f = lucid.jit(lucid.func.grad(lambda x: (dist.all_reduce(x) ** 2).sum()))
    for value in (1.0, 2.0, 3.0):
        del log[:]
        assert f(lucid.tensor([value])).tolist() == [2.0 * value]
        assert log == ["all_reduce", "all_reduce"]


def test_a_checkpoint_in_a_jitted_function_runs_its_collective_once_forward(log):
    @lucid.jit
    def f(x):
        return lucid.func.checkpoint(lambda x: dist.all_reduce(x) * 2.0)(x)

    for _ in range(3):
        del log[:]
        f(lucid.ones(2))
        assert log == ["all_reduce"]


def test_a_loop_runs_its_collective_once_a_step(log):
    @lucid.jit
    def f(x):
        return lucid.func.scan(lambda c, row: (dist.all_reduce(c + row), None), x[0], x)[0]

    for _ in range(3):
        del log[:]
        f(lucid.ones(4, 2))
        assert log == ["all_reduce"] * 4


def test_a_collective_of_a_constant_in_a_loop_does_not_run_while_it_is_traced(log):
    constant = lucid.ones(2)

    def step(carry, row):
        return carry + dist.all_reduce(constant), None

    lucid.func.scan(step, lucid.zeros(2), lucid.ones(3, 2))
    assert log == ["all_reduce"] * 3


def test_vmap_is_one_call_for_the_batch(log):
    found = lucid.func.vmap(dist.all_reduce)(lucid.ones(5, 2))
    assert found.shape == (5, 2) and log == ["all_reduce"]


def test_a_function_that_reads_a_value_and_communicates_is_not_compiled(log):
    @lucid.jit
    def f(x):
        y = dist.all_reduce(x)
        return y * 2.0 if float(y.sum()) > 0.0 else y

    with pytest.warns(RecompileWarning, match="communicates with other ranks"):
        f(lucid.ones(2))
    for sign in (1.0, -1.0, 1.0):
        del log[:]
        assert f(lucid.ones(2) * sign).tolist() == ([2.0, 2.0] if sign > 0 else [-1.0, -1.0])
        assert log == ["all_reduce"]


def test_an_error_of_a_compiled_program_does_not_communicate_again(log):
    @lucid.jit
    def f(x, i):
        return dist.all_reduce(x)[i]

    f(lucid.ones(3), lucid.tensor(1))
    for _ in range(2):
        del log[:]
        with pytest.raises(IndexError):
            f(lucid.ones(3), lucid.tensor(7))
        assert log == ["all_reduce"]


def test_an_error_inside_a_compiled_collective_is_raised(monkeypatch):
    f = lucid.jit(lambda x: dist.all_gather(dist.all_reduce(x)) + 1.0)
    f(lucid.ones(2))
    f(lucid.ones(2))
    calls = []

    def broken(op, x, out, source=None):
        calls.append((op.name, str(source)))
        raise KeyboardInterrupt

    monkeypatch.setattr("lucid.distributed.lowering.run_into", broken)
    with pytest.raises(KeyboardInterrupt):
        f(lucid.ones(2))
    assert [name for name, _ in calls] == ["all_reduce"]  # the second one is not tried
    assert calls[0][1].startswith("test_order.py:")


def test_text_with_collectives_parses_back():
    graph = parse(PROGRAM)
    assert parse(str(graph)).key == graph.key and sequence(graph) == SEQUENCE


def test_a_jitted_function_on_the_tape_runs_each_collective_once_in_each_direction(log):
    f = lucid.jit(lambda x: (dist.all_reduce(lucid.sin(x)) ** 2).sum())
    for value in (1.0, 2.0, 3.0):
        del log[:]
        x = lucid.tensor([value], requires_grad=True)
        f(x).backward()
        assert log == ["all_reduce", "all_reduce"]
        assert abs(x.grad.item() - np.sin(2 * value)) < 1e-6


def test_a_repeated_eager_step_is_compiled_and_keeps_its_collectives(log):
    x = lucid.tensor([0.5, 1.0], requires_grad=True)
    for _ in range(40):  # hot after 16
        del log[:]
        x.grad = None
        (dist.all_reduce(lucid.sin(x)) ** 2).sum().backward()
        assert log == ["all_reduce", "all_reduce"]
    np.testing.assert_allclose(x.grad.numpy(), np.sin(2 * x.detach().numpy()), rtol=1e-6)
