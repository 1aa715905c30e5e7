"""Random bad arguments to constructors, functions and the IR get an error of Lucid's own."""

from __future__ import annotations

import inspect
import random

import numpy as np
import pytest

import lucid
import lucid.distributions
import lucid.func
import lucid.nn.init
import lucid.utils.data
from lucid import autograd, ir, linalg, nn, optim
from lucid.errors import ArgumentError, DTypeError, LucidError, ShapeError
from tests.project.test_bad_input import POOL, V, X, complaint, shortened

ANYTHING = [
    *POOL, 0, 1, 2, -1, 0.5, -0.1, "sum", "mean", lucid.ones(4, 3), lucid.ones(2, 3, 4, 4),
    lucid.tensor([0, 1]), (2, 3), [1, 2], np.ones(3),
]  # fmt: skip
SPACES = {
    "nn": nn, "distributions": lucid.distributions, "optim": optim, "func": lucid.func,
    "lr_scheduler": optim.lr_scheduler, "utils.data": lucid.utils.data, "linalg": linalg,
    "nn.utils": nn.utils, "nn.init": nn.init, "autograd": autograd, "random": lucid.random,
}  # fmt: skip
SKIPPED = (
    "manual_seed", "seed", "set_rng_state", "clear_errors", "fork_rng", "backward",
    "set_grad_enabled", "set_detect_anomaly", "allow_mutation_on_saved_tensors", "set_state",
)  # fmt: skip


def callables() -> list[tuple[str, str]]:
    found = []
    for space, module in SPACES.items():
        for name in getattr(module, "__all__", None) or dir(module):
            x = getattr(module, name)
            ours = getattr(x, "__module__", None) or ""
            if name.startswith("_") or name in SKIPPED or not ours.startswith("lucid."):
                continue
            if isinstance(x, type) or inspect.isfunction(x):
                found.append((space, name))
    return found


def arguments(space: str, f, rng: np.random.Generator) -> tuple[list, dict]:
    args = [ANYTHING[i] for i in rng.integers(len(ANYTHING), size=int(rng.integers(0, 6)))]
    parameters = [lucid.ones(2, requires_grad=True)]
    if space == "optim" and rng.random() < 0.8:
        args[:1] = [parameters]
    if space == "lr_scheduler" and rng.random() < 0.8:
        args[:1] = [optim.SGD(parameters, lr=0.1)]
    kwargs = {}
    try:
        names = [p.name for p in inspect.signature(f).parameters.values() if p.kind in (1, 3)]
    except (TypeError, ValueError):
        names = []
    for name in names[len(args) :]:
        if rng.random() < 0.15:
            kwargs[name] = ANYTHING[int(rng.integers(len(ANYTHING)))]
    return args, kwargs


@pytest.mark.parametrize(("space", "name"), callables(), ids=lambda x: x)
def test_wrong_arguments_get_an_error_of_our_own(space, name, recwarn, pytestconfig):
    f = getattr(SPACES[space], name)
    rng = np.random.default_rng(
        sum(map(ord, space + name)) + pytestconfig.getoption("--first-seed")
    )
    complaints = []
    for _ in range(pytestconfig.getoption("--bad-calls")):
        args, kwargs = arguments(space, f, rng)
        found = complaint(f, args, kwargs)
        if found:
            given = [*map(shortened, args), *[f"{k}={shortened(x)}" for k, x in kwargs.items()]]
            complaints.append(f"{name}({', '.join(given)}): {found}")
    assert not complaints, "\n" + "\n".join(complaints)


# The text of Graphs


def texts() -> list[str]:
    x = lucid.tensor([[1.0, 2.0], [3.0, 4.0]])
    functions = [
        lambda x: (lucid.sin(x) * 2.0 + x.sum(1, keepdim=True)).mean(),
        lambda x: lucid.cat([x.T, x], 1).reshape(-1)[1:5:2],
        lambda x: lucid.func.scan(lambda c, a: (c + a.sum(), c * a), x.sum(), x)[1],
        lambda x: lucid.func.cond(x.sum() > 0, lambda x: x * 2, lambda x: x, x),
        lambda x: lucid.func.while_loop(lambda c: c.sum() < 10, lambda c: c * 2, x),
        lucid.func.grad(lambda x: (x**3).sum()),
    ]
    return [str(ir.trace(f)(x)) for f in functions]


WORDS = [
    "'a'", '"b"', "None", "-1", "1e999", "nan", "(", "]", "[", "%0", "%99", "f32[2", "f99[3]",
    "i64[]", "return", "graph", "add", "=", ":", ",", "0x", "1.5", "True", "{}", "{[]:1}",
    "sum[axes='x']", "reshape[shape=(-5,)]", "slice[starts=(1,)]", "matmul", "scan", "", "é", "\0",
    "lambda: 0", "__import__('os')", "'a':f32",
]  # fmt: skip


def damaged(text: str, rng: random.Random) -> str:
    """The text without an end, a line or a word, or with something else in its place."""
    kind, lines = rng.randrange(5), text.split("\n")
    if kind == 0:
        return text[: rng.randrange(len(text))]
    if kind == 1:
        i = rng.randrange(len(text))
        return text[:i] + rng.choice(WORDS) + text[i + rng.randrange(4) :]
    if kind == 2:
        lines.pop(rng.randrange(len(lines)))
        return "\n".join(lines)
    i = rng.randrange(len(lines))
    words = lines[i].split(" ")
    j = rng.randrange(len(words))
    words[j : j + (kind == 3)] = [rng.choice([*WORDS, *words])]
    lines[i] = " ".join(words)
    return "\n".join(lines)


def test_damaged_texts_of_graphs_are_refused_in_our_words():
    rng, good = random.Random(0), texts()
    refused = 0
    for _ in range(1500):
        text = damaged(rng.choice(good), rng)
        try:
            ir.verify(ir.parse(text))
        except LucidError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}\n{text}") from error
    assert refused > 500


@pytest.mark.parametrize("text", [None, 3, b"graph f():", [], object(), "", "graph"])
def test_what_is_no_text_of_a_graph_is_refused(text):
    with pytest.raises(LucidError):
        ir.parse(text)


# What would lose something


I = lucid.zeros(3, dtype="int64")  # noqa: E741
PLACES, FLOATS = lucid.tensor([0, 1, 2]), lucid.tensor([1.5, 2.5, 3.5])
WRITES = {
    "scatter": lambda x: lucid.scatter(I, 0, PLACES, x),
    "scatter_add": lambda x: lucid.scatter_add(I, 0, PLACES, x),
    "scatter_reduce": lambda x: lucid.scatter_reduce(I, 0, PLACES, x, "sum"),
    "index_add": lambda x: lucid.index_add(I, 0, PLACES, x),
    "index_copy": lambda x: lucid.index_copy(I, 0, PLACES, x),
    "index_put": lambda x: lucid.index_put(I, (PLACES,), x),
    "index_reduce": lambda x: lucid.index_reduce(I, 0, PLACES, x, "prod"),
    "slice_scatter": lambda x: lucid.slice_scatter(I, x),
    "masked_scatter": lambda x: lucid.masked_scatter(I, I == 0, x),
}


@pytest.mark.parametrize("name", WRITES)
def test_floats_are_not_written_among_integers(name):
    with pytest.raises(DTypeError, match=r"floating values|float32"):
        WRITES[name](FLOATS)
    assert WRITES[name](FLOATS.to("int64")).dtype == "int64"


def test_a_whole_number_may_be_a_float():
    assert lucid.masked_fill(I, I == 0, 2.0).tolist() == [2, 2, 2]
    assert lucid.scatter(I, 0, PLACES, 2.0).tolist() == [2, 2, 2]
    for call in (lucid.masked_fill, lambda x, m, v: lucid.scatter(x, 0, PLACES, v)):
        with pytest.raises(DTypeError, match="floating values"):
            call(I, I == 0, 1.5)


F = nn.functional
REFUSED = {
    "BatchNorm1d: eps=-1": lambda: nn.BatchNorm1d(3, eps=-1),
    "LayerNorm: eps=nan": lambda: nn.LayerNorm(3, eps=float("nan")),
    "CosineSimilarity: eps=-1": lambda: nn.CosineSimilarity(eps=-1),
    "batch_norm: eps=-1": lambda: F.batch_norm(X, None, None, training=True, eps=-1),
    "layer_norm: eps=-1": lambda: F.layer_norm(X, (3,), eps=-1),
    "normalize: eps=-1": lambda: F.normalize(X, eps=-1),
    "BatchNorm1d: momentum=2": lambda: nn.BatchNorm1d(3, momentum=2),
    "Linear: in_features=2.5 is not an integer": lambda: nn.Linear(2.5, 3),
    "Linear: in_features=True is not an integer": lambda: nn.Linear(True, 3),
    "Linear: bias='no' is not a bool": lambda: nn.Linear(2, 3, bias="no"),
    "Conv1d: stride 0": lambda: nn.Conv1d(1, 1, 1, stride=0),
    "Conv1d: kernel_size 0": lambda: nn.Conv1d(1, 1, 0),
    "Conv1d: padding -1": lambda: nn.Conv1d(1, 1, 1, padding=-1),
    "LSTM: num_layers=0": lambda: nn.LSTM(2, 3, num_layers=0),
    "TransformerEncoder: a Tensor is not a Module": lambda: nn.TransformerEncoder(V, 2),
    "cov: fweights must not be negative": lambda: lucid.cov(X, fweights=lucid.tensor([1, -1, 2])),
    "cov: aweights must not be negative": lambda: lucid.cov(X, aweights=lucid.tensor([1.0, -1, 2])),
    "trace: (2, 2, 2) is not a matrix": lambda: lucid.trace(lucid.ones(2, 2, 2)),
    "bernoulli: a probability is not between 0 and 1": lambda: lucid.bernoulli(lucid.tensor(1.5)),
    "normal: std is not between 0": lambda: lucid.normal(0.0, -1.0, (2,)),
    "full: 300 does not fit into int8": lambda: lucid.full((2,), 300, dtype="int8"),
    "full_like: -1 does not fit into uint8": lambda: lucid.full_like(V.to("uint8"), -1),
    "tensor_split: 10": lambda: lucid.array_split(X, 10**30),
    "hermite_polynomial_h: a degree exceeds 1000000": lambda: lucid.special.hermite_polynomial_h(
        X, np.array([10**17])
    ),
    "svd_lowrank: q=2, niter=10000000000": lambda: lucid.svd_lowrank(X, 2, 10**30),
    "spectral_norm: n_power_iterations=10": lambda: nn.utils.parametrizations.spectral_norm(
        nn.Linear(2, 2), n_power_iterations=10**9
    ),
    "trace of lambda: too many positional arguments": lambda: lucid.view(lambda x: x, X, X),
    "pad: unknown mode []": lambda: lucid.pad(X, (1, 1), []),
    "CyclicLR: step_size_up=0": lambda: optim.lr_scheduler.CyclicLR(
        optim.SGD([lucid.ones(2, requires_grad=True)], lr=1.0), 0.1, 1.0, step_size_up=0
    ),
    "nanmean: keepdim=array of": lambda: lucid.nanmean(X, True, np.array(["", ""])),
    "astype(f32[2,3], 'float32'": lambda: X.astype("float32", np.array(["", ""])),
    "trunc_normal_: std=0 is not positive": lambda: nn.init.trunc_normal_(X.clone(), std=0),
    "inference_mode: mode=": lambda: autograd.inference_mode(np.ones(3)),
    "trace of lambda: too many positional": lambda: lucid.func.eval_shape(lambda x: x, X, X),
    "StepLR: step_size=0": lambda: optim.lr_scheduler.StepLR(
        optim.SGD([lucid.ones(2, requires_grad=True)], lr=1.0), 0
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_settings_without_a_meaning_are_refused(words):
    with pytest.raises((ArgumentError, ShapeError, DTypeError)) as caught:
        REFUSED[words]()
    assert words in str(caught.value)
    assert "[test_bad_calls.py:" in str(caught.value)


def test_an_error_that_a_users_function_raises_stays_his():
    def broken(epoch):
        raise ValueError("mine")

    optimizer = optim.SGD([lucid.ones(2, requires_grad=True)], lr=1.0)
    with pytest.raises(ValueError, match="^mine$"):
        optim.lr_scheduler.LambdaLR(optimizer, broken)

    class Mine(nn.Linear):
        def __init__(self):
            super().__init__(2, 3)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="^'mine'$"):
        Mine()
