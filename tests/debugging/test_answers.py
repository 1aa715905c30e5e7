"""Answers: programs whose cause is known, and ones where there is nothing to find."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

import lucid
from lucid import extend
from lucid.debugging.graph_diff import GraphDiff
from lucid.errors import ArgumentError

X = lucid.tensor([1.0, 2.0])


# explain_no_grad


def through_numpy(x):
    return (lucid.tensor(x.numpy()) * 2).sum()


def under_no_grad(x):
    with lucid.no_grad():
        y = x * 3
    return y.sum()


@pytest.mark.parametrize(
    "f, reason",
    [
        (lambda x: (x.detach() * 2).sum(), r"stop_gradient: detach\(\).*\[test_answers.py:\d+\]"),
        (under_no_grad, r"stop_gradient: .*no_grad   \[test_answers.py:\d+\]"),
        (lambda x: (x > 1).float().sum(), r"gt: a comparison.*\[test_answers.py:\d+\]"),
        (lambda x: x.long().float().sum(), r"cast: a conversion to int64"),
        (lambda x: lucid.round(x).sum(), r"round: its derivative is zero everywhere"),
        (lambda x: lucid.argmax(x).float(), r"argmax: its result is int64"),
        (through_numpy, r"a conversion leaves the graph"),
        (lambda x: lucid.ones(2).sum(), r"does not depend on the tensor"),
    ],
)
def test_a_missing_gradient_has_its_reason_and_line(f, reason):
    found = lucid.explain_no_grad(f, X)
    assert not found.flows
    text = repr(found)
    assert text.startswith("no gradient reaches the tensor:")
    assert re.search(reason, text), text


@pytest.mark.parametrize("f", [lambda x: (x * x).sum(), lambda x: lucid.where(x > 1, x, -x).sum()])
def test_a_gradient_that_flows_is_said_to(f):
    found = lucid.explain_no_grad(f, X)
    assert found.flows and "flows" in repr(found)


def test_tensors_explain_themselves_as_far_as_their_history_goes():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    assert lucid.explain_no_grad((x * x).sum(), x).flows
    assert "no history" in repr(lucid.explain_no_grad((x.detach() * 2).sum(), x))
    assert "does not depend" in repr(
        lucid.explain_no_grad((x * 2).sum(), lucid.ones(2, requires_grad=True))
    )
    assert "does not require" in repr(lucid.explain_no_grad((x * 2).sum(), lucid.ones(2)))
    assert "int64 has no derivative" in repr(lucid.explain_no_grad(x.sum(), lucid.tensor([1])))
    with pytest.raises(ArgumentError, match="not a tensor or a function"):
        lucid.explain_no_grad(3, x)


# find_nan


def test_the_first_bad_value_of_the_forward_pass():
    found = lucid.find_nan(lambda x: (lucid.log(x - 1) * 0).sum(), X)
    assert found and (found.part, found.op, found.first) == ("forward", "log", "-inf at [0]")
    assert found.operands == ("float32[2] from 0 to 1",) and "test_answers.py" in found.where
    found = lucid.find_nan(lambda x: lucid.sqrt(-x).sum(), X, infinities=False)
    assert (found.op, found.first) == ("sqrt", "nan at [0]")
    found = lucid.find_nan(lambda x: (x / (x - x)).sum(), X)
    assert found.op == "div"


def test_the_first_bad_value_of_the_backward_pass():
    found = lucid.find_nan(lambda x: lucid.sqrt(x - 1).sum(), X)
    assert found.part == "backward" and found.op == "div" and "test_answers.py" in found.where
    assert not lucid.find_nan(lambda x: lucid.sqrt(x - 1).sum(), X, backward=False)


def test_a_bad_argument_is_named_and_a_good_program_has_none():
    found = lucid.find_nan(lambda x: x * 2, lucid.tensor([1.0, float("nan")]))
    assert repr(found) == "given: argument x gives nan at [1]"
    for f in (lambda x: lucid.exp(x).sum(), lucid.jit(lambda x: lucid.exp(x).sum())):
        assert not lucid.find_nan(f, X)
    assert repr(lucid.find_nan(lambda x: x, X)) == "every value is finite"
    masked = lambda x: lucid.where(x > 1.5, x, -float("inf")).amax()  # noqa: E731
    assert not lucid.find_nan(masked, X, infinities=False)


class Identity(extend.Elementwise):
    """x, whose compiled code is wrong: it is the logarithm of x - 1."""

    accepts, saves = "f", "x"
    scalar = extend.scalar(lambda x: extend.code.log(x - 1))

    def eval(self, x):
        return x.copy()

    def partials(self, y, x):
        return (lucid.ones_like(x),)


class Slope(Identity):
    """x, whose derivative is compiled wrong."""

    scalar = extend.scalar(lambda x: x * 1)

    def partials(self, y, x):
        return (extend.bind(Identity(), x),)


def test_a_bad_value_of_compiled_code_alone_is_found_by_bisection(monkeypatch):
    monkeypatch.setenv("LUCID_VERIFY", "0")  # which would refuse the program
    x = lucid.tensor([3.0, 2.0, 1.0])

    def long(x):
        y = lucid.exp(x) * 2
        y = extend.bind(Identity(), y - y + x)
        return (lucid.sin(y) + lucid.cos(x)).sum() * 3

    assert not lucid.find_nan(long, x)  # NumPy's values are good
    found = lucid.find_nan(lucid.jit(long), x)
    assert (found.part, found.op, found.first) == ("compiled forward", "identity", "-inf at [2]")
    assert found.operands == ("float32[3] from 1 to 3",) and "test_answers.py" in found.where
    masked = lucid.jit(lambda x: lucid.where(x > 1, extend.bind(Identity(), x), x).sum())
    assert not lucid.find_nan(masked, x, backward=False)  # no result of compiled code is bad
    back = lucid.find_nan(lucid.jit(lambda x: extend.bind(Slope(), x * 1.0).sum()), x)
    assert (back.part, back.op) == ("compiled backward", "identity")
    good = lucid.jit(lambda x: extend.bind(Identity(), x + 1).sum())
    assert not lucid.find_nan(good, x)


# verify


@lucid.func.custom_vjp
def wrong_square(x):
    return x * x


wrong_square.defvjp(lambda x: (x * x, x), lambda x, ct: (3 * x * ct,))


@lucid.func.custom_jvp
def wrong_cube(x):
    return x**3


wrong_cube.defjvp(lambda xs, ts: (xs[0] ** 3, 2 * xs[0] ** 2 * ts[0]))


@lucid.func.custom_vjp
def right_square(x, factor=1.0):
    return x * x


right_square.defvjp(lambda x, factor: (x * x, x), lambda x, ct: (2 * x * ct, None))


@functools.partial(lucid.func.custom_jvp, nondiff_argnums=(0,))
def right_power(n, x):
    return x**n


right_power.defjvp(lambda n, xs, ts: (xs[0] ** n, n * xs[0] ** (n - 1) * ts[0]))


class RightSine(lucid.autograd.Function):
    """Its forward and backward compute with NumPy, so that it cannot be traced."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return lucid.tensor(np.sin(x.numpy()) * factor)

    @staticmethod
    def backward(ctx, ct):
        (x,) = ctx.saved_tensors
        return ct * lucid.tensor(np.cos(x.numpy()) * ctx.factor), None


class WrongSine(RightSine):
    @staticmethod
    def backward(ctx, ct):
        (x,) = ctx.saved_tensors
        return ct * lucid.tensor(np.sin(x.numpy()) * ctx.factor), None


class WrongSquare(extend.Elementwise):
    """x², with half of its derivative."""

    accepts, saves = "f", "x"

    def eval(self, x):
        return x * x

    def partials(self, y, x):
        return (x,)


class WrongTangent(extend.Primitive):
    """2 x, whose two modes disagree: reverse is right, forward is not."""

    def infer(self, x):
        return x

    def eval(self, x):
        return x + x

    def jvp(self, ts, y, x):
        return ts[0] * 3.0

    def vjp(self, ct, y, x):
        return (ct * 2.0,)


@pytest.mark.parametrize(
    "f, name",
    [
        (wrong_square, "custom_vjp"),
        (wrong_cube, "custom_jvp"),
        (lambda x: extend.bind(WrongSquare(), x), "wrong_square"),
        (lambda x: extend.bind(WrongTangent(), x), "wrong_tangent"),
    ],
)
def test_a_wrong_rule_is_found_with_its_line(f, name):
    found = lucid.verify(lambda x: (lucid.sin(x) * f(x)).sum(), X)
    assert not found and len(found.wrong) == 1 and found.checked == 4
    assert found.wrong[0].startswith(name) and "test_answers.py" in found.wrong[0]
    assert "1 wrong" in repr(found)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (lucid.tanh(x) * x).sum(),
        lambda x: lucid.softmax(x, 0).log().sum(),
        lambda x: (x[:, None] @ x[None, :]).sum() / 3.0,
    ],
)
def test_right_rules_pass(f):
    found = lucid.verify(f, X)
    assert found and found.checked >= 2 and not found.skipped, found


def test_a_tensor_is_verified_by_its_history():
    x = lucid.tensor([0.5, 2.0], requires_grad=True)
    assert lucid.verify((lucid.sin(x) * x * 2.0).sum()).checked == 4
    with pytest.raises(ArgumentError, match="no history"):
        lucid.verify(lucid.ones(2))


@pytest.mark.parametrize("by", ["history", "function"])
@pytest.mark.parametrize(
    "f, name",
    [
        (wrong_square, "custom_vjp wrong_square"),
        (wrong_cube, "custom_jvp wrong_cube"),
        (lambda x: WrongSine.apply(x, 3.0), "Function WrongSine"),
        (right_square, ""),
        (lambda x: right_power(3, x), ""),
        (lambda x: RightSine.apply(x, 3.0), ""),
    ],
)
def test_custom_rules_inside_a_loss_are_checked(f, name, by):
    def loss(x):
        return (lucid.exp(f(lucid.sin(x))) * x).sum()

    x = lucid.tensor([0.5, 2.0], requires_grad=True)
    found = lucid.verify(loss(x)) if by == "history" else lucid.verify(loss, x.detach())
    assert found.checked == 5 and not found.skipped
    assert len(found.wrong) == bool(name)
    assert all(text.startswith(name) and "test_answers.py" in text for text in found.wrong)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: lucid.func.scan(lambda c, a: (c * a, c), lucid.tensor(1.0), x)[0],
        lambda x: lucid.func.cond(x.sum() > 0, lambda x: x.sin().sum(), lambda x: x.sum(), x),
        lambda x: lucid.jit(lambda x: (lucid.sin(x) * 2.0).sum())(x),
        lambda x: (x.to(lucid.float16).float() * 2.0).sum(),
    ],
)
def test_loops_branches_and_casts_are_checked_in_double_precision(f):
    x = lucid.tensor([0.5, 2.0], requires_grad=True)
    for found in (lucid.verify(f(x)), lucid.verify(f, x.detach())):
        assert found and found.checked and not found.skipped, found


# memory


def test_memory_counts_what_is_alive_at_the_peak():
    x = lucid.ones(64, 64)
    found = lucid.memory(lambda x: (lucid.exp(x) @ x).sum(), x)
    nbytes = 64 * 64 * 4
    assert (found.arguments, found.results) == (nbytes, 4)
    assert found.peak == 3 * nbytes and "matmul" in found.step
    assert [row[0] for row in found.rows] == [nbytes, nbytes]
    assert all("test_answers.py" in row[2] for row in found.rows)
    assert "peak 48.0 KB" in repr(found)


def test_a_fused_program_has_no_temporaries():
    found = lucid.memory(lambda x: (lucid.exp(x) * 2 + 1).sum(1), lucid.ones(64, 64))
    assert found.arena == 0 and found.peak == 64 * 64 * 4 + 64 * 4
    larger = lucid.memory(lambda x: (x @ x @ x @ x).sum(), lucid.ones(64, 64))
    assert larger.arena >= 2 * 64 * 64 * 4


def test_saved_residuals_name_arguments_and_parameters_by_their_path():
    model = lucid.nn.Sequential(lucid.nn.Linear(2, 3), lucid.nn.Tanh())

    def f(params, x):
        return (model(x * params["w"]) ** 2).sum()

    kept = lucid.func.saved_residuals(f, {"w": lucid.ones(4, 2), "n": 1.0}, lucid.ones(4, 2))
    names = [x.operation for x in kept]
    assert {"params['w']", "x", "Sequential.0.weight.transpose"} <= set(names)
    assert "an argument" not in names and "x" in repr(kept).split()
    (only,) = lucid.func.saved_residuals(lucid.nn.Linear(2, 3), lucid.ones(4, 2))[:1]
    assert only.operation == "input"


# precision


def test_cancellation_shows_in_the_equation_that_cancels():
    x = lucid.tensor([1.0, 1e-4])
    found = lucid.precision(lambda x: (1.0 + x) - 1.0, x)
    assert [row.op for row in found.rows] == ["add", "sub"]
    assert found.rows[1].own < 1 < found.rows[1].total and found.worst[0].op == "sub"
    assert "sub" in repr(found)


def test_a_long_sum_and_a_steep_function_show_their_own_errors():
    x = lucid.tensor(np.linspace(0.1, 1, 4000).astype("float32"))
    found = lucid.precision(lambda x: lucid.cumsum(x, 0), x)
    assert found.rows[0].own > 1  # adding in order
    found = lucid.precision(lambda x: lucid.exp(x * 80), x)
    rows = {row.op: row for row in found.rows}
    assert rows["exp"].own < 2 < rows["exp"].total  # the product's error, 80 times


def test_exact_programs_have_no_error_and_integers_no_rows():
    assert all(row.total == 0 for row in lucid.precision(lambda x: x * 2 + 1, X).rows)
    assert repr(lucid.precision(lambda x: x + 1, lucid.tensor([1]))).startswith("no equation")
    x = lucid.tensor(np.linspace(0, 1, 50).astype("float32"))
    found = lucid.precision(lambda x: lucid.exp(x * 30).sum(), x)
    assert 1 < max(row.total for row in found.rows) < 100


# diff, and Graphs as functions


def test_a_diff_shows_what_differs_and_equal_graphs_are_equal():
    a = lucid.ir.trace(lambda x: lucid.sin(x) * 2.0)(X)
    b = lucid.ir.trace(lambda x: lucid.cos(x) * 2.0)(X)
    found = lucid.diff(a, b)
    assert lucid.ir.diff(a, b) == found
    assert found and "-     f32[2] = sin x" in found.lines and "+     f32[2] = cos x" in found.lines
    assert not lucid.ir.diff(a, a) and repr(lucid.ir.diff(a, a)) == "the Graphs are equal"
    longer = lucid.ir.trace(lambda x: lucid.sin(x) * 2.0 + 1.0)(X)
    added = [text for text in lucid.ir.diff(a, longer).lines if text.startswith("+")]
    assert any("add" in text for text in added)
    with pytest.raises(ArgumentError, match="a Graph is compared with a Graph, not with int"):
        lucid.diff(a)
    assert lucid.diff(lucid.tensor([1, 4, 9])).tolist() == [3, 5]


def test_a_diff_as_a_page_has_both_sides_and_is_escaped(tmp_path):
    text = "graph f(x: f32[2]):\n    %0: f32[2] = {} x\n    return %0"
    a, b = (lucid.ir.parse(text.format(name)) for name in ("sin", "cos"))
    page = lucid.view(lucid.diff(a, b), path=tmp_path / "diff.html").path.read_text()
    assert "2 lines differ" in page and page.index("sin x") < page.index("cos x")
    assert [row for row in lucid.diff(a, b).rows() if row[0] != row[1]] == [
        ("-     f32[2] = sin x", "+     f32[2] = cos x")
    ]
    assert "the Graphs are equal" in lucid.diff(a, a)._repr_html_()
    hostile = GraphDiff(("  <script>alert(1)</script>", "+ <b>"))
    assert "<script>" not in hostile._repr_html_() and "&lt;b&gt;" in hostile._repr_html_()
    assert "http" not in page.replace("http-equiv", "")  # nothing is loaded


# saved_residuals


def test_saved_residuals_name_what_is_kept_and_are_a_picture(tmp_path):
    x = lucid.ones(8)
    kept = lucid.func.saved_residuals(lambda x: lucid.exp(lucid.sin(x)).sum(), x)
    assert sorted(r.operation for r in kept) == ["exp", "x"] and kept.nbytes == 64
    assert all(r.source == "" or "test_answers.py" in r.source for r in kept)
    assert not lucid.func.saved_residuals(lambda x: (3 * x + 1).sum(), x)  # linear: nothing
    checkpointed = lucid.func.checkpoint(lambda x: lucid.exp(lucid.sin(x)).sum())
    assert lucid.func.saved_residuals(checkpointed, x).nbytes == 32  # the argument alone
    page = lucid.view(kept, path=tmp_path / "kept.html").path.read_text()
    assert "64 bytes are saved" in page and page.count("width: 100.00%") == 2
    assert "f32[8] exp" in page


# why_recompiled


def test_every_recompilation_has_its_reason():
    f = lucid.jit(lambda x: x * 2 if x.sum() > 0 else x)
    f(lucid.ones(3))
    f(lucid.ones(3))
    assert "was not recompiled" in str(f.why_recompiled()) or not f.reasons
    f(-lucid.ones(3))
    assert "test_answers.py" in str(f.why_recompiled())
    f(lucid.ones(3, dtype="float64"))
    assert "float64" in str(f.why_recompiled()) or "f64" in str(f.why_recompiled())


# a gradient of zero


@pytest.mark.parametrize(
    "f, reason",
    [
        (lambda x: lucid.relu(x * 2.0 - 100.0).sum(), "relu: its derivative is zero at these"),
        (lambda x: x.clamp(50.0, 60.0).sum() * 2.0, "zero at these values"),
        (lambda x: (x - x).sum(), "cancel"),
    ],
)
def test_a_gradient_that_is_zero_is_traced_to_its_cause(f, reason):
    found = lucid.explain_no_grad(f, X)
    assert found.flows and found.is_zero and reason in found.reasons[0], found
    assert repr(found).startswith("the gradient is zero:")
    x = X.detach().requires_grad_()
    assert lucid.explain_no_grad(f(x), x).is_zero
    assert not lucid.explain_no_grad(lambda x: (x * x).sum(), X).is_zero


@pytest.mark.parametrize(
    "f, what",
    [
        (lambda x: x.sum().item() * lucid.ones(2).sum(), "item()"),
        (lambda x: lucid.tensor(x.detach().numpy() * 2.0).sum(), "numpy()"),
    ],
)
def test_a_number_that_python_reads_is_named_with_its_line(f, what):
    found = lucid.explain_no_grad(f, X)
    assert not found.flows and found.reasons[0].startswith(what), found
    assert "test_answers.py" in found.reasons[0]
