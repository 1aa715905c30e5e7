"""Lowering: equations to instructions of a plan; one folder a family of operations."""
