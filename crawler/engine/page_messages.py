"""The messages between the crawler and a parser process about one page, and the limits on one page.

Both sides are processes of the same crawler on the same machine and run the same program, so ``marshal`` may be used.
It takes a third of the time of ``pickle`` for these tuples.
"""

from __future__ import annotations

import marshal
from operator import attrgetter
from typing import NamedTuple

from crawler.model import Headers, Link, PageFacts, Preference, Resource

#: Processor time that one page may take, in seconds. An ordinary page of 1 MB takes 0.05.
MAX_CPU_S = 0.7
#: Processor time after which the reading of a page is broken off, to be repeated where no other page waits for it.
FAST_CPU_S = 0.2
#: Address space of a parser process. About 100 MB are taken before the first page.
MAX_MEMORY_BYTES = 512 << 20
#: Exit code of a parser process whose page exceeded the memory limit.
OUT_OF_MEMORY = 12
#: The first message of a parser process.
READY = b"ready"

_FIELDS = PageFacts.__slots__
_LINKS, _PREFERENCES, _RESOURCES = map(_FIELDS.index, ("links", "preferences", "resources"))
_values = attrgetter(*_FIELDS)
_new = tuple.__new__  # as Link._make, without counting the values, at a third of the time


class Question(NamedTuple):
    """A document to be read, and the facts that its reading needs. ``now`` is in epoch seconds.

    The system ends a process that takes more than ``max_cpu_s`` of processor time for the document.
    """

    max_cpu_s: float
    is_html: bool
    is_pdf: bool
    is_gzipped: bool
    resources: bool
    charset: str | None  # of the Content-Type header
    url: str
    headers: Headers
    token: str
    reading: str
    now: float
    body: bytes  # one gzip member if ``is_gzipped``

    def packed(self) -> bytes:
        """The question as one message."""
        return marshal.dumps(tuple(self))


def pack_answer(answer: PageFacts | str) -> bytes:
    """The facts of a document, or the description of a bug that it brought to light, as one message."""
    if isinstance(answer, str):
        return marshal.dumps(answer)
    values = list(_values(answer))
    values[_LINKS] = [tuple(link) for link in answer.links]
    values[_PREFERENCES] = [tuple(one) for one in answer.preferences]
    values[_RESOURCES] = [tuple(one) for one in answer.resources]
    return marshal.dumps(values)


def unpack_answer(message: bytes) -> PageFacts | str:
    """The answer in a message."""
    values = marshal.loads(message)
    if isinstance(values, str):
        return values
    values[_LINKS] = tuple([_new(Link, link) for link in values[_LINKS]])
    values[_PREFERENCES] = tuple([_new(Preference, one) for one in values[_PREFERENCES]])
    values[_RESOURCES] = tuple([_new(Resource, one) for one in values[_RESOURCES]])
    return PageFacts(*values)
