"""export: a function and example arguments -> a stand-alone module.

The function is recorded as `jit` records it. Tensors that it closes over are stored beside the
module in an .npz file. The module's function takes the leaves of the arguments, and returns an
array, or a tuple of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lucid.compiler.jit.jitted import Jitted
from lucid.errors import ArgumentError, ExportError
from lucid.exporters.batch import batch_axes, free_files, resized
from lucid.func.derivatives import value_and_grad
from lucid.ir.graph import Graph
from lucid.ir.pytree import flatten
from lucid.ir.rewrite import dce
from lucid.ops.core.arguments import public_function
from lucid.tape.recording.trace import function_name, input_names

TARGETS = ("numpy", "numba", "c")


@dataclass(frozen=True)
class Recorded:
    """A recorded function: its Graph, names of its arguments, tensors that it closes over."""

    name: str
    graph: Graph
    arguments: list[str]
    constants: dict[str, np.ndarray]
    batch: tuple[str, int] | None = None  # the argument and the axis whose size is free


@dataclass(frozen=True)
class Exported:
    """The files of a stand-alone module, by name; `write(folder)` writes them."""

    name: str
    target: str
    files: dict[str, str]
    constants: dict[str, np.ndarray] = field(repr=False, default_factory=dict)

    @property
    def text(self) -> str:
        """The text of the Python module."""
        return self.files[f"{self.name}.py"]

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Write the files into a folder, and return the path of the Python module."""
        from lucid.saving.atomic import write_atomically

        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            write_atomically(target / name, partial(write_text, text))
        if self.constants:
            constants: Any = self.constants
            write_atomically(target / f"{self.name}.npz", lambda file: np.savez(file, **constants))
        return target / f"{self.name}.py"

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} ({len(text):,} bytes)" for name, text in self.files.items())
        return f"<exported {self.name} to {self.target}: {sizes}>"


def write_text(text: str, file: Any) -> None:
    file.write(text.encode())


@public_function()
def export(
    f: Callable[..., Any],
    *args: Any,
    target: str = "numpy",
    grad: Any = None,
    batch: int | Sequence[int | None] | None = None,
    name: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Exported:
    """Return a function as a stand-alone module, which runs without Lucid.

    target    "numpy": NumPy alone; "numba": its fused kernels under `@njit`; "c": a C99 file with
              the same kernels, a header and a ctypes loader
    grad      arguments, by index: the module returns the value and then their gradients
    batch     the axis of each argument that is the batch, whose size stays free; None for arguments
              without one
    name      the name of the module and of its function; by default that of `f`
    path      a folder to write it to

    All other shapes and dtypes are those of the arguments. The function must not write to tensors
    or branch on values.

    >>> import lucid
    >>> module = lucid.export(lambda x: (x * x).sum(), lucid.ones(3), name="square", grad=0)
    >>> print(module.text.partition("def square")[2])
    (x):
        with np.errstate(all="ignore"):
            x = _array(x, np.float32, (3,))
            v1 = x * x
            v2 = np.add.reduce(v1, (0,), np.float32)
            v3 = x + x
            return _results(v2, v3)
    <BLANKLINE>
    """
    if target not in TARGETS:
        raise ArgumentError(f"export: target={target!r}; choose one of {', '.join(TARGETS)}")
    chosen = f if grad is None else value_and_grad(f, argnums=grad)
    module = writer_of(target)
    title = name or function_name(f)
    recorded = record(chosen, args, title)
    if batch is None:
        files = module(recorded)
    else:
        axes = batch_axes(args, batch)
        recorded = freed(recorded, axes)

        def at_size(n: int) -> dict[str, str]:
            found = freed(record(chosen, resized(args, axes, n), title), axes)
            check_constants(recorded, found)
            return module(found)

        files = free_files(at_size)
    exported = Exported(recorded.name, target, files, recorded.constants)
    if path is not None:
        exported.write(path)
    return exported


def writer_of(target: str) -> Callable[[Recorded], dict[str, str]]:
    """The function that writes the files of a recorded function for a target."""
    if target == "c":
        from lucid.exporters.c_target import c_module

        return c_module
    if target == "numba":
        from lucid.exporters.numba_target import numba_module

        return lambda recorded: {f"{recorded.name}.py": numba_module(recorded)}
    from lucid.exporters.numpy_target import numpy_module

    return lambda recorded: {f"{recorded.name}.py": numpy_module(recorded)}


def freed(recorded: Recorded, axes: Sequence[int | None]) -> Recorded:
    """The same with the argument that tells the batch size."""
    found = [(name, axis) for name, axis in zip(recorded.arguments, axes) if axis is not None]
    return replace(recorded, batch=found[0])


def check_constants(one: Recorded, other: Recorded) -> None:
    """Raise if a tensor that the function closes over depends on the batch size."""
    for name, x in one.constants.items():
        y = other.constants.get(name)
        if (
            y is None
            or y.shape != x.shape
            or not np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")
        ):
            facts = f"the tensor {name}, which it closes over, depends on the batch size"
            raise ExportError(f"export of {one.name}: {facts}")


def record(f: Callable[..., Any], args: Any, name: str) -> Recorded:
    """Record a function on arguments, as a pure program."""
    jitted: Any = Jitted(f)
    path = jitted.path_for(args, {})
    if path.guards:
        lines = ", ".join(sorted({str(guard.source) for guard in path.guards}))
        raise ExportError(
            f"export of {name}: Python reads a value at {lines}; use where, cond or while_loop"
        )
    if path.n_state:
        raise ExportError(f"export of {name}: it writes to tensors; return the new values instead")
    leaves = flatten(args)[0]
    extra = path.arrays() or []
    given = unique([identifier(x) for x in input_names(f, args, {})])
    if len(given) != len(leaves):
        given = [f"x{i}" for i in range(len(leaves))]
    kept = [identifier(var.name) for var in path.graph.inputs[len(leaves) :]]
    names = unique([*given, *[x or f"c{i}" for i, x in enumerate(kept)]])
    constants = {n: np.asarray(x) for n, x in zip(names[len(leaves) :], extra, strict=True)}
    graph = path.graph
    graph = Graph(name, graph.inputs, graph.equations, graph.outputs[: path.n_outputs])
    arguments = names[: len(leaves)]
    return Recorded(identifier(name) or "f", dce(graph), arguments, constants)


def identifier(name: str) -> str:
    """A name as a valid Python and C identifier."""
    text = re.sub(r"\W+", "_", name).strip("_")
    return f"x{text}" if text[:1].isdigit() else text


def unique(names: list[str]) -> list[str]:
    """The names, made distinct from each other and from those of results (v0, v1, ...)."""
    out: list[str] = []
    for name in names:
        stem = name or "x"
        if re.fullmatch(r"v\d+|np|k\d+|batch_size", stem):
            stem += "_"
        found, k = stem, 1
        while found in out:
            found, k = f"{stem}_{k}", k + 1
        out.append(found)
    return out
