"""The compiler: from a Graph to one native call."""
