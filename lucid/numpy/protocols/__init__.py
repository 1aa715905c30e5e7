"""NumPy's protocols: which function of ours answers a call of NumPy on tensors."""
