"""GradBench's objectives, a module each, in one text that Lucid, JAX and PyTorch run.

A module has `data(rng)`, the arguments as NumPy arrays; the objective itself, whose first argument
is a library (libraries.py); and `variants(lib)`, from names to the functions that are timed. Where
it has `SIZES`, the sizes of GradBench's own evals, both take one of them as keywords.
"""

MODULES = [
    "gmm", "ba", "ht", "lstm", "kmeans", "ode", "llsq", "lse", "det", "particle", "saddle"
]  # fmt: skip
