"""Messages between processes of the crawler over a pipe. Each message is preceded by its length in eight bytes."""

from __future__ import annotations

import struct
from typing import IO, Protocol

import msgspec

_LENGTH = struct.Struct(">Q")
_ENCODER = msgspec.msgpack.Encoder()

#: The longest message that the crawler accepts from a process that has read bytes of a stranger, in bytes.
MAX_ANSWER_BYTES = 64 << 20


class MessageTooLong(Exception):
    """The other side has announced a message that is longer than it may send."""


def pack_answer(answer: object) -> bytes:
    """The answer to a question about a document, or the description of a bug, as one message."""
    return _ENCODER.encode(answer)


class Source(Protocol):
    """A pipe to read from, buffered or not."""

    def read(self, size: int, /) -> bytes | None: ...


def framed(*messages: bytes) -> list[bytes]:
    """Messages as they are written to a pipe, in pieces: a large message is not copied."""
    return [piece for message in messages for piece in (_LENGTH.pack(len(message)), message)]


def send(stream: IO[bytes], message: bytes) -> None:
    """Write a message."""
    stream.write(b"".join(framed(message)))
    stream.flush()


def receive(source: Source) -> bytes:
    """Read the next message, and nothing after it from an unbuffered source.

    Raises :class:`EOFError` if the other side has closed the pipe.
    """
    (length,) = _LENGTH.unpack(_exactly(source, _LENGTH.size))
    return _exactly(source, length)


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
    """Cuts a stream of bytes, received in pieces of any size, into messages of :data:`MAX_ANSWER_BYTES` at most."""

    def __init__(self) -> None:
        self._pending = bytearray()  # the beginning of a message that is not complete

    def feed(self, data: bytes) -> list[bytes]:
        """Add received bytes; returns the messages that are complete with them. Raises :class:`MessageTooLong`."""
        received: bytes | bytearray = data
        if self._pending:
            self._pending += data
            received = self._pending
        messages = []
        start = 0
        while len(received) - start >= _LENGTH.size:
            begin = start + _LENGTH.size
            (length,) = _LENGTH.unpack_from(received, start)
            if length > MAX_ANSWER_BYTES:
                raise MessageTooLong
            if len(received) < begin + length:
                break
            start = begin + length
            messages.append(bytes(memoryview(received)[begin:start]))
        if received is self._pending:
            del self._pending[:start]
        else:
            self._pending += memoryview(received)[start:]
        return messages
