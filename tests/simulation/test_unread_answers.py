"""Answers in the request log: each is committed with its outcome, or as a document that is read after a restart."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crawler.demo.pages import Fault, Hit, Page, Site, plain
from crawler.engine.answers import Answers
from crawler.engine.outbox import Outbox
from crawler.frontier.decide import Outcome, Queued
from crawler.model import Fetched, FetchResult, PageFacts, Purpose, Request
from crawler.store.rows import RequestRow
from tests.reading import ReaderInProcess
from tests.records import replace
from tests.simulation.crawls import Options, crawl, crawl_for, rows, states
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

LINKS = "<a href=/moved>m</a><a href=/none>n</a><a href=/cut>c</a><a href=/busy>b</a><a href=/page>p</a>"
SITE: Site = {
    "/robots.txt": plain(""),
    "/": Page(LINKS),
    "/moved": Page(status=301, headers=(("Location", "/page"),)),
    "/cut": Page("x", fault=Fault.CUT),
    "/busy": Page(status=503),
    "/page": Page("page"),
}


class Reader(ReaderInProcess):
    """Reads nothing while it ``hangs``, and notes how each document was to be read."""

    def __init__(self, *, hangs: bool) -> None:
        super().__init__()
        self.hangs = hangs
        self.alone: dict[str, bool] = {}

    async def read(self, document: Fetched, *, is_alone: bool = False, shingles: bool = False) -> PageFacts:
        self.alone[document.url] = is_alone
        if self.hangs:
            await asyncio.Event().wait()
        return await super().read(document, is_alone=is_alone, shingles=shingles)


def test_what_a_worker_has_left_unread_is_read_alone_and_not_asked_for_again(db_path: Path) -> None:
    first, second = Reader(hangs=True), Reader(hangs=False)

    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = SimulatedWeb(clock, {"a.test": SITE})
        seeds = ["http://a.test/"]
        assert not await crawl_for(clock, db_path, web, seeds, Options(), 10.0, crash=True, reader=first)
        assert await crawl_for(clock, db_path, web, seeds, Options(), 9999.0, crash=True, reader=second)
        return web

    web = run_virtual(main)
    assert set(first.alone) == {"http://a.test/"}
    assert second.alone == {"http://a.test/": True, "http://a.test/page": False}
    assert Counter(hit.path for hit in web.log)["/"] == 1


class WebWithBrokenGzip(SimulatedWeb):
    """The bodies of ``/page`` are cut short."""

    async def fetch(self, request: Request) -> FetchResult:
        answer = await super().fetch(request)
        if isinstance(answer, Fetched) and answer.url.endswith("/page"):
            return replace(answer, plain=None, gzipped=b"\x1f\x8b", unchecked=1000)
        return answer


def crawled_with_broken_gzip(db_path: Path, *, hangs: list[bool]) -> list[Hit]:
    async def main(clock: VirtualClock) -> list[Hit]:
        web = WebWithBrokenGzip(clock, {"a.test": {"/robots.txt": plain(""), "/page": Page("p"), "/other": Page("o")}})
        seeds = ["http://a.test/page", "http://a.test/other"]
        for hang in hangs:
            seconds = 10.0 if hang else 9999.0
            await crawl_for(clock, db_path, web, seeds, Options(), seconds, crash=True, reader=Reader(hangs=hang))
        return web.log

    return run_virtual(main)


@pytest.mark.parametrize("hangs", [[False], [True, False]], ids=["read at once", "read after a restart"])
def test_the_log_has_the_error_of_a_body_that_cannot_be_decoded(db_path: Path, hangs: list[bool]) -> None:
    crawled_with_broken_gzip(db_path, hangs=hangs)
    kinds = asyncio.run(rows(db_path, "SELECT url, error_kind FROM requests WHERE purpose = 'page'"))
    assert set(kinds) == {("http://a.test/page", "truncated"), ("http://a.test/other", None)}


def test_a_broken_body_slows_its_site_if_the_answer_that_was_kept_is_gone(
    db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawled_with_broken_gzip(db_path, hangs=[True])

    async def unread(self: Answers, queued: Queued) -> None:
        assert queued.is_answered == (queued.url == "http://a.test/page")

    with monkeypatch.context() as gone:
        gone.setattr(Answers, "unread", unread)
        page, other = crawled_with_broken_gzip(db_path, hangs=[False])[:2]
    assert (page.path, other.path) == ("/page", "/other")
    assert other.started_at - page.finished_at > 2 * Options().politeness.delay_s


@pytest.mark.parametrize("field", [("X-Robots-Tag", "noindex"), ("x-robots-tag", "none")])
def test_what_a_header_forbids_to_keep_is_not_kept_until_it_is_read(db_path: Path, field: tuple[str, str]) -> None:
    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = SimulatedWeb(clock, {"a.test": {**SITE, "/": Page(LINKS, headers=(field,))}})
        seeds = ["http://a.test/"]
        for hangs, seconds in ((True, 10.0), (False, 9999.0)):
            await crawl_for(clock, db_path, web, seeds, Options(), seconds, crash=True, reader=Reader(hangs=hangs))
        return web

    assert Counter(hit.path for hit in run_virtual(main).log)["/"] == 2


def test_no_commit_can_take_the_log_row_of_an_answer_alone(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop runs nothing else between the row and what is kept of the answer."""
    pages, kept, alone = [], [], []

    def add_request(self: Outbox, row: RequestRow, *more: Any) -> None:
        original["add_request"](self, row, *more)
        if row.purpose is Purpose.PAGE:
            pages.append(row.path)
            asyncio.get_running_loop().call_soon(lambda: alone.append(row.path) if len(kept) < len(pages) else None)

    def add_outcome(self: Outbox, outcome: Outcome) -> None:
        original["add_outcome"](self, outcome)
        if outcome.queued.id not in unread:
            kept.append(outcome.queued.url)
        unread.discard(outcome.queued.id)

    def add_unread(self: Outbox, url_id: int, answer: Fetched) -> None:
        original["add_unread"](self, url_id, answer)
        kept.append(answer.url)
        unread.add(url_id)

    unread: set[int] = set()
    original = {
        replaced.__name__: getattr(Outbox, replaced.__name__) for replaced in (add_request, add_outcome, add_unread)
    }
    for replaced in (add_request, add_outcome, add_unread):
        monkeypatch.setattr(Outbox, replaced.__name__, replaced)
    run_virtual(lambda clock: crawl(clock, db_path, SimulatedWeb(clock, {"a.test": SITE}), ["http://a.test/"]))
    assert set(pages) == set(SITE) - {"/robots.txt"} | {"/none"}
    assert alone == []
    assert {state for state, _ in run_virtual(lambda clock: states(db_path)).values()} == {
        "fetched",
        "redirected",
        "failed",
    }
