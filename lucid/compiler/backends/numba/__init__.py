"""The Numba backend: Numba compiles the Python listing of a kernel; the same plans run it."""
