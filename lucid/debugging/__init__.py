"""Answers about a program: why a gradient is missing, where a nan comes from, what takes memory."""
