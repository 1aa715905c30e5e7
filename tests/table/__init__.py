"""The table of public names: a row for every operation that Lucid exports."""
