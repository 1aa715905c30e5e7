"""doctor: the components of this installation, and whether they work."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import numpy as np

from lucid.support.settings import SETTINGS, setting

PACKAGES = ("numpy", "numba", "llvmlite", "scipy", "optree")
VECTORS = ("avx512f", "avx2", "avx", "fma", "neon", "asimd", "sve", "sse4.2")


class Finding(NamedTuple):
    """A line of the doctor's report."""

    name: str
    text: str
    good: bool = True


def examine() -> list[Finding]:
    """Return the findings: versions, CPU, threads, settings, cache, a program on each backend."""
    return [*_versions(), _cpu(), _threads(), *_settings(), _cache(), *_backends()]


def _versions() -> Iterator[Finding]:

    system = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield Finding("lucid", f"{sys.modules['lucid'].__version__} on {system}")
    found, missing = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    text = ", ".join(found) + (f"; missing: {', '.join(missing)}" if missing else "")
    yield Finding("packages", text, not missing)


def _cpu() -> Finding:
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    vectors = [name for name in VECTORS if features.get(name)]
    return Finding("CPU", f"{llvm.get_host_cpu_name()} with {', '.join(vectors) or 'no vectors'}")


def _threads() -> Finding:
    from lucid.compiler.runtime.threads import get_num_threads

    n, usable = get_num_threads(), len(os.sched_getaffinity(0))
    advice = "; more than the CPUs this process may use" if n > usable else ""
    return Finding("threads", f"{n} of {usable} CPUs{advice}", n <= usable)


def _settings() -> Iterator[Finding]:
    for name in SETTINGS:
        if os.environ.get(name, "").strip():
            try:
                yield Finding(name, repr(setting(name)))
            except Exception as error:
                yield Finding(name, str(error), False)
    for name in sorted(os.environ):
        if name.startswith("LUCID_") and name not in SETTINGS:
            yield Finding(name, "there is no such setting", False)


def _cache() -> Finding:
    from lucid.compiler.runtime import cache

    state = cache.info()
    if state.problem is not None:
        return Finding("cache", f"not used: {state.problem}", False)
    bad = cache.damaged()
    text = f"{state.entries} entries, {state.bytes / 1e6:.1f} MB in {state.path}"
    return Finding("cache", text + (f"; {len(bad)} damaged" if bad else ""), not bad)


def _backends() -> Iterator[Finding]:
    for name in ("llvm", "numba"):
        yield _attempt(f"backend {name}", lambda name=name: _compute(name))  # type: ignore[misc]


def _attempt(name: str, act: Callable[[], str]) -> Finding:
    try:
        return Finding(name, act())
    except Exception as error:
        return Finding(name, f"{type(error).__name__}: {error}", False)


def _compute(backend: str) -> str:
    """Compile a small program, compare its result with NumPy's, and say how long it took."""
    import time

    from lucid.compiler.jit.jit import jit
    from lucid.ops.elementwise.trigonometric import tanh
    from lucid.tensors.tensor import Tensor

    x = np.linspace(-2, 2, 64, dtype="float32").reshape(8, 8)
    begin = time.perf_counter()
    f = jit(lambda x: (tanh(x @ x) * 2.0).sum(), backend=backend)
    found = [float(f(Tensor(x)).value) for _ in range(2)]
    spent = time.perf_counter() - begin
    expected = float((np.tanh(x @ x) * 2).sum())
    if any(abs(value - expected) > 1e-4 for value in found):
        raise ArithmeticError(f"computed {found[-1]}, but NumPy computed {expected}")
    return f"computes what NumPy does; compiled and ran in {spent * 1000:.0f} ms"
