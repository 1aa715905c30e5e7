"""lucid.testing: assert_close, which reports where and by how much values differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.ops.core.promote import as_tensor
from lucid.public.declare import public
from lucid.public.lazy import attach
from lucid.tape.node import Traced

# (rtol, atol) by dtype, as in PyTorch; other dtypes are compared exactly.
TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


@public("testing")
def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless |actual - expected| ≤ atol + rtol · |expected| everywhere.

    Compares numbers, arrays, tensors, and nested sequences and mappings of them. The default
    tolerances depend on the dtype; if dtypes differ, the looser one applies. There is one device
    and one layout, so `check_device` and `check_layout` have no effect.

    >>> import lucid
    >>> lucid.testing.assert_close(lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 2.5]))
    Traceback (most recent call last):
        ...
    AssertionError: 1 of 2 elements are not close: the greatest absolute difference is 0.5 at (1,) \
(1e-05 is allowed), the greatest relative difference 0.2 at (1,) (1.3e-06 is allowed)
    """
    if (rtol is None) != (atol is None):
        raise ArgumentError("assert_close: give both rtol and atol, or neither")
    mismatch = next(differences(actual, expected, "", rtol, atol, equal_nan, check_dtype), None)
    if mismatch is not None:
        text = msg(mismatch) if callable(msg) else msg
        raise AssertionError(mismatch if text is None else text)


def differences(
    actual: Any, expected: Any, where: str, rtol: Any, atol: Any, equal_nan: bool, dtypes: bool
) -> Iterator[str]:
    """Yield a description of every difference, with the path of the item."""
    rest = (rtol, atol, equal_nan, dtypes)
    place = f" (item {where})" if where else ""
    if is_sequence(actual) and is_sequence(expected):
        if len(actual) != len(expected):
            yield f"the lengths differ: {len(actual)} and {len(expected)}{place}"
            return
        for i, (a, e) in enumerate(zip(actual, expected)):
            yield from differences(a, e, f"{where}[{i}]", *rest)
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        missing, extra = expected.keys() - actual.keys(), actual.keys() - expected.keys()
        if missing or extra:
            yield f"the keys differ: {sorted(missing)} are missing, {sorted(extra)} extra{place}"
            return
        for key in expected:
            yield from differences(actual[key], expected[key], f"{where}[{key!r}]", *rest)
    else:
        for text in array_differences(actual, expected, *rest):
            yield text + place


def is_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, (str, bytes))


def array_of(x: Any) -> np.ndarray:
    if isinstance(x, Traced):
        return as_tensor(x).detach().numpy()
    array = np.asarray(x)
    if array.dtype.kind not in "biufc":
        raise ArgumentError(
            f"assert_close: a {type(x).__name__} is not a number, tensor, sequence or mapping"
        )
    return array


def array_differences(
    actual: Any, expected: Any, rtol: Any, atol: Any, equal_nan: bool, dtypes: bool
) -> Iterator[str]:
    a, e = array_of(actual), array_of(expected)
    if a.shape != e.shape:
        yield f"the shapes differ: {a.shape} and {e.shape}"
        return
    if dtypes and a.dtype != e.dtype:
        yield f"the dtypes differ: {a.dtype} and {e.dtype}"
        return
    if rtol is None:
        pairs = [TOLERANCES.get(x.dtype.name, (0.0, 0.0)) for x in (a, e)]
        rtol, atol = max(p[0] for p in pairs), max(p[1] for p in pairs)
    close = np.isclose(a, e, rtol, atol, equal_nan)
    if close.all():
        return
    what = f"{(~close).sum()} of {close.size} elements are not close"
    what = what if close.ndim else f"{e.item()} is expected, not {a.item()}"
    if a.dtype.kind not in "fc" and e.dtype.kind not in "fc":
        a, e = a.astype("float64"), e.astype("float64")
    with np.errstate(all="ignore"):
        absolute = np.where(close, 0.0, np.abs(a - e))
        relative = np.where(close, 0.0, absolute / np.abs(e))
    yield (
        f"{what}: the greatest absolute difference is {greatest(absolute)} ({atol} is allowed), "
        f"the greatest relative difference {greatest(relative)} ({rtol} is allowed)"
    )


def greatest(x: np.ndarray) -> str:
    """Return the greatest number (nan counts as the greatest) and its index."""
    index = np.unravel_index(np.argmax(np.where(np.isnan(x), np.inf, x)), x.shape)
    at = f" at {tuple(int(i) for i in index)}" if x.ndim else ""
    return f"{x[index]:.6g}{at}"


_, __dir__, __all__ = attach(__name__)
