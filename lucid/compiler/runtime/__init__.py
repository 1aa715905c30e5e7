"""The native runtime: code generation, loading, the disk cache, threads, BLAS and LAPACK."""
