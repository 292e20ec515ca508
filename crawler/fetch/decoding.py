"""Content codings (RFC 9110, 8.4.1): bounded, incremental decoders. Pure.

The HTTP library could decode too, but it accepts a gzip stream that stops half-way and does not decode ``gzip, gzip``.
Both are failures here. Other codings are decoded as a body arrives, but a page in gzip is decoded by the parser process
(:func:`decode_gzip`), which needs it in the form in which it is stored.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Protocol

import brotli

from crawler import gunzip
from crawler.reasons import ErrorKind, RequestError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_BROKEN: tuple[type[Exception], ...] = (*gunzip.BROKEN, zstd.ZstdError)

#: Concatenated members (RFC 1952, 2.2) or frames (RFC 8878, 3.1) accepted in one body. Each costs a copy of the bytes
#: behind it, so a body with more is an attack.
MAX_MEMBERS = 64
#: The largest window of a zstd frame, as the logarithm to base 2 (RFC 9659, 3: 8 MB). A decoder allocates its window.
_ZSTD_WINDOW_LOG = 23


class BadCoding(ValueError):
    """A coding that was not offered, or data that is not in its coding; ``str()`` is a sentence for people."""


class Decoder(Protocol):
    """The decoder of one body."""

    def feed(self, data: bytes, room: int) -> bytes:
        """Decode ``data``; returns at most ``room`` (> 0) bytes. When ``room`` was filled, feed no more.

        Raises :class:`BadCoding` if the data is broken.
        """
        ...

    def complete(self) -> bool:
        """Whether the coded stream has come to its end."""
        ...


class _Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    def feed(self, data: bytes, room: int) -> bytes:
        try:
            return bytes(self._stream.process(data, output_buffer_limit=room)[:room])
        except brotli.error:
            raise BadCoding("the body is not valid brotli") from None

    def complete(self) -> bool:
        return bool(self._stream.is_finished())


class _Member(Protocol):
    """The common part of the decoders of zlib and zstd."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Members:
    """A series of gzip members or zstd frames, decoded as one body. Other data behind them is padding."""

    def __init__(self, name: str, new: Callable[[], _Member], magic: bytes, limits: str = "") -> None:
        self._name, self._new, self._magic, self._limits = name, new, magic, limits
        self._stream = new()
        self._members = 1
        self._padding = False

    def feed(self, data: bytes, room: int) -> bytes:
        if not self._stream.eof:
            decoded = self._decompress(data, room)
            if not self._stream.eof:
                return decoded
            data = self._stream.unused_data
        else:
            decoded = b""
        while data and not self._padding and len(decoded) < room:
            self._begin_member(data)
            decoded += self._decompress(data, room - len(decoded)) if not self._padding else b""
            data = self._stream.unused_data
        return decoded

    def complete(self) -> bool:
        return self._stream.eof

    def is_one(self) -> bool:
        """Whether all data fed is one whole member with a valid checksum, so that it can be kept for the body."""
        stream = self._stream
        return self._members == 1 and stream.eof and not (stream.unused_data or self._padding)

    def _begin_member(self, data: bytes) -> None:
        self._padding = not data.startswith(self._magic[: len(data)])
        if self._padding:
            return
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise BadCoding(f"the body has more than {MAX_MEMBERS} {self._name} streams in a row")
        self._stream = self._new()

    def _decompress(self, data: bytes, room: int) -> bytes:
        try:
            return self._stream.decompress(data, room)
        except _BROKEN:
            raise BadCoding(f"the body is not valid {self._name}{self._limits}") from None


class _Deflate:
    """Zlib format, which the standard requires, or bare deflate, which many servers send (RFC 9110, 8.4.1.2, note)."""

    def __init__(self) -> None:
        self._stream: zlib._Decompress | None = None

    def feed(self, data: bytes, room: int) -> bytes:
        if self._stream is None:
            # The low four bits of a zlib header are always 8 (RFC 1950, 2.2).
            self._stream = zlib.decompressobj(15 if data[0] & 0x0F == 8 else -15)
        try:
            return self._stream.decompress(data, room)
        except zlib.error:
            raise BadCoding("the body is not valid deflate") from None

    def complete(self) -> bool:
        return self._stream is not None and self._stream.eof


def _gzip() -> _Members:
    return _Members("gzip", gunzip.member, b"\x1f\x8b")


def _zstd() -> Decoder:
    return _Members("zstd", _zstd_frame, b"\x28\xb5\x2f\xfd", " with a window of at most 8 MB")


def _zstd_frame() -> _Member:
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG})


def _decodes_brotli() -> bool:
    """Whether the module ``brotli`` is the expected one; the package brotlipy installs another one of that name."""
    try:
        _Brotli().feed(b"\x3b", 1)
    except (AttributeError, TypeError):
        return False
    return True


_DECODERS: dict[str, Callable[[], Decoder]] = {"gzip": _gzip, "deflate": _Deflate, "br": _Brotli, "zstd": _zstd}
if not _decodes_brotli():
    del _DECODERS["br"]

#: The value of ``Accept-Encoding``: exactly the codings that can be decoded.
ACCEPT_ENCODING = ", ".join(_DECODERS)
#: The value for a request that offers gzip alone.
ONLY_GZIP = "gzip"


#: A body whose coded stream stops before its end.
ENDS_EARLY = RequestError(ErrorKind.TRUNCATED, "the encoded data of the body ends early")


def too_large(what: str, max_bytes: int) -> RequestError:
    """The error of a body beyond its bound."""
    return RequestError(ErrorKind.TOO_LARGE, f"the body {what}; the limit is {max_bytes:,} bytes")


def decode_gzip(body: bytes, max_bytes: int) -> tuple[bytes, bool] | RequestError:
    """A whole body in gzip decoded, and whether it is one member; or why it cannot be decoded to ``max_bytes``."""
    found = _from_gzip(body, max_bytes)
    if isinstance(found, RequestError):
        return found
    decoded, decoder = found
    return too_large("is longer", max_bytes) if len(decoded) > max_bytes else (decoded, decoder.is_one())


def gzip_beginning(body: bytes, max_bytes: int) -> tuple[bytes, bool] | RequestError:
    """The first ``max_bytes`` of a body in gzip decoded, and whether there are more; or why it cannot be decoded."""
    found = _from_gzip(body, max_bytes)
    return found if isinstance(found, RequestError) else (found[0][:max_bytes], len(found[0]) > max_bytes)


def _from_gzip(body: bytes, max_bytes: int) -> tuple[bytes, _Members] | RequestError:
    """A body decoded, with one octet more than ``max_bytes`` if it is longer, and its decoder; or why it cannot be."""
    decoder = _gzip()
    try:
        decoded = decoder.feed(body, max_bytes + 1)
    except BadCoding as error:
        return RequestError(ErrorKind.ENCODING, str(error))
    return (decoded, decoder) if len(decoded) > max_bytes or decoder.complete() else ENDS_EARLY


@lru_cache(maxsize=16)  # a header section has at most 256 KiB
def coding_of(
    content_encoding: tuple[str, ...], transfer_encoding: tuple[str, ...] = (), *, only_gzip: bool = False
) -> str:
    """The coding that the values of ``Content-Encoding`` name; empty for a body without coding.

    ``transfer_encoding`` are the values of ``Transfer-Encoding``. The HTTP library decodes ``chunked``, and no other
    transfer coding was offered (RFC 9110, 10.1.4).

    Raises :class:`BadCoding` for a coding that was not offered, and for several codings on top of each other, which
    servers send by mistake or to multiply the size of the decoded body.
    """
    for coding in _codings(transfer_encoding):
        if coding != "chunked":
            raise BadCoding(f"the body's transfer coding {coding[:40]!r} was not offered")
    codings = [coding.removeprefix("x-") for coding in _codings(content_encoding)]
    if not codings:
        return ""
    if len(codings) > 1:
        raise BadCoding(f"the body is encoded {len(codings)} times over")
    if codings[0] not in _DECODERS or (only_gzip and codings[0] != ONLY_GZIP):
        raise BadCoding(f"the body's encoding {codings[0][:40]!r} was not offered")
    return codings[0]


def decoder_of(coding: str) -> Decoder:
    """A decoder of what :func:`coding_of` has returned."""
    return _DECODERS[coding]()


def _codings(values: Iterable[str]) -> list[str]:
    named = [coding.strip(" \t").lower() for value in values for coding in value.split(",")]
    return [coding for coding in named if coding not in ("", "identity")]
