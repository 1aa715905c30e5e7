"""The levels of vmap, and what is built on it: collectives over named axes, vectorize."""
