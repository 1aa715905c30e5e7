"""`@public`: the one declaration of a public name, beside its function or class.

Exports, methods, in-place forms, NumPy dispatch and type stubs follow from it. The declarations are
read from the source by `python -m lucid.public.build`, which writes `lucid/public/index.py` and the
stubs; at run time the decorator returns what it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Dynamic: TypeAlias = Any  # a result whose kind depends on the values of the arguments


def public(
    *namespaces: str,
    name: str = "",
    aliases: tuple[str, ...] = (),
    inplace: bool | str = False,
    inplace_function: bool = False,
    numpy: str | tuple[str, ...] = (),
) -> Callable[[T], T]:
    """Declare a function, class or value public; a second declaration gives it a second name.

    namespaces          "lucid" (the default), "linalg", "nn.functional", ...; "Tensor" for a method
    name                the public name, if it differs from the name in the module
    aliases             further names, with all that is declared here
    inplace             the method `exp_` exists: True; "ufunc" if the NumPy ufunc writes directly
                        into untracked memory; "view" if the tensor becomes a view of its old self
    inplace_function    the method `exp_` and the function `lucid.exp_` exist
    numpy               NumPy functions with the same signature and results: "exp", "linalg.det"

    All arguments are literals.
    """
    return _identity


def _identity(item: T) -> T:
    return item
