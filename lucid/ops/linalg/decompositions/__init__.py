"""Factorizations, eigenvalues and singular values, and systems solved with them."""
