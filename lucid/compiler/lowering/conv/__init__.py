"""Convolution, pooling and resampling kernels, forward and backward."""
