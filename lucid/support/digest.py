"""digest: 32 bytes that stand for others, in the keys and the checks of files in the cache."""

from __future__ import annotations

try:  # hashlib loads OpenSSL, 3 ms of a start that finds its programs in the cache
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b


def digest(*parts: bytes) -> bytes:
    """Return the BLAKE2b digest of bytes, one after the other."""
    found = blake2b(digest_size=32)
    for part in parts:
        found.update(part)
    return found.digest()
