"""Signatures of public objects as source text, with the types of the stubs and real defaults."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import numpy as np

from lucid.public.lazy import Home
from lucid.public.stubs import Stub, is_generated

PREFIX = re.compile(r"(?<![\w.])_(?:b|t|abc|np)\.|(?<![\w.])_(?=[A-Z])")
NAME = re.compile(r"(?<![\w.])[A-Z]\w*")
Classes = dict[str, str]


def signature_of(target: Any) -> inspect.Signature | None:
    """Return the signature of a function or class, None where it has none of its own."""
    try:
        if inspect.isclass(target) and type(target).__call__ is not type.__call__:
            found = inspect.signature(target.__init__)
            rest = list(found.parameters.values())[1:]
            return found.replace(parameters=rest)
        return inspect.signature(target)
    except (TypeError, ValueError):
        return None


def text(target: Any, classes: Classes, home: Home | None = None, method: bool = False) -> str:
    """Return "(input: Tensor, dim: int = -1) -> Tensor".

    classes    the paths of public classes by their names, under which annotations show them
    method     leave out the first parameter
    """
    found = signature_of(target)
    if found is None:
        return "()"
    stub = Stub()
    generated = home is not None and is_generated(home)
    space = getattr(inspect.unwrap(target), "__globals__", {})
    parameters = list(found.parameters.values())
    if method and parameters and parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL:
        parameters = parameters[1:]
    parts = []
    previous: Any = None
    for p in parameters:
        if previous is p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_ONLY:
            parts.append("/")
        if p.kind is p.KEYWORD_ONLY and previous not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            parts.append("*")
        previous = p.kind
        dynamic = stub.by_name(p) if generated else "Any"
        kind = annotation(stub, p.annotation, space, dynamic, classes)
        parts.append(parameter(p, kind))
    if previous is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    result = ""
    if not inspect.isclass(target):
        dynamic = "Tensor" if generated else "Any"
        result = annotation(stub, found.return_annotation, space, dynamic, classes)
    return f"({', '.join(parts)})" + (f" -> {result}" if result else "")


def parameter(p: inspect.Parameter, kind: str) -> str:
    star = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(p.kind.name, "")
    typed = f": {kind}" if kind not in ("", "Any") else ""
    if p.default is p.empty:
        return f"{star}{p.name}{typed}"
    equals = " = " if typed else "="
    return f"{star}{p.name}{typed}{equals}{default(p.default)}"


def default(value: Any) -> str:
    """Return the source of a default, or `...` where it has none."""
    if isinstance(value, np.dtype):
        return value.name
    shown = repr(value)
    try:
        ast.parse(shown, mode="eval")
    except SyntaxError:
        return getattr(value, "__name__", "...").replace("<lambda>", "...")
    return shown


def annotation(
    stub: Stub, given: Any, space: dict[str, Any], dynamic: str, classes: Classes
) -> str:
    """Return an annotation as a reader writes it."""
    if given is inspect.Parameter.empty:
        return ""
    if hasattr(given, "__forward_arg__"):
        given = given.__forward_arg__
    shown = given if isinstance(given, str) else getattr(given, "__name__", repr(given))
    try:
        written = stub.annotation(shown, space, dynamic)
    except (SyntaxError, AttributeError):
        return ""
    return NAME.sub(lambda word: classes.get(word[0], word[0]), PREFIX.sub("", written))
