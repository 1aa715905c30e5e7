"""Which values of a Nest each line of a kernel's texts computes: listing, LLVM IR, assembly.

The writers of listings and LLVM IR say for every line which value it belongs to. For assembly the
number of a value is put into the IR as a debug location, which survives LLVM's passes; the result
counts only if the machine code is the same as without locations.
"""

from __future__ import annotations

from typing import Any

from lucid.compiler.inspect.stages import KernelText
from lucid.compiler.kernels.emit import Emitter, emit
from lucid.compiler.kernels.listing import listing, values_of_lines
from lucid.compiler.kernels.nest import Structure
from lucid.compiler.runtime import codegen

Lines = list[list[int]]

DIRECTIVES = (
    ".addrsig", ".cfi_", ".file", ".globl", ".ident", ".loc", ".p2align", ".section", ".size",
    ".text", ".type",
)  # fmt: skip
DEBUG_LABELS = (".Lfunc_begin", ".Ltmp")
NO_LINE = 0  # DWARF's line of code that comes from no line


def readable_assembly(text: str) -> str:
    """Return assembly without directives."""
    return "\n".join(line for line, _ in _code_lines(text))


def values_of_texts(kernel: KernelText) -> dict[str, Lines]:
    """Return, for each text of a kernel, the numbers of the values that its lines compute.

    The lines of assembly are those of `readable_assembly`. A text is missing if nothing is known
    about its lines.
    """
    structure, nest = kernel.source, kernel.nest
    if not isinstance(structure, Structure) or nest is None:
        return {}
    found: dict[str, Lines] = {}
    if kernel.listing == listing(nest):
        found["listing"] = values_of_lines(nest)
    modules = emit({kernel.name: structure})
    if kernel.llvm != str(modules[0]):  # Numba's IR
        return found
    emitter = Emitter(structure, kernel.name)
    head = len(emitter.run().splitlines()) - len(emitter.lines) - 2
    owners = [*[-1] * head, *emitter.owners]
    texts = kernel.llvm.splitlines()
    owners += [-1] * (len(texts) - len(owners))
    found["llvm"] = [[v] if v >= 0 else [] for v in owners]
    located = codegen.assembly(with_locations(texts, owners, len(structure.values)), *modules[1:])
    lines = list(_code_lines(located))
    if "\n".join(line for line, _ in lines) == readable_assembly(kernel.assembly):
        found["assembly"] = [[v] if v >= 0 else [] for _, v in lines]
    return found


def with_locations(texts: list[str], owners: list[int], count: int) -> str:
    """Return LLVM IR whose instructions have the number of a value, plus one, as their line."""
    first = 1 + max(
        int(line[1:].split(" ", 1)[0])
        for line in texts
        if line.startswith("!") and line[1:2].isdigit()
    )
    scope, locations = first + 4, first + 5
    out, inside = [], False
    for line, v in zip(texts, owners):
        if line.startswith("define "):
            line, inside = line.removesuffix("{") + f"!dbg !{scope} {{", True
        elif line == "}":
            inside = False
        elif inside and line.startswith("  "):
            line += f", !dbg !{locations + 1 + v}"
        out.append(line)
    out += [
        f"!llvm.module.flags = !{{!{first}}}",
        f"!llvm.dbg.cu = !{{!{first + 1}}}",
        f'!{first} = !{{i32 2, !"Debug Info Version", i32 3}}',
        f"!{first + 1} = distinct !DICompileUnit(language: DW_LANG_C99, file: !{first + 2}, "
        "isOptimized: true, emissionKind: LineTablesOnly)",
        f'!{first + 2} = !DIFile(filename: "kernel", directory: "")',
        f"!{first + 3} = !DISubroutineType(types: !{{}})",
        f'!{scope} = distinct !DISubprogram(name: "kernel", file: !{first + 2}, '
        f"scope: !{first + 2}, line: 1, type: !{first + 3}, "
        f"spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{first + 1})",
    ]
    for number in range(NO_LINE, count + 1):
        out.append(f"!{locations + number} = !DILocation(line: {number}, scope: !{scope})")
    return "\n".join([*out, ""])


def _code_lines(text: str) -> Any:
    """Yield the lines of assembly that are code or data, each with its value, or -1."""
    value = -1
    for line in text.expandtabs(8).splitlines():
        word = line.strip()
        if word.startswith(".loc "):
            value = int(word.split()[2]) - 1
        elif word.startswith((".section        .debug", '.section        ".debug')):
            return
        elif not word.startswith((*DIRECTIVES, *DEBUG_LABELS)):
            yield line, (value if word and not word.endswith(":") else -1)
