"""Header and parts of a MIME entity, read in linear time (RFC 2045 and 2046).

Mails and forms come from strangers. The standard library parses header lines and the parameters of short fields. Parts
are split here, because the library's parser takes minutes and gigabytes for a hostile entity
(docs/decisions/0004-mail-by-the-standard-library.md).
"""

from __future__ import annotations

import re
from email.message import Message
from email.parser import BytesHeaderParser
from email.policy import compat32

_MAX_HEAD_BYTES = 64 * 1024
_MAX_FIELD_CHARS = 2000  # the library's time for the parameters of a field is quadratic
_HEAD_END = re.compile(rb"\r?\n\r?\n|\A\r?\n")


def split_head(octets: bytes) -> tuple[Message, bytes]:
    """The header of an entity, as a message without content, and the bytes after it."""
    start = octets[: _MAX_HEAD_BYTES + 4]
    end = _HEAD_END.search(start)
    if end is None:
        return Message(), b""
    return BytesHeaderParser(policy=compat32).parsebytes(start[: end.start()] + b"\n\n"), octets[end.end() :]


def field_of(head: Message, name: str) -> str:
    """The first field of this name, on one line, at most 2,000 characters of it."""
    return " ".join(str(head.get(name, "")).split())[:_MAX_FIELD_CHARS]


def short_header(head: Message, *names: str) -> Message:
    """The fields with these names, each as :func:`field_of` returns it, for the library to read their parameters."""
    short = Message()
    for name in names:
        if value := field_of(head, name):
            short[name] = value
    return short


def content_of(part: Message, body: bytes) -> bytes | None:
    """The bytes of an entity without its transfer encoding; ``part`` has the field ``Content-Transfer-Encoding``."""
    part.set_payload(body.decode("ascii", "surrogateescape"))
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else None


def split_parts(body: bytes, boundary: str, most: int) -> list[bytes]:
    """The parts between the lines of a boundary (RFC 2046, 5.1.1), without the text before and after them.

    At most ``most`` parts; the rest of the body is not read.
    """
    line = re.escape(b"--" + boundary.encode("utf-8", "surrogateescape"))
    pieces = re.split(rb"(?:\A|\r?\n)" + line + rb"(--)?[ \t]*(?=\r?\n|\Z)", body, maxsplit=most)
    parts = []
    for closing, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        if closing:
            break
        parts.append(re.sub(rb"\A\r?\n", b"", piece))
    return parts[:most]
