"""Gzip (RFC 1952): one decoder for what comes over the wire and what the store has kept of it.

It is isal's, at twice zlib's speed, where it has a wheel for this processor. The two differ in which broken streams
they take; what one of them accepted must be read back by the same.
"""

from __future__ import annotations

import zlib

try:
    from isal import isal_zlib
except ImportError:
    isal_zlib = None  # type: ignore[assignment]

_library = isal_zlib or zlib
_GZIP = 31

#: What is raised for data that is not gzip.
BROKEN: tuple[type[Exception], ...] = (zlib.error, getattr(isal_zlib, "error", zlib.error), EOFError)


def member() -> zlib._Decompress:
    """A decoder of one member, with zlib's methods. They raise :data:`BROKEN`."""
    made: zlib._Decompress = _library.decompressobj(_GZIP)
    return made


def gunzip(data: bytes) -> bytes:
    """Decode one whole member. Raises :data:`BROKEN`."""
    decoded: bytes = _library.decompress(data, _GZIP)
    return decoded
