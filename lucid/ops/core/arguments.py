"""Decorators for the arguments of public functions: clear errors, `device`, and alias names.

`clear_errors` turns what Python or NumPy raises for a wrong argument into an ArgumentError with the
function's name, its arguments and the user's line.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from lucid.errors import ArgumentError, LucidError, OutOfMemoryError
from lucid.support.caches import once
from lucid.support.source import at_line, is_internal
from lucid.tape.conversion import TensorForNumberError, needs_grad
from lucid.tape.node import TRACE, Traced, is_recording

F = TypeVar("F", bound=Callable[..., Any])
ARGUMENT_EXCEPTIONS = (
    TypeError,
    ValueError,
    IndexError,
    KeyError,
    AttributeError,
    OverflowError,
)


def clear_errors(function: F) -> F:
    """Raise an ArgumentError with the name and the arguments where `function` is misused."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs) if kwargs else function(*args)
        except Exception as error:
            if (clear := clear_error(function, args, kwargs, error)) is error:
                raise
            raise clear from clear.__cause__

    call.clear_errors = function, clear_error  # type: ignore[attr-defined]  # see public.out
    return call  # type: ignore[return-value]


def clear_error(
    function: Callable[..., Any], args: Any, kwargs: dict[str, Any], error: Exception
) -> Exception:
    """Return what to raise for an error in a public function: the same if that is clear."""
    clear: Exception = error
    if isinstance(error, TensorForNumberError):
        clear = name_parameter(function, args, kwargs, error)
    elif isinstance(error, LucidError) or is_users_error(error):
        return error
    elif isinstance(error, MemoryError):
        clear = OutOfMemoryError(f"{format_call(function, args, kwargs)}: {error}")
        clear.__cause__ = error
    elif isinstance(error, ARGUMENT_EXCEPTIONS):
        facts = f"{format_call(function, args, kwargs)}: {error}"
        clear = ArgumentError(f"{facts}; see help({public_name(function)})")
        clear.__cause__ = error
    return clear


def public_function(*namespaces: str, **options: Any) -> Callable[[F], F]:
    """`public` for a function whose misuse raises an ArgumentError, by `clear_errors`."""
    return clear_errors


def is_users_error(error: BaseException) -> bool:
    """True if the error was raised by a user's function that Lucid called."""
    frames = error.__traceback__
    while frames is not None:
        filename = frames.tb_frame.f_code.co_filename
        if not is_internal(filename) and not filename.startswith(library_paths()):
            return True
        frames = frames.tb_next
    return False


@once
def library_paths() -> tuple[str, ...]:
    """Return the folders of Python's own and of installed modules."""
    import sysconfig

    return tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})


def accepts_device(function: F) -> F:
    """Add a `device` argument to `function`, which makes a tensor; only "cpu" is accepted.

    It is a keyword; in constructors it also has a position, before `dtype`, as in PyTorch.
    """
    plain = inspect.signature(function)
    names = [p.name for p in plain.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    is_positional = function.__name__ == "__init__" and "dtype" in names
    place = names.index("dtype") if is_positional else 0

    @functools.wraps(function)
    def call(*args: Any, device: Any = None, **kwargs: Any) -> Any:
        if is_positional and len(args) > place:
            device, args = args[place], (*args[:place], *args[place + 1 :])
        if device is not None:
            check_device(function.__qualname__.removesuffix(".__init__"), device)
        return function(*args, **kwargs)

    if is_positional:
        parameters = list(plain.parameters.values())
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters.insert(place, inspect.Parameter("device", kind, default=None))
        call.__signature__ = plain.replace(parameters=parameters)  # type: ignore[attr-defined]
    else:
        add_keywords(call, function, {"device": None})
    return call  # type: ignore[return-value]


# PyTorch's keywords for where and in which order elements lie, which never change a value. They are
# accepted and not declared: every new tensor is dense, in row-major order, in pageable memory.
MEMORY_KEYWORDS = frozenset({"layout", "memory_format", "pin_memory"})


def creation_function(*namespaces: str, **options: Any) -> Callable[[F], Callable[..., Any]]:
    """`public_function` for a function that makes a tensor: adds `requires_grad` and `device`."""

    def decorate(function: F) -> Callable[..., Any]:
        create = clear_errors(function)

        @functools.wraps(function)
        def call(*args: Any, requires_grad: bool = False, device: Any = None, **kwargs: Any) -> Any:
            if device is not None:
                check_device(function.__name__, device)
            if kwargs:
                kwargs = {k: v for k, v in kwargs.items() if k not in MEMORY_KEYWORDS}
            x = create(*args, **kwargs)
            if requires_grad is False:
                return x
            if not isinstance(requires_grad, (bool, int, np.bool_)):
                facts = f"{function.__name__}: requires_grad={requires_grad!r:.40} is not a bool"
                raise ArgumentError(f"{facts}{at_line()}")
            return x.requires_grad_(bool(requires_grad))

        add_keywords(call, function, {"requires_grad": False, "device": None})
        return call

    return decorate


def add_keywords(call: Any, function: Callable[..., Any], keywords: dict[str, Any]) -> None:
    """Give `call` the signature of the function that it wraps, with more keywords."""
    plain = inspect.signature(function)
    kind = inspect.Parameter.KEYWORD_ONLY
    notes = {False: "bool", None: inspect.Parameter.empty}
    more = [
        inspect.Parameter(name, kind, default=default, annotation=notes[default])
        for name, default in keywords.items()
    ]
    call.__signature__ = plain.replace(parameters=[*plain.parameters.values(), *more])


def aliases(**names: str | tuple[str, ...]) -> Callable[[F], F]:
    """Accept more names for parameters: `@aliases(dim="axis")` makes `axis=1` mean `dim=1`."""
    pairs = [
        (name, alias)
        for name, more in names.items()
        for alias in ((more,) if isinstance(more, str) else more)
    ]

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for name, alias in pairs:
                if alias in kwargs:
                    if name in kwargs or len(args) > positions[name]:
                        facts = f"give {name} or {alias}, not both"
                        raise ArgumentError(f"{function.__name__}: {facts}")
                    kwargs[name] = kwargs.pop(alias)
            return function(*args, **kwargs)

        positions = {name: i for i, name in enumerate(inspect.signature(function).parameters)}
        add_keywords(call, function, {alias: None for _, alias in pairs})
        return call  # type: ignore[return-value]

    return decorate


DEVICES = ("cpu", "cuda", "mps", "xpu", "meta")


def is_device(x: Any) -> bool:
    """True for PyTorch's device names."""
    return isinstance(x, str) and x.partition(":")[0] in DEVICES


def check_device(name: str, device: Any) -> None:
    if str(device).partition(":")[0] != "cpu":
        facts = f"device={device!r} is not supported; tensors are in CPU memory"
        raise ArgumentError(f"{name}: {facts}: omit device, or pass 'cpu'")


def public_name(function: Callable[..., Any]) -> str:
    """Return the name users call a function by: lucid.linalg.inv, lucid.sum, lucid.nn.Linear."""
    if function.__name__ == "__init__":
        space = function.__module__.split(".")[1]
        return f"lucid.{space}.{function.__qualname__.removesuffix('.__init__')}"
    spaces = ("nn.functional", "nn.init", "nn.utils", "utils.data", "linalg", "special", "random")
    for space in spaces:
        if function.__module__.startswith(f"lucid.{space}"):
            return f"lucid.{space}.{function.__name__}"
    space = "fft." if function.__module__ == "lucid.fft" else ""
    return f"lucid.{space}{function.__name__}"


def check_callable(name: str, f: Any) -> None:
    if not callable(f):
        raise ArgumentError(f"{name}: a {type(f).__name__} is not a function")


def format_call(function: Callable[..., Any], args: Any, kwargs: Any) -> str:
    """Return a call as text, with a short description of each argument."""
    name = function.__name__
    if name == "__init__":
        name, args = type(args[0]).__name__, args[1:]
    given = [format_argument(x) for x in args]
    given += [f"{key}={format_argument(x)}" for key, x in kwargs.items()]
    return f"{name}({', '.join(given)})"


def format_argument(x: Any) -> str:
    """Return a short description of an argument."""
    if hasattr(x, "type") and hasattr(x, "node"):
        return str(x.type)
    if isinstance(x, np.ndarray):
        return f"array of {x.dtype} {x.shape}"
    text = repr(x)
    return text if len(text) <= 40 else f"{text[:37]}..."


def number(function: str, parameter: str, x: Any) -> Any:
    """Return a parameter without a derivative as a Python number; other objects are unchanged.

    A tensor that requires a gradient raises an error, because the number would be a constant.
    """
    if needs_grad(x):
        raise TensorForNumberError(x, function, parameter)
    return x.item() if isinstance(x, (Traced, np.generic, np.ndarray)) else x  # type: ignore[union-attr]


def flag(function: str, parameter: str, x: Any) -> bool:
    """Return a parameter that is True or False; raise for what is neither, as an array."""
    try:
        return bool(x)
    except (TypeError, ValueError) as error:
        facts = f"{parameter}={format_argument(x)} is neither True nor False"
        raise ArgumentError(f"{function}: {facts}{at_line()}") from error


def name_parameter(
    function: Callable[..., Any], args: Any, kwargs: Any, error: TensorForNumberError
) -> TensorForNumberError:
    """Return the error with the names of `function` and of its parameter that got the tensor."""
    given = inspect.signature(function).bind(*args, **kwargs).arguments
    for name, value in given.items():
        if value is error.tensor:
            return TensorForNumberError(error.tensor, function.__name__, name)
    return error


def is_one(x: Any) -> bool:
    """True if `x` is the Python number 1, by which there is nothing to multiply."""
    return isinstance(x, (int, float)) and x == 1


def concrete_array(x: Any) -> np.ndarray | None:
    """Return the values of `x`, or None inside a trace, where reading them would bake them in."""
    traced = x.node is not None and x.node.flags & TRACE
    return None if x.raw is None or traced or is_recording() else x.value
