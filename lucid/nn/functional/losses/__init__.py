"""Losses: regression, probabilities, classes, margins, sequences."""
