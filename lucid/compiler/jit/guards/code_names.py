"""code_names: the names that stand in the code of a function, by what it does with them."""

from __future__ import annotations

from opcode import opmap
from types import CodeType

EXTENDED_ARG, IMPORT_NAME = opmap["EXTENDED_ARG"], opmap["IMPORT_NAME"]
LOAD_GLOBAL = opmap["LOAD_GLOBAL"]
LOAD_NAME = {opmap.get(kind) for kind in ("LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")}


def names_in(code: CodeType) -> set[str]:
    """Return the global and attribute names in a function and its nested functions."""
    inner = [names_in(part) for part in code.co_consts if isinstance(part, CodeType)]
    for_getattr = [x for x in code.co_consts if isinstance(x, str) and x.isidentifier()]
    return set(code.co_names).union(for_getattr, *inner)


def optional_names(code: CodeType) -> set[str]:
    """Return the names of attributes that a function reads even if they may not be there."""
    found: set[str] = set()
    if not {"getattr", "hasattr"}.isdisjoint(code.co_names):
        found.update([x for x in code.co_consts if isinstance(x, str) and x.isidentifier()])
    if "AttributeError" in code.co_names:
        found.update(code.co_names)
    inner = [optional_names(part) for part in code.co_consts if isinstance(part, CodeType)]
    return found.union(*inner)


def loaded_names(code: CodeType) -> tuple[set[str], set[str]]:
    """Return the global names that a function reads, and the modules that it imports."""
    read, imported, high = set(), set(), 0
    for kind, low in zip(code.co_code[::2], code.co_code[1::2]):
        number = high << 8 | low
        high = number if kind == EXTENDED_ARG else 0
        if kind == LOAD_GLOBAL:
            read.add(code.co_names[number >> 1])
        elif kind in LOAD_NAME:
            read.add(code.co_names[number])
        elif kind == IMPORT_NAME:
            imported.add(code.co_names[number])
    for part in code.co_consts:
        if isinstance(part, CodeType):
            inner = loaded_names(part)
            read |= inner[0]
            imported |= inner[1]
    return read, imported
