"""LUCID_VERIFY=1: the first result of every compiled program is compared with the interpreter's.

Compiled code sums in another order and has its own `exp`, so floats differ in their last bits, and
a program may amplify that: a difference of nearly equal numbers, a comparison, an argmax. Where
results differ by more than rounding, the interpreter runs again with noise of the size of rounding
in every inexact operation: an element that this noise moves is not a compiler error. Everything
else is one, and integers and booleans must be equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lucid.compiler.plan.executable import Executable
from lucid.errors import MiscompiledError
from lucid.ir.graph import Equation, Graph, Literal
from lucid.ir.interpret import Program
from lucid.ops.higher_order.exactness import is_exact
from lucid.support.caches import new_cache
from lucid.tape.modes import local

RTOL = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-11}
NOISE = 4  # units in the last place
NOISY_RUNS = 12
MAX_MOVED = 16  # a result may differ by this many times what noise moves it

_verified: set[int] = new_cache(f"{__name__}._verified", set())  # hashes of verified programs


class UnverifiedExecutable(Executable):
    """An Executable that verifies its first result and becomes an ordinary one."""

    is_verified = False
    traced: Graph
    into: tuple[tuple[int, int], ...] = ()

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        given = [np.array(x) for x in inputs]  # the program may overwrite its inputs
        results = Executable.__call__(self, inputs)
        graph = self.traced
        wrong = difference(graph, given, results)
        if wrong and self.into:  # another thread may have written what it overwrites meanwhile
            own = [x.copy() for x in given]
            wrong = difference(graph, given, Executable.__call__(self, own))
        if wrong:
            raise MiscompiledError(
                f"LUCID_VERIFY: {graph.name}: compiled code and the interpreter disagree: {wrong}; "
                f"please report this program, and run it without jit until then:\n{graph}"
            )
        _verified.add(hash((graph, self.into)))
        self.__class__ = Executable  # type: ignore[assignment]
        return results


def verify_first_result(
    executable: Executable, traced: Graph, into: Mapping[int, int] | None
) -> Executable:
    """Make an Executable verify its first result, unless an equal program was verified before."""
    outputs = tuple(sorted((into or {}).items()))
    if hash((traced, outputs)) not in _verified:
        executable.__class__ = UnverifiedExecutable
        executable.traced = traced  # type: ignore[attr-defined]
        executable.into = outputs  # type: ignore[attr-defined]
    return executable


def difference(graph: Graph, inputs: Sequence[np.ndarray], got: Sequence[np.ndarray]) -> str:
    """Describe where results differ from the interpreter's; "" if they agree."""
    before, local.interpret = local.interpret, True
    try:
        with np.errstate(all="ignore"):
            return compare(graph, inputs, got)
    finally:
        local.interpret = before


def compare(graph: Graph, inputs: Sequence[np.ndarray], got: Sequence[np.ndarray]) -> str:
    """`difference`, in the modes of the interpreter."""
    want = Program(graph)(inputs)
    found = [(x.dtype, x.shape) for x in got], [(x.dtype, x.shape) for x in want]
    if found[0] != found[1]:
        return f"types {found[0]}, not {found[1]}"
    close = [is_close(a, b) for a, b in zip(got, want)]
    rng = np.random.default_rng(0)
    for _ in range(NOISY_RUNS):
        if all(part.all() for part in close):
            return ""
        moved = noisy_run(graph, inputs, rng)
        close = [c | is_within(a, b, m) for c, a, b, m in zip(close, got, want, moved)]
    for i, (part, a, b) in enumerate(zip(close, got, want)):
        if not part.all():
            places = np.argwhere(~part)
            place = tuple(places[0].tolist())
            where = f" of {part.size} elements, first at {list(place)}" if part.size > 1 else ""
            return f"output {i} at {len(places)}{where}: {a[place]}, not {b[place]}"
    return ""


def is_close(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a mask of the elements that are equal up to rounding."""
    if b.dtype.kind not in "fc":
        return np.asarray(a == b)
    finite = np.abs(b)[np.isfinite(b)]
    rtol = RTOL[b.real.dtype.name]
    atol = 0.1 * rtol * float(finite.max(initial=0.0))
    return np.asarray(np.isclose(a, b, rtol, atol, equal_nan=True))


def is_within(a: np.ndarray, b: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Return a mask of the elements of `a` that the noise which moves `b` to `moved` explains."""
    if b.dtype.kind not in "fc":
        return np.asarray(moved != b)
    wide = np.dtype("complex128" if b.dtype.kind == "c" else "float64")
    a, b, moved = (x.astype(wide) for x in (a, b, moved))
    inside = np.abs(a - b) <= MAX_MOVED * np.abs(moved - b)
    return np.asarray(inside | (np.isfinite(moved) != np.isfinite(b)))


def noisy_run(
    graph: Graph, inputs: Sequence[np.ndarray], rng: np.random.Generator
) -> list[np.ndarray]:
    """Interpret a Graph with relative noise in the operands and results of inexact ops."""
    env: dict[Any, Any] = dict(zip(graph.inputs, inputs))

    def read(x: Any) -> Any:
        return x.array if isinstance(x, Literal) else env[x]

    for eqn in graph.equations:
        operands = [read(x) for x in eqn.inputs]
        size = 0.0 if is_exact(eqn) else NOISE * max_terms(eqn) ** 0.5
        out = eqn.op.eval(*[add_noise(x, size, rng) for x in operands])
        results = out if isinstance(out, tuple) else (out,)
        env.update((var, add_noise(y, size, rng)) for var, y in zip(eqn.outputs, results))
    return [np.asarray(read(x)) for x in graph.outputs]


def max_terms(eqn: Equation) -> int:
    """An upper bound of the numbers summed for one result; rounding grows with its root."""
    if eqn.op.scalar:
        return 1
    return max([1, *[x.type.size for x in eqn.inputs]])


def add_noise(x: Any, size: float, rng: np.random.Generator) -> Any:
    """Return floats with relative noise of up to `size` units in the last place."""
    x = np.asarray(x)
    if not size or x.dtype.kind not in "fc":
        return x
    noise = rng.uniform(-size, size, x.shape) * float(np.finfo(x.dtype).eps)
    return (x * (1 + noise)).astype(x.dtype)
