"""Lucid: eager tensors, JAX-style transforms and a compiler over one small IR that a person can read."""

from lucid.tensor import Tensor, tensor
