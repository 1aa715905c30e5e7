"""Tests of lucid.numpy: NumPy's functions and its namespace on tensors."""
