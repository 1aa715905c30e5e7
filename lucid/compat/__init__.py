"""Namespaces for programs written for other libraries."""
