"""Tests of exported modules."""
