"""Passes over loops: hoist, merge and reroll."""

MIN_EQUATIONS = 2000  # of a loop that is rerolled: fewer compile quickly as they are
