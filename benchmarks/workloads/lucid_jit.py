"""`lucid.jit`, also before the package exports it, and hot graphs switched on."""

import lucid
from lucid.compiler.jit import hot_programs as hot

if hasattr(lucid, "jit"):
    jit = lucid.jit
else:
    from lucid.compiler.jit.jit import jit  # noqa: F401

    hot.install()
