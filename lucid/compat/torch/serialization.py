"""torch.save and torch.load, of whole modules too, as safetensors files and without pickles.

A module is written as its class, its plain attributes and its tensors. Loading looks up the class,
which must be Lucid's own, listed in `safe_globals`, or already defined or imported by the program;
nothing in a file is executed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

import lucid
from lucid import nn
from lucid.errors import ArgumentError, FileFormatError
from lucid.nn.hooks import Hooks
from lucid.ops.core.decorated import found_at

KEY = "lucid.compat.torch"  # of what is not a dictionary, list, tensor or plain value
_safe: list[Any] = []


def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Allow classes and functions in files that are loaded from now on."""
    _safe.extend(safe_globals)


@contextmanager
def safe_globals(safe_globals: Sequence[Any]) -> Iterator[None]:
    """Allow classes and functions in files that are loaded in this context."""
    before = list(_safe)
    _safe.extend(safe_globals)
    try:
        yield
    finally:
        _safe[:] = before


def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
    """Save tensors, modules, arrays, plain values, and containers of them."""
    lucid.save(encode(obj), f)


def load(f: Any, map_location: Any = None, *, weights_only: bool | None = None, **_: Any) -> Any:
    """Load what `save` wrote."""
    return decode(lucid.load(f, map_location))


def encode(x: Any) -> Any:
    """Return an object as a tree that `lucid.save` takes."""
    if isinstance(x, nn.Module):
        inside = dict(x.__dict__)
        hooks = inside.pop("_hooks", None)
        if hooks is not None and any(hooks.by_kind.values()):
            raise ArgumentError(
                "save: this module has hooks; remove them, or save its state_dict()"
            )
        return {KEY: "module", "class": qualified(type(x)), "state": encode(inside)}
    if isinstance(x, lucid.Tensor):
        kind = type(x).__name__ if isinstance(x, (nn.Parameter, nn.Buffer)) else ""
        if not kind:
            return x
        return {KEY: kind, "data": x.detach(), "grad": x.requires_grad}
    if isinstance(x, np.ndarray):
        return {KEY: "ndarray", "data": lucid.tensor(x)}
    if isinstance(x, np.dtype):
        return {KEY: "dtype", "name": x.name}
    if isinstance(x, (FunctionType, BuiltinFunctionType, type)):
        return {KEY: "global", "name": qualified(x)}
    if isinstance(x, (set, frozenset)):
        return {KEY: "set", "items": [encode(v) for v in sorted(x)]}
    if isinstance(x, dict):
        return {k: encode(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)([encode(v) for v in x]) if type(x) in (list, tuple) else list(map(encode, x))
    return x


def decode(x: Any) -> Any:
    """Return the object of a tree that `encode` made."""
    if isinstance(x, dict) and KEY in x:
        return decode_special(x[KEY], x)
    if isinstance(x, dict):
        return {k: decode(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)([decode(v) for v in x])
    return x


def decode_special(kind: str, x: dict[str, Any]) -> Any:
    match kind:
        case "module":
            cls = find_global(x["class"])
            if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
                raise FileFormatError(f"load: {x['class']} is not a Module")
            module = object.__new__(cls)
            module.__dict__.update(decode(x["state"]), _hooks=Hooks())
            return module
        case "Parameter" | "Buffer":
            made = nn.Parameter(x["data"]) if kind == "Parameter" else nn.Buffer(x["data"])
            return made.requires_grad_(x["grad"])
        case "ndarray":
            return x["data"].numpy()
        case "dtype":
            return np.dtype(x["name"])
        case "set":
            return set(decode(x["items"]))
        case "global":
            return find_global(x["name"])
    raise FileFormatError(f"load: {kind!r} is unknown")


def qualified(x: Any) -> str:
    return f"{x.__module__}:{x.__qualname__}"


def find_global(name: str) -> Any:
    """Return a class or function that a file names, if it is allowed and already imported."""
    for x in _safe:
        if isinstance(x, (type, FunctionType)) and qualified(x) == name:
            return x
    module, _, qualname = name.partition(":")
    if module.startswith("lucid.") and module not in sys.modules:
        __import__(module)
    found = found_at(module, qualname)
    is_module = isinstance(found, type) and issubclass(found, nn.Module)
    if found is not None and (is_module or module.startswith("lucid.")):
        return found
    raise FileFormatError(
        f"load: the file names {name.replace(':', '.')}, which is not defined here or not allowed; "
        "import it, and allow it by torch.serialization.add_safe_globals([...])"
    )
