"""Fusion: which equations share one kernel."""
