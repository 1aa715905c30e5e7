"""Built on vmap: collectives over named axes, vectorize, and functions with a batch rule."""
