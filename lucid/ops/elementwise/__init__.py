"""Elementwise operations: arithmetic, comparison, exponentials, trigonometry."""
