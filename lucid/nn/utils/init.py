"""skip_init: construct a module without initializing its parameters."""

from __future__ import annotations

from typing import Any

from lucid.errors import ArgumentError
from lucid.nn.module import Module
from lucid.public.declare import public


@public("nn.utils")
def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Return `module_cls(*args, **kwargs)` without its own initialization, drawing nothing.

    Submodules are initialized as usual.

    >>> import lucid
    >>> layer = lucid.nn.utils.skip_init(lucid.nn.Linear, 3, 2)
    >>> layer.weight.shape, type(layer) is lucid.nn.Linear
    ((2, 3), True)
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise ArgumentError(f"skip_init: {module_cls!r} is not a subclass of Module")
    left: Any = type(module_cls.__name__, (module_cls,), {"reset_parameters": lambda self: None})
    module = left(*args, **kwargs)
    module.__class__ = module_cls
    return module
