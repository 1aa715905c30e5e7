"""The table of primitives: every class in `lucid.ops` has a Case here, or else a test fails."""
