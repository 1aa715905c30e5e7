"""Help around modules: clipping of gradients, parameters as a vector."""

from lucid.nn.utils import rnn as rnn
from lucid.nn.utils.clipping import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
    parameters_to_vector,
    vector_to_parameters,
)

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm",
    "parameters_to_vector", "vector_to_parameters",
]  # fmt: skip
