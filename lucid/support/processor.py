"""processor: the vector instructions of this CPU, by NumPy's names for them."""

from __future__ import annotations

from lucid.support.caches import once


@once
def features() -> dict[str, bool]:
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    return _multiarray_umath.__cpu_features__
