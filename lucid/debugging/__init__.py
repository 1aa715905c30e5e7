"""Debugging tools: why a gradient is missing, where a nan comes from, what uses memory."""
