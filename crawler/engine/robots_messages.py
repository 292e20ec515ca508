"""The question to a parser process about one robots.txt, and the limits on one file."""

from __future__ import annotations

import marshal
from typing import NamedTuple

from crawler.engine.page_messages import Question
from crawler.engine.text_messages import KIND as _TEXT_KIND
from crawler.engine.text_messages import TextQuestion

#: Processor time that one file may take, in seconds. The slowest of 4,231 files of real sites takes 0.6.
MAX_CPU_S = 2.0
_KIND = "robots.txt"  # the first value of such a question, which tells it from one about a page


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

    def packed(self) -> bytes:
        """The question as one message."""
        return marshal.dumps((_KIND, *self))


def unpack_question(message: bytes) -> Question | RobotsQuestion | TextQuestion:
    """The question in a message: about a page, a robots.txt, or the text of a stored document."""
    values = marshal.loads(message)
    if values[0] == _TEXT_KIND:
        return TextQuestion(*values[1:])
    return RobotsQuestion(*values[1:]) if values[0] == _KIND else Question(*values)
