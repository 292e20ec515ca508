"""The question to a parser process about one robots.txt, the limits on one file, and all questions as messages."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from crawler.engine.page_messages import Question
from crawler.engine.text_messages import TextQuestion

#: Processor time that one file may take, in seconds. The slowest of 4,231 files of real sites takes 0.6.
MAX_CPU_S = 2.0


class RobotsQuestion(NamedTuple):
    """A robots.txt to be read, and the facts that its reading needs.

    A ``Host`` line may name a host without a dot if it matches one of ``known_hosts`` (patterns); it is ignored if it
    names ``refuted``. ``max_bytes`` of the body are read. The system ends a process that takes more than ``max_cpu_s``
    of processor time for the file.
    """

    max_cpu_s: float
    url: str
    site: str
    token: str
    reading: str
    known_hosts: tuple[str, ...]
    refuted: str | None
    max_bytes: int
    body: bytes


# The first byte of a message with a question tells what the question is about.
_PAGE, _ROBOTS, _TEXT = b"p", b"r", b"t"
_ENCODER = msgspec.msgpack.Encoder()
_PAGE_DECODER = msgspec.msgpack.Decoder(Question)
_ROBOTS_DECODER = msgspec.msgpack.Decoder(RobotsQuestion)
_TEXT_DECODER = msgspec.msgpack.Decoder(TextQuestion)


def pack_question(question: Question | RobotsQuestion | TextQuestion, max_cpu_s: float) -> tuple[bytes, bytes]:
    """A question with another limit of processor time, as two messages. The second is its body, which is not copied."""
    about = _PAGE if isinstance(question, Question) else _TEXT if isinstance(question, TextQuestion) else _ROBOTS
    return about + _ENCODER.encode(question._replace(max_cpu_s=max_cpu_s, body=b"")), question.body


def unpack_question(message: bytes, body: bytes) -> Question | RobotsQuestion | TextQuestion:
    """The question in two messages."""
    encoded = memoryview(message)[1:]
    if message.startswith(_ROBOTS):
        return _ROBOTS_DECODER.decode(encoded)._replace(body=body)
    if message.startswith(_TEXT):
        return _TEXT_DECODER.decode(encoded)._replace(body=body)
    return _PAGE_DECODER.decode(encoded)._replace(body=body)
