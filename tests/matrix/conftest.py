"""Settings of all calls in this folder."""

from __future__ import annotations

import warnings

import pytest

import lucid


@pytest.fixture(autouse=True)
def in_double_precision():
    """Integers become the floats that they become in NumPy."""
    lucid.set_default_dtype("float64")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        yield
