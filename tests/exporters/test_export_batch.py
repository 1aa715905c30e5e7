"""Exported modules whose batch size is free, in a process where Lucid cannot be imported."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, ExportError
from lucid.exporters.batch import batch_axes, expression, resized
from tests.exporters.test_export import arrays_of, close, ode, programs, run_alone, tensor


def pairs(x):
    """Kernel means of all pairs: sizes that grow with the square of the batch."""
    distance = ((x[:, None] - x[None]) ** 2).sum(-1)
    return lucid.exp(-distance).mean(1), x.var(0)


def halve(x):
    return lucid.func.while_loop(lambda s: s.max() > 1, lambda s: s * 0.5, x)


def batched_programs():
    fixed = programs()
    return {
        "mlp_step": (*fixed["mlp_step"], (None, 0, 0)),
        "gpt": (*fixed["gpt"], 0),
        "hessian": (*fixed["hessian"], (None, 0)),
        "ode": (ode, (tensor(6, 4), tensor(6, 4, seed=2)), 0),
        "pairs": (pairs, (tensor(5, 3),), 0),
        "halve": (halve, (9 * tensor(5, 3),), 0),
    }


@pytest.mark.parametrize("target", ["numpy", "numba", "c"])
def test_a_module_with_a_free_batch_size_runs_at_every_size(target, tmp_path):
    found, runs = batched_programs(), []
    if target == "numba":  # compiling kernels takes a second each
        found = {name: found[name] for name in ("mlp_step", "ode", "halve")}
    for name, (f, args, batch) in found.items():
        lucid.export(f, *args, target=target, batch=batch, name=name, path=tmp_path)
        for n in (2, 7, 64):
            given = resized(args, batch_axes(args, batch), n)
            np.savez(tmp_path / f"{name}{n}_in.npz", *arrays_of(given))
            runs.append((name, n, f, given))
    run_alone(tmp_path, [f"{name}:{n}" for name, n, _, _ in runs], target)
    for name, n, f, given in runs:
        got = np.load(tmp_path / f"{name}{n}_out.npz")
        for i, y in enumerate(arrays_of(f(*given))):
            close(got[f"arr_{i}"], y)


def test_a_module_checks_that_batches_agree_and_takes_one_example():
    module = lucid.export(lambda a, b: (a * b).mean(), tensor(4), tensor(4), batch=0, name="f")
    space = {}
    exec(module.text, space)
    assert "batch_size" in module.text
    assert space["f"](np.array([3.0]), np.array([2.0])) == 6
    with pytest.raises(ValueError, match="shape"):
        space["f"](np.ones(3), np.ones(4))


def test_numbers_become_laws_of_the_size_or_are_refused():
    sizes = (31, 37, 41, 43)
    law = lambda f: expression([repr(f(n)) for n in sizes], sizes)  # noqa: E731
    assert law(lambda n: 8 * n + 3) == "(8 * batch_size + 3)"
    assert law(lambda n: n) == "(batch_size)"
    assert law(lambda n: 4 * n * n) == "(4 * batch_size * batch_size)"
    assert law(lambda n: 1 / (n - 1)) == "(1.0 / (batch_size + -1.0))"
    assert law(lambda n: 0.1 / (8 * n)) == "(0.0125 / (batch_size + 0.0))"
    assert law(lambda n: float(np.float32(1 / n))) == "(1.0 / (batch_size + 0.0))"
    assert eval(law(lambda n: 2 / (n * n)), {}, {"batch_size": 10}) == pytest.approx(0.02)
    for f in (lambda n: n // 2, lambda n: n**0.5):
        with pytest.raises(ExportError, match="follow no simple law"):
            law(f)


def test_what_has_no_free_batch_size_says_why():
    x = tensor(4, 3)
    with pytest.raises(ArgumentError, match="batch names no axis"):
        lucid.export(lambda x: x, x, batch=(None,))
    with pytest.raises(ArgumentError, match="2 axes for 1 arguments"):
        lucid.export(lambda x: x, x, batch=(0, 0))
    with pytest.raises(ArgumentError, match="has no batch axis 2"):
        lucid.export(lambda x: x, x, batch=2)
    with pytest.raises(ExportError, match="other statements|no simple law"):
        lucid.export(lambda x: x * 2 if len(x) % 4 == 3 else x + 1, x, batch=0)
