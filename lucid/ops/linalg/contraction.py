"""Contraction: sums of products. matmul for the common case, einsum for all others."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.primitive import HEAVY, Primitive
from lucid.ir.types import Type, broadcast_shapes
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import Bilinear, align_batch_axes, conjugate, sum_to
from lucid.ops.core.promote import as_tensor, promote
from lucid.ops.shape.movement import Broadcast, Transpose
from lucid.public.declare import public
from lucid.support.caches import cached_property, memoize
from lucid.tape.bind import bind
from lucid.tape.fast_bind import bind_pair
from lucid.tape.node import Traced

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"  # names of axes

matrix_product = quiet(np.matmul)


class Matmul(Bilinear):
    """The product of matrices in the last two axes; the other axes broadcast.

    A vector is a row on the left and a column on the right, and the result lacks that axis.
    """

    native_from = HEAVY
    numpy_calls = 1
    lowering = "lucid.compiler.lowering.matmul:MatmulLowering"
    empty = 0
    decomposition = "lucid.compiler.passes.expand.decompose:integer_matmul"
    complex_rule = "lucid.compiler.passes.expand.lower_complex:product"
    operand_layout = "matrix"

    def infer(self, x: Type, y: Type) -> Type:
        if x.dtype != y.dtype:
            raise DTypeError(f"matmul: operands of dtypes {x.dtype} and {y.dtype}; cast one first")
        if not x.shape or not y.shape:
            raise ShapeError(f"matmul: {x.shape} @ {y.shape}: a 0-d operand; use * to scale")
        inner = y.shape[-2 if y.ndim > 1 else -1]
        if x.shape[-1] != inner:
            facts = f"inner sizes {x.shape[-1]} and {inner} differ"
            raise ShapeError(f"matmul: {x.shape} @ {y.shape}: {facts}")
        try:
            outer = broadcast_shapes(x.shape[:-2], y.shape[:-2])
        except ShapeError as error:
            raise ShapeError(f"matmul: {x.shape} @ {y.shape}: {error}") from None
        return Type(x.dtype, outer + x.shape[-2:-1] + (y.shape[-1:] if y.ndim > 1 else ()))

    def eval(self, x: np.ndarray, y: np.ndarray) -> Any:
        if x.ndim > 2 and y.ndim == 2 and x.flags.c_contiguous and x.size:
            # one product is up to 8 times faster
            rows = matrix_product(x.reshape(-1, x.shape[-1]), y)
            return rows.reshape(*x.shape[:-1], y.shape[1])
        return matrix_product(x, y)

    def left(self, ct: Any, x: Any, y: Any) -> Any:
        if x.ndim > 1 and y.ndim > 1:
            return sum_to(product(ct, adjoint_matrix(y)), x.shape)
        rows, columns = vectors_to_matrices(x.shape, y)
        ct = ct.reshape(matrix_shape(ct, x, y))
        return sum_to(product(ct, adjoint_matrix(columns)), rows).reshape(x.shape)

    def right(self, ct: Any, x: Any, y: Any) -> Any:
        if x.ndim > 2 and y.ndim == 2:
            rows = math.prod(x.shape[:-1])
            x, ct = x.reshape(rows, x.shape[-1]), ct.reshape(rows, ct.shape[-1])
        if x.ndim > 1 and y.ndim > 1:
            return sum_to(product(adjoint_matrix(x), ct), y.shape)
        ct = ct.reshape(matrix_shape(ct, x, y))
        if x.ndim == 1:
            x = x.reshape(1, x.shape[0])
        columns = (y.shape[0], 1) if y.ndim == 1 else y.shape
        return sum_to(product(adjoint_matrix(x), ct), columns).reshape(y.shape)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, y: Any) -> Any:
        ndim_x, ndim_y = x.ndim - batched[0], y.ndim - batched[1]
        if not batched[1] and ndim_y <= 2:
            return bind(self, x, y)
        shape = batched_shape(n, batched, x, y)
        if ndim_x == 1:
            x = x.reshape(*x.shape[:-1], 1, x.shape[-1])
        if ndim_y == 1:
            y = y.reshape(*y.shape, 1)
        out = bind(self, *align_batch_axes(batched, (x, y)))
        return out if out.shape == shape else out.reshape(shape)


def vectors_to_matrices(left: tuple[int, ...], y: Any) -> tuple[tuple[int, ...], Any]:
    """Return the shape of the left operand and the right operand, with vectors as matrices."""
    rows = (1, *left) if len(left) == 1 else left
    return rows, y.reshape(y.shape[0], 1) if y.ndim == 1 else y


def matrix_shape(ct: Any, x: Any, y: Any) -> tuple[int, ...]:
    """Return the shape of `ct` with the axes that vector operands removed."""
    outer = ct.shape[: ct.ndim - (x.ndim > 1) - (y.ndim > 1)]
    return (*outer, x.shape[-2] if x.ndim > 1 else 1, y.shape[-1] if y.ndim > 1 else 1)


def batched_shape(n: int, batched: tuple[bool, ...], x: Any, y: Any) -> tuple[int, ...]:
    types = [Type(a.dtype, a.shape[b:]) for a, b in zip((x, y), batched)]
    return (n, *MATMUL.infer(*types).shape)


def adjoint_matrix(x: Any) -> Any:
    return conjugate(bind(Transpose((*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)), x))


def product(x: Any, y: Any) -> Any:
    return bind(MATMUL, x, y)


MATMUL = Matmul()


class Einsum(Primitive):
    """Products of operands by named axes, summed over the names missing from the result.

    A name repeated in an operand reads a diagonal. A name repeated in the result writes one, with
    zeros elsewhere. So the adjoint of an einsum is an einsum.
    """

    equation: str
    saves = "x"
    native_from = HEAVY
    empty = 0
    decomposition = "lucid.compiler.passes.expand.decompose:einsum"

    @cached_property
    def terms(self) -> tuple[list[str], str]:
        """The names of each operand and those of the result."""
        inputs, _, out = self.equation.partition("->")
        return inputs.split(","), out

    def sizes(self, *xs: Any) -> dict[str, int]:
        inputs, out = self.terms
        if len(inputs) != len(xs):
            raise ShapeError(f"einsum: '{self.equation}' for {len(xs)} operands")
        sizes: dict[str, tuple[int, int]] = {}
        for i, (term, x) in enumerate(zip(inputs, xs)):
            if len(term) != x.ndim:
                raise ShapeError(f"einsum: '{term}' in '{self.equation}' for operand of {x.shape}")
            for name, n in zip(term, x.shape):
                known, where = sizes.setdefault(name, (n, i))
                if known != n:
                    facts = f"{name} is {known} in operand {where} and {n} in operand {i}"
                    raise ShapeError(f"einsum: '{self.equation}': {facts}")
        unknown = [name for name in out if name not in sizes]
        if unknown:
            raise ShapeError(f"einsum: '{self.equation}': no operand has {unknown[0]}")
        return {name: n for name, (n, _) in sizes.items()}

    def infer(self, *xs: Type) -> Type:
        for x in xs:
            if x.dtype != xs[0].dtype:
                raise DTypeError(f"einsum: dtypes {xs[0].dtype} and {x.dtype}; cast one first")
        sizes = self.sizes(*xs)
        return Type(xs[0].dtype, tuple(sizes[name] for name in self.terms[1]))

    def eval(self, *xs: np.ndarray) -> np.ndarray:
        inputs, out = self.terms
        from lucid.ops.linalg.einsum_path import contract

        y = contract(inputs, list(xs), out)
        return y.copy() if len(xs) == 1 and np.may_share_memory(y, xs[0]) else y

    def jvp(self, ts: tuple[Any, ...], y: Any, *xs: Any) -> Any:
        total = None
        for i, t in enumerate(ts):
            if t is not None:
                term = bind(self, *xs[:i], t, *xs[i + 1 :])
                total = term if total is None else total + term
        return total

    def vjp(self, ct: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        return tuple(self.adjoint(i, ct, *xs) for i in range(len(xs)))

    def adjoint(self, i: int, ct: Any, *xs: Any) -> Any:
        """Return the cotangent of operand i, broadcast along names that only it has."""
        inputs, out = self.terms
        term = inputs[i]
        names = "".join(dict.fromkeys(term))
        others = [*inputs[:i], *inputs[i + 1 :]]
        reached = "".join(name for name in names if name in out or any(name in o for o in others))
        rest = [conjugate(x) for j, x in enumerate(xs) if j != i]
        grad = bind_einsum([out, *others], reached, ct, *rest)
        if reached != names:
            sizes = dict(zip(term, xs[i].shape))
            shape = tuple(sizes[name] for name in names)
            grad = bind(Broadcast(shape, tuple(map(names.index, reached))), grad)
        return grad if names == term else bind_einsum([names], term, grad)

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> Any:
        inputs, out = self.terms
        fresh = next(letter for letter in LETTERS if letter not in self.equation)
        terms = [fresh + term if b else term for term, b in zip(inputs, batched)]
        return bind_einsum(terms, fresh + out, *xs)


def bind_einsum(inputs: Any, out: str, *xs: Any) -> Any:
    """Bind an Einsum with the names a, b, c, ... in order of appearance, or just a transpose."""
    op = canonical_einsum(tuple(inputs), out)
    return xs[0] if op is None else bind(op, *xs)


@memoize(maxsize=4096)
def canonical_einsum(inputs: tuple[str, ...], out: str) -> Einsum | Transpose | None:
    if len(inputs) == 1 and len(set(out)) == len(out) and sorted(inputs[0]) == sorted(out):
        return None if inputs[0] == out else Transpose(tuple(map(inputs[0].index, out)))
    names: dict[str, str] = {}
    for name in "".join(inputs):
        names.setdefault(name, LETTERS[len(names)])
    table = str.maketrans(names)
    return Einsum(f"{','.join(inputs)}->{out}".translate(table))


@public("lucid", "Tensor", "linalg", numpy="matmul")
def matmul(input: Any, other: Any) -> Any:
    """The matrix product `input @ other`; axes before the last two broadcast.

    >>> import lucid
    >>> lucid.matmul(lucid.tensor([[1.0, 2.0], [3.0, 4.0]]), lucid.tensor([1.0, 1.0]))
    Tensor([3., 7.])
    """
    if isinstance(input, Traced) and isinstance(other, Traced):
        a, b = input.raw, other.raw
        if a is not None and b is not None and a.dtype is b.dtype:
            return bind_pair(MATMUL, input, other)
    return bind(MATMUL, *promote(as_tensor(input), as_tensor(other)))


@public()
def einsum(equation: Any, *operands: Any) -> Any:
    """The Einstein summation convention as in NumPy, with ellipsis and implicit output.

    Operands may also be given with lists of axis numbers: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.

    >>> import lucid
    >>> lucid.einsum("ij,ij->i", lucid.ones(2, 3), lucid.ones(2, 3))
    Tensor([3., 3.])
    """
    if operands and isinstance(equation, Traced):
        equation, *operands = with_equation((equation, *operands))  # type: ignore[assignment]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not isinstance(equation, str) or not operands:
        raise ShapeError("einsum: give an equation such as 'ij,jk->ik', then operands")
    xs = list(operands)
    if not all([isinstance(x, Traced) and x.dtype is xs[0].dtype for x in xs]):
        xs = promote(*[as_tensor(x) for x in xs])
    terms, out, shapes = parse_for_shapes(equation, tuple([x.shape for x in xs]))
    xs = [x if x.shape == shape else x.reshape(shape) for x, shape in zip(xs, shapes)]
    return bind_einsum(terms, out, *xs)


def with_equation(operands: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments of `einsum(a, [0, 1], b, [1, 2], [0, 2])` with an equation."""
    *pairs, last = operands if len(operands) % 2 else (*operands, None)

    def text(axes: Any) -> str:
        if not isinstance(axes, (list, tuple, range)) or any([
            i is not Ellipsis and (not isinstance(i, (int, np.integer)) or not 0 <= i < 52)
            for i in axes
        ]):  # fmt: skip
            facts = f"{axes!r} is not a list of axis numbers from 0 to 51"
            raise ShapeError(f"einsum: {facts}; or give an equation such as 'ij,jk->ik' first")
        return "".join(["..." if i is Ellipsis else LETTERS[i] for i in axes])

    terms = ",".join([text(axes) for axes in pairs[1::2]])
    return (terms if last is None else f"{terms}->{text(last)}", *pairs[::2])


@memoize(maxsize=4096)
def parse_for_shapes(equation: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[Any, str, Any]:
    """Return the names of operands and result, and the shapes without axes that broadcast."""
    terms, out = parse_equation(equation, [len(shape) for shape in shapes])
    names, kept = squeeze_broadcast_axes(terms, shapes)
    return names, out, kept


def parse_equation(equation: str, ndims: list[int]) -> tuple[list[str], str]:
    """Return the names of every operand and of the result, without ellipsis."""
    text = equation.replace(" ", "").replace("...", ".")
    left, arrow, out = text.partition("->")
    terms = left.split(",")
    wrong = re.search(r"[^a-zA-Z.,]", left) or re.search(r"[^a-zA-Z.]", out)
    if wrong or any(term.count(".") > 1 for term in [*terms, out]):
        raise ShapeError(f"einsum: '{equation}' is not an equation like 'ij,jk->ik'")
    if len(terms) != len(ndims):
        raise ShapeError(f"einsum: '{equation}': {len(terms)} terms for {len(ndims)} operands")
    spare = [letter for letter in LETTERS if letter not in text]
    extra = [ndim - len(term) + 1 for term, ndim in zip(terms, ndims) if "." in term]
    widest = "".join(spare[: max(extra, default=0)])
    for i, (term, ndim) in enumerate(zip(terms, ndims)):
        if "." in term and ndim >= len(term) - 1:
            terms[i] = term.replace(".", widest[len(widest) - (ndim - len(term) + 1) :])
        if len(terms[i]) != ndim:
            raise ShapeError(f"einsum: '{equation}': '{term}' does not name {ndim} axes")
    if arrow:
        return terms, out.replace(".", widest)
    named = [name for name in sorted(set(left)) if name.isalpha() and left.count(name) == 1]
    return terms, widest + "".join(named)


def squeeze_broadcast_axes(terms: list[str], shapes: Any) -> tuple[Any, Any]:
    """Remove axes of size 1 whose name has more elements in another operand."""
    most: dict[str, int] = {}
    for term, shape in zip(terms, shapes):
        for name, n in zip(term, shape):
            most[name] = n if n != 1 else most.get(name, 1)
    kept = [
        [(name, n) for name, n in zip(term, shape) if n != 1 or most[name] == 1]
        for term, shape in zip(terms, shapes)
    ]
    names = tuple("".join(name for name, _ in row) for row in kept)
    return names, tuple(tuple(n for _, n in row) for row in kept)
