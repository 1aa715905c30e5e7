"""Runs of functions that become Graphs: real ones by a Recorder, abstract ones by trace."""
