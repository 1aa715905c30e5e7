"""Exported modules give what Lucid gives, in a process where Lucid cannot be imported."""

from __future__ import annotations

import subprocess
import sys

import mpmath
import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, ExportError
from lucid.ir.pytree import flatten
from lucid.nn import functional as F

RUNNER = """
import importlib, sys
import numpy as np
sys.modules["lucid"] = None  # an import of it fails
folder, names = sys.argv[1], sys.argv[2:]
sys.path.insert(0, folder)
for name in names:
    name, _, part = name.partition(":")  # a part has its own arguments
    given = np.load(f"{folder}/{name}{part}_in.npz")
    f = getattr(importlib.import_module(name), name)
    for _ in range(2):  # the second call must not depend on the first
        found = f(*[given[f"arr_{i}"] for i in range(len(given))])
    np.savez(f"{folder}/{name}{part}_out.npz", *(found if isinstance(found, tuple) else (found,)))
try:
    import lucid
except ImportError:
    print("alone", "numba" in sys.modules)
"""


def tensor(*shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return lucid.tensor(values.astype("float32"))


def mlp_step(params, x, y):
    """One step of gradient descent, and the loss before it."""

    def loss(params):
        h = F.gelu(x @ params["w1"] + params["b1"])
        return F.cross_entropy(h @ params["w2"] + params["b2"], y)

    value, grads = lucid.func.value_and_grad(loss)(params)
    return value, {k: p - 0.1 * grads[k] for k, p in params.items()}


def ode(y0, k):
    """Explicit Euler steps, with the sum at every time."""

    def step(y, t):
        y = y + 0.01 * (k * lucid.sin(y) - t * 1e-3)
        return y, y.sum()

    return lucid.func.scan(step, y0, lucid.arange(20).float())


def logistic(w, x):
    return lucid.log1p(lucid.exp(-(x @ w))).sum()


class GPT(lucid.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = lucid.nn.Embedding(11, 16)
        self.norm = lucid.nn.LayerNorm(16)
        self.qkv = lucid.nn.Linear(16, 48)
        self.mix = lucid.nn.Linear(16, 16)
        self.head = lucid.nn.Linear(16, 11)

    def forward(self, tokens):
        batch, length = tokens.shape
        x = self.embedding(tokens)
        q, k, v = self.qkv(self.norm(x)).reshape(batch, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
        mask = lucid.ones(length, length).tril().bool()
        scores = (q @ k.transpose(-1, -2)) / 8**0.5
        mixed = lucid.softmax(lucid.where(mask, scores, -float("inf")), -1) @ v
        x = x + self.mix(mixed.transpose(1, 2).reshape(batch, length, 16))
        return self.head(F.gelu(x, approximate="tanh"))


def programs():
    lucid.manual_seed(0)
    net = GPT().eval()
    params = {"w1": tensor(8, 16), "b1": tensor(16), "w2": tensor(16, 4), "b2": tensor(4)}
    return {
        "mlp_step": (mlp_step, (params, tensor(5, 8, seed=1), lucid.tensor([0, 1, 2, 3, 1]))),
        "gpt": (lambda tokens: net(tokens), (lucid.tensor([[1, 5, 10, 0], [3, 3, 2, 7]]),)),
        "ode": (ode, (tensor(4), tensor(4, seed=2))),
        "hessian": (lucid.func.hessian(logistic), (tensor(5), tensor(20, 5, seed=3))),
    }


def arrays_of(tree):
    return [np.asarray(x.detach().numpy()) for x in flatten(tree)[0]]


def run_alone(folder, names, target):
    command = [sys.executable, "-c", RUNNER, str(folder), *names]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["alone", str(target == "numba")]


def close(a, b, ulps=32):
    assert a.dtype == b.dtype and a.shape == b.shape
    size = np.abs(b).max() if b.size else 0.0
    np.testing.assert_array_less(np.abs(a - b), ulps * np.finfo("float32").eps * size + 1e-30)


@pytest.mark.parametrize("target", ["numpy", "numba", "c"])
def test_exported_programs_run_without_lucid_and_agree(target, tmp_path):
    found = programs()
    for name, (f, args) in found.items():
        module = lucid.export(f, *args, target=target, name=name, path=tmp_path)
        assert "import lucid" not in module.text
        np.savez(tmp_path / f"{name}_in.npz", *arrays_of(args))
    run_alone(tmp_path, found, target)
    for name, (f, args) in found.items():
        want, got = arrays_of(f(*args)), np.load(tmp_path / f"{name}_out.npz")
        assert len(got) == len(want)
        for i, y in enumerate(want):
            close(got[f"arr_{i}"], y)
    w, x = (y.numpy().astype("float64") for y in found["hessian"][1])
    s = 1 / (1 + np.exp(x @ w))
    by_hand = (x.T * (s * (1 - s))) @ x
    close(np.load(tmp_path / "hessian_out.npz")["arr_0"], by_hand.astype("float32"))


def load(module, folder, monkeypatch):
    path = module.write(folder)
    space = {"__file__": str(path), "__name__": module.name}
    exec(compile(path.read_text(), str(path), "exec"), space)
    return space[module.name]


def functions(x):
    y = lucid.abs(x) + 0.1
    return (
        lucid.exp(x), lucid.tanh(x), lucid.erf(x), lucid.lgamma(y), lucid.log(y),
        lucid.sin(x * 1e3), lucid.cos(x), lucid.sigmoid(x), lucid.expm1(x),
        lucid.erfinv(lucid.tanh(x)), y**1.7, lucid.atan2(x, y), lucid.digamma(y),
        lucid.special.ndtr(x),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_in_c_are_those_of_compiled_kernels_to_the_bit(dtype, tmp_path, monkeypatch):
    x = np.random.default_rng(0).standard_normal(300).astype(dtype) * 3
    module = lucid.export(functions, lucid.tensor(x), target="c", name="functions")
    compiled = lucid.jit(functions)
    compiled(lucid.tensor(x))
    got = load(module, tmp_path, monkeypatch)(x)
    for a, b in zip(got, compiled(lucid.tensor(x)), strict=True):
        np.testing.assert_array_equal(a, b.numpy())


EXACT = {
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_that_numpy_lacks_are_within_two_ulps(dtype, name, tmp_path, monkeypatch):
    """Of mpmath's values, on both sides of zero; SciPy's own tails are off by up to 240."""
    x = np.random.default_rng(0).standard_normal(100).astype(dtype) * 3
    f = getattr(lucid.special, name)
    got = load(lucid.export(f, lucid.tensor(x), name="f"), tmp_path, monkeypatch)(x)
    with mpmath.workdps(40):
        for found, at in zip(got, x, strict=True):
            exact = EXACT[name](mpmath.mpf(float(at)))
            error = abs((mpmath.mpf(float(found)) - exact) / exact)
            assert error < 2 * np.finfo(dtype).eps, (name, at)


@pytest.mark.parametrize("target", ["numpy", "numba", "c"])
def test_integers_booleans_and_indices_are_exact(target, tmp_path, monkeypatch):
    def f(x, i):
        y = lucid.where(x > 3, x * x, -x)
        return y[i], y // 3, (y % 5 == 1) & (x < 9), lucid.cat([x, y]), lucid.cumsum(x, 0)

    x, i = lucid.tensor([5, -7, 3, 100], dtype="int32"), lucid.tensor([0, -1, 2])
    run = load(lucid.export(f, x, i, target=target, name="f"), tmp_path, monkeypatch)
    for a, b in zip(run(x.numpy(), i.numpy()), f(x, i), strict=True):
        assert a.dtype == b.numpy().dtype
        np.testing.assert_array_equal(a, b.numpy())
    with pytest.raises(IndexError):
        run(x.numpy(), np.array([0, 4, 1]))
    with pytest.raises(ValueError, match="shape"):
        run(x.numpy()[:2], i.numpy())


def test_a_gradient_comes_after_the_value():
    module = lucid.export(lambda x: (x**3).sum(), lucid.ones(3), grad=0, name="cube")
    space = {}
    exec(module.text, space)
    value, gradient = space["cube"](np.array([1.0, 2.0, 3.0], "float32"))
    assert value == 36 and gradient.tolist() == [3.0, 12.0, 27.0]


def test_what_cannot_be_exported_says_why():
    x = lucid.ones(3)
    with pytest.raises(ExportError, match=r"Python reads a value at test_export.py:\d+"):
        lucid.export(lambda x: x * 2 if x.sum() > 0 else x, x)
    state = lucid.zeros(3)
    with pytest.raises(ExportError, match="writes to tensors"):
        lucid.export(lambda x: state.add_(x), x)
    with pytest.raises(ExportError, match=r"topk.*test_export.py:\d+.* has no C text"):
        lucid.export(lambda x: lucid.topk(x, 2)[0], x, target="c")
    with pytest.raises(ExportError, match=r"eigh.*test_export.py:\d+.* has no C text"):
        lucid.export(lambda x: lucid.linalg.eigh(x)[0], lucid.ones(3, 3), target="c")
    with pytest.raises(ExportError, match=r"fft.*test_export.py:\d+.* has no C text"):
        lucid.export(lambda x: lucid.fft.rfft(x).real, x, target="c")
    with pytest.raises(ExportError, match=r"gammainc.*test_export.py:\d+.* has no NumPy text"):
        lucid.export(lambda x: lucid.special.gammainc(x, x), x)
    with pytest.raises(ArgumentError, match="choose one of numpy, numba, c"):
        lucid.export(lambda x: x, x, target="onnx")


def test_tensors_that_are_closed_over_travel_in_a_file_beside_it(tmp_path, monkeypatch):
    w = tensor(3)
    module = lucid.export(lambda x: x * w, lucid.ones(3), name="f")
    assert sorted(module.constants) == ["w"] or len(module.constants) == 1
    run = load(module, tmp_path, monkeypatch)
    assert (tmp_path / "f.npz").exists()
    np.testing.assert_array_equal(run(np.full(3, 2.0)), 2 * w.numpy())
