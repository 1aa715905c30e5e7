"""Losses, by theme: of numbers, of probabilities, of classes, with margins, of sequences."""
