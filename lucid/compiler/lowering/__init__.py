"""Lowering: equations to instructions of a plan, with one folder per family of operations."""
