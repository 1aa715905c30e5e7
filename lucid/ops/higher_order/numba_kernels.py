"""Numba functions of users -> kernels `void kernel(int64 *words, int64 lo, int64 hi)`.

The first two words are the address where an error is recorded (0: none) and its number; then, for
every result and operand, its address, the stride in bytes of an element or example, and its sizes.
A kernel is called by its address without the GIL. Numba is imported with the first kernel.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.ir.types import Type
from lucid.support.caches import once

INT64 = np.dtype("int64")


@dataclass(eq=False)
class NumbaKernel:
    """A native function, and the object that keeps its code in memory."""

    address: int
    may_raise: bool
    kept: Any
    call: Any = field(init=False)

    def __post_init__(self) -> None:
        signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self.call = signature(self.address)

    def run(self, words: Sequence[int], extent: int) -> bool:
        """Run the whole range from Python; return False if the function raised an error."""
        status = np.zeros(1, INT64)
        table = np.array([status.ctypes.data, 1, *words], INT64)
        self.call(table.ctypes.data, 0, extent)
        return not status[0]


@once
def kernel_intrinsics() -> dict[str, Any]:
    """Return the intrinsics that kernel sources call: elements and arrays at addresses."""
    import numba
    from numba import types
    from numba.extending import intrinsic

    def at(context: Any, builder: Any, address: Any, kind: Any) -> Any:
        return builder.inttoptr(address, context.get_data_type(kind).as_pointer())

    @intrinsic
    def load(typing: Any, address: Any, index: Any, of: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = builder.gep(at(context, builder, args[0], of.dtype), [args[1]])
            return context.unpack_value(builder, of.dtype, place)

        return of.dtype(types.int64, types.int64, of), write

    @intrinsic
    def store(typing: Any, address: Any, index: Any, value: Any, of: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = builder.gep(at(context, builder, args[0], of.dtype), [args[1]])
            context.pack_value(
                builder, of.dtype, context.cast(builder, args[2], value, of.dtype), place
            )
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, value, of), write

    @intrinsic
    def pointer(typing: Any, address: Any, of: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return at(context, builder, args[0], of.dtype)

        return types.CPointer(of.dtype)(types.int64, of), write

    return {
        "carray": numba.carray, "load": load, "store": store, "pointer": pointer,
        "int64": types.int64,
    }  # fmt: skip


def scalar_source(n: int) -> list[str]:
    """Return the loops over a scalar function: one for contiguous elements, one for strided."""
    names = ["y", *[f"x{k}" for k in range(n)]]
    unpack = [
        f"{name}, {name}_step = words[{2 + 2 * i}], words[{3 + 2 * i}]"
        for i, name in enumerate(names)
    ]

    def loop(place: str) -> list[str]:
        args = ", ".join(f"load({place.format(name)}, {name}_type)" for name in names[1:])
        return [
            "    for i in range(lo, hi):",
            f"        store({place.format('y')}, f({args}), y_type)",
        ]

    adjacent = " and ".join(f"{name}_step == {name}_size" for name in names)
    return [
        *unpack,
        f"if {adjacent}:", *loop("{0}, i"),
        "else:", *loop("{0} + i * {0}_step, 0"),
    ]  # fmt: skip


def array_source(outs: Sequence[Type], given: Sequence[Type], writes: bool) -> list[str]:
    """Return the loop that calls a function of arrays per example; 0-d operands are scalars."""
    lines, word = [], 2
    names = [*[f"y{k}" for k in range(len(outs))], *[f"x{k}" for k in range(len(given))]]
    for name, t in zip(names, (*outs, *given)):
        place = f"words[{word}] + i * words[{word + 1}]"
        sizes = ", ".join(f"words[{word + 2 + k}]" for k in range(t.ndim))
        if t.ndim or name[0] == "y":
            shape = f"({sizes},)" if t.ndim else "(1,)"
            lines.append(f"{name} = carray(pointer({place}, {name}_type), {shape})")
        else:
            lines.append(f"{name} = load({place}, 0, {name}_type)")
        word += 2 + t.ndim
    operands = ", ".join(names[len(outs) :])
    if writes:
        lines.append(f"f({operands}, {', '.join(names[: len(outs)])})")
    else:
        lines += returned_source(outs, operands)
    return ["for i in range(lo, hi):", *[f"    {line}" for line in lines]]


def returned_source(outs: Sequence[Type], operands: str) -> list[str]:
    lines = [f"result = f({operands})"]
    for k, t in enumerate(outs):
        part = "result" if len(outs) == 1 else f"result[{k}]"
        if t.ndim:
            lines += [
                f"if {part}.shape != y{k}.shape:",
                "    raise ValueError('the returned array does not have the shape of shape=')",
                f"y{k}[...] = {part}",
            ]
        else:
            lines.append(f"y{k}[0] = {part}")
    return lines


def compile_kernel(
    name: str, body: Sequence[str], function: Any, types: dict[str, Any]
) -> NumbaKernel:
    """Compile the kernel with this body; it records errors if the function can raise any."""
    import numba

    space = {**kernel_intrinsics(), "f": function, **types}
    signature = numba.void(numba.types.CPointer(numba.int64), numba.int64, numba.int64)
    head = ["def kernel(table, lo, hi):", f"    words = carray(table, ({count_words(body)},))"]

    def compile(lines: Sequence[str]) -> Any:
        scope = dict(space)
        exec("\n".join([*head, *[f"    {line}" for line in lines]]), scope)
        with translate_numba_errors(name):
            return numba.cfunc(signature, error_model="numpy")(scope["kernel"])

    plain = compile(body)
    text = plain._library.get_llvm_str()
    if not any("store" in line and "%excinfo" in line for line in text.splitlines()):
        return NumbaKernel(plain.address, False, plain)
    guarded = [
        "try:", *[f"    {line}" for line in body],
        "except Exception:", "    store(words[0], 0, words[1], int64)",
    ]  # fmt: skip
    watched = compile(guarded)
    return NumbaKernel(watched.address, True, watched)


def count_words(body: Sequence[str]) -> int:
    """Return the number of words that a kernel source reads."""
    found = [part.split("]")[0] for line in body for part in line.split("words[")[1:]]
    return 1 + max([int(number) for number in found], default=1)


class translate_numba_errors:
    """Context manager that reraises Numba's compilation errors as ArgumentError."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        from numba.core.errors import NumbaError

        if isinstance(error, (NumbaError, RuntimeError)):
            said = " ".join(str(error).split())[:400]
            raise ArgumentError(f"from_numba: Numba cannot compile {self.name}: {said}")


def numba_type(t: Type) -> Any:
    """Return the Numba type of an operand: a scalar if it is 0-d, else an array in C order."""
    import numba

    dtype = numba.from_dtype(t.dtype)
    return dtype if not t.ndim else numba.types.Array(dtype, t.ndim, "C")


def returned_types(name: str, function: Any, given: Sequence[Any]) -> list[tuple[np.dtype, int]]:
    """Return the dtype and the number of axes of every result, as Numba infers them."""
    from numba import types
    from numba.np.numpy_support import as_dtype

    with translate_numba_errors(name):
        function.compile(tuple(given))
        result = function.overloads[tuple(given)].signature.return_type
    found = []
    parts: Any = result if isinstance(result, types.BaseTuple) else (result,)
    for part in parts:
        is_array = isinstance(part, types.Array)
        kind = part.dtype if is_array else types.unliteral(part)
        if not isinstance(kind, (types.Number, types.Boolean)):
            raise ArgumentError(
                f"from_numba: {name} returns {result}; it must return numbers or arrays"
            )
        found.append((as_dtype(kind), part.ndim if is_array else 0))
    return found
