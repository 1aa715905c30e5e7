"""Solvers made of loops: linear systems by products with vectors, differential equations."""
