"""Passes over loops: hoist, merge and reroll."""
