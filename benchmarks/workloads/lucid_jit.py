"""`lucid.jit`, for the workloads that compare systems by their module of this name."""

from lucid import jit  # noqa: F401
