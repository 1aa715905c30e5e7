"""Kinds of primitives: each derives its rules from the one formula that a primitive defines.

    Elementwise   partials(y, *xs)       one partial derivative per operand; operands broadcast
    Linear        adjoint(ct, x, *rest)  linear in the first operand
    Bilinear      left, right            linear in each of two operands

A zero tangent or cotangent stays zero whatever it is multiplied by (`Scale`), so that an inf or nan
in the branch that `where` does not take produces no nan in the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.facts import Box
from lucid.ir.graph import Literal
from lucid.ir.primitive import Primitive
from lucid.ir.types import SHORT_NAMES, Type, broadcast_shapes
from lucid.ops.core.errstate import quiet
from lucid.public.declare import public
from lucid.tape.bind import bind

KIND_NAMES = {"b": "bool", "i": "integer", "u": "unsigned integer", "f": "floating", "c": "complex"}
BOOL = np.dtype("bool")


QUICK, SLOW = 1 << 17, 1 << 13  # `native_from` of NumPy functions and of compositions of them


@public("extend")
class Elementwise(Primitive, abstract=True):
    """A scalar function applied to every element of operands that broadcast.

    numpy        the NumPy function
    scalar       the scalar function of kernels, which lets the operation fuse with others
    accepts      accepted dtypes: letters of np.dtype.kind
    result       "same" as the operands, "bool", or "real" (the real counterpart of complex)
    ufunc        the ufunc that computes it, whose inner loop compiled programs call where there is
                 no scalar code; by default `numpy`
    output       the index of the ufunc's result, for ufuncs with several
    """

    numpy: ClassVar[Callable[..., Any]]
    ufunc: ClassVar[Any] = None
    output: ClassVar[int] = 0
    lowering = "lucid.compiler.lowering.external.ufunc_calls:UfuncLowering"
    accepts: ClassVar[str] = "fc"
    result: ClassVar[str] = "same"
    native_from: ClassVar[int] = QUICK

    def infer(self, *xs: Type) -> Type:
        dtype = xs[0].dtype
        for x in xs:
            if x.dtype.kind not in self.accepts:
                wanted = ", ".join(KIND_NAMES[k] for k in self.accepts)
                raise DTypeError(
                    f"{self.name}: operand of dtype {x.dtype}; it takes {wanted} dtypes"
                )
            if x.dtype != dtype:
                raise DTypeError(
                    f"{self.name}: operands of dtypes {dtype} and {x.dtype}; cast one first"
                )
        return Type(self.result_dtype(dtype), self.broadcast(*xs))

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        if self.result == "bool":
            return BOOL
        if self.result == "real" and dtype.kind == "c":
            return np.dtype("float32" if dtype.itemsize == 8 else "float64")
        return dtype

    def broadcast(self, *xs: Type) -> tuple[int, ...]:
        try:
            return broadcast_shapes(*[x.shape for x in xs])
        except ShapeError as error:
            raise ShapeError(f"{self.name}: {error}") from None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.always_differentiable = cls.differentiable and cls.result != "bool"
        if "eval" not in cls.__dict__ and "numpy" in cls.__dict__:
            cls.eval = staticmethod(cls.numpy)  # type: ignore[method-assign]
            function = getattr(cls.numpy, "__wrapped__", cls.numpy)
            if "ufunc" not in cls.__dict__ and isinstance(function, np.ufunc):
                cls.ufunc = function
        elif "eval" in cls.__dict__ and "native_from" not in cls.__dict__:
            cls.native_from = min(cls.native_from, SLOW)

    def arguments(self, *xs: Any) -> tuple[Any, ...]:
        """Return the arguments of the ufunc: the operands and constant parameters."""
        return xs

    def has_window(self, eqn: Any) -> bool:
        return bool(self.scalar)

    def make_window(self, sinker: Any, eqn: Any, box: Box) -> Any:
        window = sinker.make(self, *[sinker.operand_window(x, box) for x in eqn.inputs])
        return sinker.broadcast(window, tuple([n for _, n in box]))

    def partials(self, y: Any, *xs: Any) -> tuple[Any, ...]:
        """Return the partial derivative for each operand: a tensor, a number, or None for zero.

        Literal operands are passed as Python numbers; their own partials are ignored.
        """
        raise NotImplementedError(f"{self.name} has no partials")

    def jvp(self, ts: tuple[Any, ...], y: Any, *xs: Any) -> Any:
        total = None
        for t, partial in zip(ts, self.partials(y, *unwrap_literals(xs))):
            if t is not None and partial is not None:
                term = times(t, partial)
                total = term if total is None else total + term
        return total if total is None or total.shape == y.shape else total.expand(y.shape)

    def vjp(self, ct: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        return tuple(
            None
            if partial is None or x.__class__ is Literal
            else sum_to(times(ct, conjugate(partial)), x.shape)
            for partial, x in zip(self.partials(y, *unwrap_literals(xs)), xs)
        )

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> Any:
        return bind(self, *align_batch_axes(batched, xs))


def unwrap_literals(xs: tuple[Any, ...]) -> list[Any]:
    """Return the operands with Literals replaced by their Python numbers."""
    return [x.value if x.__class__ is Literal else x for x in xs]


def align_batch_axes(batched: tuple[bool, ...], xs: tuple[Any, ...]) -> list[Any]:
    """Reshape operands so that the batch axis stays in front when the rest broadcasts."""
    ndim = max(x.ndim - b for b, x in zip(batched, xs))
    out = []
    for b, x in zip(batched, xs):
        missing = ndim - (x.ndim - 1)
        if b and missing:
            x = x.reshape(x.shape[0], *[1] * missing, *x.shape[1:])
        out.append(x)
    return out


_multiply = quiet(np.multiply)


class Scale(Elementwise):
    """`t * p`, except that where t is zero the result is zero even if p is inf or nan."""

    scalar = "scale"
    exact = True
    accepts = "fc"
    saves = "x"
    complex_rule = "lucid.compiler.passes.expand.lower_complex:scaled"

    def eval(self, t: np.ndarray, p: np.ndarray) -> Any:
        y = _multiply(t, p)
        flat = y.reshape(-1)
        check = np.vdot(flat, flat)
        if check != check:  # there is a nan: perhaps from 0 * inf
            y = np.where(np.equal(t, 0), y.dtype.type(0), y)
        return y

    def partials(self, y: Any, t: Any, p: Any) -> tuple[Any, ...]:
        return p, t


SCALE = Scale()


@public("extend")
def times(t: Any, partial: Any) -> Any:
    """Return a tangent or cotangent times a partial derivative; zero times inf is zero."""
    if isinstance(partial, (int, float, complex)):
        if not (math.isfinite(partial.real) and math.isfinite(partial.imag)):
            return bind(SCALE, t, Literal(t.dtype.type(partial).item(), t.dtype))
        return t if partial == 1 else -t if partial == -1 else t * partial
    return bind(SCALE, t, partial)


def conjugate(partial: Any) -> Any:
    """Return the conjugate of a tensor or a Python number."""
    if isinstance(partial, (int, float, complex)):
        return partial.conjugate()
    if partial.dtype.kind != "c":
        return partial
    from lucid.ops.elementwise.complexes import conj

    return conj(partial)


def sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Sum `x` over the axes along which `shape` was broadcast: the adjoint of broadcasting."""
    if x.shape == shape:
        return x
    extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(
        i + extra for i, n in enumerate(shape) if n == 1 and x.shape[i + extra] != 1
    )
    if axes:
        x = x.sum(dim=axes)
    return x if x.shape == shape else x.reshape(shape)


@public("extend")
class Linear(Primitive, abstract=True):
    """Linear in the first operand; further operands (such as indices) have no derivative."""

    saves = ""

    def adjoint(self, ct: Any, x: Any, *rest: Any) -> Any:
        """Return the cotangent of the first operand; only the type of `x` may be used."""
        raise NotImplementedError(f"{self.name} has no adjoint")

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any, *rest: Any) -> Any:
        return None if ts[0] is None else bind(self, ts[0], *rest)

    def vjp(self, ct: Any, y: Any, x: Any, *rest: Any) -> tuple[Any, ...]:
        return (self.adjoint(ct, x, *rest), *[None] * len(rest))


@public("extend")
class Bilinear(Primitive, abstract=True):
    """Linear in each of two operands: the product rule gives both modes."""

    saves = "x"

    def left(self, ct: Any, x: Any, y: Any) -> Any:
        """Return the cotangent of the first operand, from the second and the type of the first."""
        raise NotImplementedError(f"{self.name} has no left adjoint")

    def right(self, ct: Any, x: Any, y: Any) -> Any:
        """Return the cotangent of the second operand, from the first and the type of the second."""
        raise NotImplementedError(f"{self.name} has no right adjoint")

    def jvp(self, ts: tuple[Any, ...], out: Any, x: Any, y: Any) -> Any:
        first = None if ts[0] is None else bind(self, ts[0], y)
        second = None if ts[1] is None else bind(self, x, ts[1])
        return first if second is None else second if first is None else first + second

    def vjp(self, ct: Any, out: Any, x: Any, y: Any) -> tuple[Any, ...]:
        return self.left(ct, x, y), self.right(ct, x, y)


@public("extend")
class Constant(Primitive, abstract=True):
    """Not differentiable: comparisons, indices, random bits."""

    differentiable = False
    saves = ""


def dtype_name(dtype: np.dtype) -> str:
    return SHORT_NAMES[dtype]
