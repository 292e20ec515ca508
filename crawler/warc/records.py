"""Writes WARC 1.1 records (IIPC, https://iipc.github.io/warc-specifications/). A block is written octet by octet."""

from __future__ import annotations

import hashlib
import re
import uuid
import zlib
from base64 import b32encode
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from crawler.model import Preference
from crawler.preferences.purposes import sentence_of
from crawler.version import VERSION

Fields = Sequence[tuple[str, str]]

WARC_FIELDS = "application/warc-fields"
REQUEST, RESPONSE = "application/http;msgtype=request", "application/http;msgtype=response"

_FORMAT = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]+")
_LEVEL = 6


def record(kind: str, number: str, fields: Fields, block: bytes, content_type: str) -> bytes:
    """A record of the type ``kind`` with the identifier ``number``, not compressed."""
    head = [
        ("WARC-Type", kind),
        ("WARC-Record-ID", number),
        *fields,
        ("WARC-Block-Digest", digest(block)),
        ("Content-Type", content_type),
        ("Content-Length", str(len(block))),
    ]
    lines = "".join(f"{name}: {value}\r\n" for name, value in head)
    return b"WARC/1.1\r\n" + lines.encode() + b"\r\n" + block + b"\r\n\r\n"


def warcinfo(filename: str, fields: Fields, now: float) -> tuple[str, bytes]:
    """The identifier and the content of the first record of a file. ``now`` is in seconds since the epoch.

    ``fields`` follow those about the software and the format. ``filename`` is empty for a file without a name.
    """
    number = new_id()
    head = [("WARC-Date", warc_date(now)), *([("WARC-Filename", filename)] if filename else ())]
    about = [("software", f"polite-crawler/{VERSION}"), ("format", "WARC File Format 1.1"), ("conformsTo", _FORMAT)]
    return number, record("warcinfo", number, head, warc_fields([*about, *fields]), WARC_FIELDS)


def gzip_member(content: bytes) -> bytes:
    """A record as a gzip member. A short record gets a small window, which is much faster to set up."""
    window_bits, memory = (12, 5) if len(content) < 4096 else (15, 8)
    made = zlib.compressobj(_LEVEL, zlib.DEFLATED, 16 + window_bits, memory)
    return made.compress(content) + made.flush()


def new_id() -> str:
    """An identifier for a record."""
    return f"<{uuid.uuid4().urn}>"


def digest(data: bytes) -> str:
    """The digest of a block or a payload, by SHA-1 as in other archives."""
    return "sha1:" + b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()


def warc_fields(fields: Fields) -> bytes:
    """The fields as ``application/warc-fields``, without empty ones."""
    return "".join(f"{name}: {one_line(value)}\r\n" for name, value in fields if value).encode()


def one_line(value: str) -> str:
    """``value`` with a space for each run of control characters."""
    return _CONTROLS.sub(" ", value)


def warc_date(epoch_s: float) -> str:
    """The time as ``WARC-Date`` writes it, in UTC with microseconds (WARC 1.1, 5.4)."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def preference_fields(preferences: Iterable[Preference]) -> list[tuple[str, str]]:
    """A field for each preference about use: ``preference: train-ai=n (line 4 of robots.txt, Content-Usage: …)``."""
    return [("preference", f"{one.category}={one.value} ({sentence_of(one)})") for one in preferences]
