"""The ports in examples/ports of programs for PyTorch and JAX run, and learn."""

import importlib.util
from pathlib import Path

import lucid

FOLDER = Path(lucid.__file__).parent.parent / "examples" / "ports"


def port(name):
    spec = importlib.util.spec_from_file_location(f"ports_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_makemore_learns_names_from_an_endless_sampler():
    losses = port("makemore").main(150)
    assert losses[0] > 2.5 and sum(losses[-20:]) / 20 < 1.2


def test_reinforce_learns_to_stay():
    early, late = port("reinforce").main()
    assert late > early + 3


def test_the_tangent_kernel_is_the_product_of_jacobians_and_predicts():
    error, gap = port("neural_tangent_kernel").main()
    assert error < 0.1 and gap < 1e-3
