"""The stored form of bodies: the gzip member of the wire if there was one, else zstd."""

from __future__ import annotations

import sys

from crawler.gunzip import gunzip
from crawler.model import Body

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_GZIP = b"\x1f\x8b"


def compress(body: bytes, level: int = 1) -> bytes:
    """The stored form of a body that was received without gzip, or of a text."""
    return zstd.compress(body, level=level)


def stored_form(body: Body) -> bytes:
    """The stored form of a body."""
    return body.gzipped or compress(body.plain or b"")


def decompress(data: bytes) -> bytes:
    """A body as it was fetched and decoded, from its stored form."""
    return gunzip(data) if data.startswith(_GZIP) else zstd.decompress(data)
