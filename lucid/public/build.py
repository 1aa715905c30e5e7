"""Write `lucid/public/index.py` and the type stubs from the `@public` declarations.

python -m lucid.public.build
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections import defaultdict
from pathlib import Path

from lucid.public.scan import PACKAGE, Declaration, declarations

Table = dict[str, list[str]]  # module -> "name" or "alias:attribute"

HEADER = '''"""Where every public name is defined. Written by `python -m lucid.public.build`.

Entries are names, or `name:attribute` if the object has another name in its module.
"""

'''
INDEX = PACKAGE / "public" / "index.py"
INPLACE_FUNCTIONS = "tensors.inplace_functions"
LAYERS_WITH_PRIMITIVES = (
    "ops", "tape", "func", "autograd", "transforms", "random", "distributed.collectives",
)  # fmt: skip


def entry(name: str, attribute: str) -> str:
    return name if name == attribute else f"{name}:{attribute}"


def names(found: list[Declaration]) -> dict[str, Table]:
    """Return the public names of each namespace by module."""
    table: dict[str, Table] = defaultdict(lambda: defaultdict(list))
    for d in found:
        for space in d.namespaces:
            is_write = space == "lucid" and d.name.endswith("_") and "Tensor" in d.namespaces
            home = INPLACE_FUNCTIONS if is_write else d.module
            table[space][home].append(d.name if is_write else entry(d.name, d.attribute))
        if d.inplace_function:
            table["lucid"][INPLACE_FUNCTIONS].append(f"{d.name}_")
    return table


def in_place(found: list[Declaration]) -> dict[str, Table]:
    """Return the in-place methods of Tensor by the way they write and by module."""
    table: dict[str, Table] = defaultdict(lambda: defaultdict(list))
    for d in found:
        if d.inplace:
            way = d.inplace if isinstance(d.inplace, str) else "assign"
            table[way][d.module].append(f"{d.name}_:{d.attribute}")
    return table


def numpy_counterparts(found: list[Declaration]) -> Table:
    """Return the NumPy functions with a counterpart by module."""
    table: Table = defaultdict(list)
    for d in found:
        table[d.module] += [entry(name, d.attribute) for name in d.numpy]
    return {module: entries for module, entries in table.items() if entries}


def primitives() -> Table:
    """Return the names of all primitives by module."""
    import importlib

    from lucid.ir.primitive import REGISTRY
    from lucid.public.scan import modules

    for module, _ in modules():
        if module.startswith(LAYERS_WITH_PRIMITIVES):
            importlib.import_module(f"lucid.{module}")
    table: Table = defaultdict(list)
    for name, cls in REGISTRY.items():  # an example in a docstring does not belong to its module
        if getattr(sys.modules.get(cls.__module__), cls.__name__, None) is not cls:
            continue
        if cls.__module__.startswith("lucid."):
            table[cls.__module__.removeprefix("lucid.")].append(name)
    return table


def written(table: Table, indent: str) -> str:
    """Return the entries of a table as source."""
    lines = []
    for module, entries in sorted(table.items()):
        text = " ".join(sorted(set(entries)))
        short = f'{indent}"{module}": "{text}",'
        if len(short) <= 100:
            lines.append(short)
            continue
        lines.append(f'{indent}"{module}": (')
        parts = textwrap.wrap(text, 100 - len(indent) - 8, break_on_hyphens=False)
        lines += [f'{indent}    "{part} "' for part in parts[:-1]]
        lines += [f'{indent}    "{parts[-1]}"', f"{indent}),"]
    return "\n".join(lines)


def nested(name: str, tables: dict[str, Table]) -> str:
    body = "\n".join(
        f'    "{key}": {{\n{written(table, " " * 8)}\n    }},'
        for key, table in sorted(tables.items())
    )
    return f"{name}: dict[str, dict[str, str]] = {{\n{body}\n}}\n"


def flat(name: str, table: Table) -> str:
    return f"{name}: dict[str, str] = {{\n{written(table, ' ' * 4)}\n}}\n"


def check(found: list[Declaration]) -> None:
    """Raise an error if a name is declared twice in one namespace."""
    seen: dict[tuple[str, str], Declaration] = {}
    for d in found:
        for space in d.namespaces:
            other = seen.setdefault((space, d.name), d)
            if other is not d:
                places = f"{other.module}.{other.attribute} and {d.module}.{d.attribute}"
                raise ValueError(f"{space}.{d.name} is declared twice: {places}")


def index_source() -> str:
    """Return the source of `lucid/public/index.py`."""
    found = declarations()
    check(found)
    parts = [
        nested("NAMES", names(found)),
        nested("INPLACE", in_place(found)),
        flat("NUMPY", numpy_counterparts(found)),
        flat("PRIMITIVES", primitives()),
    ]
    return HEADER + "\n".join(parts)


def files() -> dict[Path, str]:
    """Return the text of every generated file, if the index is current."""
    from lucid.public.stubs import stubs

    return {INDEX: index_source(), **stubs()}


def main() -> None:
    source = index_source()
    if INDEX.read_text() != source:  # the stubs need a package with the new index
        INDEX.write_text(source)
        os.execv(sys.executable, [sys.executable, "-m", "lucid.public.build"])
    for path, text in files().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
