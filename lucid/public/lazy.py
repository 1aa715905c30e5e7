"""Lazy namespaces: a package shows its public names and imports each on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from lucid.public import index
from lucid.public.out import ACCEPTS_OUT, accepts_out
from lucid.support.locks import import_module

Home = tuple[str, str]  # a module and a name in it


def homes(table: dict[str, str]) -> dict[str, Home]:
    """Return {public name: (module, attribute)} from {module: "name alias:attribute ..."}."""
    found = {}
    for module, names in table.items():
        for entry in names.split():
            name, _, attribute = entry.partition(":")
            found[name] = (f"lucid.{module}", attribute or name)
    return found


def load(home: Home) -> Any:
    """Import the module of a public object and return the object."""
    module, attribute = home
    return getattr(import_module(module), attribute)


def attach(
    package: str, *submodules: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package: its names in the index.

    `submodules` are its public modules, imported on first use as well.
    """
    module: ModuleType = sys.modules[package]
    names = homes(index.NAMES.get(package.removeprefix("lucid."), {}))
    accepting = {names[name] for name in ACCEPTS_OUT.get(package.removeprefix("lucid."), ())}

    def find(name: str) -> Any:
        if name in names:
            value = load(names[name])
            if names[name] in accepting:
                value = accepts_out(value, package, name)
        elif name in submodules:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}", name=name, obj=module
            )
        setattr(module, name, value)
        return value

    def listing() -> list[str]:
        special = [name for name in vars(module) if name.startswith("__")]
        return sorted({*special, *names, *submodules})

    return find, listing, sorted({*names, *submodules})


class LazyModule:
    """A module that is imported when one of its attributes is first used."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, attribute: str) -> Any:
        found = self.__dict__[attribute] = getattr(import_module(self.__name__), attribute)
        return found


def defined_in(package: str, *hidden: str) -> tuple[Callable[[], list[str]], list[str]]:
    """Return `__dir__` and `__all__` of a module without declarations: what is defined in it."""
    module = sys.modules[package]
    own = [
        name
        for name, value in vars(module).items()
        if name[0] != "_" and name not in hidden and getattr(value, "__module__", None) == package
    ]

    def listing() -> list[str]:
        return sorted({*[name for name in vars(module) if name.startswith("__")], *own})

    return listing, sorted(own)
