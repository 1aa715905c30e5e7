"""Tests of lucid.compat."""
