"""Calls of functions from outside: ufunc loops and Numba functions."""
