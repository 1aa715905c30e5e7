"""NumPy's functions on tensors, with NumPy's signatures, defaults and results."""
