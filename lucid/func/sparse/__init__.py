"""Jacobians with a known pattern of zeros: finding the pattern, and coloring its columns."""
