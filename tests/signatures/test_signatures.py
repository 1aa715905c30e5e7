"""Every call that PyTorch's signatures allow is a call of ours: names, places and defaults.

pytorch.txt has PyTorch's signatures (write.py makes it). Ours may take more:
NumPy's `axis` and `keepdims`, by position what PyTorch takes by keyword alone.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import operator
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lucid
from tests.table.row import rows

STORED = Path(__file__).with_name("pytorch.txt")
ANOTHER_WORD = {"dim": ("axis", "axes"), "dims": ("axis", "axes")}
BY_PLACE = {  # what ours calls a parameter that it takes by PyTorch's name too
    "split_size": "split_size_or_sections",
    "sections": "indices_or_sections",
    "indices": "indices_or_sections",
    "tensor_indices_or_sections": "indices_or_sections",
}

# A reason, and the parameters that are different for it, as "name: parameter".
REASONS = {
    "several indices are a sequence": [f"Tensor.{way}split: *indices" for way in "hvd"],
    "several dims are a sequence: keepdim, which PyTorch lacks here, comes next": [
        "Tensor.count_nonzero: *dim",
    ],
    "None: not given, so that correction may be": [
        f"{name}: unbiased" for name in ("std", "var", "std_mean", "var_mean", "Tensor.std",
                                         "Tensor.var")
    ],
    "None: not given, so that x may be": [
        f"{name}: dx" for name in ("trapezoid", "trapz", "cumulative_trapezoid")
    ],
    "it is another name for split, the same function": [
        "unsafe_split: input", "unsafe_split: tensor",
    ],
    "one function for the name in lucid and in nn.functional, which has the documented signature": [
        f"{kind}dropout: {word}" for kind in ("", "alpha_", "feature_alpha_")
        for word in ("p", "train")
    ],
    "by keyword, as it is of add": [
        f"{name}: alpha" for name in ("subtract", "rsub", "Tensor.subtract", "Tensor.subtract_")
    ],
    "by keyword, as it is in PyTorch's documentation and parser; the stub is wrong": [
        "Tensor.new_tensor: dtype", "Tensor.new_tensor: requires_grad",
        "Tensor.requires_grad_: mode",
    ],
    "NumPy's second argument is the size": ["poisson: generator", "binomial: generator"],
    "NumPy's name: the axis stands where dim does": ["concatenate: dim"],
    "optional, as it once was in PyTorch": ["linspace: steps", "logspace: steps"],
    "optional, as in NumPy": ["normal: mean"],
    "False is what None means": ["asarray: requires_grad"],
    "the first of *args": ["einsum: equation"],
    "any number of operands, as in NumPy": [
        f"result_type: {word}" for word in ("tensor", "other", "scalar", "scalar1", "scalar2")
    ],
    "numbers and tensors by one name": ["isin: element", "isin: test_element"],
    "integers have no gradient": ["tril_indices: requires_grad", "triu_indices: requires_grad"],
    "for products on a GPU alone": [f"{name}: out_dtype" for name in ("mm", "bmm", "addmm",
                                                                      "baddbmm")],
    "there is no cuDNN": ["group_norm: cudnn_enabled", "layer_norm: cudnn_enable"],
    "of the inside of PyTorch": [
        "Tensor.expand: implicit", "nn.functional.elu_: scale", "nn.functional.elu_: input_scale",
    ],
    "the noise is of the default generator": [
        f"{name}: generator" for name in ("rrelu", "rrelu_", "nn.functional.rrelu_")
    ],
    "not offered": [
        "stft: align_to_window", "Tensor.stft: align_to_window", "from_dlpack: copy",
    ],
}  # fmt: skip
DELIBERATE = {entry for entries in REASONS.values() for entry in entries}


@cache
def stored() -> dict[str, list[ast.arguments]]:
    """PyTorch's overloads by name."""
    found: dict[str, list[ast.arguments]] = {}
    for line in STORED.read_text().splitlines():
        name, _, parameters = line.removesuffix(")").partition("(")
        found.setdefault(name, []).append(overload(parameters))
    return found


def overload(parameters: str) -> ast.arguments:
    (function,) = ast.parse(f"def overload({parameters}): pass").body
    assert isinstance(function, ast.FunctionDef)
    return function.args


def ours(name: str) -> Callable[..., Any]:
    """Our function; that which a method looks up when it is called, in its place."""
    found = operator.attrgetter(name)(lucid)
    if getattr(found, "__module__", "") == "lucid.tensors.lazy_methods":
        place = inspect.getclosurevars(found).nonlocals
        return getattr(importlib.import_module(f"lucid.{place['module']}"), place["name"])
    return found


def value_of(default: ast.expr | None) -> Any:
    """A default, comparable with ours."""
    if default is None:
        return inspect.Parameter.empty
    try:
        return comparable(ast.literal_eval(default))
    except ValueError:
        return ast.unparse(default).removeprefix("torch.")


def comparable(default: Any) -> Any:
    """A size for all axes is that size for each; no sizes, and None, leave them to the function."""
    if isinstance(default, (list, tuple)):
        each = set(default)
        return each.pop() if len(each) == 1 else tuple(default) or None
    return default.name if isinstance(default, np.dtype) else default


def differences(
    signature: inspect.Signature, overloads: list[ast.arguments], first: int = 0
) -> Iterator[tuple[str, str]]:
    """What a program that calls PyTorch's function could not do with ours, from `first` on."""
    parameters = list(signature.parameters.values())
    places = {p.name: i for i, p in enumerate(parameters) if p.kind is not p.KEYWORD_ONLY}
    places |= {word: places[own] for word, own in BY_PLACE.items() if own in places}
    spread = [i for i, p in enumerate(parameters) if p.kind is p.VAR_POSITIONAL] or [99]
    for args in overloads:
        if args.vararg is not None and spread[0] > len(args.args) + 1:
            yield f"*{args.vararg.arg}", "ours takes no sequence here"
        for i, (word, default) in enumerate(named(args)[first:], first):
            if word not in signature.parameters:
                yield word, f"ours has no {word}"
                continue
            if i < len(args.args) and places.get(word) != i and spread[0] > i:
                if not any(len(o.args) > i and places.get(o.args[i].arg) == i for o in overloads):
                    yield word, f"the place of ours is {places.get(word)}, not {i}"
            yield from default_differs(word, value_of(default), signature, overloads)
    theirs = {word for args in overloads for word, _ in named(args)}
    theirs |= {BY_PLACE.get(word, word) for word in theirs}
    for p in parameters[first:]:
        if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in theirs:
            yield p.name, "ours must be given, PyTorch has none"


def default_differs(
    word: str, theirs: Any, signature: inspect.Signature, overloads: list[ast.arguments]
) -> Iterator[tuple[str, str]]:
    own = comparable(signature.parameters[word].default)
    if same(own, theirs):
        return
    beside = any(other in signature.parameters for other in ANOTHER_WORD.get(word, ()))
    if own is None and (beside or theirs is inspect.Parameter.empty):
        return  # neither dim nor axis is given: what counts then is in the table
    defaults = [found for o in overloads for name, found in named(o) if name == word]
    if theirs is inspect.Parameter.empty and len(defaults) < len(overloads):
        return  # may be left out in another overload
    if not any(same(own, value_of(found)) for found in defaults):
        yield word, f"the default of ours is {own!r}, not {theirs!r}"


def same(own: Any, theirs: Any) -> bool:
    """1 is 1.0, but not True."""
    return own == theirs and isinstance(own, bool) == isinstance(theirs, bool)


def named(args: ast.arguments) -> list[tuple[str, ast.expr | None]]:
    """The parameters that have names, with their defaults; those by place come first."""
    defaults = [None] * (len(args.args) - len(args.defaults)) + args.defaults
    by_place = zip([a.arg for a in args.args], defaults)
    return [*by_place, *zip([a.arg for a in args.kwonlyargs], args.kw_defaults)]


@pytest.mark.parametrize("name", stored())
def test_calls_of_pytorch_are_calls_of_ours(name):
    first = int(name.startswith("Tensor."))  # self has no name
    listed = differences(inspect.signature(ours(name)), stored()[name], first)
    found = {f"{name}: {word}": facts for word, facts in listed}
    assert {word: facts for word, facts in found.items() if word not in DELIBERATE} == {}
    known = {word for word in DELIBERATE if word.startswith(f"{name}: ")}
    assert known <= set(found), "no longer different: strike it from the list"


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (lambda x, dim=0, *, alpha=1: None, "input"),
        (lambda input, alpha=1, dim=0: None, "dim"),
        (lambda input, dim=1, *, alpha=1: None, "dim"),
        (lambda input, dim=0, *, alpha=True: None, "alpha"),
        (lambda input, dim=0: None, "alpha"),
        (lambda input, dim, *, alpha=1: None, "dim"),
        (lambda input, dim=0, *, alpha=1, more=(): None, None),
    ],
)
def test_another_name_place_or_default_is_found(function, word):
    overloads = [overload("input, dim=0, *, alpha=1")]
    found = {w for w, _ in differences(inspect.signature(function), overloads)}
    assert word in found if word else not found


def test_every_reason_is_for_a_name_that_is_compared():
    assert {entry.partition(":")[0] for entry in DELIBERATE} <= set(stored())


@pytest.mark.parametrize("name", sorted({row.name for row in rows() if row.torch == ""}))
def test_the_signature_of_every_name_that_pytorch_has_is_stored(name):
    assert name in stored(), "`.venv-parity/bin/python -m tests.signatures.write` adds it"
