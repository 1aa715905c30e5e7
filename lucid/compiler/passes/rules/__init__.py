"""Rules of `simplify` by theme: matrix products, reads and writes at indices."""
