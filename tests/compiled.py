"""compiled: a jitted function as it is from its second call on, which is the first native one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lucid


def compiled(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` jitted: a call records where that is still to be done, then runs what was compiled."""
    jitted = lucid.jit(f)

    def call(*args: Any, **kwargs: Any) -> Any:
        jitted(*args, **kwargs)
        return jitted(*args, **kwargs)

    return call
