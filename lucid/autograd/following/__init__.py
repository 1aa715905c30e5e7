"""Eager steps that repeat: followed instead of executed, and run as one program."""
