"""The counterparts of NumPy functions that `@public(numpy=...)` declares."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from lucid.public import index
from lucid.public.lazy import Home, homes, load
from lucid.support.caches import memoize


@memoize()
def declared_counterparts() -> dict[Any, Home]:
    """Return where the counterpart of each NumPy function is defined."""
    found = homes(index.NUMPY).items()
    return {reduce(getattr, name.split("."), np): home for name, home in found}


def declared_counterpart(function: Any) -> Callable[..., Any] | None:
    """Return the function that declares a NumPy function as its counterpart, or None."""
    home = declared_counterparts().get(function)
    return None if home is None else load(home)
