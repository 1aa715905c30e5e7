"""Shared by all operations: kinds, dtype promotion, argument and axis checks."""
