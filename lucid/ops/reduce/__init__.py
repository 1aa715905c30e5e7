"""Reductions, cumulative operations, sorting and statistics."""
