"""Every form of `bind` does what `bind` does: unrolled, hot, recorded and replayed.

`bind` is the definition. For every case of every primitive, and operands that are plain, require a
gradient, are views or bases of views, were written to, or meet no_grad, each form must give the
same value, the same Node (operation, inputs, flags, what is saved) and the same links of memory.
"""

from __future__ import annotations

import ast
import itertools
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import lucid
from lucid.errors import LucidError
from lucid.ir.graph import Graph, Literal
from lucid.ir.primitive import NEVER
from lucid.ops.core.kinds import Elementwise
from lucid.ops.core.promote import literal
from lucid.tape.bind import bind
from lucid.tape.fast_bind import bind_one, bind_pair, bind_scalar, bind_view
from lucid.tape.markers import STOP_GRADIENT
from lucid.tape.node import Node, Traced, as_source
from lucid.tape.recording.recorder import Recorder
from lucid.tape.recording.trace import replay
from lucid.tape.tiering import OPERATION, Tiering, single_op_graph, table
from tests import laws
from tests.cases.case import Case
from tests.ops.test_laws import CASES

PACKAGE = Path(lucid.__file__).parent
SETTINGS = {
    "plain": {},
    "grad": {"grad": "all"},
    "first": {"grad": "first"},
    "last": {"grad": "last"},
    "view": {"grad": "all", "memory": "view"},
    "base": {"grad": "all", "memory": "base"},
    "written": {"grad": "all", "memory": "written"},
    "plain view": {"memory": "view"},
    "no_grad": {"grad": "all", "no_grad": True},
    "recorded": {"recorded": True},
    "recorded grad": {"grad": "all", "recorded": True},
    "recorded view": {"grad": "all", "memory": "view", "recorded": True},
    "recorded no_grad": {"grad": "all", "recorded": True, "no_grad": True},
}


def operands(arrays, grad="", memory=""):
    """Fresh tensors of these arrays, as a setting asks for them."""
    out = []
    for i, array in enumerate(arrays):
        wanted = array.dtype.kind in "fc" and (
            grad == "all"
            or (grad == "first" and i == 0)
            or (grad == "last" and array is arrays[-1])
        )
        if memory == "view":
            base = lucid.tensor(np.stack([array, array]), requires_grad=wanted)
            out.append(base[1])
            continue
        x = lucid.tensor(array.copy(), requires_grad=wanted)
        if memory == "base":
            x = x * 1 if wanted else x
            x.detach()  # from now on it has a storage
        if memory == "written" and wanted:
            x = x * 1
            x.sum()
            x.mul_(1)
        out.append(x)
    return out


@contextmanager
def modes(recorded=False, no_grad=False):
    with lucid.no_grad() if no_grad else lucid.enable_grad():
        if not recorded:
            yield
        else:
            with Recorder():
                yield


def describe_node(node, xs, y):
    """What a Node is, in terms of the operands and the result."""
    if node is None:
        return None

    def reference(x):
        if isinstance(x, Literal):
            return x.key
        for i, operand in enumerate(xs):
            if isinstance(operand, Traced) and operand.node is x:
                return i
        return describe_node(x, xs, y) if node.op is STOP_GRADIENT else "unknown"

    saved = "none" if node.saved is None else "result" if node.saved is y.value else "other"
    source = as_source(node.source)
    return {
        "op": node.op,
        "inputs": [reference(x) for x in node.inputs],
        "flags": node.flags,
        "index": node.index,
        "saved": saved,
        "here": source is not None and source.file == __file__,
    }


def describe_operand(x, op):
    if isinstance(x, Literal):
        return x.key
    node = x.node
    if node is None:
        return None
    must_be_saved = op.saves_x and node.flags
    return (node.op, node.flags, node.saved is x.value if must_be_saved else None)


def describe(op, xs, results):
    """(values, everything else that a form of `bind` determines)."""
    outs = results if isinstance(results, tuple) else (results,)
    facts = []
    for y in outs:
        shared = [i for i, x in enumerate(xs) if getattr(x, "storage", None) is y.storage]
        origin = None
        if y.origin is not None:
            position = [i for i, x in enumerate(xs) if x is y.origin[0]]
            origin = (position, y.origin[1], y.origin[2])
        facts.append(
            {
                "type": y.type,
                "node": describe_node(y.node, xs, y),
                "storage": shared if y.storage is not None else None,
                "origin": origin,
                "class": type(y),
            }
        )
    return [y.value for y in outs], facts, [describe_operand(x, op) for x in xs]


def run(form, op, xs):
    """Values and facts of a form, or the class and message of its error."""
    try:
        return describe(op, xs, form(xs))
    except LucidError as error:
        return type(error), str(error).partition("   [")[0]


def same(found, expected, what, rtol=None):
    assert found[1:] == expected[1:], what
    if len(expected) == 2:
        assert found == expected, what
        return
    for a, b in zip(found[0], expected[0], strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and type(a) is type(b)
        if rtol is None:
            np.testing.assert_array_equal(a, b, err_msg=what)
        else:
            laws.assert_close(a, b, rtol, what)


def forms(case):
    """The forms of `bind` that may be used for the operation of a case."""
    op = case.op
    yield "replayed", lambda xs: unpack(replay_form(op, xs))
    if op.is_view:
        yield "bind_view", lambda xs: bind_view(op, *xs)
    if op.is_view or case.several:
        return
    if len(case.args) == 1:
        yield "bind_one", lambda xs: bind_one(op, *xs)
    if len(case.args) == 2:
        yield "bind_pair", lambda xs: bind_pair(op, *xs)


def unpack(outs):
    return outs[0] if len(outs) == 1 else tuple(outs)


def replay_form(op, xs):
    graph = single_op_graph(op, [x.value for x in xs])
    return replay(Graph(op.name, graph.inputs, graph.equations, graph.outputs), xs)


class Tried:
    """A case that can be tried: the op, its arguments, whether it has several results."""

    def __init__(self, case: Case) -> None:
        self.op, self.args, self.arrays = case.op, case.args, case.arrays
        self.rtol = case.rtol.get("float64", laws.RTOL["float64"])
        self.several = isinstance(case.op.eval(*case.arrays()), tuple)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_form_is_bind(case):
    case = Tried(case)
    for setting, (name, form) in itertools.product(SETTINGS, forms(case)):
        options = dict(SETTINGS[setting])
        mode = {name: options.pop(name) for name in ("recorded", "no_grad") if name in options}
        if name == "replayed" and case.op.inline is not None:
            continue  # replaying runs the equations inside
        if mode.get("recorded") and case.op.ordered:
            continue  # it has no value until the recorded program runs
        results = []
        for each in (lambda xs: bind(case.op, *xs), form):
            xs = operands(case.arrays(), **options)
            with modes(**mode):
                results.append(run(each, case.op, xs))
        same(results[1], results[0], f"{name}, {setting}")


def one_of_each_class():
    seen = {}
    for case in CASES:
        if type(case.op).native_from < NEVER and case.op.inline is None:
            seen.setdefault(type(case.op), case)
    return list(seen.values())


@pytest.mark.parametrize("case", one_of_each_class(), ids=str)
def test_the_hot_form_is_bind(case, monkeypatch):
    case = Tried(case)
    expected = {}
    for setting in ("plain", "grad", "no_grad"):
        options = {"grad": SETTINGS[setting].get("grad", "")}
        with modes(no_grad=setting == "no_grad"):
            expected[setting] = run(
                lambda xs: bind(case.op, *xs), case.op, operands(case.arrays(), **options)
            )
    monkeypatch.setattr(type(case.op), "native_from", 0)
    monkeypatch.setattr(Tiering, "threshold", 0)
    table.clear()
    for _ in range(2):  # the first run compiles
        for setting, reference in expected.items():
            options = {"grad": SETTINGS[setting].get("grad", "")}
            for name, form in [("bind", lambda xs: bind(case.op, *xs)), *forms(case)]:
                xs = operands(case.arrays(), **options)
                with modes(no_grad=setting == "no_grad"):
                    same(run(form, case.op, xs), reference, f"{name}, {setting}", case.rtol)
    assert table.of(OPERATION)


def test_hot_operations_were_really_native(monkeypatch):
    monkeypatch.setattr(Tiering, "threshold", 0)
    native = 0
    for case in one_of_each_class()[:40]:
        with monkeypatch.context() as patch:
            patch.setattr(type(case.op), "native_from", 0)
            table.clear()
            bind(case.op, *operands(case.arrays()))
            native += any(entry.program is not None for entry in table.of(OPERATION).values())
    assert native > 30


ELEMENTWISE = [
    case for case in CASES
    if isinstance(case.op, Elementwise) and len(case.args) == 2
    and all(arg.kind == "real" for arg in case.args)
]  # fmt: skip


@pytest.mark.parametrize("reflected", [False, True])
@pytest.mark.parametrize("case", ELEMENTWISE, ids=str)
def test_a_literal_operand_is_bind_of_the_literal(case, reflected):
    for setting in SETTINGS:
        compare_with_literal(case, setting, reflected)


def compare_with_literal(case, setting, reflected):
    options = dict(SETTINGS[setting])
    mode = {name: options.pop(name) for name in ("recorded", "no_grad") if name in options}
    array = case.arrays()[1 if reflected else 0]
    lit = literal(1.5, array.dtype)

    def both(x):
        return (lit, x) if reflected else (x, lit)

    results = []
    for form in (
        lambda x: bind(case.op, *both(x)),
        lambda x: bind_scalar(case.op, x, lit, lit.array, reflected),
    ):
        (x,) = operands([array], **options)
        with modes(**mode):
            results.append(describe(case.op, both(x), form(x)))
    same(results[1], results[0], setting)


# Errors


class Fails(Elementwise):
    """An operation whose eval raises what a test asks for."""

    name = "fails_in_tests"
    accepts = "f"
    error = ValueError("no such number")

    def eval(self, *xs):
        raise self.error

    def partials(self, y, *xs):
        return (None,) * len(xs)


@pytest.mark.parametrize(
    "error, expected, message",
    [
        (ValueError("no such number"), LucidError, "fails_in_tests of .*: no such number"),
        (
            lucid.errors.IndexingError("index 3"),
            lucid.errors.IndexingError,
            r"^index 3   \[test_forms",
        ),
        (MemoryError("too much"), MemoryError, "too much"),
        (KeyboardInterrupt("stop"), KeyboardInterrupt, "stop"),
    ],
)
def test_every_form_raises_the_same_error(error, expected, message, monkeypatch):
    op, x = Fails(), lucid.ones(2)
    lit = literal(2.0, x.dtype)
    monkeypatch.setattr(Fails, "error", error)
    for native_from in (NEVER, 0):
        monkeypatch.setattr(Fails, "native_from", native_from)
        for form in (
            lambda: bind(op, x),
            lambda: bind_one(op, x),
            lambda: bind_pair(op, x, x),
            lambda: bind_scalar(op, x, lit, lit.array, False),
            lambda: bind(op, lit, x),
        ):
            with pytest.raises(expected, match=message):
                form()


# The places that make tensors and Nodes by hand


def slots_filled():
    """(place, kind, attributes) wherever a tensor or a Node is made without its __init__."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            made = {}
            for node in ast.walk(function):
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                    call = ast.unparse(node.value)
                    for kind, names in KINDS.items():
                        if any(call == name for name in names):
                            made[ast.unparse(node.targets[0])] = (kind, node.lineno)
            for variable, (kind, line) in made.items():
                attributes = {
                    target.attr
                    for node in ast.walk(function)
                    if isinstance(node, ast.Assign)
                    for targets in node.targets
                    for target in (targets.elts if isinstance(targets, ast.Tuple) else [targets])
                    if isinstance(target, ast.Attribute) and ast.unparse(target.value) == variable
                }
                yield f"{path.relative_to(PACKAGE)}:{line}", kind, attributes


KINDS = {
    "tensor": ["_new(_class)", "_new(tensor_class)", "new(tape.tensor_class)", "new(cls)",
               "object.__new__(type(x))"],
    "node": ["_new(Node)"],
}  # fmt: skip


def test_every_place_that_makes_a_tensor_or_a_node_fills_all_of_its_slots():
    slots = {
        "tensor": {*Traced.__slots__} - {"__weakref__", "writes"},
        "node": {*Node.__slots__} - {"__weakref__", "__dict__"},
    }
    places = list(slots_filled())
    assert len([kind for _, kind, _ in places if kind == "tensor"]) >= 6
    assert len([kind for _, kind, _ in places if kind == "node"]) >= 3
    for place, kind, attributes in places:
        assert slots[kind] <= attributes, f"{place} leaves {slots[kind] - attributes} unset"


# The line that an operation is recorded with


CALLS = {
    "x + x": lambda x: x + x,
    "x * 2": lambda x: x * 2.0,
    "-x": lambda x: -x,
    "exp": lambda x: lucid.exp(x),
    "x.exp()": lambda x: x.exp(),
    "relu": lambda x: lucid.relu(x),
    "x.relu()": lambda x: x.relu(),
    "mul": lambda x: lucid.mul(x, x),
    "x.mul(x)": lambda x: x.mul(x),
    "maximum": lambda x: x.maximum(x),
    "pow": lambda x: lucid.pow(x, 2.0),
    "softmax": lambda x: lucid.softmax(x, 0),
    "x.softmax()": lambda x: x.softmax(0),
    "gelu": lambda x: lucid.nn.functional.gelu(x),
    "linear": lambda x: lucid.nn.functional.linear(x, x),
    "sum": lambda x: lucid.sum(x),
    "x.sum()": lambda x: x.sum(),
    "x.sum(0)": lambda x: x.sum(0),
    "x.amax(0)": lambda x: x.amax(0),
    "x.max(0)": lambda x: x.max(0)[0],
    "median": lambda x: x.median(0)[0],
    "mean": lambda x: x.mean(1),
    "var": lambda x: x.var(),
    "logsumexp": lambda x: x.logsumexp(0),
    "cumsum": lambda x: x.cumsum(0),
    "clamp": lambda x: x.clamp(0.0, 1.0),
    "reshape": lambda x: x.reshape(-1),
    "x.T": lambda x: x.T,
    "t": lambda x: lucid.t(x),
    "mT": lambda x: x.mT,
    "transpose": lambda x: lucid.transpose(x, 0, 1),
    "x.transpose()": lambda x: x.transpose(0, 1),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "x[0]": lambda x: x[0],
    "x[1:]": lambda x: x[1:],
    "x[index]": lambda x: x[lucid.tensor([0])],
    "stack": lambda x: lucid.stack([x, x]),
    "cat": lambda x: lucid.cat([x, x]),
    "hstack": lambda x: lucid.hstack([x, x]),
    "split": lambda x: x.split(1)[1],
    "chunk": lambda x: lucid.chunk(x, 2)[1],
    "matmul": lambda x: x @ x,
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_an_operation_is_recorded_with_the_line_of_its_caller(name):
    f = CALLS[name]
    x = lucid.tensor(np.eye(2, dtype="float32"), requires_grad=True)
    for _ in range(6):  # the later calls of some are Regions
        y = (lambda: f(x))()
        assert as_source(y.node.source).code is f.__code__
