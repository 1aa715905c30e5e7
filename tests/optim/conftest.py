"""Fixtures that tests of compiled steps share with those of the compiler."""

from tests.compiler.conftest import new_kernels, private_cache

__all__ = ["new_kernels", "private_cache"]
