"""Two ways from a Nest to machine code: LLVM text, and Numba on the Python listing."""
