"""The table of primitives: every class in `lucid.ops` has a Case here, and a test fails where one has none."""
