"""explained: what Python or NumPy says about a wrong argument, as an error of Lucid's own.

For functions that take plain numbers, sequences or options and hand them on: whatever goes wrong on
the way is told with the function's name, its arguments and the user's line.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from lucid.errors import ArgumentError, LucidError
from lucid.ir.source import at_line
from lucid.tape.node import TRACE, is_recording

F = TypeVar("F", bound=Callable[..., Any])
MISUSE = (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError, MemoryError)


def explained(function: F) -> F:
    """`function`, whose misuse is an ArgumentError that names it and what it was given."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except LucidError:
            raise
        except MISUSE as error:
            given = [shown(x) for x in args] + [f"{name}={shown(x)}" for name, x in kwargs.items()]
            raise ArgumentError(
                f"{function.__name__}({', '.join(given)}): {error}; "
                f"help({public_name(function)}) says what it takes{at_line()}"
            ) from error

    return call  # type: ignore[return-value]


def placed(function: F) -> F:
    """`function`, which makes a tensor, and takes a `device` too: "cpu" is the one there is."""

    @functools.wraps(function)
    def call(*args: Any, device: Any = None, **kwargs: Any) -> Any:
        if device is not None:
            check_device(function.__qualname__.removesuffix(".__init__"), device)
        return function(*args, **kwargs)

    plain = inspect.signature(function)
    keyword = inspect.Parameter("device", inspect.Parameter.KEYWORD_ONLY, default=None)
    call.__signature__ = plain.replace(  # type: ignore[attr-defined]
        parameters=[*plain.parameters.values(), keyword]
    )
    return call  # type: ignore[return-value]


def also(**words: str | tuple[str, ...]) -> Callable[[F], F]:
    """More names for parameters: `@also(dim="axis")` lets `axis=1` say `dim=1`."""
    pairs = [
        (first, second)
        for first, more in words.items()
        for second in ((more,) if isinstance(more, str) else more)
    ]

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for first, second in pairs:
                if second in kwargs:
                    if first in kwargs or len(args) > places[first]:
                        facts = f"give {first} or {second}, not both"
                        raise ArgumentError(f"{function.__name__}: {facts}{at_line()}")
                    kwargs[first] = kwargs.pop(second)
            return function(*args, **kwargs)

        plain = inspect.signature(function)
        places = {name: i for i, name in enumerate(plain.parameters)}
        keyword = inspect.Parameter.KEYWORD_ONLY
        more = [inspect.Parameter(second, keyword, default=None) for _, second in pairs]
        call.__signature__ = plain.replace(  # type: ignore[attr-defined]
            parameters=[*plain.parameters.values(), *more]
        )
        return call  # type: ignore[return-value]

    return decorate


DEVICES = ("cpu", "cuda", "mps", "xpu", "meta")


def is_device(x: Any) -> bool:
    """True for names that PyTorch has for devices."""
    return isinstance(x, str) and x.partition(":")[0] in DEVICES


def check_device(name: str, device: Any) -> None:
    if str(device).partition(":")[0] != "cpu":
        facts = f"device={device!r}; tensors are in the memory of the processor"
        raise ArgumentError(f"{name}: {facts}: leave it out, or say 'cpu'{at_line()}")


def public_name(function: Callable[..., Any]) -> str:
    """Where users find a function: lucid.linalg.inv, lucid.sum."""
    for space in ("nn.functional", "linalg", "special"):
        if function.__module__.startswith(f"lucid.{space}"):
            return f"lucid.{space}.{function.__name__}"
    space = "fft." if function.__module__ == "lucid.fft" else ""
    return f"lucid.{space}{function.__name__}"


def shown(x: Any) -> str:
    """An argument in a few words."""
    if hasattr(x, "type") and hasattr(x, "node"):
        return str(x.type)
    if isinstance(x, np.ndarray):
        return f"array of {x.dtype} {x.shape}"
    text = repr(x)
    return text if len(text) <= 40 else f"{text[:37]}..."


def known_array(x: Any) -> np.ndarray | None:
    """The values of `x` where reading them fixes nothing: outside of every trace."""
    traced = x.node is not None and x.node.flags & TRACE
    return None if x.value is None or traced or is_recording() else x.value
