"""Programs in the style of HIPS autograd and SciPy users reach what they are written to reach."""

import importlib
from pathlib import Path

import pytest

PORTS = Path(__file__).parents[2] / "examples" / "ports"
REACHED = {  # arguments of main, and the range of its result
    "gaussian_process": ({}, (0.0, 0.12)),  # error of the fit
    "black_box_variational_inference": ({"steps": 250}, (-0.4, 0.0)),  # the bound; 0 is perfect
    "bayesian_neural_network": ({"steps": 150}, (0.0, 0.35)),  # error of the mean prediction
    "adjoint_ode": ({"points": 12}, (0.0, 0.1)),  # relative error of the rates
}


@pytest.mark.parametrize("name", REACHED)
def test_the_port_reaches_its_mark(name, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(PORTS))
    arguments, (low, high) = REACHED[name]
    assert low <= importlib.import_module(name).main(**arguments) <= high
    assert capsys.readouterr().out
