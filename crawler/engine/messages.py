"""Messages between processes of the crawler over a pipe. Each message is preceded by its length in eight bytes."""

from __future__ import annotations

import struct
from functools import cache
from typing import IO, Any, ClassVar, Generic, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from crawler.errors import Fault

_LENGTH = struct.Struct(">Q")
_ENCODER = msgspec.msgpack.Encoder()

T = TypeVar("T")

#: The longest message that the crawler accepts from a process that has read bytes of a stranger, in bytes.
MAX_ANSWER_BYTES = 64 << 20


class MessageTooLong(Exception):
    """The other side has announced a message that is longer than it may send."""


class Question(msgspec.Struct, Generic[T], frozen=True, array_like=True):
    """A document that a parser process is to read, and the facts that its reading needs. ``T`` is the answer.

    ``url`` is the address of the document, or of its site. The system ends a process that takes more than ``max_cpu_s``
    of processor time for the document. A question of each kind is a class with its tag.
    """

    max_cpu_s: float
    url: str
    body: bytes

    #: Whether the time of the reading says something about the other documents of the domain.
    judges_domain: ClassVar[bool] = True

    @property
    def is_slow(self) -> bool:
        """Whether the document is read as a slow one at once."""
        return False

    def prepare(self) -> None:
        """In the parser process: load what :meth:`read` needs, before the time of the document begins."""

    def read(self) -> T:
        """In the parser process: the answer. Raises :class:`MemoryError` if the process runs out of memory."""
        raise NotImplementedError

    def unread(self, why: str) -> T:
        """The answer about a document that exceeds the limits, or that no process survives; ``why`` is a clause."""
        raise NotImplementedError

    def fault(self, bug: str) -> Exception:
        """The exception for a bug of the crawler that the document brought to light."""
        return Fault(bug)

    @classmethod
    def answers(cls) -> Any:
        """The type of the answers, ``T``, as the codec needs it."""
        raise NotImplementedError

    def packed(self, max_cpu_s: float) -> tuple[bytes, bytes]:
        """The question with another limit of processor time, as two messages. The second is its body, not copied."""
        return _ENCODER.encode(replace(self, max_cpu_s=max_cpu_s, body=b"")), self.body

    def unpack(self, message: bytes) -> T | str:
        """The answer in a message, or the description of a bug. Raises :class:`msgspec.DecodeError` if neither.

        Answers come from a process that has read the bytes of a stranger, so the codec builds nothing but the classes
        of the answers, and checks the type of each value.
        """
        answer: T | str = _decoder(type(self)).decode(message)
        return answer


@cache
def _decoder(kind: type[Question[Any]]) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind.answers() | str)


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
