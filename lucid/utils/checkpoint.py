"""checkpoint as in `torch.utils`: a call whose intermediate values are recomputed in backward.

`lucid.func.checkpoint` transforms a function, and has policies for what is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lucid.errors import ArgumentError
from lucid.func.checkpointing import checkpoint as checkpointed
from lucid.public.declare import public
from lucid.public.lazy import attach


@public("utils.checkpoint")
def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    determinism_check: str = "default",
    debug: bool = False,
    **kwargs: Any,
) -> Any:
    """Return `function(*args, **kwargs)`, whose derivative recomputes intermediate values.

    Random draws are always repeated exactly, and captured tensors always get their gradient, so
    PyTorch's options are accepted and ignored.

    >>> import lucid
    >>> x = lucid.tensor([0.0, 1.0], requires_grad=True)
    >>> lucid.utils.checkpoint.checkpoint(lambda x: lucid.exp(x) ** 2, x).sum().backward()
    >>> x.grad
    Tensor([ 2.       , 14.7781...])
    """
    if not callable(function):
        raise ArgumentError(f"checkpoint: expected a function, not {function!r}")
    return checkpointed(lambda *args, **kwargs: function(*args, **kwargs))(*args, **kwargs)


@public("utils.checkpoint")
def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Apply functions one after another in `segments` parts, each checkpointed.

    functions    an nn.Sequential, or a sequence of functions

    >>> import lucid
    >>> steps = [lucid.sin, lucid.cos, lucid.exp, lucid.tanh]
    >>> lucid.utils.checkpoint.checkpoint_sequential(steps, 2, lucid.zeros(2)).shape
    (2,)
    """
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not isinstance(segments, int) or not 1 <= segments <= max(len(steps), 1):
        raise ArgumentError(
            f"checkpoint_sequential: cannot split {len(steps)} functions into {segments!r} segments"
        )
    size = len(steps) // segments
    for i in range(segments):
        last = len(steps) if i == segments - 1 else (i + 1) * size
        part = steps[i * size : last]
        input = checkpoint(lambda x, part=part: run_sequence(part, x), input, **kwargs)
    return input


def run_sequence(functions: Sequence[Callable[..., Any]], x: Any) -> Any:
    """Apply functions one after another."""
    for function in functions:
        x = function(x)
    return x


_, __dir__, __all__ = attach(__name__)
