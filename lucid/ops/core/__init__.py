"""What all operations share: kinds, dtype promotion, argument and axis checks."""
