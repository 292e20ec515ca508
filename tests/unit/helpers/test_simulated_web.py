"""The simulated web answers like the real fetcher; random webs fit their descriptions."""

from __future__ import annotations

import re
from collections import deque

from crawler.demo.pages import Fault, Page, Site, plain, redirect, unavailable
from crawler.model import Failed, Fetched, FetchResult, NotModified, Purpose, Redirected, Request
from crawler.reasons import ErrorKind
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual
from tests.web import random_web

SITE: Site = {
    "/": Page("<p>hello", delay_s=1.0, headers=(("ETag", '"1"'),)),
    "/robots.txt": plain("User-agent: *"),
    "/moved": redirect("/", 301),
    "/nowhere": Page(status=302),
    "/closed": unavailable(60),
    "/pdf": Page(b"%PDF", content_type="application/pdf"),
    "/bare": Page("x", content_type=""),
    "/latin": Page(b"\xe9", content_type="text/html; charset=ISO-8859-1"),
    **{f"/{fault.name}": Page("x", fault=fault) for fault in Fault},
}


def page(
    url: str, max_bytes: int = 1000, *, truncate: bool = False, any_type: bool = False, etag: str | None = None
) -> Request:
    return Request(url, Purpose.PAGE, max_bytes, truncate, any_type, etag=etag)


def fetch(*requests: Request, latency_s: float | dict[str, float] = 0.5) -> tuple[list[FetchResult], SimulatedWeb]:
    async def main(clock: VirtualClock) -> tuple[list[FetchResult], SimulatedWeb]:
        async with SimulatedWeb(clock, {"a.test": SITE}, latency_s=latency_s) as web:
            return [await web.fetch(request) for request in requests], web

    return run_virtual(main)


def failure(path: str) -> tuple[ErrorKind, int | None]:
    (result,), _ = fetch(page(f"http://a.test{path}"))
    assert isinstance(result, Failed)
    return result.kind, result.status


def test_a_page_takes_its_hosts_latency_and_its_own_delay() -> None:
    (first, second), web = fetch(page("http://a.test/"), page("http://a.test/robots.txt", any_type=True))
    assert isinstance(first, Fetched)
    assert (first.body, first.content_type, first.charset) == (b"<p>hello", "text/html", "utf-8")
    assert first.finished_at - first.started_at == 1.5
    assert isinstance(second, Fetched)
    assert (second.content_type, second.started_at) == ("text/plain", first.finished_at)
    assert [(hit.path, hit.started_at, hit.finished_at, hit.status) for hit in web.log] == [
        ("/", 0, 1.5, 200),
        ("/robots.txt", 1.5, 2, 200),
    ]


def test_latency_may_differ_by_host() -> None:
    (result,), _ = fetch(page("http://a.test/latin"), latency_s={"a.test": 4})
    assert isinstance(result, Fetched)
    assert (result.finished_at - result.started_at, result.charset) == (4, "iso-8859-1")


def test_redirects_and_validators() -> None:
    (moved, same), _ = fetch(page("http://a.test/moved"), page("http://a.test/", etag='"1"'))
    assert isinstance(moved, Redirected)
    assert (moved.status, moved.location) == (301, "/")
    assert isinstance(same, NotModified)


def test_failures_are_of_the_kind_that_the_real_fetcher_reports() -> None:
    assert failure("/x") == (ErrorKind.HTTP, 404)
    assert failure("/nowhere") == (ErrorKind.HTTP, 302)
    assert failure("/closed") == (ErrorKind.HTTP, 503)
    assert failure("/pdf") == (ErrorKind.UNWANTED_TYPE, 200)
    assert failure("/RESET") == (ErrorKind.CONNECT, None)
    assert failure("/CUT") == (ErrorKind.TRUNCATED, None)
    assert failure("/HANG") == (ErrorKind.TIMEOUT, None)
    assert failure("/RAW") == (ErrorKind.PROTOCOL, None)
    (unknown,), web = fetch(page("http://b.test/"))
    assert isinstance(unknown, Failed)
    assert (unknown.kind, web.log) == (ErrorKind.DNS, [])


def test_a_missing_content_type_is_taken_for_html() -> None:
    (result,), _ = fetch(page("http://a.test/bare"))
    assert isinstance(result, Fetched)


def test_bodies_are_bounded() -> None:
    (cut, refused), _ = fetch(page("http://a.test/", 3, truncate=True), page("http://a.test/", 3))
    assert isinstance(cut, Fetched)
    assert (cut.body, cut.truncated) == (b"<p>", True)
    assert isinstance(refused, Failed)
    assert refused.kind is ErrorKind.TOO_LARGE


def test_the_log_knows_retry_after() -> None:
    _, web = fetch(page("http://a.test/closed"))
    assert [hit.retry_after_s for hit in web.log] == [60]


def test_a_random_web_is_the_same_for_the_same_seed() -> None:
    assert random_web(7) == random_web(7)
    assert random_web(7).links != random_web(8).links
    assert random_web(7, port=8080).seeds[0] == "http://h0.web.test:8080/"


def test_a_random_web_serves_its_reachable_pages() -> None:
    drawn = random_web(3, hosts=5, pages_per_host=30, closed=0.2)

    async def main(clock: VirtualClock) -> dict[str, int]:
        web = SimulatedWeb(clock, drawn.sites)
        depths = dict.fromkeys(drawn.seeds, 0)
        waiting = deque(drawn.seeds)
        while waiting:
            url = waiting.popleft()
            result = await web.fetch(page(url, 100_000))
            assert isinstance(result, Fetched)
            for target in re.findall(r"href='([^']*)'", result.body.decode()):
                if target not in depths and target not in drawn.forbidden:
                    depths[target] = depths[url] + 1
                    waiting.append(target)
        return depths

    assert run_virtual(main) == drawn.depths
    assert drawn.forbidden
    assert not drawn.forbidden & drawn.depths.keys()
    assert 100 < len(drawn.depths) < 150
