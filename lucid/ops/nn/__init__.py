"""Primitives of neural networks: convolution, max pooling, resampling, softmax."""
