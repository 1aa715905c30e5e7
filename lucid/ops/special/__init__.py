"""Special functions of mathematics and statistics, and window functions."""
