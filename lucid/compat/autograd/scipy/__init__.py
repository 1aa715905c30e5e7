"""The parts of SciPy that autograd wraps: special functions, distributions, linear algebra."""
