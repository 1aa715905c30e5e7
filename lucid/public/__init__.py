"""Public names: declared beside their functions, indexed, and imported when they are first used."""
