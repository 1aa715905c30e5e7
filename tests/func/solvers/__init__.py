"""Tests of lucid.func.solvers."""
