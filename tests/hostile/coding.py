"""Bodies in content codings: bombs, broken and stacked codings, and windows beyond what a client must have."""

from __future__ import annotations

import gzip
import zlib

import brotli
from backports import zstd

from tests.hostile.behaviour import FETCHED, HTML, Behaviour, End, answer, failed, floods, page_behaviour

_BODY = b"<title>Whole</title>" + b"<p>words" * 200
_GZIP = gzip.compress(_BODY, mtime=0)
_DEFLATE = zlib.compressobj(wbits=-15)
_RAW = _DEFLATE.compress(_BODY) + _DEFLATE.flush()
_BOMB = b"<p>" * 4_000_000
_ENCODING = failed("encoding")
_TOO_LARGE = failed("too_large")


def _coded(body: bytes, coding: bytes) -> bytes:
    return answer(body, b"Content-Encoding: " + coding)


def _times(body: bytes, times: int) -> bytes:
    for _ in range(times):
        body = gzip.compress(body, mtime=0)
    return body


def _zstd(body: bytes, window_log: int) -> bytes:
    """A frame that needs a window of this size."""
    options: dict[int, int] = {
        zstd.CompressionParameter.window_log: window_log,
        zstd.CompressionParameter.content_size_flag: 0,
    }
    made = zstd.ZstdCompressor(options=options)
    return made.compress(body) + made.flush()


_ABOVE: tuple[tuple[str, str, bytes, End], ...] = (
    ("gzip-bomb", "sends a bomb of gzip", _coded(gzip.compress(_BOMB, mtime=0), b"gzip"), _TOO_LARGE),
    ("deflate-bomb", "sends a bomb of deflate", _coded(zlib.compress(_BOMB), b"deflate"), _TOO_LARGE),
    ("brotli-bomb", "sends a bomb of brotli", _coded(brotli.compress(_BOMB, quality=5), b"br"), _TOO_LARGE),
    ("zstd-bomb", "sends a bomb of zstd", _coded(zstd.compress(_BOMB), b"zstd"), _TOO_LARGE),
    ("gzip-cut", "cuts gzip short", _coded(_GZIP[:-20], b"gzip"), failed("truncated")),
    ("brotli-cut", "cuts brotli short", _coded(brotli.compress(_BODY)[:-5], b"br"), failed("truncated")),
    ("zstd-cut", "cuts zstd short", _coded(zstd.compress(_BODY)[:-5], b"zstd"), failed("truncated")),
    ("gzip-crc", "sends gzip with a wrong checksum", _coded(_GZIP[:-8] + b"\1" * 8, b"gzip"), _ENCODING),
    ("gzip-none", "declares gzip for plain text", _coded(_BODY, b"gzip"), _ENCODING),
    ("brotli-none", "declares brotli for plain text", _coded(_BODY, b"br"), _ENCODING),
    ("zstd-none", "declares zstd for plain text", _coded(_BODY, b"zstd"), _ENCODING),
    ("zstd-gzip", "declares zstd for gzip", _coded(_GZIP, b"zstd"), _ENCODING),
    ("gzip-members", "sends 50,000 empty members of gzip", _coded(gzip.compress(b"", mtime=0) * 50_000, b"gzip"),
     _ENCODING),
    ("zstd-frames", "sends 100,000 empty frames of zstd", _coded(zstd.compress(b"") * 100_000, b"zstd"), _ENCODING),
    ("zstd-skippable", "sends a skippable frame of 2 GB",
     _coded(b"\x50\x2a\x4d\x18\xff\xff\xff\x7f" + b"x" * 9, b"zstd"),
     failed("truncated", "encoding", "too_large")),
    ("zstd-window-8", "sends zstd with a window of 8 MB", _coded(_zstd(_BODY, 23), b"zstd"), FETCHED),
    ("zstd-window-16", "sends zstd with a window of 16 MB", _coded(_zstd(_BODY, 24), b"zstd"), _ENCODING),
    ("zstd-window-128", "sends zstd with a window of 128 MB", _coded(_zstd(_BODY, 27), b"zstd"), _ENCODING),
    ("zstd-window-2048", "sends zstd with a window of 2 GB", _coded(_zstd(_BODY, 31), b"zstd"), _ENCODING),
    ("zstd-dictionary", "sends zstd that needs a dictionary",
     _coded(b"\x28\xb5\x2f\xfd\x23\x01\x02\x03\x04\x10" + b"\x81\0\0", b"zstd"), _ENCODING),
    ("brotli-window", "sends brotli with a large window", _coded(b"\x11\x1e" + b"\0" * 40, b"br"),
     failed("encoding", "truncated")),
    ("gzip-name", "sends gzip with a file name of 1 MB",
     _coded(_GZIP[:3] + b"\x08" + _GZIP[4:10] + b"x" * 1_000_000 + b"\0" + _GZIP[10:], b"gzip"), FETCHED),
    ("unknown", "sends an unknown coding", _coded(_BODY, b"x-evil"), _ENCODING),
    ("compress", "sends the coding of compress", _coded(b"\x1f\x9d\x90abc", b"compress"), _ENCODING),
    ("name-escape", "names a coding that writes on the terminal", _coded(_BODY, b"\x9b2J\xe2\x80\xae"), _ENCODING),
    ("name-long", "names a coding of 30 kB", _coded(_BODY, b"x" * 30_000), _ENCODING),
    ("stacked", "stacks gzip 20 times", _coded(_times(_BODY, 20), b", ".join([b"gzip"] * 20)), _ENCODING),
    ("stacked-hundred", "names a hundred codings", _coded(_BODY, b", ".join([b"br"] * 100)), _ENCODING),
    ("deflate-raw", "sends deflate without its wrapper", _coded(_RAW, b"deflate"), FETCHED),
    ("empty", "declares gzip for an empty body", _coded(b"", b"gzip"), FETCHED),
)  # fmt: skip

_QUICK = {"gzip-bomb", "brotli-bomb", "zstd-bomb", "gzip-cut", "zstd-window-8", "stacked", "unknown"}

BEHAVIOURS: tuple[Behaviour, ...] = (
    *(page_behaviour(f"coding-{name}", what, sent, end, quick=name in _QUICK) for name, what, sent, end in _ABOVE),
    page_behaviour(
        "coding-zstd-endless", "sends skippable frames of zstd without end",
        floods(HTML + b"Content-Encoding: zstd\r\n\r\n", b"\x50\x2a\x4d\x18\x08\0\0\0" + b"x" * 8), _TOO_LARGE,
    ),
)  # fmt: skip
