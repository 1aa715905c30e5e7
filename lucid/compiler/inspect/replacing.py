"""The kernels of a jitted function, whose listings a user may replace by their own.

The Numba backend compiles the new text, its results are compared with those of the kernel it
replaces, and from then on the function runs it.
"""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lucid.compiler.backends import selection
from lucid.compiler.backends.selection import Backend, using
from lucid.compiler.compile import compile_graph
from lucid.compiler.inspect.stages import KernelText, kernels_of_graph
from lucid.compiler.plan.verified import RTOL
from lucid.errors import ArgumentError


@dataclass(frozen=True)
class Replacement:
    """How the results of a replaced kernel compare: for each output, its largest difference.

    Differences are relative to the largest element of the output.
    """

    label: str
    differences: tuple[float, ...]
    agrees: bool

    def __repr__(self) -> str:
        largest = max(self.differences, default=0.0)
        found = "the same to the bit" if not largest else f"largest difference {largest:.2g}"
        word = "agrees" if self.agrees else "differs"
        return f"<replaced kernel {self.label.partition('  [')[0]}: {word}, {found}>"


@dataclass(frozen=True, repr=False)
class CallKernel(KernelText):
    """A kernel of a jitted function for certain arguments."""

    jitted: Any = field(repr=False, default=None)
    args: Any = ()
    kwargs: Any = None

    def replace(self, text: str, force: bool = False) -> Replacement:
        """Replace the listing by a text of your own, which Numba compiles; compare the results.

        Text whose results differ by more than rounding is refused, unless `force` is true. The
        text is a function with the parameters of the listing; it may use `np`, `math` and every
        function of listings (`exp`, `maximum`, `where`, ...).

        >>> import lucid
        >>> f = lucid.jit(lambda x: (x * 2.0).sum(1))
        >>> x = lucid.ones(3, 4)
        >>> kernel, = f.kernels(x)
        >>> kernel.replace(kernel.listing.replace("v3 += ", "v3 = v3 + "))
        <replaced kernel mul sum: agrees, the same to the bit>
        """
        self.check(text)
        before = self.jitted.backend or selection.current()
        backend = Backend("numba", {**before.replaced, self.source.key: text})
        path = self.jitted.path_for(self.args, self.kwargs or {})
        arrays = self.arrays(path)
        old = compile_with(before, path)([x.copy() for x in arrays])
        new = compile_with(backend, path)([x.copy() for x in arrays])
        result = compare(self.label, new, old)
        if not result.agrees and not force:
            raise ArgumentError(f"replace: {result!r}; pass force=True to use it anyway")
        self.jitted.backend = backend
        self.jitted.forget()
        return result

    def edit(self, force: bool = False) -> Replacement:
        """Open the listing in $VISUAL or $EDITOR, and replace it by what is saved there."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not editor:
            raise ArgumentError("edit: set EDITOR, or use replace(text)")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "kernel.py"
            file.write_text(self.listing + "\n")
            subprocess.run([*shlex.split(editor), str(file)], check=True)
            return self.replace(file.read_text(), force)

    def check(self, text: str) -> None:
        """Raise an error if a text cannot replace the listing."""
        if not self.listing:
            raise ArgumentError(f"replace: {self.label} has no listing")
        if self.nest is not None and any(b.box for b in self.nest.buffers):
            facts = f"replace: {self.label} reads a buffer that covers a part of its domain"
            raise ArgumentError(f"{facts}; such a kernel cannot be replaced")
        wanted, given = (parameters(x) for x in (self.listing, text))
        if wanted != given:
            facts = f"replace: the parameters are ({', '.join(given)})"
            raise ArgumentError(f"{facts}; they must be ({', '.join(wanted)})")

    def arrays(self, path: Any) -> list[np.ndarray]:
        given = self.jitted.operands(self.args, self.kwargs or {})
        return [*[x.value for x in given], *(path.arrays() or ())]


def compile_with(backend: Backend, path: Any) -> Any:
    with using(backend):
        return compile_graph(path.graph)


def parameters(text: str) -> list[str]:
    """The names of the parameters of the one function that a text defines."""
    try:
        body = ast.parse(text).body
    except SyntaxError as error:
        raise ArgumentError(f"replace: {error}") from None
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef) or body[0].name != "kernel":
        raise ArgumentError("replace: the text must be one function `kernel`")
    return [parameter.arg for parameter in body[0].args.args]


def compare(label: str, new: Any, old: Any) -> Replacement:
    """How new results differ from old ones."""
    found, agrees = [], True
    for a, b in zip(new, old, strict=True):
        if a.dtype.kind not in "fc":
            found.append(float(np.count_nonzero(a != b)))
            agrees &= found[-1] == 0
            continue
        if np.array_equal(a, b, equal_nan=True):
            found.append(0.0)
            continue
        finite = np.abs(b)[np.isfinite(b)]
        size = float(finite.max()) if finite.size else 0.0
        with np.errstate(all="ignore"):
            gap = np.abs(a.astype(complex) - b.astype(complex))
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        worst = float(np.where(same, 0.0, gap).max()) / (size or 1.0)
        found.append(worst)
        agrees &= worst <= RTOL[np.dtype(a.real.dtype).name]
    return Replacement(label, tuple(found), bool(agrees))


def kernels_of_call(jitted: Any, args: Any, kwargs: Any) -> list[CallKernel]:
    """The kernels that a call with these arguments runs."""
    path = jitted.path_for(args, kwargs)
    with using(jitted.backend):
        found = kernels_of_graph(path.graph)
    return [CallKernel(**vars(k), jitted=jitted, args=args, kwargs=kwargs) for k in found]
