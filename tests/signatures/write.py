"""Writes pytorch.txt: the parameters of PyTorch's functions that Lucid has, by name.

`.venv-parity/bin/python -m tests.signatures.write` (the environment of `make parity`), again
when a name is added or PyTorch's version changes. The sources, the first that knows a name:

- the signature of a function that is written in Python;
- the stubs `torch/_C/*.pyi`, which are generated from what the C++ functions parse;
- the schemas of the operators, for linalg, special, fft and nn.functional;
- `torch.overrides.get_testing_overrides`, for what is dispatched by `*args`.

Every overload has a line, written as in Python: `amax(input, dim=(), keepdim=False)`. Left out are
`out`, where memory lies (layout, pin_memory, memory_format, device), names of dimensions, private
words and the deprecated order of arguments (a factor before the tensor). `self` is `input`.
"""

from __future__ import annotations

import ast
import inspect
import operator
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import lucid
from tests.table.row import rows

STORED = Path(__file__).with_name("pytorch.txt")
STUBS = Path(torch.__file__).parent / "_C"
ELSEWHERE = {"out", "layout", "pin_memory", "memory_format", "device", "names"}
FACTORS = {"alpha", "beta", "value"}
OWN = {"compile", "jit", "vmap", "load", "save"}  # PyTorch's do another thing by this name


def main() -> None:
    """Write the file."""
    stubs = {
        "": overloads(STUBS / "_VariableFunctions.pyi"),
        "Tensor": overloads(STUBS / "__init__.pyi", "TensorBase"),
    }
    schemas = operators()
    found = {name: signatures(name, stubs, schemas) for name in public_names()}
    STORED.write_text("".join(f"{name}({line})\n" for name in found for line in found[name]))
    print(f"{sum(map(bool, found.values()))} names of PyTorch {torch.__version__}")
    print("PyTorch has no such name:", *(name for name in found if not found[name]))


def public_names() -> list[str]:
    """The names of the table, and every function and method that is exported beside them."""
    spaces = {"": lucid.__all__, "Tensor.": dir(lucid.Tensor)}
    for module in (lucid.linalg, lucid.special, lucid.fft, lucid.nn.functional):
        spaces[module.__name__.removeprefix("lucid.") + "."] = module.__all__
    exported = {space + name for space, names in spaces.items() for name in names}
    return sorted({row.name for row in rows()} | set(filter(is_function, exported - OWN)))


def is_function(name: str) -> bool:
    found = operator.attrgetter(name)(lucid)
    return not name.rpartition(".")[2].startswith("_") and inspect.isroutine(found)


def signatures(name: str, stubs: dict[str, Any], schemas: dict[str, list[str]]) -> list[str]:
    """Every overload of a name, as the first source that knows it gives it."""
    found: Any = torch
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        return []
    if inspect.isfunction(found):
        line = of_python(found)
        if line is None:
            line = of_python(behind(found, name))
        return [] if line is None else [line]
    space, _, last = name.rpartition(".")
    if space in stubs:
        lines = stubs[space].get(last)
    else:  # an activation is found by its name alone, eigh as linalg_eigh
        lines = schemas.get(f"{space}_{last}") or schemas.get(last) or stubs[""].get(last)
    if not lines and found in (known := torch.overrides.get_testing_overrides()):
        lines = [of_python(known[found]) or ""]
    if space != "Tensor":
        lines = [re.sub(r"\bself\b", "input", line) for line in lines or []]
    return list(dict.fromkeys(lines or []))


def behind(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """What a function that only dispatches calls: max_pool2d calls _max_pool2d."""
    private = getattr(torch.nn.functional, "_" + name.rpartition(".")[2], None)
    return private or torch.overrides.get_testing_overrides()[function]


def of_python(function: Callable[..., Any]) -> str | None:
    """The parameters of a function, None if it hides them behind *args and **kwargs."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    plain = [p.replace(annotation=p.empty) for p in parameters]
    listed = [(str(p).replace(" ", ""), p.kind is p.KEYWORD_ONLY) for p in plain]
    return joined(listed)


def joined(parameters: list[tuple[str, bool]]) -> str:
    """`input, *, alpha=1` of parameters and whether each is given by keyword alone."""
    words: list[str] = []
    for word, by_keyword in parameters:
        if word.startswith("_") or word.split("=")[0] in ELSEWHERE:
            continue
        if by_keyword and not any(w.startswith("*") for w in words):
            words.append("*")
        words.append(word)
    return ", ".join(words)


def overloads(path: Path, owner: str | None = None) -> dict[str, list[str]]:
    """The functions of a stub, or the methods of a class there."""
    tree: Any = ast.parse(path.read_text())
    if owner is not None:
        tree = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == owner)
    found: dict[str, list[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not is_deprecated(node.args):
            if not takes_names(node.args):
                found.setdefault(node.name, []).append(joined(list(parts(node.args))))
    return found


def parts(args: ast.arguments) -> Iterator[tuple[str, bool]]:
    """Each parameter with its default, and whether it is given by keyword alone."""
    missing = [None] * (len(args.args) - len(args.defaults))
    for arg, default in zip(args.args, [*missing, *args.defaults], strict=True):
        yield written(arg.arg, default), False
    if args.vararg is not None:
        yield f"*{args.vararg.arg}", False
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield written(arg.arg, default), True


def written(name: str, default: ast.expr | None) -> str:
    return name if default is None else f"{name}={ast.unparse(default)}"


def is_deprecated(args: ast.arguments) -> bool:
    """Whether a factor stands before what it multiplies."""
    required = [arg.arg for arg in args.args[: len(args.args) - len(args.defaults)]]
    return any(name in FACTORS for name in required[:-1])


def takes_names(args: ast.arguments) -> bool:
    """Whether dimensions are told by names."""
    return any("EllipsisType" in ast.unparse(a.annotation) for a in args.args if a.annotation)


def operators() -> dict[str, list[str]]:
    """The schemas of operators: fft_fft, gelu and so on."""
    found: dict[str, list[str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        if not any(arg.is_out for arg in schema.arguments):
            words = [(of_schema(arg), arg.kwarg_only) for arg in schema.arguments]
            found.setdefault(name, []).append(joined(words))
    return found


def of_schema(arg: Any) -> str:
    if not arg.has_default_value():
        return arg.name
    return f"{arg.name}={arg.default_value!r}".replace(" ", "")


if __name__ == "__main__":
    main()
