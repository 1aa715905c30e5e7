"""flatten: nested containers of arrays as one vector, and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.ir.pytree import flatten as flatten_tree
from lucid.ir.pytree import unflatten as unflatten_tree


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the numbers of a pytree as one vector, and a function that restores the pytree.

    >>> from lucid.compat.autograd.misc import flatten
    >>> vector, unflatten = flatten({"b": 3.0, "a": [1.0, 2.0]})
    >>> vector
    array([1., 2., 3.])
    >>> unflatten(vector * 2)
    {'b': np.float64(6.0), 'a': [np.float64(2.0), np.float64(4.0)]}
    """
    leaves, structure = flatten_tree(value)
    shapes = [np.shape(x) for x in leaves]
    parts = [np.ravel(x) for x in leaves]
    vector = np.concatenate(parts) if parts else np.zeros(0)

    def unflatten(vector: Any) -> Any:
        found, start = [], 0
        for shape in shapes:
            size = math.prod(shape)
            part = np.reshape(vector[start : start + size], shape)
            found.append(part[()])
            start += size
        return unflatten_tree(structure, found)

    return vector, unflatten


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Any, Any, Any]:
    """Return `f` as a function of vectors, the unflatten function, and the example as a vector."""
    vector, unflatten = flatten(example)
    return (lambda x, *args: flatten(func(unflatten(x), *args))[0]), unflatten, vector


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Return the function itself: every transform caches the program that it runs."""
    return lambda *rest: fun(*rest, *args, **kwargs)
