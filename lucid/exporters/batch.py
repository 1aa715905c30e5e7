"""A free batch size: a module for every size, from the texts of modules for a few sizes.

The function is recorded at four batch sizes. The texts must be equal but for numbers, and each
number must be a polynomial of the size, or a quotient such as 1 / n, that fits all four; it becomes
an expression of `batch_size`. So the module computes at each size what `export` writes for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, ExportError
from lucid.ir.pytree import flatten, unflatten
from lucid.ops.core.promote import as_tensor

SIZES = ((31, 37, 41, 43), (53, 59, 61, 67), (101, 103, 107, 109))
NUMBER = re.compile(r"(?<![\w.])(0x[0-9a-f]\.[0-9a-f]+p[+-]\d+|\d+\.?\d*(?:e[+-]?\d+)?)(?![\w.])")
NAME = "batch_size"


def batch_axes(args: Sequence[Any], batch: Any) -> list[int | None]:
    """The axis of every leaf of the arguments that is the batch, or None."""
    given = batch if isinstance(batch, (tuple, list)) else [batch] * len(args)
    if len(given) != len(args):
        raise ArgumentError(f"export: batch has {len(given)} axes for {len(args)} arguments")
    axes = [axis for axis, arg in zip(given, args) for _ in flatten(arg)[0]]
    if all(axis is None for axis in axes):
        raise ArgumentError("export: batch names no axis; give an axis to one argument")
    return axes


def resized(args: Sequence[Any], axes: Sequence[int | None], n: int) -> Any:
    """The arguments with the batch repeated or cut to n examples."""
    leaves, tree = flatten(tuple(args))
    out = []
    for x, axis in zip(leaves, axes):
        if axis is None:
            out.append(x)
            continue
        value = np.asarray(getattr(x, "value", x))
        if not -value.ndim <= axis < value.ndim or not value.shape[axis]:
            raise ArgumentError(
                f"export: an argument of shape {value.shape} has no batch axis {axis}"
            )
        out.append(as_tensor(np.take(value, np.arange(n) % value.shape[axis], axis)))
    return unflatten(tree, out)


def free_files(write: Callable[[int], dict[str, str]]) -> dict[str, str]:
    """The files of a module with a free batch size; `write` gives those for one size."""
    problem = ""
    for sizes in SIZES:
        texts = [write(n) for n in sizes]
        try:
            return {name: with_batch(name, [t[name] for t in texts], sizes) for name in texts[0]}
        except ExportError as error:
            problem = str(error)
    raise ExportError(problem)


def with_batch(name: str, texts: Sequence[str], sizes: Sequence[int]) -> str:
    """One text of several, in which numbers that differ are expressions of `batch_size`."""
    parts = [NUMBER.split(text) for text in texts]
    if len({len(p) for p in parts}) > 1 or len({tuple(p[::2]) for p in parts}) > 1:
        raise ExportError(
            f"export: {name}: other batch sizes need other statements; export one size"
        )
    out = [
        found[0] if len(set(found)) == 1 else expression(found, sizes) if i % 2 else found[0]
        for i, found in enumerate(zip(*parts))
    ]
    text = "".join(out)
    if name.endswith((".c", ".h")):
        text = re.sub(rf"U?INT64_C\((\([^()]*\b{NAME}\b[^()]*\))\)", r"\1", text)
        return text if name.endswith(".h") else declare_in_c(text)
    return declare_in_python(text)


def expression(found: Sequence[str], sizes: Sequence[int]) -> str:
    """The text of a number as a function of the size."""
    if all(text.isdigit() for text in found):
        values = [int(text) for text in found]
        terms = polynomial(sizes, [Fraction(v) for v in values])
        if terms is not None and all(c.denominator == 1 for c in terms):
            return f"({polynomial_text([int(c) for c in terms])})"
    else:
        numbers = [float.fromhex(t) if t.startswith("0x") else float(t) for t in found]
        for text in quotients(sizes, numbers):
            if all(fits(text, n, v, numbers) for n, v in zip(sizes, numbers)):
                return f"({text})"
    raise ExportError(f"export: {', '.join(found)} at batch sizes {sizes} follow no simple law")


def polynomial(sizes: Sequence[int], values: Sequence[Fraction]) -> list[Fraction] | None:
    """The coefficients (1, n, n²) of the polynomial through all points, or None."""
    (a, b, c), (x, y, z) = sizes[:3], values[:3]
    slope, other = (y - x) / (b - a), (z - y) / (c - b)
    two = (other - slope) / (c - a)
    one = slope - two * (a + b)
    zero = x - one * a - two * a * a
    if any(zero + one * n + two * n * n != v for n, v in zip(sizes, values)):
        return None
    return [zero, one, two]


def polynomial_text(terms: Sequence[Any]) -> str:
    zero, one, two = terms
    parts = [f"{two} * {NAME} * {NAME}"] * bool(two) + [f"{one} * {NAME}"] * bool(one)
    text = " + ".join([*parts, *[str(zero)] * bool(zero)]) or "0"
    return NAME if text == f"1 * {NAME}" else text


def quotients(sizes: Sequence[int], values: Sequence[float]) -> Iterator[str]:
    """Expressions that numbers may be: k / (n + c), a n + c, a n² + b n + c, and its inverse."""
    (a, b), (x, y) = sizes[:2], values[:2]
    if x != y:
        shift = round((y * b - x * a) / (x - y))
        yield f"{nice(x * (a + shift))!r} / ({NAME} + {float(shift)!r})"
        slope = nice((y - x) / (b - a))
        yield f"{slope!r} * {NAME} + {nice(x - slope * a)!r}"
    terms = polynomial(sizes, [Fraction(v) for v in values])
    if terms is not None:
        yield polynomial_text([float(c) for c in terms])
    if all(values):
        inverse = [Fraction(1 / v).limit_denominator(10_000) for v in values]
        terms = polynomial(sizes, inverse)
        if terms is not None:
            yield f"1.0 / ({polynomial_text([float(c) for c in terms])})"


def nice(x: float) -> float:
    """The simplest number next to x."""
    return float(f"{x:.6g}") if abs(float(f"{x:.6g}") - x) <= 1e-6 * abs(x) else float(f"{x:.14g}")


def fits(text: str, n: int, value: float, all_values: Sequence[float]) -> bool:
    narrow = all(float(np.float32(v)) == v for v in all_values)
    eps = float(np.finfo(np.float32 if narrow else np.float64).eps)
    found = eval(text, {"__builtins__": {}}, {NAME: n})  # arithmetic that this module wrote
    return abs(found - value) <= 2 * eps * abs(value)


def declare_in_python(text: str) -> str:
    """The module's text, in which inner functions read the batch size of the running call."""
    parts = re.split(r"(?m)^(?=def |@njit)", text)
    for i, part in enumerate(parts):
        known = re.search(rf"\b{NAME} = ", part) or NAME in part.partition("\n")[0]
        if known or not re.search(rf"\b{NAME}\b", part):
            continue
        if part.startswith("@njit") or (part.startswith("def kernel") and "@njit" in parts[i - 1]):
            raise ExportError("export: a kernel depends on the batch size; export one size")
        head, _, body = part.partition("\n")
        parts[i] = f"{head}\n    {NAME} = _call.{NAME}\n{body}"
    return "".join(parts)


def declare_in_c(text: str) -> str:
    """The C text, in which functions read the batch size of the running call."""
    parts = re.split(r"(?m)^(?=static void (?:kernel|graph)\d+\()", text)
    for i, part in enumerate(parts[1:], 1):
        function, brace, rest = part.partition("\n}")
        if re.search(rf"\b{NAME}\b", function):
            head, _, body = function.partition("\n")
            parts[i] = f"{head}\n    const int64_t {NAME} = current_batch;\n{body}{brace}{rest}"
    return "".join(parts)
