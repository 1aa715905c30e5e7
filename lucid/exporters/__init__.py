"""Exporters: compiled functions as stand-alone modules that run without Lucid."""
