"""`lucid.jit`, also before the package exports it, and hot graphs switched on."""

import lucid
from lucid.compiler import hot

if hasattr(lucid, "jit"):
    jit = lucid.jit
else:
    from lucid.compiler.jit import jit  # noqa: F401

    hot.install()
