"""The queue of documents that wait to be read, by its invariants."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.engine import parser_queue
from crawler.engine.parser_queue import LARGE_OCTETS, MAX_DOCUMENTS, PROVEN_BY, Document, Kind, ParserQueue

#: The fewest octets whose cost is their number.
K = 1 << 10


class Queue(ParserQueue[Document]):
    """A queue with the steps of the pool in one call each."""

    def add(self, domain: str, octets: int = K, *, judges_domain: bool = True) -> Document:
        document = Document(domain=domain, octets=octets, judges_domain=judges_domain)
        self.enter(document)
        return document

    def next(self, *, apart: bool = False) -> Document | None:
        document = self.first(apart=apart)
        if document is not None:
            self.dequeue(document)
        return document

    def read(self, document: Document, took_s: float = 0.001, *, is_fast: bool = True) -> None:
        self.leave(document, is_fast=is_fast, took_s=took_s)

    def make(self, kind: Kind, *domains: str) -> None:
        """Have documents read until the domains are of this kind."""
        for domain in domains:
            for _ in range(PROVEN_BY if kind is Kind.PROVEN else 1):
                document = self.add(domain)
                self.take_it(document)
                self.read(document, is_fast=kind is not Kind.SLOW)
            assert self.kind(domain) is kind

    def take_it(self, document: Document) -> None:
        while (taken := self.next(apart=document.is_apart)) is not document:
            assert taken is not None

    def drained(self, *, apart: bool = False) -> str:
        found = ""
        while (document := self.next(apart=apart)) is not None:
            found += document.domain
        return found


def test_domains_of_one_kind_take_turns() -> None:
    queue = Queue()
    for domain in "aaaabbc":
        queue.add(domain)
    assert queue.drained() == "abcabaa"


def test_small_documents_pass_large_ones_and_none_waits_without_end() -> None:
    queue = Queue()
    queue.add("L", 10 * K)
    taken = ""
    while "L" not in taken:
        queue.add("s")
        document = queue.next()
        assert document is not None
        taken += document.domain
    assert taken == "s" * 9 + "L"


def test_a_document_that_is_put_back_keeps_its_place_and_one_that_has_left_is_not_taken() -> None:
    queue = Queue()
    first, second = queue.add("a"), queue.add("a")
    queue.add("b")
    cancelled = queue.add("c")
    assert queue.next() is first
    queue.put_back(first)
    queue.leave(cancelled)
    assert queue.next() is first
    assert queue.drained() == "ba"
    queue.put_back(second)
    assert queue.drained() == "a"


def test_a_domain_is_proven_by_several_documents_and_slow_by_one() -> None:
    queue = Queue()
    for kind in (Kind.UNKNOWN, Kind.UNKNOWN, Kind.PROVEN):
        queue.read(queue.add("a"))
        assert queue.kind("a") is kind
    queue.read(queue.add("a"), is_fast=False)
    assert queue.kind("a") is Kind.SLOW
    queue.read(queue.add("a"))
    assert queue.kind("a") is Kind.UNKNOWN
    queue.read(queue.add("a", judges_domain=False), is_fast=False)
    assert queue.kind("a") is Kind.UNKNOWN, "this document says nothing about the others"


def test_documents_of_slow_domains_and_large_ones_beside_them_are_read_apart() -> None:
    queue = Queue()
    queue.add("a", LARGE_OCTETS + 1)
    queue.add("b", LARGE_OCTETS)
    slow = queue.add("s", 1)
    queue.add("s", 1)
    queue.take_it(slow)
    queue.read_apart(slow, is_slow=True)
    assert queue.drained() == "b", "those that waited already, too"
    assert queue.drained(apart=True) == "sas"
    queue.read(slow)
    assert queue.kind("s") is Kind.UNKNOWN
    queue.add("a", LARGE_OCTETS + 1)
    assert queue.drained() == "a", "no domain is slow any more"


def test_a_document_that_ended_a_process_is_read_apart_and_blames_no_other() -> None:
    queue = Queue()
    deadly = queue.add("a")
    assert queue.next() is deadly
    queue.read_apart(deadly, is_slow=False)
    queue.add("a")
    assert (queue.drained(), queue.drained(apart=True)) == ("a", "a")


@pytest.mark.parametrize(("unknown", "proven", "share"), [(1, 30, 0.25), (30, 1, 0.5), (10, 20, 1 / 3)])
@pytest.mark.parametrize("unknown_s", [0.001, 0.2])
def test_domains_that_are_not_proven_get_a_share_of_the_time_while_proven_ones_wait(
    unknown: int, proven: int, share: float, unknown_s: float
) -> None:
    queue, got_s, taken_s = (
        Queue(),
        {Kind.PROVEN: 0.0, Kind.UNKNOWN: 0.0},
        {Kind.PROVEN: 0.004, Kind.UNKNOWN: unknown_s},
    )
    queue.make(Kind.PROVEN, *(f"p{number}" for number in range(proven)))
    for domain in [*(f"p{number}" for number in range(proven)), *(f"u{number}" for number in range(unknown))]:
        queue.add(domain)
    while sum(got_s.values()) < 60:
        document = queue.next()
        assert document is not None
        took_s = taken_s[document.kind]
        got_s[document.kind] += took_s
        queue.add(document.domain)
        queue.leave(document, took_s=took_s)
    assert got_s[Kind.UNKNOWN] / sum(got_s.values()) == pytest.approx(share, abs=0.03)


def test_one_kind_alone_gets_all_of_the_time() -> None:
    queue = Queue()
    queue.make(Kind.PROVEN, "p")
    for domain in "pppp":
        queue.add(domain)
    assert queue.drained() == "pppp"
    for domain in "uuuu":
        queue.add(domain)
    assert queue.drained() == "uuuu"


def filled(queue: Queue, name: str) -> int:
    """How many documents domains of this name can add until they have no room."""
    added = 0
    while queue.has_room(f"{name}{added}"):
        assert added < MAX_DOCUMENTS
        queue.add(f"{name}{added}")
        added += 1
    return added


def test_each_kind_of_domain_has_its_part_of_the_room() -> None:
    queue, most = Queue(), MAX_DOCUMENTS
    queue.make(Kind.PROVEN, *(f"p{number}" for number in range(most)))
    queue.make(Kind.SLOW, *(f"s{number}" for number in range(most)))
    assert filled(queue, "s") == most // 2
    assert filled(queue, "u") == most // 4
    assert filled(queue, "p") == most // 4


def test_what_other_kinds_have_beyond_their_part_takes_no_room_of_a_kind_above() -> None:
    queue = Queue()
    queue.make(Kind.PROVEN, "p")
    added = [queue.add(f"u{number}") for number in range(2 * MAX_DOCUMENTS)]
    assert queue.has_room("p")
    assert not queue.has_room("new")
    while (document := queue.next()) is not None:
        queue.read_apart(document, is_slow=True)
    assert all(document.is_apart for document in added)
    assert queue.has_room("p")
    assert queue.has_room("new")
    assert not queue.has_room("u0")


def test_a_domain_alone_has_a_quarter_of_the_room_of_its_kind() -> None:
    queue, added = Queue(), []
    while queue.has_room("a"):
        added.append(queue.add("a"))
    assert len(added) == MAX_DOCUMENTS * 3 // 16
    for document in added:
        queue.leave(document)
    assert queue.has_room("a")


def test_few_domains_are_remembered_and_none_with_documents_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser_queue, "_MAX_DOMAINS", 3)
    queue = Queue()
    waiting = queue.add("w")
    queue.make(Kind.SLOW, "s")
    for domain in "abcd":
        queue.read(queue.add(domain))
    assert len(queue._domains) <= 3 + 1
    assert "w" in queue._domains
    assert queue.kind("s") is Kind.UNKNOWN
    queue.add("large", LARGE_OCTETS + 1)
    assert queue.first(apart=True) is None, "the slow domain is forgotten with all that follows"
    queue.leave(waiting)


#: A domain and the octets of a document to hand over, or ``None``: take one, have it read, and see how.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("abcd"), st.integers(K, 100 * K)),
        st.sampled_from(["fast", "slow", "died", "cancelled", "put back"]),
    ),
    max_size=80,
)


@given(STEPS)
def test_each_document_is_read_once_in_the_order_of_its_domain_and_is_counted_until_then(
    steps: list[tuple[str, int] | str],
) -> None:
    queue = Queue()
    waiting: dict[Document, int] = {}
    last: dict[tuple[str, bool], int] = {}
    for number, step in enumerate([*steps, *["fast"] * len(steps)]):
        if isinstance(step, tuple):
            waiting[queue.add(*step)] = number
            continue
        document = queue.next() or queue.next(apart=True)
        assert (document is None) == (not waiting)
        if document is None:
            continue
        came = waiting[document]
        match step:
            case "put back":
                queue.put_back(document)
                continue
            case "died":
                queue.read_apart(document, is_slow=False)
                continue
            case "slow" if not document.is_apart:
                queue.read_apart(document, is_slow=True)
                continue
            case "cancelled":
                queue.put_back(document)
                queue.leave(document)
            case _:
                queue.read(document, is_fast=step == "fast")
                if not document.is_apart:  # apart, one that died or was slow comes behind the others
                    assert came > last.get((document.domain, document.is_apart), -1)
                    last[document.domain, document.is_apart] = came
        del waiting[document]
    held = queue._domains.values()
    assert sum(domain.documents for domain in held) == len(waiting)
    assert queue._slow_domains == sum(domain.kind is Kind.SLOW for domain in held)
    for kind in Kind:
        own = [document.octets for document in waiting if document.room is kind]
        assert queue._documents._held[kind] == len(own)


@given(st.lists(st.one_of(st.none(), st.tuples(st.sampled_from("abc"), st.integers(K, 100 * K))), max_size=60))
def test_while_a_document_waits_each_other_domain_gets_as_much_and_one_document_more(
    steps: list[tuple[str, int] | None],
) -> None:
    queue = Queue()
    waiting: dict[str, int] = defaultdict(int)  # documents by domain
    #: By document that was its domain's only one: the octets that other domains got since.
    since: dict[Document, dict[str, list[int]]] = {}
    for step in [*steps, *[None] * len(steps)]:
        if step is not None:
            document = queue.add(*step)
            if not waiting[document.domain]:
                since[document] = defaultdict(list)
            waiting[document.domain] += 1
        elif (taken := queue.next()) is not None:
            waiting[taken.domain] -= 1
            for got in since.pop(taken, {}).values():
                assert sum(got[1:]) <= taken.octets
            for others in since.values():
                others[taken.domain].append(taken.octets)
