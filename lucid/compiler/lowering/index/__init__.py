"""Scatter, concatenate, sort and cumulative kernels."""
