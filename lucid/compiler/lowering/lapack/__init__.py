"""Factorizations and eigenvalues as calls of LAPACK."""
