"""The queue of documents that wait to be read: which is read next, and for which domains more may be requested.

It does no I/O, reads no clock and starts no task; the pool (:mod:`crawler.engine.parser_pool`) is the shell around it.
The *registered domain* of a document is the unit by which documents share the parsers, as requests share the slots
(:mod:`crawler.engine.workbench`).

The order is self-clocked fair queueing: S. J. Golestani, "A Self-Clocked Fair Queueing Scheme for Broadband
Applications", INFOCOM 1994. The shares are the dynamic threshold of A. Choudhury and E. Hahne, IEEE/ACM Transactions on
Networking 6(2), 1998.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, TypeVar

#: If this many documents were handed over and not read, no further page should be requested. Those already requested
#: are accepted. Large documents are bounded in octets, too (:mod:`crawler.engine.body_memory`).
MAX_DOCUMENTS = 128
#: A domain has room while it holds less than what is free, divided by this number. If a domain is alone, that ends at a
#: quarter of all.
_FREE_PER_HELD = 3

#: A domain is proven when this many of its documents in a row were read fast.
PROVEN_BY = 3
#: While a domain is known for slow pages, larger documents of all domains are read apart: most slow ones are large.
LARGE_OCTETS = 1 << 18
#: The least that a document counts among the others that wait, in octets.
_LEAST_COST = 1 << 10

#: The bounds on the part of the parsers' time that domains which are not proven get together while proven ones wait.
_LEAST_SHARE, _LARGEST_SHARE = 0.25, 0.5
#: The time that reading is taken to need until it is over, in seconds: of any document, and of an octet.
_READING_S, _OCTET_S = 0.0002, 1.5e-8
_REMEMBERED_S = 10.0  # of the time that both have got: more of it is forgotten by halves

#: Domains that are remembered although nothing of theirs waits.
_MAX_DOMAINS = 10_000


class Kind(IntEnum):
    """How long the reading of a domain's documents, or of one document, is likely to take."""

    PROVEN = 0  # not long, judging by several documents of the domain
    UNKNOWN = 1
    SLOW = 2  # long, judging by the last document of the domain. Such a document is read apart


class State(Enum):
    """The stage of a document."""

    WAITING = auto()
    READING = auto()  # it was sent to a process, and perhaps waits there
    OVER = auto()  # it was read, or its reader was cancelled


@dataclass(slots=True, eq=False, kw_only=True)
class Document:
    """A document, from :meth:`ParserQueue.enter` to :meth:`ParserQueue.leave`."""

    domain: str
    octets: int
    is_alone: bool = False  # it is read apart in any case
    judges_domain: bool = True  # the time of its reading says something about the other documents of its domain
    kind: Kind = Kind.UNKNOWN
    room: Kind = Kind.UNKNOWN  # the kind whose part of the room it takes: of proven domains, large ones read apart too
    state: State = State.WAITING
    tag: tuple[float, int] = (0.0, 0)  # its place in the order
    expected_s: float = 0.0  # the time that its reading is taken to need

    @property
    def is_apart(self) -> bool:
        """Whether it is read in the process for slow pages."""
        return self.kind is Kind.SLOW


D = TypeVar("D", bound=Document)


@dataclass(slots=True, eq=False)
class _Domain:
    """What is known of a registered domain."""

    kind: Kind = Kind.UNKNOWN
    fast: int = 0  # documents in a row that were read fast
    documents: int = 0  # handed over and not read


class _Line(Generic[D]):
    """Documents that wait in an order that is fair to their domains.

    A document gets a tag when it is added: its cost, added to the tag of the document taken last or to that of its
    domain's last document, whichever is higher. The one with the lowest tag is taken next. So small documents pass
    large ones, and none waits without end.
    """

    def __init__(self) -> None:
        self.heap: list[tuple[tuple[float, int], D]] = []  # those that wait, and some that nobody waits for any more
        self._numbers = count()
        self._last_tags: dict[str, float] = {}  # by domain, as long as one is higher than self._now
        self._waiting: dict[str, int] = {}  # documents, by domain
        self._now = 0.0  # the tag of the document taken last

    @property
    def domains(self) -> int:
        """The number of domains whose documents wait."""
        return len(self._waiting)

    def add(self, document: D, cost: float) -> None:
        last = self._last_tags[document.domain] = cost + max(self._now, self._last_tags.get(document.domain, 0.0))
        document.tag = (last, next(self._numbers))
        self.put_back(document)

    def put_back(self, document: D) -> None:
        """Add a document again, in its old place."""
        heappush(self.heap, (document.tag, document))
        self._waiting[document.domain] = self._waiting.get(document.domain, 0) + 1

    def remove(self, unwanted: Callable[[D], bool]) -> list[D]:
        """Remove some documents, and return them in their order. It costs O(n)."""
        removed = sorted(entry for entry in self.heap if unwanted(entry[1]))
        if removed:
            self.heap = [entry for entry in self.heap if not unwanted(entry[1])]
            heapify(self.heap)
            self._waiting = dict(Counter(document.domain for _, document in self.heap))
            self._last_tags = {document.domain: tag for (tag, _), document in sorted(self.heap)}
        return [document for _, document in removed]

    def first(self) -> D | None:
        """The next document; those that nobody waits for any more are dropped."""
        while self.heap and self.heap[0][1].state is State.OVER:
            self.pop()
        return self.heap[0][1] if self.heap else None

    def pop(self) -> D:
        (tag, _), document = heappop(self.heap)
        self._now = max(self._now, tag)
        domain = document.domain
        if self._last_tags.get(domain, 0.0) <= self._now:
            self._last_tags.pop(domain, None)
        self._waiting[domain] -= 1
        if not self._waiting[domain]:
            del self._waiting[domain]
        return document


class _Room:
    """A number of documents that may be handed over and not read, shared by their kinds.

    Slow documents have half of it, and slow and unknown ones together three quarters. What there is beyond that does
    not count: it was requested before anybody knew.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = [0] * len(Kind)

    def add(self, kind: Kind, number: int) -> None:
        """So many more of ``kind`` were handed over, or fewer."""
        self._held[kind] += number

    def free(self, kind: Kind) -> int:
        """The part that is free for domains of ``kind``. It may be negative."""
        proven, unknown, slow = self._held
        for_slow, for_others = self._most // 2, self._most * 3 // 4
        held = unknown + min(slow, for_slow)
        free = self._most - proven - min(held, for_others)
        if kind >= Kind.UNKNOWN:
            free = min(free, for_others - held)
        return min(free, for_slow - slow) if kind is Kind.SLOW else free


class ParserQueue(Generic[D]):
    """Decides which document is read next, where, and for which domains more pages may be requested.

    Invariants:

    1. A document that was taken is not taken again, unless it was put back, and a document that has left is not taken.
    2. The documents of one domain that are read in the same place are taken in the order in which they came.
    3. Domains of one kind take turns by octets: while a document waits, each other domain gets as many octets as that
       document has, and one document more.
    4. While documents of proven domains wait, all other domains together get at least a quarter and at most half of the
       time of the ordinary processes, if they have documents that wait.
    5. A document that proved slow, all documents of a slow domain, and all large ones while there is one, are slow:
       they are read apart, where domains take turns by documents, because their size does not tell their time.
    6. A domain has room while it holds less than a third of what is free for its kind. Slow documents have half of all
       room, slow and unknown ones together three quarters.
    7. What there is of one kind beyond its part takes no room of the kinds above.

    An event costs O(log n) in what waits, and O(n) if a domain becomes slow, which has cost a process.
    """

    def __init__(self) -> None:
        self._domains: dict[str, _Domain] = {}  # the one that a document came of last is last
        self._slow_domains = 0  # of these
        self._documents = _Room(MAX_DOCUMENTS)
        self._proven, self._unknown, self._apart = self._lines = _Line[D](), _Line[D](), _Line[D]()  # by kind
        self._proven_s = self._unknown_s = 0.0  # the time that each kind has got lately while both waited

    def enter(self, document: D) -> None:
        """A document is handed over, and waits."""
        domain = self._domain(document.domain)
        domain.documents += 1
        self._wait(document, Kind.SLOW if document.is_alone or self._is_slow(document) else domain.kind)

    def leave(self, document: D, *, is_fast: bool | None = None, took_s: float | None = None) -> None:
        """A document was read, within ``took_s`` seconds, or nobody waits for it any more.

        ``is_fast`` says how it was read; ``None``: this is not known.
        """
        domain = self._domains[document.domain]  # a domain with documents is not forgotten
        document.state = State.OVER
        domain.documents -= 1
        self._documents.add(document.room, -1)
        if took_s is not None:
            self._charge(document.kind, took_s - document.expected_s)
        if is_fast is not None and document.judges_domain:
            self._learn(domain, is_fast=is_fast)

    def first(self, *, apart: bool) -> D | None:
        """The document that is to be read next, in an ordinary process or ``apart``."""
        if apart:
            return self._apart.first() if self._apart.heap else None
        proven = self._proven.first() if self._proven.heap else None
        unknown = self._unknown.first() if self._unknown.heap else None
        if proven is None or unknown is None:
            return proven or unknown
        share = self._unknown.domains / (self._unknown.domains + self._proven.domains)
        share = min(max(share, _LEAST_SHARE), _LARGEST_SHARE)
        return unknown if self._unknown_s <= share * (self._unknown_s + self._proven_s) else proven

    def dequeue(self, document: D) -> None:
        """Remove the document that :meth:`first` has named. It is sent to a process."""
        if not (self._proven.heap and self._unknown.heap):
            self._proven_s = self._unknown_s = 0.0
        document.expected_s = _READING_S + _OCTET_S * document.octets
        self._charge(document.kind, document.expected_s)
        self._lines[document.kind].pop()
        document.state = State.READING

    def put_back(self, document: D) -> None:
        """The process ended before it had read the document, which waits again in its old place."""
        document.state = State.WAITING
        if self._is_slow(document) and not document.is_apart:
            self._move_apart(document)
        else:
            self._lines[document.kind].put_back(document)

    def read_apart(self, document: D, *, is_slow: bool) -> None:
        """The process ended while it read the document, which waits again to be read apart.

        ``is_slow`` says that the document took too long: then its domain is slow.
        """
        document.state = State.WAITING
        if is_slow:
            self._learn(self._domains[document.domain], is_fast=False)
        self._move_apart(document)

    def has_room(self, domain: str) -> bool:
        """Whether another page of the registered domain ``domain`` should be requested."""
        held = self._domains.get(domain, _NOTHING)
        return _FREE_PER_HELD * held.documents < self._documents.free(held.kind)

    def kind(self, domain: str) -> Kind:
        """The kind of a registered domain, by how its documents were read."""
        return self._domains.get(domain, _NOTHING).kind

    # --- inside -------------------------------------------------------------------------------

    def _domain(self, name: str) -> _Domain:
        domain = self._domains.pop(name, None) or _Domain()
        self._domains[name] = domain
        if len(self._domains) > _MAX_DOMAINS:
            oldest = next(iter(self._domains))
            forgotten = self._domains.pop(oldest)
            if forgotten.documents:
                self._domains[oldest] = forgotten  # behind all others
            else:
                self._slow_domains -= forgotten.kind is Kind.SLOW
        return domain

    def _learn(self, domain: _Domain, *, is_fast: bool) -> None:
        """A document of the domain was read fast, or not."""
        was_slow = domain.kind is Kind.SLOW
        domain.fast = domain.fast + 1 if is_fast else 0
        domain.kind = Kind.SLOW if not is_fast else Kind.PROVEN if domain.fast >= PROVEN_BY else Kind.UNKNOWN
        self._slow_domains += (not is_fast) - was_slow
        if not is_fast and not was_slow:
            for line in (self._proven, self._unknown):
                for document in line.remove(self._is_slow):
                    self._move_apart(document)

    def _is_slow(self, document: D) -> bool:
        is_large = document.octets > LARGE_OCTETS
        return self._domains[document.domain].kind is Kind.SLOW or (is_large and self._slow_domains > 0)

    def _wait(self, document: D, kind: Kind) -> None:
        document.kind = kind
        document.room = Kind.PROVEN if self._domains[document.domain].kind is Kind.PROVEN else kind
        self._documents.add(document.room, 1)
        self._lines[kind].add(document, 1 if kind is Kind.SLOW else max(_LEAST_COST, document.octets))

    def _move_apart(self, document: D) -> None:
        if document.state is not State.OVER:  # else nobody waits for it any more
            self._documents.add(document.room, -1)
            self._wait(document, Kind.SLOW)

    def _charge(self, kind: Kind, seconds: float) -> None:
        if kind is Kind.PROVEN:
            self._proven_s = max(0.0, self._proven_s + seconds)
        elif kind is Kind.UNKNOWN:
            self._unknown_s = max(0.0, self._unknown_s + seconds)
        if self._proven_s + self._unknown_s > _REMEMBERED_S:
            self._proven_s, self._unknown_s = self._proven_s / 2, self._unknown_s / 2


_NOTHING = _Domain()
