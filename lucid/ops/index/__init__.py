"""Reading and writing at indices: gather, scatter, subscripts, searches."""
