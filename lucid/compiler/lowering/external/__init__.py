"""Calls of external functions: ufunc loops and Numba functions."""
