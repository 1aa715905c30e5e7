"""Lucid: eager tensors, JAX-style transforms and a compiler, over one small readable IR.

A gradient, in two styles:

>>> import lucid
>>> x = lucid.tensor([1.0, 2.0], requires_grad=True)
>>> (x**2).sum().backward()
>>> x.grad
Tensor([2., 4.])
>>> lucid.func.grad(lambda x: (x**2).sum())(lucid.tensor([1.0, 2.0]))
Tensor([2., 4.])

The program behind it, and the same compiled to one native call:

>>> print((x**2).sum().graph().stripped())
graph tensor(x0: f32[2]):
    %0: f32[2] = pow x0 2.0
    %1: f32[]  = sum[axes=(0,)] %0
    return %1
>>> lucid.jit(lambda x: (x**2).sum())(lucid.tensor([3.0, 4.0]))
Tensor(25.)

Where things are:

    lucid.tensor, lucid.ones ...    tensors, and functions of them under PyTorch's names
    lucid.autograd, x.backward()    gradients of eager programs
    lucid.func                      grad, vjp, jvp, vmap, jacobian, hessian; cond, scan, while_loop
    lucid.jit, lucid.profile        compile a function, and see where its time goes
    lucid.nn, lucid.optim           networks, optimizers, schedules; lucid.utils.data: loaders
    lucid.linalg, fft, special      further functions; lucid.random, lucid.distributions
    lucid.numpy                     NumPy's names, signatures and defaults, for tensors
    lucid.save, lucid.load          safetensors files
    lucid.tree                      nested containers: map, leaves, registration of classes
    lucid.ir                        programs as data: trace, print, parse, verify and run them
    lucid.extend                    building blocks of primitives defined outside Lucid
    lucid.errors, lucid.testing     the errors that Lucid raises; assert_close

help(lucid.Tensor), help(lucid.jit) and help(lucid.func.grad) are good places to continue.
"""

from lucid.support.garbage import gc_paused as _gc_paused

with _gc_paused(imports=True):
    from lucid.compiler.jit import hot_programs as _hot
    from lucid.public.lazy import attach as _attach
    from lucid.tensors import tensor as _tensor  # noqa: F401  operations create tensors of its class

__version__ = "0.1.0"

_hot.install()

_find, __dir__, __all__ = _attach(
    __name__,
    "autograd",
    "distributions",
    "extend",
    "errors",
    "fft",
    "func",
    "ir",
    "linalg",
    "nn",
    "numpy",
    "optim",
    "random",
    "signal",
    "special",
    "testing",
    "tree",
    "utils",
)


def __getattr__(name: str) -> object:
    """Import a public name or module when it is first used."""
    try:
        return _find(name)
    except AttributeError as error:
        if name in ("cuda", "device"):
            error.args = (f"{error}; all tensors are on the CPU, so omit devices",)
        raise
