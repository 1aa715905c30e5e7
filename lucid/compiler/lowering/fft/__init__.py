"""Fourier transform kernels."""
