"""Stages, kernels and profiles of compiled programs, for people to read."""
