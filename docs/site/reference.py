"""The API reference: reStructuredText pages of every public name, from the public index.

Enters: the index of public names, their signatures, types and docstrings, and the stored table of
counterparts. Leaves: {page: text}. A name that has several places is explained in the first one.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import lucid
from docs.site import docstrings, signatures
from docs.site.counterparts import STORED
from lucid.public import index
from lucid.public.lazy import Home, homes, load

LIBRARIES = {"torch": "PyTorch", "jax": "JAX", "numpy": "NumPy", "numba": "Numba", "tqdm": "tqdm"}
NUMPY_SECTION = re.compile(r"^(Parameters|Returns|See Also|Notes|Examples)\n-+$", re.M)
SIGNATURE = re.compile(r"^[\w.]+\(.*\)")
# The names of `lucid` itself, by the module that defines them: page, title, prefixes of modules.
THEMES = [
    ("tensors", "Tensors: creation, conversion, dtypes", "tensors.tensor tensors.numpy_protocols "
     "tensors.printing ops.shape.creation ops.shape.copying ops.core"),
    ("compilation", "Compiling, differentiating, saving",
     "compiler autograd func caches saving viewer tape exporters"),
    ("elementwise", "Elementwise functions", "ops.elementwise ops.special"),
    ("reductions", "Reductions, sorting, statistics", "ops.reduce"),
    ("shapes", "Shapes: reshape, join, split, rearrange", "ops.shape"),
    ("indexing", "Indexing, gathering, searching", "ops.index"),
    ("products", "Products of vectors and matrices", "ops.linalg linalg"),
    ("networks", "Functions of neural networks", "ops.nn nn"),
    ("signals", "Signals", "fft"),
    ("random-numbers", "Random numbers", "random"),
    ("in-place", "In-place functions", "tensors.inplace_functions"),
    ("further", "Further names", ""),
]  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A public name: `path` is what a user writes."""

    path: str
    home: Home

    @property
    def target(self) -> Any:
        return load(self.home)


def full(space: str, name: str) -> str:
    return f"lucid.{name}" if space == "lucid" else f"lucid.{space}.{name}"


@cache
def entries() -> dict[str, list[Entry]]:
    """Return every public name, by namespace."""
    found = {}
    for space, table in index.NAMES.items():
        tables = [table, *index.INPLACE.values()] if space == "Tensor" else [table]
        names = {name: home for t in tables for name, home in homes(t).items()}
        found[space] = [Entry(full(space, name), home) for name, home in sorted(names.items())]
    for module in public_modules():
        space = module.__name__.removeprefix("lucid.")
        known = {entry.path for entry in found.get(space, [])}
        further = [name for name in listed(module) if full(space, name) not in known]
        new = [Entry(full(space, name), home_of(module, name)) for name in further]
        if new:
            found[space] = sorted([*found.get(space, []), *new], key=lambda entry: entry.path)
    return found


def public_modules() -> Iterator[ModuleType]:
    """Return the modules below lucid that `__all__` of a public module names."""
    waiting = [lucid]
    while waiting:
        parent = waiting.pop()
        for name in getattr(parent, "__all__", []):
            value = getattr(parent, name)
            if isinstance(value, ModuleType) and value.__name__ == f"{parent.__name__}.{name}":
                waiting.append(value)
                yield value


def listed(module: ModuleType) -> list[str]:
    """Return the public names of a module: its `__all__`, or what is defined in it."""
    names = getattr(module, "__all__", None)
    if names is None:
        here = [n for n, value in vars(module).items()
                if getattr(value, "__module__", "") == module.__name__]  # fmt: skip
        names = [name for name in here if name[0] != "_"]
    return [name for name in names if not isinstance(getattr(module, name), ModuleType)]


def home_of(module: ModuleType, name: str) -> Home:
    """Return where an object is defined, if it is found there under its own name."""
    value = getattr(module, name)
    home = (getattr(value, "__module__", None) or "", getattr(value, "__name__", None) or "")
    if home[0].startswith("lucid.") and home[1].isidentifier():
        defined = vars(importlib.import_module(home[0])).get(home[1])
        if defined is value:
            return home
    return module.__name__, name


def public_names() -> list[str]:
    """Return every name that the reference must hold."""
    return [entry.path for found in entries().values() for entry in found]


@cache
def explained_at() -> dict[Home, str]:
    """Return the path under which each object is explained: `lucid` first, methods last."""
    order = ["lucid", *sorted(entries().keys() - {"lucid", "Tensor"}), "Tensor"]
    found: dict[Home, str] = {}
    for space in order:
        for entry in sorted(entries().get(space, []), key=lambda e: (not named_so(e), e.path)):
            found.setdefault(entry.home, entry.path)
    return found


def named_so(entry: Entry) -> bool:
    """True if the public name is the name in the module, so that others are its aliases."""
    return entry.path.rpartition(".")[2] == entry.home[1]


@cache
def counterparts() -> dict[str, list[str]]:
    """Return the names beside each of ours in PyTorch, JAX and NumPy."""
    lines = [line.split() for line in STORED.read_text().splitlines()]
    return {own: others for own, *others in lines}


def see_also(path: str) -> Iterator[str]:
    others = counterparts().get(path, [])
    named = [f"{LIBRARIES[name.partition('.')[0]]} ``{name}``" for name in others]
    if named:
        yield f":See also: {', '.join(named)}"


def indented(lines: Iterator[str] | list[str]) -> list[str]:
    return [f"   {line}" if line else "" for line in lines]


def pages() -> dict[str, str]:
    """Return the text of every page of the reference, by its path without extension."""
    out = {}
    for page, title, found in themes():
        out[f"reference/{page}"] = page_text(title, "", found, "lucid")
    for space, found in entries().items():
        if space == "Tensor":
            out["reference/tensor-methods"] = tensor_page()
        elif space != "lucid":
            module = importlib.import_module(f"lucid.{space}")
            title = f"lucid.{space}"
            out[f"reference/{space}"] = page_text(title, module.__doc__ or "", found, title)
    return {"reference/index": contents(out), **out}


def themes() -> Iterator[tuple[str, str, list[Entry]]]:
    """Return the pages of the namespace `lucid`: name, title, entries."""
    left = list(entries()["lucid"])
    for page, title, prefixes in THEMES:
        places = tuple(f"lucid.{prefix}" for prefix in prefixes.split()) or ("lucid",)
        found = [entry for entry in left if entry.home[0].startswith(places)]
        left = [entry for entry in left if entry not in found]
        if found:
            yield page, title, found


def contents(found: dict[str, str]) -> str:
    """Return the first page of the reference."""
    themed = [name for name, _, _ in themes()]
    rest = sorted(set(found) - {f"reference/{name}" for name in themed})
    lines = [
        "API reference", "=============", "",
        "Every public name, with its signature, types and an example. "
        "Names with a counterpart in PyTorch, JAX or NumPy say which. "
        "All names in alphabetical order are in the :ref:`index <genindex>`.", "",
        ".. toctree::", "   :caption: The namespace lucid", "   :maxdepth: 1", "",
        "   tensor-methods", *[f"   {name}" for name in themed], "",
        ".. toctree::", "   :caption: Further namespaces", "   :maxdepth: 1", "",
        *[f"   {name.removeprefix('reference/')}" for name in rest
          if name != "reference/tensor-methods"], "",
    ]  # fmt: skip
    return "\n".join(lines)


def heading(title: str, mark: str = "=") -> list[str]:
    return [title, mark * len(title), ""]


def page_text(title: str, doc: str, found: list[Entry], prefix: str) -> str:
    """Return a page: a summary table, then each name."""
    groups: dict[Home, list[Entry]] = {}
    for entry in sorted(found, key=lambda e: (not named_so(e), e.path)):
        groups.setdefault(entry.home, []).append(entry)
    ordered = sorted(groups.values(), key=lambda same: same[0].path.lower())
    lines = [*heading(title), *docstrings.body(inspect.cleandoc(doc), ())]
    lines += summary(ordered, prefix)
    for same in ordered:
        lines += describe(same)
    return "\n".join(lines) + "\n"


def summary(groups: list[list[Entry]], prefix: str) -> list[str]:
    """Return a table of the names and their first sentences."""
    lines = [".. list-table::", "   :widths: 30 70", "   :class: summary", ""]
    for first, *others in groups:
        names = [f":py:obj:`{e.path.removeprefix(prefix + '.')} <{e.path}>`"
                 for e in (first, *others)]  # fmt: skip
        lines += [f"   * - {', '.join(names)}", f"     - {first_sentence(first)}"]
    return [*lines, ""] if groups else []


def first_sentence(entry: Entry) -> str:
    doc = own_doc(entry.target)
    return docstrings.escape(docstrings.sentence(doc)) if doc else value_line(entry.target)


def value_line(value: Any) -> str:
    shown = repr(value)
    return f"``{shown}``" if len(shown) < 60 else f"A {type(value).__name__}."


def own_doc(target: Any) -> str:
    """Return the docstring of a function, class or descriptor; "" for other values.

    What has NumPy's docstring is explained in NumPy's documentation: its first sentence is left.
    """
    if not (callable(target) or inspect.isdatadescriptor(target)):
        return ""
    doc = inspect.getdoc(target) or ""
    if NUMPY_SECTION.search(doc):
        parts = [part for part in doc.split("\n\n") if not SIGNATURE.match(part)]
        return parts[0] if parts else ""
    return doc


def describe(same: list[Entry]) -> list[str]:
    """Return the description of an object under its names in one namespace."""
    entry, target = same[0], same[0].target
    if inspect.isclass(target):
        return describe_class(same)
    if not callable(target) or not own_doc(target):
        lines = []
        for e in same:
            lines += [f".. py:data:: {e.path}", "", *indented(["", value_line(target), ""])]
        return lines
    shown = signatures.text(target, class_paths(), entry.home)
    first, *rest = [f"{e.path}{shown}" for e in same]
    lines = [f".. py:function:: {first}", *[f"                 {other}" for other in rest], ""]
    return [*lines, *indented(explanation(entry))]


def explanation(entry: Entry) -> list[str]:
    """Return the docstring, or its first sentence where the object is explained elsewhere."""
    target, elsewhere = entry.target, explained_at()[entry.home]
    doc = own_doc(target)
    if elsewhere != entry.path and elsewhere.rpartition(".")[2] == entry.path.rpartition(".")[2]:
        lines = [
            docstrings.escape(docstrings.sentence(doc)),
            "",
            f"The same as :py:obj:`{elsewhere}`.",
        ]
    else:
        found = signatures.signature_of(target)
        lines = list(docstrings.body(doc, found.parameters if found else ()))
    return [*lines, "", *see_also(entry.path), ""]


def describe_class(same: list[Entry]) -> list[str]:
    """Return a class with the members that are its own."""
    entry, cls = same[0], same[0].target
    shown = signatures.text(cls, class_paths()) if not issubclass(cls, BaseException) else ""
    first, *rest = [f"{e.path}{shown}" for e in same]
    lines = [f".. py:class:: {first}", *[f"              {other}" for other in rest], ""]
    lines += indented(explanation(entry))
    bases = [known_classes()[b] for b in cls.__mro__[1:] if b in known_classes()]
    if bases:
        lines += indented([f":Base: :py:class:`{bases[0]}`", ""])
    if cls is lucid.Tensor:
        lines += indented(["Its methods are on :doc:`a page of their own <tensor-methods>`.", ""])
    elif explained_at()[entry.home] == entry.path:
        for name in own_members(cls):
            lines += indented(member(cls, name, f"{entry.path}.{name}"))
    return lines


@cache
def known_classes() -> dict[type, str]:
    """Return the public classes and their paths."""
    return {
        load(home): path for home, path in explained_at().items() if inspect.isclass(load(home))
    }


@cache
def class_paths() -> dict[str, str]:
    """Return the paths of public classes by their names, where a name has one meaning."""
    names = [cls.__name__ for cls in known_classes()]
    return {
        cls.__name__: path
        for cls, path in known_classes().items()
        if names.count(cls.__name__) == 1
    }


def own_members(cls: type) -> list[str]:
    """Return the public members that a class defines, with a docstring of its own."""
    public_bases = [
        b for b in cls.__mro__[1:] if b in known_classes() or b.__module__[:5] != "lucid"
    ]
    inherited = {name for base in public_bases for name in dir(base)}
    own = [
        name for name in dir(cls)
        if name[0] != "_" and name not in inherited and member_doc(cls, name)
    ]  # fmt: skip
    return own


def member_doc(cls: type, name: str) -> str:
    found = inspect.getattr_static(cls, name)
    found = getattr(found, "__func__", found)
    return own_doc(found) if inspect.isfunction(found) or isinstance(found, property) else ""


def member(cls: type, name: str, path: str, home: Home | None = None) -> list[str]:
    """Return a method or property of a class."""
    static = inspect.getattr_static(cls, name)
    found = getattr(static, "__func__", static)
    doc = inspect.getdoc(found) or ""
    if isinstance(static, property) or not callable(found):
        known: Any = ()
        lines = [f".. py:attribute:: {path}", ""]
    else:
        shown = signatures.text(
            found, class_paths(), home, method=not isinstance(static, staticmethod)
        )
        known = inspect.signature(found).parameters
        lines = [f".. py:method:: {path}{shown}", ""]
    return [*lines, *indented([*docstrings.body(doc, known), *see_also(path), ""])]


def tensor_page() -> str:
    """Return the page of Tensor's methods: its own, then those that are functions too."""
    declared = {entry.path.rpartition(".")[2]: entry for entry in entries()["Tensor"]}
    cls = lucid.Tensor
    lines = heading("Methods of Tensor")
    lines += ["A :py:class:`lucid.Tensor` has the methods of PyTorch tensors and NumPy arrays. "
              "Most are functions of ``lucid`` too and are explained there.", ""]  # fmt: skip
    lines += [*heading("Its own", "-")]
    for name in dir(cls):
        if name[0] != "_" and name not in declared:
            getattr(cls, name)
            lines += member(cls, name, f"lucid.Tensor.{name}")
    lines += [*heading("Functions as methods", "-")]
    for name, entry in sorted(declared.items()):
        lines += tensor_method(name, entry)
    return "\n".join(lines) + "\n"


def tensor_method(name: str, entry: Entry) -> list[str]:
    shown = signatures.text(entry.target, class_paths(), entry.home, method=True)
    elsewhere = explained_at()[entry.home]
    lines = [f".. py:method:: {entry.path}{shown}", ""]
    if elsewhere == entry.path:
        return [*lines, *indented(explanation(entry))]
    same = elsewhere.rpartition(".")[2] == name.rstrip("_")
    text = docstrings.escape(docstrings.sentence(own_doc(entry.target)))
    if name.endswith("_"):
        body = [f":py:obj:`{elsewhere}`, written into the tensor itself."]
    elif same:
        body = [text, "", f"See :py:obj:`{elsewhere}`."]
    else:
        body = [f"{text}", "", f"Another name of :py:obj:`{elsewhere}`."]
    return [*lines, *indented([*body, "", *see_also(entry.path), ""])]
