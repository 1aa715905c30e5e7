"""HIPS autograd's namespace: its operators on NumPy functions, with NumPy arrays in and out.

`from lucid.compat.autograd import grad` and `import lucid.compat.autograd.numpy as np` run
programs written for autograd. Numbers are float64, and gradients with respect to complex numbers
follow autograd's convention: the gradient of a holomorphic function is its derivative.

>>> import lucid.compat.autograd.numpy as np
>>> from lucid.compat.autograd import elementwise_grad, grad
>>> grad(np.tanh)(0.0)
np.float64(1.0)
>>> elementwise_grad(lambda x, y: x**2 * y, argnum=1)(np.array([1.0, 2.0]), np.ones(2))
array([1., 4.])
"""

from lucid.compat.autograd.extend import primitive
from lucid.compat.autograd.operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)

dict, isinstance, list, tuple, type = dict, isinstance, list, tuple, type

__all__ = [
    "checkpoint", "deriv", "dict", "elementwise_grad", "grad", "grad_and_aux", "grad_named",
    "hessian", "hessian_tensor_product", "hessian_vector_product", "holomorphic_grad", "isinstance",
    "jacobian", "list", "make_ggnvp", "make_hvp", "make_jvp", "make_vjp", "primitive",
    "tensor_jacobian_product", "tuple", "type", "value_and_grad", "vector_jacobian_product",
]  # fmt: skip
