"""Object code in, callable addresses out; the memory is freed when the `Library` is dropped.

On x86-64 Linux a small loader of our own maps the sections and applies the relocations. It does not
need LLVM, so a process that finds all its kernels in the disk cache never imports llvmlite (40 ms),
and it frees every page. Elsewhere LLVM's ORC LLJIT does the same work.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from lucid.support.caches import once

_PROT_READ_WRITE, _PROT_READ_EXEC = 3, 5
_PRIVATE_ANON = mmap.MAP_PRIVATE | mmap.MAP_ANON
_WRITE, _ALLOC = 1, 2  # section flags
_SYMTAB, _RELA, _NOBITS = 2, 4, 8  # section types
_STUB = b"\xff\x25\x00\x00\x00\x00"  # jmp *[rip]: the address it jumps to follows
_SLOT = 16  # bytes of a stub with its address (which also serves as its GOT entry)


class LoadError(RuntimeError):
    """Raised for object code that cannot be loaded: it is damaged, or a symbol is missing."""


class Library:
    """Loaded object code: `library["name"]` is the address of a function that it defines."""

    def __init__(
        self, image: bytes, names: Iterable[str], imports: Mapping[str, int] | None = None
    ) -> None:
        load = _load_elf if _is_native_elf() else _load_orc
        self.memory, self.symbols = load(image, tuple(names), imports or {})

    def __getitem__(self, name: str) -> int:
        return self.symbols[name]

    def keep(self) -> None:
        """Never free this code, not even at exit: threads may be sleeping in it."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.memory))


def _is_native_elf() -> bool:
    return sys.platform == "linux" and os.uname().machine == "x86_64"


@once
def symbol_address(name: str) -> int:
    """The address of a C function of this process (libc, libm, CPython)."""
    try:
        return ctypes.cast(getattr(_libc(), name), ctypes.c_void_p).value or 0
    except AttributeError:
        raise LoadError(f"no symbol {name} in this process") from None


# -- ELF ---------------------------------------------------------------------------------------


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class _Pages:
    """Anonymous pages of this process, unmapped when the object is dropped."""

    def __init__(self, size: int) -> None:
        self.address, self.size = 0, size
        address = _libc().mmap(None, size, _PROT_READ_WRITE, _PRIVATE_ANON, -1, 0)
        if address == ctypes.c_void_p(-1).value:
            raise LoadError(f"no memory for {size} bytes of code")
        self.address = address

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # At exit a daemon thread may still run this code; the OS frees the pages anyway.
        if self.address and not finalizing():
            _libc().munmap(self.address, self.size)


@once
def _libc() -> ctypes.CDLL:
    libc = ctypes.PyDLL(None)  # microsecond system calls: not worth releasing the GIL
    libc.mmap.restype = ctypes.c_void_p
    flags = (ctypes.c_int, ctypes.c_int, ctypes.c_int)
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *flags, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc


def _load_elf(
    image: bytes, names: tuple[str, ...], imports: Mapping[str, int]
) -> tuple[_Pages, dict[str, int]]:
    try:
        pages, symbols = _ElfObject(image).load(imports)
    except (struct.error, IndexError, ValueError) as error:
        raise LoadError(f"damaged object code: {error}") from None
    if missing := set(names) - set(symbols):
        raise LoadError(f"the object code does not define {', '.join(sorted(missing))}")
    return pages, symbols


class _ElfObject:
    """A relocatable ELF64 file of x86-64: its sections, symbols and relocations."""

    def __init__(self, image: bytes) -> None:
        if image[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", image, 16) != (1, 62):
            raise LoadError("not a relocatable x86-64 object")
        self.image = image
        (start,) = struct.unpack_from("<Q", image, 40)
        size, count, names = struct.unpack_from("<HHH", image, 58)
        headers = (struct.unpack_from("<IIQQQQIIQQ", image, start + size * i) for i in range(count))
        self.sections = [_Section(*header) for header in headers]
        self.names = self.sections[names]
        tables = [s for s in self.sections if s.kind == _SYMTAB]
        self.symbols = list(self._symbols(tables[0])) if tables else []

    def _string(self, table: _Section, at: int) -> str:
        start = table.offset + at
        return self.image[start : self.image.index(b"\0", start)].decode()

    def _symbols(self, table: _Section) -> Iterator[tuple[str, int, int, int]]:
        names = self.sections[table.link]
        for at in range(table.offset, table.offset + table.size, 24):
            name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", self.image, at)
            yield self._string(names, name), info, section, value

    def _relocations(self, table: _Section) -> Iterator[tuple[int, int, int, int]]:
        for at in range(table.offset, table.offset + table.size, 24):
            offset, info, addend = struct.unpack_from("<QQq", self.image, at)
            yield offset, info >> 32, info & 0xFFFFFFFF, addend

    def load(self, imports: Mapping[str, int]) -> tuple[_Pages, dict[str, int]]:
        """Place stubs, code and constants in executable pages, variables in writable ones."""
        loaded = {
            i: s
            for i, s in enumerate(self.sections)
            if s.flags & _ALLOC and s.size and self._string(self.names, s.name) != ".eh_frame"
        }
        tables = [s for s in self.sections if s.kind == _RELA and s.info in loaded]
        relocations = [(t.info, *entry) for t in tables for entry in self._relocations(t)]
        reached = sorted({s for _, _, s, kind, _ in relocations if self._is_indirect(s, kind)})
        stubs = {symbol: _SLOT * i for i, symbol in enumerate(reached)}

        offsets, code_size = self._assign_offsets(loaded, 0, _SLOT * len(stubs))
        variables, size = self._assign_offsets(loaded, _WRITE, _round_up(code_size, mmap.PAGESIZE))
        offsets |= variables
        pages = _Pages(_round_up(max(size, 1), mmap.PAGESIZE))
        base, memory = pages.address, bytearray(size)
        for i, s in loaded.items():
            if s.kind != _NOBITS:
                memory[offsets[i] : offsets[i] + s.size] = self.image[s.offset : s.offset + s.size]

        def address(symbol: int) -> int:
            name, _, section, value = self.symbols[symbol]
            if section:
                return base + offsets[section] + value
            return imports.get(name) or symbol_address(name)

        for symbol, at in stubs.items():
            memory[at : at + _SLOT] = _STUB + struct.pack("<Qxx", address(symbol))
        for section, offset, symbol, kind, addend in relocations:
            spot = offsets[section] + offset
            match kind:
                case 1:  # R_X86_64_64
                    struct.pack_into("<Q", memory, spot, address(symbol) + addend)
                case 2 | 4:  # PC32, PLT32
                    target = stubs[symbol] if symbol in stubs else address(symbol) - base
                    struct.pack_into("<i", memory, spot, target + addend - spot)
                case 9 | 41 | 42:  # GOTPCREL and its relaxable forms
                    struct.pack_into("<i", memory, spot, stubs[symbol] + 6 + addend - spot)
                case _:
                    raise LoadError(f"relocation kind {kind} is not supported")
        ctypes.memmove(base, bytes(memory), size)
        if _libc().mprotect(base, _round_up(code_size, mmap.PAGESIZE), _PROT_READ_EXEC):
            raise LoadError("this system does not allow executable pages")
        exported = {
            name: base + offsets[section] + value
            for name, info, section, value in self.symbols
            if info >> 4 and section in offsets
        }
        return pages, exported

    def _is_indirect(self, symbol: int, kind: int) -> bool:
        undefined = self.symbols[symbol][2] == 0
        return kind in (9, 41, 42) or (undefined and kind in (2, 4))

    @staticmethod
    def _assign_offsets(
        sections: dict[int, _Section], flag: int, at: int
    ) -> tuple[dict[int, int], int]:
        """Offsets of the sections with this write flag, one after another, and where they end."""
        offsets = {}
        for i, s in sections.items():
            if s.flags & _WRITE == flag:
                offsets[i] = at = _round_up(at, max(s.align, 1))
                at += s.size
        return offsets, at


def _round_up(n: int, step: int) -> int:
    return -(-n // step) * step


# -- LLVM's own loader -------------------------------------------------------------------------

_count = itertools.count()


@once
def _lljit() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_lljit_compiler()


def _load_orc(
    image: bytes, names: tuple[str, ...], imports: Mapping[str, int]
) -> tuple[object, dict[str, int]]:
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
    for name, address in imports.items():
        builder.import_symbol(name, address)
    for name in names:
        builder.export_symbol(name)
    try:
        tracker = builder.link(_lljit(), f"lucid{next(_count)}")
    except RuntimeError as error:
        raise LoadError(str(error)) from None
    return tracker, {name: tracker[name] for name in names}
