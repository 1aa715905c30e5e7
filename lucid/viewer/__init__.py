"""Views of compiled programs: the page of `lucid.view`, and the command line."""
