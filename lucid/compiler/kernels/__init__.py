"""Kernels: fused groups as loop nests, and the LLVM code of those loops."""
