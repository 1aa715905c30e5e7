"""Branches and loops as instructions that hold other plans."""
