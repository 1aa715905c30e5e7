"""Plans: a table of instructions over one arena, run as one native call."""
