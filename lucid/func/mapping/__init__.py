"""The levels of vmap, and functions built on it: collectives over named axes, vectorize."""
