"""Pooling over windows: maximum, average, norm; fixed, adaptive and fractional sizes."""
