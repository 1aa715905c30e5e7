"""Whole programs on disk: the plan of a Graph, so that a warm process runs no pass of the compiler.

The key is the digest of the recorded Graph with its source lines, of the package's own files and of
what the cache of kernels depends on. The value is the code of the plan, with each address replaced
by what it refers to: a kernel in the cache of kernels, a routine of BLAS or LAPACK, a constant, a
dtype. A program with anything else in it (a function of Numba, a primitive from outside
the package, a part that NumPy runs) is not stored. Any problem with a file is a miss.
"""

from __future__ import annotations

import itertools
import marshal
import os
import struct
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import lucid.errors
from lucid.compiler.backends import selection
from lucid.compiler.plan.executable import Check, Executable, Segment
from lucid.compiler.plan.instructions import UNKNOWN, Address, Cell, Input, Output
from lucid.compiler.plan.layout import Image
from lucid.compiler.plan.plan import Plan
from lucid.compiler.runtime import cache
from lucid.compiler.runtime.loader import Library, LoadError
from lucid.ir.graph import Graph, Literal, Var
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.support.caches import new_cache, once
from lucid.support.digest import digest

VERSION = 2
PLAIN = 2  # the last version of marshal whose bytes depend on nothing but the values
_SECTIONS = struct.Struct("<QQQ")  # bytes of the description, of the code and of its relocations
_MISSES = (
    LoadError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    EOFError,
    MemoryError,
    struct.error,
)

_libraries: weakref.WeakValueDictionary[str, Library] = new_cache(
    f"{__name__}._libraries", weakref.WeakValueDictionary()
)  # loaded ones, by their keys in the cache of kernels


class NotStorable(Exception):
    """Raised for a program that another process could not load."""


def load(key: bytes, graph: Graph) -> Executable | None:
    """Return the program that is stored under a key, or None."""
    data = cache.get(key)
    if data is None:
        return None
    try:
        return _decode(data, graph)
    except _MISSES:
        return None


def store(key: bytes, program: Executable) -> None:
    """Store a program, if another process can load it."""
    try:
        data = _encode(program)
    except NotStorable:
        return
    cache.put(key, data)


# -- The key -------------------------------------------------------------------------------------


def program_key(
    graph: Graph, into: Mapping[int, int] | None, budget: int | None = None
) -> bytes | None:
    """Return the key of a program; None if it depends on more than its Graph."""
    backend = selection.program_key()
    if backend is None:
        return None
    chosen = f"program {VERSION} {backend} {sorted((into or {}).items())} {budget}\n"
    try:
        lines = [line.encode() for line in Description().lines(graph)]
    except NotStorable:
        return None
    return cache.key(digest(chosen.encode(), _package(), *lines))


class Description:
    """Writes Graphs as text that is equal for equal programs in every process."""

    def __init__(self) -> None:
        self.ops: dict[int, str] = {}
        self.sources: dict[Any, str] = {}

    def lines(self, graph: Graph) -> Iterator[str]:
        number: dict[Any, int] = {}
        for var in graph.inputs:
            yield f"{var.type}\n"
            number[var] = len(number)

        def atom(x: Any) -> str:
            return str(number[x]) if isinstance(x, Var) else self.value(x)

        for eqn in graph.equations:
            yield f"{self.op(eqn.op)} {' '.join(map(atom, eqn.inputs))} {self.source(eqn.source)}\n"
            for var in eqn.outputs:
                number[var] = len(number)
        yield f"return {' '.join(map(atom, graph.outputs))}\n"

    def op(self, op: Primitive) -> str:
        found = self.ops.get(id(op))
        if found is None:
            cls = type(op)
            if not cls.__module__.startswith("lucid."):
                raise NotStorable
            fields = [self.value(getattr(op, name)) for name in cls.__match_args__]  # type: ignore[attr-defined]
            found = self.ops[id(op)] = f"{cls.__module__}.{cls.__qualname__}({','.join(fields)})"
        return found

    def value(self, x: Any) -> str:
        """The text of a parameter; raises an error for one that is more than data."""
        if x is None or x.__class__ in (bool, int, float, complex, str):
            return repr(x)
        match x:
            case Literal():
                return repr(x)
            case tuple() | list():
                return f"({','.join(map(self.value, x))})"
            case Graph():
                return f"{{{''.join(self.lines(x))}}}"
            case np.dtype() | Type():
                return str(x)
            case Primitive():
                return self.op(x)
            case np.ndarray() | np.generic() if x.dtype.kind in "biufc":
                return f"{x.dtype.str}{x.shape}{digest(x.tobytes()).hex()}"
        raise NotStorable

    def source(self, source: Any) -> str:
        """The line of an equation: labels of instructions name it."""
        if source is None:
            return ""
        place = (getattr(source, "code", source), getattr(source, "offset", 0))
        found = self.sources.get(place)
        if found is None:
            found = self.sources[place] = str(source)
        return found


@once
def _package() -> bytes:
    """The digest of the package's files, by their sizes and times: a new compiler, new programs."""
    root = os.path.dirname(lucid.errors.__file__)
    files = sorted(line for part in ("compiler", "ir", "ops") for line in _files(root, part))
    return digest("\n".join(files).encode())


def _files(root: str, folder: str) -> Iterator[str]:
    """Yield name, size and time of the sources in a folder; by scandir, which takes 1 ms."""
    with os.scandir(os.path.join(root, folder)) as found:
        for entry in found:
            name = f"{folder}/{entry.name}"
            if entry.name.endswith((".py", ".ll")):
                status = entry.stat()
                yield f"{name} {status.st_size} {status.st_mtime_ns}"
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _files(root, name)


# -- The value -----------------------------------------------------------------------------------


def _encode(program: Executable) -> bytes:
    if program.plan is None:
        raise NotStorable
    image, (part,) = program.plan.image, program.parts
    origins: dict[tuple[str | int, ...], int] = {}
    moves = []
    for position, address in image.addresses:
        if address.origin[0] == UNKNOWN:
            raise NotStorable
        moves.append((position, origins.setdefault(address.origin, len(origins)), address.offset))
    graph = program.graph
    checks = [[check.error.__name__, check.message] for check in part.checks]  # type: ignore[union-attr]
    if any(getattr(lucid.errors, name, None) is None for name, _ in checks):
        raise NotStorable
    description = {
        "inputs": [[x.dtype.str, x.shape, x.writeable] for x in image.inputs],
        "outputs": [[y.dtype.str, y.shape, y.alias] for y in image.outputs],
        "arena": image.arena_bytes,
        "labels": image.labels,
        "traffic": image.traffic,
        "longest": image.longest,
        "own": image.own,
        "origins": list(origins),
        "constants": [[x.dtype.str, x.shape] for x in image.constants],
        "reads": [graph.inputs.index(x) for x in part.inputs],  # type: ignore[union-attr]
        "into": [
            [graph.outputs.index(y), graph.inputs.index(x)]
            for y, x in part.into.items()  # type: ignore[union-attr]
        ],
        "checks": checks,
    }
    text = marshal.dumps(description, PLAIN)  # json takes 1 ms to import
    words = image.words.copy()
    words[[position for position, _, _ in moves]] = 0
    code, relocations = words.tobytes(), np.array(moves, np.int64).tobytes()
    constants = b"".join(x.tobytes() for x in image.constants)
    sizes = _SECTIONS.pack(len(text), len(code), len(relocations))
    return b"".join([sizes, text, code, relocations, constants])


def _decode(data: bytes, graph: Graph) -> Executable:
    sizes = _SECTIONS.unpack_from(data)
    ends = np.cumsum([_SECTIONS.size, *sizes]).tolist()
    text, code, relocations = (data[a:b] for a, b in itertools.pairwise(ends))
    facts = marshal.loads(text)
    words = np.frombuffer(code, np.int64).copy()
    constants, at = [], ends[-1]
    for dtype, shape in facts["constants"]:
        made = np.frombuffer(data, dtype, int(np.prod(shape, dtype=int)), at).reshape(shape).copy()
        constants.append(made)
        at += made.nbytes
    outputs = [Output(Cell(), np.dtype(d), tuple(s), alias) for d, s, alias in facts["outputs"]]
    found = Origins(constants, [y.dtype for y in outputs])
    origins = [found.address(*origin) for origin in facts["origins"]]
    addresses = []
    for position, number, offset in np.frombuffer(relocations, np.int64).reshape(-1, 3).tolist():
        address = origins[number] + offset
        words[position] = address
        addresses.append((position, address))
    image = Image(
        words,
        facts["own"],
        addresses,
        [Input(Cell(), np.dtype(d), tuple(s), bool(w)) for d, s, w in facts["inputs"]],
        outputs,
        facts["arena"],
        facts["labels"],
        [(a, b) for a, b in facts["traffic"]],
        facts["longest"],
        constants,
        found.libraries,
    )
    part = Segment([], [graph.inputs[i] for i in facts["reads"]], graph.outputs)  # type: ignore[arg-type]
    part.plan = Plan(image)
    part.into = {graph.outputs[y]: graph.inputs[x] for y, x in facts["into"]}  # type: ignore[misc]
    part.checks = [Check(getattr(lucid.errors, name), message) for name, message in facts["checks"]]
    return Executable(graph, [part], {})


class Origins:
    """Finds in this process what a stored program has addresses of."""

    def __init__(self, constants: list[np.ndarray], dtypes: list[np.dtype]) -> None:
        self.constants = constants
        self.dtypes = {dtype.str: dtype for dtype in dtypes}
        self.libraries: list[object] = []

    def address(self, kind: str, *what: Any) -> Address:
        match kind, what:
            case "kernel", (key, name):
                value = self.library(key, name)[name]
            case "routine", (name,):
                from lucid.compiler.runtime.openblas import address

                value = address(name)
            case "constant", (number,):
                value = self.constants[number].ctypes.data
            case "dtype", (text,):
                value = id(self.dtypes[text])
            case _:
                raise ValueError(kind)
        return Address(value, kind, *what)

    def library(self, key: str, name: str) -> Library:
        library = _libraries.get(key)
        if library is None or name not in library.symbols:
            code = cache.get(bytes.fromhex(key))
            if code is None:
                raise KeyError(key)
            _libraries[key] = library = Library(code, (name,))
        self.libraries.append(library)
        return library
