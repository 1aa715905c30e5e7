"""extend: the building blocks of primitives defined outside Lucid.

    Primitive, Elementwise, Linear, Bilinear, Constant    the base class and its kinds
    Type, bind                                            types, and how a function applies it
    as_tensor, promote, to_floating                       operands of public functions
    times, quiet                                          helpers for rules and for `eval`
    scalar, code                                          scalar code, which fuses in kernels
    NumbaCall, NativeCall                                 lowerings: native code without fusion
    numba_scalar                                          scalar functions for `@njit` code

docs/adding-a-primitive.md has an example of each.
"""

from lucid.public.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
