"""Layers over sequences: recurrent cells and networks, attention, transformers."""
