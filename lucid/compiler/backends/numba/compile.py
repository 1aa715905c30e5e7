"""Structures in, a request for their kernels out: the text is lowered by Numba, then linked.

The function that Numba makes of a listing is called by an entry that reads the words of a plan; it
is inlined there. Optimizing, loading and the disk cache are those of the LLVM backend, and code is
freed with the last plan that uses it: Numba keeps nothing of it.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Hashable, Mapping
from importlib.metadata import version
from typing import Any

from lucid.compiler.kernels import emit as emitter
from lucid.compiler.kernels import scalars
from lucid.compiler.kernels.listing import Lister, function_name, structure_listing
from lucid.compiler.kernels.nest import GENERAL, Structure
from lucid.compiler.kernels.scalar_code import LLVM
from lucid.compiler.runtime.native_kernel import Request
from lucid.ir.types import DTYPES
from lucid.support.caches import once

VERSION = 1


def request(nests: Mapping[str, Structure], replaced: Mapping[Hashable, str]) -> Request:
    """Request kernels by name, as one module; `replaced` has texts of users by structure key."""
    texts = {name: replaced.get(s.key, "") for name, s in nests.items()}
    digest = hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()
    key = f"numba {versions()} {' '.join(nests)} {digest}"
    foreign = any(texts.values())  # what a user's text calls is not part of its key
    source = lambda: modules(nests, texts)  # noqa: E731
    return Request(tuple(nests), source, None if foreign else key.encode())


@once
def versions() -> str:
    """What a listing's code depends on. Numba is not imported: a cached program does without."""
    return f"{VERSION} {emitter.VERSION} {scalars.VERSION} {version('numba')}"


def modules(nests: Mapping[str, Structure], texts: Mapping[str, str]) -> tuple[str, ...]:
    """LLVM modules that define the kernels by name, to be linked in this order."""
    from numba.core.compiler_lock import global_compiler_lock

    from lucid.compiler.backends.numba.functions import collecting

    entries, bodies = [], []
    with global_compiler_lock, collecting() as definitions:
        for name, structure in nests.items():
            entry, found = lower(name, structure, texts[name])
            entries.append(entry)
            bodies += found
    return (*entries, *dict.fromkeys(bodies), *definitions.modules())


def lower(name: str, structure: Structure, text: str = "") -> tuple[str, list[str]]:
    """The LLVM text of a kernel's entry, and the modules of the function that it calls."""
    from numba import types
    from numba.core import compiler

    from lucid.compiler.backends.numba import buffers, loops

    context, typing = contexts()
    shapes = buffer_classes(structure)
    numbers = sorted((v.param, v.dtype) for v in structure.values if v.op == "number")
    arguments: list[Any] = [
        *[buffers.Buffer(dtype, classes) for dtype, classes in shapes],
        *[types.int64] * len(structure.reduced),
        *[buffers.NUMBA[dtype] for _, dtype in numbers],
        *[buffers.indexed_axis] * structure.indexed_axes,
        *[types.int64] * (3 if structure.partial or all(structure.reduced) else 2),
    ]
    function = function_of(text or structure_listing(structure), name, simple=not text)
    flags: Any = compiler.Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.error_model, flags.release_gil, flags.nrt = "numpy", True, bool(text)
    flags.enable_ssa = True
    library = loops.TextLibrary(context.codegen(), name)
    result = compiler.compile_extra(
        typing, context, function, arguments, types.none, flags, {}, library, loops.ListingCompiler
    )
    symbol = result.fndesc.llvm_func_name
    found = [
        loops.annotate(t, parallel=not text and is_parallel(structure)) for t in library.modules()
    ]
    found[0] = hide(found[0], symbol)
    return entry_text(name, structure, symbol, shapes, numbers), found


@once
def contexts() -> tuple[Any, Any]:
    """Numba's target and typing contexts of this CPU, with our types registered."""
    from numba.core.registry import cpu_target

    import lucid.compiler.backends.numba.buffers  # noqa: F401  registers types

    target, typing = cpu_target.target_context, cpu_target.typing_context
    target.refresh()
    typing.refresh()
    return target, typing


def is_parallel(structure: Structure) -> bool:
    """True if no iteration of an innermost loop depends on another; as in the Emitter."""
    scans = any(value.op == "scan" for value in structure.values)
    ordered = scans or any(store.at for store in structure.stores)
    return not (ordered and structure.mode == "rows")


def hide(text: str, symbol: str) -> str:
    """LLVM text whose function is inlined and then dropped."""
    return text.replace(f'define i32 @"{symbol}"', f'define linkonce_odr hidden i32 @"{symbol}"', 1)


def buffer_classes(structure: Structure) -> list[tuple[str, tuple[int, ...]]]:
    """The dtype of each buffer, and the classes of the strides of its indices."""
    lister = Lister(structure)
    out = []
    for b, (dtype, classes) in enumerate(structure.buffers):
        found = [c for c in classes if c] + [GENERAL] * len(lister.indexed_axes_of(b))
        if b in lister.chunked:
            found.insert(0, GENERAL if structure.partial else 1)
        out.append((dtype, tuple(found)))
    return out


def entry_text(
    name: str,
    structure: Structure,
    symbol: str,
    shapes: list[tuple[str, tuple[int, ...]]],
    numbers: list[tuple[int, str]],
) -> str:
    """The kernel: it reads the words of the plan, and calls the function."""
    lines: list[str] = []

    def word(kind: str, target: str) -> None:
        at = len(lines) // 2
        lines.append(f"  {target}.p = getelementptr i64, ptr %args, i64 {at}")
        lines.append(f"  {target} = load {kind}, ptr {target}.p")

    for i in range(len(structure.buffers)):
        word("ptr", f"%b{i}")
    for axis in range(len(structure.reduced)):
        word("i64", f"%n{axis}")
    for i, (_, classes) in enumerate(structure.buffers):
        for axis, kind in enumerate(classes):
            if kind == GENERAL:
                word("i64", f"%s{i}_{axis}")
    for k, dtype in numbers:
        word(LLVM[dtype], f"%c{k}")
    grain = structure.partial or all(structure.reduced)
    if grain:
        word("i64", "%grain")
    if structure.indexed_axes:
        word("ptr", "%status")
    for k in range(structure.indexed_axes):
        for part in ("size", "stride", "code"):
            word("i64", f"%{part}{k}")
    given = ["ptr %result", "ptr %error"]
    lister, last = Lister(structure), len(structure.reduced) - 1
    for i, (_, classes) in enumerate(structure.buffers):
        given.append(f"ptr %b{i}")
        if i in lister.chunked and structure.partial:
            given.append(f"i64 %n{last}")
        given += [f"i64 %s{i}_{axis}" for axis, kind in enumerate(classes) if kind == GENERAL]
        given += [f"i64 %stride{k}" for k in lister.indexed_axes_of(i)]
    given += [f"i64 %n{axis}" for axis in range(len(structure.reduced))]
    given += [f"{LLVM[dtype]} %c{k}" for k, dtype in numbers]
    for k in range(structure.indexed_axes):
        given += [f"i64 %size{k}", f"i64 %code{k}", "ptr %wrong"]
    given += ["i64 %lo", "i64 %hi", *["i64 %grain"] * grain]
    types = ", ".join(argument.split()[0] for argument in given)
    return "\n".join(
        [
            f"define void @{name}(ptr %args, i64 %lo, i64 %hi) nounwind {{",
            "  %result = alloca ptr",
            "  %error = alloca ptr",
            "  %wrong = alloca i64",
            "  store i64 0, ptr %wrong",
            *lines,
            f'  %returned = call i32 @"{symbol}"({", ".join(given)}) alwaysinline',
            *(REPORT if structure.indexed_axes else []),
            "  ret void",
            "}",
            f'declare i32 @"{symbol}"({types})',
            "",
        ]
    )


REPORT = """\
  %found = load i64, ptr %wrong
  %some = icmp ne i64 %found, 0
  br i1 %some, label %report, label %done
report:
  store atomic i64 %found, ptr %status monotonic, align 8
  br label %done
done:""".splitlines()


class CountingLoops(ast.NodeTransformer):
    """Turns `for i in range(a, b)` into a `while`, which costs Numba half the time to lower."""

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        self.generic_visit(node)
        assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
        *first, stop = [ast.unparse(argument) for argument in node.iter.args]
        i = node.target.id
        text = f"{i} = {first[0] if first else 0}\nwhile {i} < {stop}:\n    {i} = {i} + 1"
        start, loop = ast.parse(text).body
        assert isinstance(loop, ast.While)
        loop.body = [*node.body, *loop.body]
        for made in (start, loop, loop.body[-1]):
            ast.copy_location(made, node)
        return [start, loop]


def function_of(text: str, name: str, simple: bool = False) -> Any:
    """The function that a listing defines, with the names that it uses as Numba knows them."""
    tree = ast.parse(text)
    defined = tree.body[0]
    assert isinstance(defined, ast.FunctionDef)
    defined.args.defaults = []
    if simple:
        tree = ast.fix_missing_locations(CountingLoops().visit(tree))
    namespace: dict[str, Any] = dict(builtin_namespace())
    called = {
        node.func.id: len(node.args)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    for used, arity in called.items():
        found = function_named(used, arity)
        if found is not None:
            namespace[used] = found
    exec(compile(tree, f"<lucid kernel {name}>", "exec"), namespace)
    return namespace[defined.name]


def builtin_namespace() -> dict[str, Any]:
    import math

    import numpy as np

    return {"inf": math.inf, "nan": math.nan, "math": math, "np": np}


def function_named(name: str, arity: int) -> Any:
    """The intrinsic that a listing calls by this name, or None."""
    from lucid.compiler.backends.numba import functions

    if name == "wrap_index":
        return functions.wrap_index
    if name in DTYPES:
        return functions.cast(name)
    op = operations().get(name)
    return None if op is None else functions.operation(op, arity)


@once
def operations() -> dict[str, str]:
    """The names of functions in listings, and their operations."""
    from lucid.compiler.kernels import integer_code
    from lucid.compiler.kernels.scalar_code import INTRINSICS, SELECTIONS, TESTS

    plain = {"remainder", "floor_divide", "fmod", "max_key", "min_key", "from_key", "round", "abs"}
    every = {*scalars.table, *INTRINSICS, *SELECTIONS, *TESTS, *integer_code.OPERATIONS, *plain}
    return {
        function_name(op): op for op in every if not hasattr(builtins, op) or op in plain | {"pow"}
    }
