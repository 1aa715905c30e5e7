"""Namespaces for programs that are written for other libraries."""
