"""The Tensor class: operators, methods, in-place methods, mutation, printing."""
