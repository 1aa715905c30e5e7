"""Run the test suite of HIPS autograd through lucid.compat.autograd.

    git clone https://github.com/HIPS/autograd
    python tests/ecosystem/run_hips_autograd.py autograd [arguments of pytest]

The suite's own checks (test_util, wrap_util) run on Lucid's make_vjp and make_jvp.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

OURS = (
    "core extend misc numpy numpy.linalg numpy.fft numpy.random scipy scipy.special scipy.stats "
    "scipy.linalg scipy.signal scipy.integrate"
).split()
ALIASES = {"tracer": "extend", "builtins": "", "differential_operators": "operators"}
THEIRS = ("util", "wrap_util", "test_util")


def install(checkout: Path) -> None:
    """Give Lucid's modules the names of autograd's, and load the suite's helpers on them."""
    package = importlib.import_module("lucid.compat.autograd")
    sys.modules["autograd"] = package
    for name in OURS:
        sys.modules[f"autograd.{name}"] = importlib.import_module(f"lucid.compat.autograd.{name}")
    stats = sys.modules["autograd.scipy.stats"]
    for name in dir(stats):
        found = sys.modules.get(f"lucid.compat.autograd.scipy.stats.{name}")
        if found is not None:
            sys.modules[f"autograd.scipy.stats.{name}"] = found
    for name, home in ALIASES.items():
        target = f"lucid.compat.autograd.{home}".rstrip(".")
        sys.modules[f"autograd.{name}"] = importlib.import_module(target)
    for name in THEIRS:
        path = checkout / "autograd" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"autograd.{name}", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[f"autograd.{name}"] = module
        spec.loader.exec_module(module)
        setattr(package, name, module)


if __name__ == "__main__":
    checkout = Path(sys.argv[1]).resolve()
    install(checkout)
    sys.exit(
        pytest.main(
            [
                "-q",
                "-c",
                "/dev/null",
                "-p",
                "no:cacheprovider",
                str(checkout / "tests"),
                *sys.argv[2:],
            ]
        )
    )
