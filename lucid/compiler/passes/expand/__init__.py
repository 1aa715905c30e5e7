"""Passes that replace operations by simpler ones, so that they fuse."""
