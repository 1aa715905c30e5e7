"""guards: the outer variables that a recorded run depends on, and how they are compared."""
