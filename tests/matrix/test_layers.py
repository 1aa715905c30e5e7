"""Every layer with every keyword, in every setting, gives the numbers of its function.

The numbers themselves are held to PyTorch by tests/nn/parity.py and to NumPy by the rows of
nn.functional. By default one layer of every class is compiled; LUCID_TEST_ALL=1 compiles all.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any

import numpy as np
import pytest

import lucid
from lucid import nn
from tests.campaign.tiers import without_optimization
from tests.laws import assert_close
from tests.matrix.layers import RANDOM, constructor, constructors_of, functional, table
from tests.matrix.passed import is_another
from tests.matrix.test_matrix import ALL
from tests.nn.layer_table import Layer, arrays_of, flat, map_arrays

LAYERS = [pytest.param(made, id=f"{i}-{made.name}") for i, made in enumerate(table())]
every_layer = pytest.mark.parametrize("made", LAYERS)
FIRST = {p.values[0].name: p for p in reversed(LAYERS)}  # one layer of every class


def arrays_for(made: Layer, seed: int = 0) -> Any:
    """Inputs for a layer: other numbers for another seed, of the same kind."""
    rng = np.random.default_rng(seed)
    return map_arrays(
        lambda x: x * rng.uniform(0.8, 1.0) if x.dtype.kind == "f" else np.flip(x, 0).copy()
        if seed % 2 and made.name != "CTCLoss" and not made.name.startswith("MaxUnpool") else x,
        tuple([np_of(made, shape) for shape in made.inputs]),
    )  # fmt: skip


def np_of(made: Layer, shape: Any) -> Any:
    return map_arrays(np.asarray, arrays_of(shape))


def numbers(xs: Any) -> list[np.ndarray]:
    return [np.array(x.detach()) for x in flat(xs)]


def is_float(x: Any) -> bool:
    return isinstance(x, lucid.Tensor) and x.dtype.kind == "f"


class Run:
    """A layer, and what computes with it: itself, or its function."""

    def __init__(self, module: Any, made: Layer, function: Any = None) -> None:
        self.module, self.made, self.function = module, made, function
        self.options = map_arrays(lucid.tensor, made.options)

    def __call__(self, *inputs: Any) -> Any:
        lucid.manual_seed(1)
        if self.function is not None:
            return self.function(self.module, *inputs)
        return self.module(*inputs, **self.options)

    def state(self) -> list[np.ndarray]:
        return numbers(list(self.module.state_dict().values()))

    def results(self, inputs: Any) -> list[np.ndarray]:
        return [*numbers(self(*inputs)), *self.state()]

    def gradients(self, arrays: Any) -> list[np.ndarray]:
        """The results, and the gradients of inputs and parameters."""
        leaves = map_arrays(leaf, arrays)
        # in-place layers write what they are given
        result = flat(self(*map_tensors(lambda x: x * 1 if x.requires_grad else x, leaves)))
        total = sum([(y * weights(y)).sum() for y in result if y.requires_grad], lucid.tensor(0.0))
        if total.requires_grad:
            total.backward()
        slopes = [x.grad for x in [*flat(leaves), *self.module.parameters()] if is_float(x)]
        zeros = [np.zeros(1) if g is None else np.array(g) for g in slopes]
        return [*numbers(result), *self.state(), *zeros]


def map_tensors(f: Any, x: Any) -> Any:
    return tuple([map_tensors(f, y) for y in x]) if isinstance(x, tuple) else f(x)


def weights(y: Any) -> Any:
    return lucid.tensor(np.cos(np.arange(y.numel())).reshape(y.shape))


def leaf(x: np.ndarray) -> Any:
    return lucid.tensor(x, requires_grad=x.dtype.kind == "f")


def parameter(x: np.ndarray) -> Any:
    return nn.Parameter(lucid.tensor(x)) if x.dtype.kind == "f" else lucid.tensor(x)


def view(x: np.ndarray) -> Any:
    return lucid.tensor(np.stack([x, x, x], -1))[..., 1]


def same(found: list[Any], expected: list[Any], what: str, rtol: float = 1e-12) -> None:
    assert len(found) == len(expected), f"{what}: {len(found)} results, not {len(expected)}"
    for i, (a, e) in enumerate(zip(found, expected)):
        assert a.dtype == e.dtype, f"{what}: {a.dtype}, not {e.dtype}"
        assert_close(a, e, rtol, f"{what}, result {i}")


def start(made: Layer, make: Any = None, training: bool = True) -> Any:
    """The layer as it is before its first call; a lazy one has seen an input."""
    module = (make or constructor(made))()
    if made.name.startswith("Lazy"):
        module.eval()(*map_arrays(lucid.tensor, arrays_for(made)))
    return module.train(training)


@every_layer
def test_settings_and_functions_agree(made):
    """Eager settings, other ways to make the layer, and its function."""
    arrays = arrays_for(made)
    depends = ALL or made in RANDOM or any(True for _ in start(made).buffers())
    for training in (True, False) if depends else (True,):
        what = f"{made} in {'training' if training else 'evaluation'}"
        plain = map_arrays(lucid.tensor, arrays)
        expected = Run(start(made, training=training), made).results(plain)
        for name, make in (("leaf", leaf), ("parameter", parameter), ("view", view)):
            inputs = map_arrays(make, arrays)
            with lucid.set_grad_enabled(name != "leaf"):  # leaves under no_grad
                found = Run(start(made, training=training), made).results(inputs)
            same(found, expected, f"{name}: {what}")
        slopes = Run(start(made, training=training), made).gradients(arrays)
        same(slopes[: len(expected)], expected, f"requires_grad: {what}")
        for form, _, make in constructors_of(made):
            found = Run(start(made, make, training), made).gradients(arrays)
            same(found, slopes, f"{form}: {what}")
        copied = copy.deepcopy(start(made, training=training))
        given = any(k.startswith(("_weight", "custom")) for k in made.kwargs)
        if "dtype" in inspect.signature(type(copied)).parameters and not given:
            module = constructor(made, dtype="float32")()
            assert {p.dtype for p in module.parameters()} <= {np.dtype("float32")}, what
        same(Run(copied, made).gradients(arrays), slopes, f"deepcopy: {what}")
        function = functional(made)
        if function is not None:
            found = Run(start(made, training=training), made, function).gradients(arrays)
            same(found, slopes, f"function: {what}")


@pytest.mark.parametrize("made", LAYERS if ALL else FIRST.values())
def test_jit_agrees_on_every_call(made):
    """Outputs, gradients of a step, and the buffers that three calls leave."""
    eager, module = start(made), start(made)
    run, parameters = Run(module, made), list(module.parameters())

    @lucid.jit
    def step(*inputs: Any) -> Any:
        module.zero_grad()
        ys = flat(run(*inputs))
        sum([(y * weights(y)).sum() for y in ys if y.requires_grad], lucid.tensor(0.0)).backward()
        return ys, [p.grad for p in parameters if p.grad is not None]

    @lucid.jit
    def forward(*inputs: Any) -> Any:
        return flat(run(*inputs)), []

    for call in range(3):
        arrays = arrays_for(made, call)
        given = map_arrays(lucid.tensor, arrays)
        eager.zero_grad()
        ys = flat(Run(eager, made)(*map_arrays(lucid.tensor, arrays)))
        total = sum([(y * weights(y)).sum() for y in ys if y.requires_grad], lucid.tensor(0.0))
        tracked = total.requires_grad
        if tracked:
            total.backward()
        grads = [p.grad for p in eager.parameters() if p.grad is not None]
        with without_optimization():
            found, slopes = (step if tracked else forward)(*given)
        what = f"call {call + 1} of {made}"
        same(numbers(found), numbers(ys), what, 1e-9)
        same(numbers(slopes), numbers(grads), f"gradients of {what}", 1e-8)
        same(Run(module, made).state(), Run(eager, made).state(), f"buffers of {what}", 1e-9)


# Layers that vmap refuses: why.
UNMAPPED = {
    "Embedding(9, 4, max_norm=0.8, norm_type=1.0)": "the rows of an example are written",
    "EmbeddingBag(9, 4, max_norm=0.8, norm_type=1.0)": "the rows of an example are written",
    "FractionalMaxPool2d(2, 2)": "it draws in evaluation too",
}


@every_layer
def test_vmap_is_the_stack_of_a_loop(made):
    module = start(made, training=False)
    examples = [arrays_for(made, k) for k in range(2)]
    run = Run(module, made)
    each = [numbers(run(*map_arrays(lucid.tensor, arrays))) for arrays in examples]
    stacked = [lucid.tensor(np.stack(pair)) for pair in zip(*map(flat, examples))]

    def f(*tensors: Any) -> Any:
        rest = iter(tensors)
        return tuple(flat(run(*map_arrays(lambda _: next(rest), examples[0]))))

    try:
        found = lucid.func.vmap(f)(*stacked)
    except lucid.errors.LucidError as error:
        assert str(made) in UNMAPPED, f"{made}: {error}"
        return
    assert str(made) not in UNMAPPED, made
    same(numbers(found), [np.stack(pair) for pair in zip(*each)], f"vmap of {made}", 1e-9)


VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
# Parameters that no layer of the table passes: why.
PARAMETERS = {
    **{(f"ConvTranspose{n}d", "padding_mode"): "zeros is the only one" for n in (1, 2, 3)},
    ("Embedding", "_freeze"): "it is about gradients: the test below",
    ("LinearCrossEntropyLoss", "options"): "tests/nn/layers/test_adaptive_softmax.py",
    ("LinearCrossEntropyLoss", "out_features"): "it must stay empty",
    **dict.fromkeys(
        [("Module", "*"), ("ModuleDict", "*"), ("ModuleList", "*"), ("ParameterDict", "*"),
         ("ParameterList", "*")],
        "they hold others: tests/nn/test_module.py",
    ),
}  # fmt: skip


def test_every_parameter_of_every_layer_is_passed():
    passed: dict[str, set[str]] = {}
    for made in table():
        name = made.name.partition("+")[0]
        cls = getattr(nn, name)
        known = inspect.signature(cls)
        bound = known.bind(*made.args, **made.kwargs).arguments
        given = {k for k, x in bound.items() if is_another(x, known.parameters[k].default)}
        called = inspect.signature(cls.forward).bind(None, *made.inputs, **made.options)
        keywords = [k for _, keys, _ in constructors_of(made) for k in keys]
        passed.setdefault(name, set()).update(given, called.arguments, keywords)
    left = set()
    for name in nn.__all__:
        cls = getattr(nn, name)
        if isinstance(cls, type) and issubclass(cls, nn.Module):
            found = [inspect.signature(f).parameters.values() for f in (cls, cls.forward)]
            keys = {p.name for ps in found for p in ps if p.kind not in VARIADIC} - {"self"}
            left |= {(name, k) for k in keys - passed[name]} if name in passed else {(name, "*")}
    assert left == set(PARAMETERS)


def test_a_frozen_table_requires_no_gradient():
    assert not nn.Embedding(3, 2, _freeze=True).weight.requires_grad
    assert nn.Embedding(3, 2).weight.requires_grad
