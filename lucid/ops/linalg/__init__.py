"""Linear algebra: contractions, factorizations, eigenvalues, Fourier transforms."""
