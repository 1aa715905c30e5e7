"""Examples run in their small configuration; the same loops learn the same, eager and jitted."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lucid

FOLDER = Path(lucid.__file__).parent.parent / "examples"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("support", "tour"))


@pytest.fixture(autouse=True)
def examples_are_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


def example(name: str):
    return importlib.import_module(name)


# What the small configurations reach: (from, to).
REACHED = {
    "mlp_digits": (0.9, 1.0),
    "cnn_digits": (0.95, 1.0),
    "gpt": (2.0, 3.2),  # nats a letter
    "lstm": (0.0, 0.02),  # mean squared error of waves of variance 0.25
    "vae": (24.0, 28.5),  # nats an image
    "gan": (0.1, 1.0),  # points inside a cluster
    "pinn": (0.0, 0.5),  # relative error
    "neural_ode": (0.0, 1.0),  # distance of paths
    "maml": (0.0, 0.97),  # error after a step of adapting, as a share of the error before
    "private_gradients": (0.85, 1.0),
    "hessian_spectrum": (0.0, 1e-9),  # error of the largest eigenvalue by products alone
    "hmc": (0.0, 0.8),  # error of means and variances
    "scipy_minimize": (0.0, 1e-6),  # distance from the minimum
    "parallel_digits": (0.9, 1.0),
    "parallel_gpt": (2.0, 3.0),  # nats a letter
    "halo_exchange": (0.0, 0.2),  # relative error of the initial state
    "ensemble": (0.0, 0.8),  # disagreement inside the data, as a share of that outside
}


def test_every_example_has_a_figure_to_reach():
    assert sorted(REACHED) == NAMES


@pytest.mark.parametrize("name", REACHED)
def test_example_reaches_its_figure(name, tmp_path, capsys):
    least, most = REACHED[name]
    assert least <= example(name).main(["--quick", "--out", str(tmp_path)]) <= most
    assert capsys.readouterr().out
    for picture in tmp_path.iterdir():
        assert picture.read_bytes().startswith(b"\x89PNG")
    assert any(tmp_path.iterdir())


def gpt_losses(compiled: bool) -> list[float]:
    gpt = example("gpt")
    lucid.manual_seed(0)
    return gpt.train(gpt.GPT(length=16, width=16, layers=2), 12, 8, compiled)


def digits_losses(name: str, compiled: bool) -> list[float]:
    module = example(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "TRAIN_X", module.TRAIN_X.double())
        return module.train(1, compiled)[1]


CURVES = {
    "mlp_digits": lambda compiled: digits_losses("mlp_digits", compiled),
    "cnn_digits": lambda compiled: digits_losses("cnn_digits", compiled),
    "gpt": gpt_losses,
}


@pytest.mark.parametrize("name", CURVES)
def test_loss_curves_are_equal_eager_and_jitted(name):
    lucid.set_default_dtype(lucid.float64)  # of float32 the rounding grows from step to step
    eager, jitted = CURVES[name](False), CURVES[name](True)
    assert len(eager) >= 12 and eager[-1] < eager[0]
    np.testing.assert_allclose(jitted, eager, rtol=1e-9)


def test_the_tour_runs(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    command = [sys.executable, str(FOLDER / "tour.py"), "--out", str(tmp_path)]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert f"wrote {tmp_path / 'tour.png'}" in run.stdout and "What to try next" in run.stdout
    assert (tmp_path / "tour.png").read_bytes().startswith(b"\x89PNG")


def test_the_digits_are_those_of_the_set():
    support = example("support")
    x, y, held_x, held_y = support.digits()
    assert x.shape == (1437, 8, 8) and held_x.shape == (360, 8, 8)
    labels = np.concatenate([y.numpy(), held_y.numpy()])
    known = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]  # as its description counts them
    assert np.bincount(labels).tolist() == known
    assert 0 <= x.min() and x.max() == 1
