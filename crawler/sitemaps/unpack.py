"""Convert a body to characters piece by piece: gzip (RFC 1952), then the encoding (XML 1.0, appendix F)."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator

from crawler.sitemaps.findings import Stop

_GZIP = b"\x1f\x8b"
_SLICE_BYTES = 16_384  # small, because zlib copies the input that it has not consumed
_PIECE_BYTES = 65_536
_HEAD_BYTES = 1024
#: The most gzip members in one body. Some compressors write a member for every 64 KiB.
_MAX_MEMBERS = 1000

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DECLARATION = re.compile(rb"\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
# Python also has codecs that no XML uses (``idna``, ``unicode_escape``), so only known families are looked up.
_ENCODINGS = re.compile(
    r"(us-)?ascii|iso-8859-\d\d?|latin-?\d|(windows-|cp)125\d|koi8-[ru]|gb2312|gbk|gb18030|big5|shift_jis|euc-(jp|kr)"
)


def characters(body: bytes, max_bytes: int) -> Iterator[str]:
    """Yield the text of ``body`` in pieces. The body is decompressed if its first octets say gzip.

    Byte order marks and white space before the first visible character are left out. Undecodable octets become
    U+FFFD. If the gzip is broken or expands beyond ``max_bytes``, the iterator yields the readable part and then
    raises :class:`~crawler.sitemaps.findings.Stop`.
    """
    decoder: codecs.IncrementalDecoder | None = None
    begun = False
    for piece in _octets(body, max_bytes):
        if decoder is None:
            decoder = codecs.getincrementaldecoder(_codec(piece))("replace")
        text = decoder.decode(piece)
        if not begun:
            text = text.lstrip("\ufeff \t\r\n")
            begun = bool(text)
        if text:
            yield text
    if decoder is not None:
        yield decoder.decode(b"", True)


def _codec(head: bytes) -> str:
    """The codec for a body that begins with ``head``; UTF-8 unless the body declares a known encoding."""
    for bom, codec in _BOMS:
        if head.startswith(bom):
            return codec
    if head.startswith(b"<\x00"):
        return "utf-16-le"
    if head.startswith(b"\x00<"):
        return "utf-16-be"
    declared = _DECLARATION.match(head[:_HEAD_BYTES])
    # A declaration of UTF-16 that is readable as ASCII is wrong. It is ignored like unknown encodings.
    name = declared[1].decode("ascii").lower() if declared else ""
    try:
        return codecs.lookup(name).name if _ENCODINGS.fullmatch(name) else "utf-8"
    except LookupError:
        return "utf-8"


def _octets(body: bytes, max_bytes: int) -> Iterator[bytes]:
    """The decompressed body in non-empty pieces of bounded size, ``max_bytes`` in all."""
    room = max_bytes
    for piece in _gunzip(body) if body.startswith(_GZIP) else _slices(body, _PIECE_BYTES):
        if len(piece) > room:
            yield piece[:room]
            raise Stop(f"more than {max_bytes} bytes")
        room -= len(piece)
        if piece:
            yield piece


def _slices(body: bytes, size: int) -> Iterator[bytes]:
    return (body[start : start + size] for start in range(0, len(body), size))


def _gunzip(body: bytes) -> Iterator[bytes]:
    """Read a series of gzip members as one stream. Data after the last member are padding."""
    stream = zlib.decompressobj(31)
    members = 1
    try:
        for piece in _slices(body, _SLICE_BYTES):
            data = piece
            while data:
                if stream.eof:
                    if not data.startswith(_GZIP[: len(data)]):
                        return
                    members += 1
                    if members > _MAX_MEMBERS:
                        raise Stop(f"gzip: more than {_MAX_MEMBERS} members")
                    stream = zlib.decompressobj(31)
                yield stream.decompress(data, _PIECE_BYTES)
                data = stream.unused_data if stream.eof else stream.unconsumed_tail
        yield stream.decompress(b"", _PIECE_BYTES)
    except zlib.error as error:
        raise Stop(f"gzip: broken ({error})") from None
    if not stream.eof:
        raise Stop("gzip: it ends too early")
