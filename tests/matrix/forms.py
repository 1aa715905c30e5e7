"""The forms of a call: ways to write the same computation that must give the same numbers.

A call of the table (tests/table) is `f(x, **kw)`. `forms_of` finds by introspection how else it can
be written: with every argument by its name, by a synonym (`axis` for `dim`), as a method, in place,
with `out=`, by another public name, and by the NumPy function of the same name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import lucid
from tests.cases.case import Arg
from tests.table import laws
from tests.table.row import Call, Row, arguments_in, arrays_for, filled, parts_of
from tests.table.test_table import exported

Tensors = Sequence[Any]
# Two names of one parameter, the first of PyTorch, the second of NumPy.
SYNONYMS = {
    "dim": ("axis", "axes"), "dims": ("axis", "axes"), "keepdim": ("keepdims",),
    "correction": ("ddof",), "axis": ("dim",), "size": ("sizes", "shape"), "rtol": ("rcond",),
    "index": ("indices",), "indices_or_sections":
    ("sections", "indices", "tensor_indices_or_sections"), "p": ("ord",),
    "split_size_or_sections": ("split_size",), "input": ("values",), "shape": ("size",),
    "dim1": ("axis1",), "dim2": ("axis2",),
}  # fmt: skip
WORDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
# Keywords for what may be given as several arguments: zeros(2, 3) is zeros(size=(2, 3)).
VARIADIC = ("size", "shape", "dims", "repeats")
# Keywords that do not change the numbers, with a value to try.
NEUTRAL = {
    "device": "cpu", "requires_grad": True, "inplace": True, "memory_format": None,
    "check_errors": True, "sparse_grad": True, "dtype": "", "generator": "",
}  # fmt: skip
# The same for single functions.
NEUTRAL_HERE = {
    "linalg.svd": {"driver": "gesvd"},
    "linalg.svdvals": {"driver": "gesvd"},
    "linalg.lstsq": {"rcond": 1e-9},
    "linalg.matrix_rank": {"tol": 1e-9},
    "nn.functional.gumbel_softmax": {"eps": 1e-3},
    "nn.functional.embedding": {"sparse": True},
    "nn.functional.embedding_bag": {"sparse": True},
    "unique": {"sorted": False},
}


@dataclass(frozen=True)
class Form:
    """A way to write a call.

    name        what is called, and how
    keywords    the parameters that it passes by name
    run         from the tensors of the call to the result
    writes      whether the result is stored in the first of them
    expected    from arrays to what the result is, if the first form does not say it
    """

    name: str
    keywords: frozenset[str]
    run: Callable[[Tensors], Any]
    writes: bool = False
    expected: Callable[[Sequence[np.ndarray]], list[np.ndarray]] | None = None


def look_up(name: str) -> Callable[..., Any]:
    return laws.function_of(Row(name, None, ()))


@cache
def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


@cache
def public_names() -> dict[Any, list[str]]:
    """The names of every public function, by the function itself without wrappers."""
    found: dict[Any, list[str]] = {}
    for name in exported():
        found.setdefault(inspect.unwrap(look_up(name)), []).append(name)
    return found


def forms_of(row: Row, c: Call, example: Any) -> Iterator[Form]:
    """The forms of a call whose result is `example`, the call as it is written first."""
    function = look_up(row.name)
    yield from by_words(row.name, function, c, example)
    if isinstance(example, (lucid.Tensor, tuple)):
        yield from forms_with_out(row.name, function, c, example)
    for name in public_names().get(inspect.unwrap(function), ()):
        if name != row.name and takes(look_up(name), c):
            yield plain_form(name, look_up(name), c)
            if isinstance(example, (lucid.Tensor, tuple)):
                yield from forms_with_out(name, look_up(name), c, example)
    if c.args and isinstance(c.args[0], Arg):
        yield from methods_of(row.name, function, c, example)
    if arguments_in(c):
        yield from forms_of_numpy(row, c)


def takes(function: Callable[..., Any], c: Call) -> bool:
    try:
        inspect.signature(function).bind(*c.args, **c.kwargs)
    except TypeError:
        return False
    return True


def plain_form(name: str, function: Callable[..., Any], c: Call, **more: Any) -> Form:
    def run(tensors: Tensors) -> Any:
        args, kwargs = filled(c, tensors)
        if "generator" in more:
            kwargs["generator"] = lucid.Generator().manual_seed(0)  # as `settings.run` starts
        return function(*args, **{**more, **kwargs})

    shown = "".join(f", {key}={value}" for key, value in more.items())
    writes = name.endswith("_") or "inplace" in more
    return Form(f"{name}(...{shown})", frozenset({*c.kwargs, *more}), run, writes)


def by_words(name: str, function: Callable[..., Any], c: Call, example: Any) -> Iterator[Form]:
    """The call as it is, with all names, with synonyms, with keywords that change no number."""
    known = parameters(function)
    yield plain_form(name, function, c)
    bound = inspect.signature(function).bind(*c.args, **c.kwargs).arguments
    yield from with_neutral_keywords(name, function, c, example)
    several = next((k for k in bound if known[k].kind is inspect.Parameter.VAR_POSITIONAL), None)
    if several is not None:
        sizes = bound[several]
        sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple) else sizes
        for key in [k for k in VARIADIC if k in known and known[k].kind in WORDS]:
            if key in bound or not all(isinstance(n, int) for n in sizes):
                continue
            rest = c.args[: len(c.args) - len(bound[several])]
            yield plain_form(f"{key} in {name}", function, Call(rest, {**c.kwargs, key: sizes}))
        return
    words = {k: v for k, v in bound.items() if known[k].kind in WORDS} | c.kwargs
    yield plain_form(f"by words {name}", function, Call((), words))
    for key in [k for k in words if words[k] is not None]:
        for other in SYNONYMS.get(key, ()):
            if other not in words and other in known and known[other].kind in WORDS:
                renamed = {other if k == key else k: v for k, v in words.items()}
                yield plain_form(f"{other} for {key} in {name}", function, Call((), renamed))


def with_neutral_keywords(
    name: str, function: Callable[..., Any], c: Call, example: Any
) -> Iterator[Form]:
    known = parameters(function)
    bound = inspect.signature(function).bind(*c.args, **c.kwargs).arguments
    dtypes = {getattr(y, "dtype", None) for y in parts_of(example)}
    neutral = NEUTRAL | NEUTRAL_HERE.get(name, {})
    if name.endswith("_with_indices"):
        neutral["return_indices"] = True
    for key, value in neutral.items():
        if key not in known or key in bound or known[key].kind not in WORDS:
            continue
        if key == "requires_grad" and not is_floating(example):
            continue
        if key == "dtype":
            if name == "Tensor.view" or (name.endswith("norm") and has_complex(c)):
                continue  # a shape, or a dtype; the dtype of a norm is that of its operand
            value = dtypes.pop() if len(dtypes) == 1 else None
        yield plain_form(name, function, c, **{key: value})


def forms_with_out(
    name: str, function: Callable[..., Any], c: Call, example: Any
) -> Iterator[Form]:
    if "out" not in parameters(function) or "out" in c.kwargs:
        return

    def run(tensors: Tensors) -> Any:
        args, kwargs = filled(c, tensors)
        out = empty_like(example)
        result = function(*args, **kwargs, out=out)
        assert all(a is b for a, b in zip(parts_of(result), parts_of(out))), "not stored in out"
        return result

    yield Form(f"{name}(..., out=)", frozenset({*c.kwargs, "out"}), run)


def empty_like(example: Any) -> Any:
    if isinstance(example, (tuple, list)):
        return tuple(map(empty_like, example))
    return lucid.empty(example.shape, dtype=example.dtype)


@cache
def methods() -> dict[Any, list[str]]:
    """The methods of Tensor by the function that they are, or that they store the result of."""
    found: dict[Any, list[str]] = {}
    for name in dir(lucid.Tensor):
        method = getattr(lucid.Tensor, name)
        if not name.startswith("_") and inspect.isfunction(method):
            found.setdefault(inspect.unwrap(method), []).append(name)
    return found


def methods_of(name: str, function: Callable[..., Any], c: Call, example: Any) -> Iterator[Form]:
    """The methods of this name and function, and those that write."""
    space, _, last = name.rpartition(".")
    names = set(methods().get(inspect.unwrap(function), ()))
    if not space:
        names |= {last, f"{last}_"}
    for method in sorted(names - {"" if space != "Tensor" else last}):
        found = getattr(lucid.Tensor, method, None)
        if found is not None and (is_one(example) or not method.endswith("_")):
            call = found.fget if isinstance(found, property) else found
            yield plain_form(f"Tensor.{method}", call, c)
            if method.endswith("_") and inspect.isroutine(getattr(lucid, method, None)):
                yield plain_form(f"lucid.{method}", getattr(lucid, method), c)


def is_one(example: Any) -> bool:
    return isinstance(example, lucid.Tensor)


def forms_of_numpy(row: Row, c: Call) -> Iterator[Form]:
    """NumPy's function of the same name and lucid.numpy's, if NumPy takes this call."""

    def expected(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        args, kwargs = filled(c, [x.copy() for x in arrays])
        with np.errstate(all="ignore"):
            return [np.asarray(y) for y in row.seen(attribute(np, row.name)(*args, **kwargs))]

    try:
        expected(arrays_for(c))
    except Exception:
        return  # NumPy has no such function, or one with other parameters or results
    for module, label in ((np, "numpy"), (lucid.numpy, "lucid.numpy")):
        made = plain_form(f"{label}.{row.name}", attribute(module, row.name), c)
        yield Form(made.name, made.keywords, made.run, expected=expected)


def attribute(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part)
    return module


def has_complex(c: Call) -> bool:
    return any(arg.kind == "complex" for arg in arguments_in(c))


def is_floating(example: Any) -> bool:
    return all(getattr(y, "dtype", np.dtype(int)).kind in "fc" for y in parts_of(example))
