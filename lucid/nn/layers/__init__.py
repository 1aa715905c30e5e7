"""Layers: Modules around the functions of `nn.functional`, by theme."""
