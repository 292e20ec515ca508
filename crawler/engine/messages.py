"""Messages between processes of the crawler over a pipe. Each message is preceded by its length in eight bytes."""

from __future__ import annotations

import struct
from typing import IO, Protocol

_LENGTH = struct.Struct(">Q")


class Source(Protocol):
    """A pipe to read from, buffered or not."""

    def read(self, size: int, /) -> bytes | None: ...


def framed(message: bytes) -> bytes:
    """A message as it is written to a pipe."""
    return _LENGTH.pack(len(message)) + message


def send(stream: IO[bytes], message: bytes) -> None:
    """Write a message."""
    stream.write(framed(message))
    stream.flush()


def receive(source: Source) -> bytes:
    """Read the next message, and nothing after it from an unbuffered source.

    Raises :class:`EOFError` if the other side has closed the pipe.
    """
    return _exactly(source, _LENGTH.unpack(_exactly(source, _LENGTH.size))[0])


def _exactly(source: Source, count: int) -> bytes:
    data = source.read(count) or b""
    if len(data) == count:
        return data
    parts = [data]
    left = count - len(data)
    while left:
        if not parts[-1]:
            raise EOFError
        parts.append(source.read(left) or b"")
        left -= len(parts[-1])
    return b"".join(parts)


class Unpacker:
    """Cuts a stream of bytes, received in pieces of any size, into messages."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Add received bytes; returns the messages that are complete with them."""
        pending = self._pending
        pending += data
        messages = []
        start = 0
        while len(pending) - start >= _LENGTH.size:
            begin = start + _LENGTH.size
            end = begin + _LENGTH.unpack_from(pending, start)[0]
            if len(pending) < end:
                break
            messages.append(bytes(memoryview(pending)[begin:end]))
            start = end
        if start:
            del pending[:start]
        return messages
