"""Every kind of answer of the hostile web (:mod:`tests.hostile`) is stored, on both databases.

The answers that are octets or pages are read as the parser process reads them, decided on, and committed. Answers that
never end, or end at an error of the connection, stand as the error kind that the fetcher reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest

from crawler.demo.pages import Page
from crawler.frontier.decide import after_fetch
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.scope import Scope, ScopeMode, ScopeSettings
from crawler.model import Failed, Fetched, FetchResult, Headers, PageFacts, Reading, Redirected, State
from crawler.page.html import read_page
from crawler.reasons import ErrorKind
from tests.contract.visits import NOW, Harness, request
from tests.records import replace

_MOST_BYTES = 5_000  # of a body: the store keeps them all alike
_STATUS = re.compile(rb"HTTP/\d\.\d (\d{3})")
_ANY = Scope(ScopeSettings(ScopeMode.ANY), ())


def _parsed(octets: bytes) -> tuple[int, Headers, bytes] | None:
    """Status, headers and the rest of an answer as sent; ``None`` without a status."""
    head, _, body = octets.partition(b"\r\n\r\n")
    status = _STATUS.match(head)
    lines = [line.decode("latin-1").partition(":") for line in head.split(b"\r\n")[1:]]
    headers = tuple((name.strip(), value.strip()) for name, colon, value in lines if colon)
    return None if status is None else (int(status[1]), headers[:100], body)


def _answers() -> Iterator[tuple[int, Headers, bytes]]:
    from tests.hostile import catalogue  # 300 MB of answers

    for behaviour in (*catalogue.ALL, *catalogue.HEALTHY):
        for reply in behaviour.site.values():
            if isinstance(reply, Page):
                yield reply.status, reply.all_headers, reply.octets
            elif isinstance(reply, bytes) and (found := _parsed(reply)) is not None:
                yield found


def _result(url: str, status: int, headers: Headers, body: bytes) -> FetchResult:
    named = {name.lower(): value for name, value in headers}
    if 200 <= status < 300:
        content_type = named.get("content-type", "").partition(";")[0].strip().lower()
        return Fetched(url, NOW, NOW + 1, headers, len(body), status=status, content_type=content_type, plain=body)
    if 300 <= status < 400 and named.get("location"):
        return Redirected(url, NOW, NOW + 1, headers, status=status, location=named["location"])
    return Failed(url, NOW, NOW + 1, headers, kind=ErrorKind.HTTP, status=status, detail=str(status))


@cache
def _stored() -> list[tuple[int, Headers, bytes]]:
    """The beginnings of all answers, and an empty page."""
    answers = {(status, headers, body[:_MOST_BYTES]) for status, headers, body in _answers()}
    return sorted({*answers, (200, (("Content-Type", "text/html"),), b"")})


@cache
def _facts(number: int, url: str) -> PageFacts:
    """What is read from the page that is an answer; both databases store the same."""
    _, headers, body = _stored()[number]
    return read_page(
        body,
        url=url,
        headers=headers,
        charset=None,
        token="testbot",
        reading=Reading.STRICT,
        now=NOW,
        resources=True,
    )


@pytest.mark.slow
async def test_every_kind_of_answer_is_stored(harness: Harness) -> None:
    answers = _stored()
    assert len(answers) > 200
    failures = [Failed("", NOW, NOW + 1, kind=kind, detail="it broke") for kind in ErrorKind]
    ordered: list[tuple[int, Headers, bytes] | Failed] = [*answers, *failures]
    await harness.seed(*[f"http://h{n % 10}.test/{n}" for n in range(len(ordered))])
    kept: dict[str, tuple[str, bytes | None]] = {}
    for claim in await harness.claim(per_group=len(ordered)):
        outcomes, requests = [], []
        for queued in claim.urls:
            number = int(queued.url.rpartition("/")[2])
            answer = ordered[number]
            result = replace(answer, url=queued.url) if isinstance(answer, Failed) else _result(queued.url, *answer)
            facts, body = None, None
            if isinstance(result, Fetched):
                body, facts = result.body, _facts(number, queued.url)
            outcome = after_fetch(queued, result, facts, _ANY, RequestSettings())
            page = outcome.page
            kept[queued.url] = (outcome.state, None if page is None or page.body is None else body)
            outcomes.append(outcome)
            error = result.error if isinstance(result, Failed) else None
            requests.append(request(queued.site_id, queued.url, status=result.status, error=error))
        await harness.commit(*outcomes, requests=requests, released=[claim.group_id])
    states = await harness.urls()
    assert {url: states[url] for url in kept} == {url: state for url, (state, _) in kept.items()}
    pages = {row["url"]: row for row in await harness.store.query("SELECT url, body_sha256, body_bytes FROM pages")}
    assert set(pages) == {url for url, (state, _) in kept.items() if state == State.FETCHED}
    for url in pages:
        assert await harness.store.bodies.of_page(url) == kept[url][1], ordered[int(url.rpartition("/")[2])]
