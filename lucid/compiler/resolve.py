"""resolve: the compiler's rules of an operation, which its class names as "module:name".

The module is imported when a program first has the operation, so that a process that finds its
kernels in the cache starts in half the time.
"""

from __future__ import annotations

from typing import Any

from lucid.support.caches import memoize
from lucid.support.locks import import_module


@memoize()
def resolve(rule: Any) -> Any:
    """Return a rule: the rule itself, or what "module:name" names; None stays None.

    >>> resolve("math:sqrt")(4.0)
    2.0
    """
    if not isinstance(rule, str):
        return rule
    module, _, name = rule.partition(":")
    return getattr(import_module(module), name)
