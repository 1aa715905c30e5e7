"""Encodes a plan as the array of 64-bit words that `native/plan.ll` runs.

One array holds everything: the header, the PyMethodDef of the Python entry, the instructions, the
argument words, the patches, the specifications of inputs and outputs, and the operations of loops
and branches. Addresses inside it are filled in once it is allocated.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lucid.compiler.plan.instructions import (
    Address,
    Block,
    Cell,
    IndirectRef,
    Input,
    Instruction,
    Loop,
    Output,
    Ref,
)
from lucid.compiler.runtime import results
from lucid.compiler.runtime import threads as runtime

SHARED_ARENA_BYTES = 1 << 18  # larger arenas are shared by all plans of the process
TIMERS = 16  # the header's word with the address of the timers

_HEADER_WORDS, _METHOD_WORDS, _INSTRUCTION_WORDS = 18, 4, 16
_OWN_ADDRESSES = (0, 4, 5, 10, 11, 17)  # in the header
_METH_FASTCALL = 0x80
_LARGE = -2  # in place of the input that an output reuses: its memory comes from `results`
_C_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400


class Code(np.ndarray):
    """The words of a plan, and the objects they point to; frees the frames of native code."""

    keep_alive: list[object]

    def __del__(self) -> None:
        if sys is None or sys.is_finalizing():  # type: ignore[redundant-expr]
            return  # at exit, modules may be gone already
        if hasattr(self, "keep_alive"):
            runtime.native().free_frames(self.ctypes.data)


class Image(NamedTuple):
    """A plan that is not placed in memory yet.

    words        its code, with offsets from the begin of the code in place of own addresses
    own          the positions of these
    addresses    the positions of other addresses, which are known in this process
    longest      estimated ns between two checks for signals
    settle       called after each run with its error, if an instruction calls Python
    """

    words: np.ndarray
    own: list[int]
    addresses: list[tuple[int, Address]]
    inputs: list[Input]
    outputs: list[Output]
    arena_bytes: int
    labels: list[str]
    traffic: list[tuple[int, int]]
    longest: int
    constants: list[np.ndarray]
    keep_alive: list[object]
    settle: Any = None

    def place(self) -> Code:
        """Return the code at its place in memory."""
        code = np.array(self.words, np.int64).view(Code)
        code[self.own] += code.ctypes.data
        code.keep_alive = [*self.keep_alive, *self.constants, *(y.dtype for y in self.outputs)]
        return code


def encode(builder: Any, arena_bytes: int, release_gil: bool) -> Image:
    """Return the code of a builder's plan."""
    blocks = _Blocks(builder.main)
    cells = _Cells(builder)
    patches = _Patches(builder.words, cells)
    ops: list[int] = []
    instructions = [word for ins in blocks.all for word in _words(ins, blocks, cells, patches, ops)]
    template = [0 if isinstance(word, Ref) else word for word in builder.words]
    inputs = [word for given in builder.inputs for word in _input_spec(given)]
    outputs = [word for made in builder.outputs for word in _output_spec(made)]

    parts = (instructions, template, patches.words, inputs, outputs, ops)
    starts = np.cumsum([_HEADER_WORDS + _METHOD_WORDS] + [len(part) for part in parts])
    at = [8 * int(start) for start in starts]
    shared = int(arena_bytes > SHARED_ARENA_BYTES)
    header = [
        at[0],
        len(builder.main.instructions),
        cells.count,
        len(template),
        at[1],
        at[2],
        patches.arena_end,
        patches.arguments_end,
        len(builder.inputs),
        len(builder.outputs),
        at[3],
        at[4],
        arena_bytes,
        shared,
        0,  # free frames
        int(release_gil),
        0,  # timers
        at[5],
    ]
    words = [*header, *[0] * _METHOD_WORDS, *[word for part in parts for word in part]]
    return Image(
        np.array(words, np.int64),
        list(_OWN_ADDRESSES),
        [(i, word) for i, word in enumerate(words) if word.__class__ is Address],
        builder.inputs,
        builder.outputs,
        arena_bytes,
        [ins.label for ins in blocks.all],
        [ins.traffic for ins in blocks.all],
        builder.longest,
        builder.constants,
        builder.keep_alive,
        builder.settle,
    )


def native_function(code: Code) -> Callable[..., tuple[np.ndarray, ...] | None]:
    """Return a built-in Python function that runs the plan; it keeps the code alive."""
    name = ctypes.create_string_buffer(b"plan")
    code.keep_alive.append(name)
    address = runtime.native().call_address
    method = slice(_HEADER_WORDS, _HEADER_WORDS + _METHOD_WORDS)
    code[method] = [ctypes.addressof(name), address, _METH_FASTCALL, 0]
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new(code.ctypes.data + 8 * _HEADER_WORDS, code, None)


class _Blocks:
    """The ranges of blocks in the instruction table, the main block first."""

    def __init__(self, main: Block) -> None:
        self.all: list[Instruction] = []
        self.range: dict[Block, tuple[int, int]] = {}
        waiting = [main]
        for block in waiting:
            if block not in self.range:
                begin = len(self.all)
                self.all += block.instructions
                self.range[block] = begin, len(self.all)
                waiting += (inner for ins in block.instructions for inner in ins.blocks)
        self.loops = [ins.loop for ins in self.all if ins.loop is not None]


class _Cells:
    """The numbering of cells: the arena, inputs, outputs, then the carries of loops."""

    def __init__(self, builder: Any) -> None:
        self.number: dict[Cell, int] = {builder.arena_cell: 0}
        for port in (*builder.inputs, *builder.outputs):
            self.number[port.cell] = len(self.number)
        self.arguments_end = len(self.number)

    @property
    def count(self) -> int:
        return len(self.number)

    def __getitem__(self, cell: Cell) -> int:
        return self.number.setdefault(cell, len(self.number))


class _Patches:
    """The words that hold addresses, sorted by what changes them: arena, arguments, each loop."""

    def __init__(self, words: list[int | Ref], cells: _Cells) -> None:
        groups: dict[Loop | str, list[int]] = {"arena": [], "arguments": []}
        for i, word in enumerate(words):
            if isinstance(word, Ref):
                number = cells[word.cell]
                group = word.cell.loop or ("arguments" if number else "arena")
                groups.setdefault(group, []).extend((i, number, word.offset))
        self.words: list[int] = []
        self.range: dict[Loop | str, tuple[int, int]] = {}
        for group, entries in groups.items():
            begin = len(self.words) // 3
            self.words += entries
            self.range[group] = begin, len(self.words) // 3
        self.arena_end = self.range["arena"][1]
        self.arguments_end = self.range["arguments"][1]


def _words(
    ins: Instruction, blocks: _Blocks, cells: _Cells, patches: _Patches, ops: list[int]
) -> list[int]:
    words = ins.words + [0] * (_INSTRUCTION_WORDS - len(ins.words))
    if ins.loop is not None:
        loop = ins.loop
        words[6:8] = blocks.range[loop.body_block]
        words[8:10] = blocks.range[loop.test_block]
        words[10:12] = _append(ops, _enter_ops(loop, cells))
        words[12:14] = _append(ops, _step_ops(loop, cells))
        words[14:16] = patches.range.get(loop, (0, 0))
    elif ins.blocks:
        words[6], _ = _append(ops, (i for block in ins.blocks for i in blocks.range[block]))
    return words


def _enter_ops(loop: Loop, cells: _Cells) -> Iterator[int]:
    for cell, start in loop.enter:
        if isinstance(start, IndirectRef):
            yield from (cells[cell], -2 - cells[start.address.cell], start.address.offset)
        else:
            yield from (cells[cell], cells[start.cell], start.offset)


def _step_ops(loop: Loop, cells: _Cells) -> Iterator[int]:
    for cell, other, stride in loop.step:
        if isinstance(other, IndirectRef):
            yield from (cells[cell], -2 - cells[other.address.cell], other.address.offset)
        else:
            yield from (cells[cell], -1 if other is None else cells[other], stride)


def _append(ops: list[int], more: Iterator[int]) -> tuple[int, int]:
    begin = len(ops)
    ops += more
    return begin, len(ops)


def _input_spec(given: Input) -> list[int]:
    flags = _C_CONTIGUOUS | _ALIGNED | (_WRITEABLE if given.writeable else 0)
    return [given.dtype.num, flags, len(given.shape), *given.shape]


def _output_spec(made: Output) -> list[int]:
    dtype = Address(id(made.dtype), "dtype", made.dtype.str)
    nbytes = made.dtype.itemsize * math.prod(made.shape)
    least = results.MAPPED_FROM if made.travels else results.LARGE
    memory = _LARGE if made.alias < 0 and nbytes >= least else made.alias
    return [memory, dtype, len(made.shape), *made.shape]
