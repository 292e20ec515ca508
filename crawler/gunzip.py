"""Gzip (RFC 1952): the decoder for bodies from the wire and for stored bodies.

The decoder is that of isal, at twice the speed of zlib, on processors for which isal has a wheel. The two libraries
accept different broken streams, so a stream that one of them accepted must be read again by the same.
"""

from __future__ import annotations

import zlib

try:
    from isal import isal_zlib
except ImportError:
    isal_zlib = None  # type: ignore[assignment]

_library = isal_zlib or zlib
_GZIP = 31

#: The exceptions for data that is not gzip.
BROKEN: tuple[type[Exception], ...] = (zlib.error, getattr(isal_zlib, "error", zlib.error), EOFError)


def member() -> zlib._Decompress:
    """A decoder of one member, with the methods of zlib's. These raise :data:`BROKEN`."""
    made: zlib._Decompress = _library.decompressobj(_GZIP)
    return made


def gunzip(data: bytes) -> bytes:
    """Decode one whole member. Raises one of :data:`BROKEN`."""
    decoded: bytes = _library.decompress(data, _GZIP)
    return decoded
