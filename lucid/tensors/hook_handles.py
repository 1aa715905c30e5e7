"""Hooks of tensors, modules and optimizers: handles that remove them, and their signatures."""

from __future__ import annotations

import weakref
from itertools import count
from typing import Any

from lucid.tape.node import (
    Node,
    Traced,
    wrap,
)
from lucid.tape.recording.recorder import attribute_changes

_handles = count()


class HookHandle:
    """Removes a hook with `remove()`, at the end of a `with` block, or by a call."""

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self.hooks = hooks
        self.number = next(n for n in _handles if n not in hooks)  # unpickled hooks have theirs
        hooks[self.number] = hook
        attribute_changes[0] += 1

    def remove(self) -> None:
        attribute_changes[0] += 1
        self.hooks.pop(self.number, None)

    __call__ = remove

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


def adapt_hook(x: Traced, hook: Any) -> Any:
    """Return `hook(grad)` or `hook(tensor, grad)` as a function of (grad, node)."""
    from lucid.autograd.watch import takes_tensor

    if not takes_tensor(hook):
        return lambda g, node: hook(g)
    tensor_ref = weakref.ref(x)

    def call(g: Any, node: Node) -> Any:
        tensor = tensor_ref()
        return hook(wrap(node.saved, node) if tensor is None else tensor, g)

    return call
