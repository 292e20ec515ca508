"""Messages from one process of ours to another over a pipe, each with its length before it."""

from __future__ import annotations

import struct
from typing import IO, Protocol

_LENGTH = struct.Struct(">Q")


class Source(Protocol):
    """A pipe to read from, buffered or not."""

    def read(self, size: int, /) -> bytes | None: ...


def send(stream: IO[bytes], message: bytes) -> None:
    """Send a message."""
    stream.write(_LENGTH.pack(len(message)))
    stream.write(message)
    stream.flush()


def receive(source: Source) -> bytes:
    """The next message, and of an unbuffered source no more. Raises :class:`EOFError` where the other side has gone."""
    return _exactly(source, _LENGTH.unpack(_exactly(source, _LENGTH.size))[0])


def _exactly(source: Source, count: int) -> bytes:
    data = b""
    while len(data) < count:
        if not (more := source.read(count - len(data))):
            raise EOFError
        data += more
    return data
