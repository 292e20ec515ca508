"""Bugs of the crawler while it sends, receives and reads: what they fail, what they close, how they are counted."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from crawler.demo.pages import Asked, Page, Site, plain
from crawler.engine import rules_cache
from crawler.engine.progress import MAX_FAULTS
from crawler.engine.robots_messages import RobotsQuestion
from crawler.engine.robots_reading import read_robots
from crawler.frontier.decide import Outcome
from crawler.frontier.politeness import PolitenessSettings
from crawler.model import Failed, FetchResult, Request
from crawler.reasons import EndCode, ErrorKind, RunEnd
from crawler.robots.readings import SiteRules
from crawler.robots.response import RobotsSettings
from tests.simulation.crawls import Options, rows, session, states
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

DONE = "nothing is left in the frontier"
SITE: Site = {
    "/robots.txt": plain("User-agent: *\nDisallow: /closed\n"),
    "/": Page("<a href=/1>1</a><a href=/2>2</a>"),
    "/1": Page("one"),
    "/2": Page("two"),
}


class Buggy(SimulatedWeb):
    """A fetcher that raises after sending, ``times`` times, for URLs that end with ``at``."""

    at, times, raises = "/1", 1, True

    async def fetch(self, request: Request) -> FetchResult:
        answer = await super().fetch(request)
        if request.url.endswith(self.at) and self.times:
            self.times -= 1
            if self.raises:
                raise ZeroDivisionError("a bug")
            return Failed(request.url, answer.started_at, answer.finished_at, kind=ErrorKind.FAULT, detail="a bug")
        return answer


def run(path: Path, web: type[SimulatedWeb], site: Site, options: Options | None = None) -> tuple[SimulatedWeb, int]:
    """Crawl a site to its end. Returns the web and the number of bugs counted."""

    async def main(clock: VirtualClock) -> tuple[SimulatedWeb, int]:
        served = web(clock, {"a.test": site}, latency_s=0.1)
        async with session(clock, path, served, ["http://a.test/"], options or Options()) as (crawl, _):
            assert await crawl.run() == RunEnd(EndCode.DONE)
            return served, crawl.progress.faults

    return run_virtual(main)


def test_a_bug_during_a_page_request_fails_that_page(db_path: Path) -> None:
    web, faults = run(db_path, Buggy, SITE)
    ended = run_virtual(lambda clock: states(db_path))
    assert {url: state for url, (state, _) in ended.items()} == {
        "http://a.test/": "fetched",
        "http://a.test/1": "failed",
        "http://a.test/2": "fetched",
    }
    reason = r"a bug in the crawler: ZeroDivisionError: a bug \(engine/gate.py, line \d+\); please report it"
    assert re.fullmatch(reason, ended["http://a.test/1"][1])
    logged = run_virtual(lambda clock: rows(db_path, "SELECT url, error FROM requests WHERE error NOTNULL"))
    assert logged == [("http://a.test/1", "a bug in the crawler: ZeroDivisionError; please report it")]
    assert faults == 1
    starts = [hit.started_at for hit in web.log]
    assert all(later - start >= 1.1 for start, later in pairwise(starts))


@pytest.mark.parametrize("raises", [True, False])
def test_a_bug_during_a_robots_txt_request_defers_the_site(db_path: Path, raises: bool) -> None:
    web, faults = run(db_path, type("", (Buggy,), {"at": "/robots.txt", "times": 2, "raises": raises}), SITE)
    assert [hit.path for hit in web.log[:4]] == ["/robots.txt"] * 3 + ["/"]
    assert faults == 2
    found = run_virtual(lambda clock: rows(db_path, "SELECT action, status, note FROM robots_versions"))
    assert [(action, status) for action, status, _ in found] == [("defer", "fault"), ("parse", "200")]
    assert found[0][2].startswith("a bug in the crawler: ")


@pytest.mark.parametrize("stale_if_error", [False, True])
def test_a_robots_txt_that_a_bug_leaves_unread_closes_the_site(
    db_path: Path, stale_if_error: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The earlier copy is not used either: the new file may forbid more."""

    def buggy(question: RobotsQuestion) -> SiteRules:
        if b"/new" in question.body:
            raise ZeroDivisionError("a bug\ud800 of ours")
        return read_robots(question)

    def robots_txt(asked: Asked) -> Page:
        text = "Disallow: /new" if asked.before else "Disallow: /old"
        return Page(f"User-agent: *\n{text}\n", headers=(("Cache-Control", "max-age=0"),))

    monkeypatch.setattr(rules_cache, "read_robots", buggy)
    links = "".join(f"<a href=/{n}>{n}</a>" for n in range(9))
    site: Site = {"/robots.txt": robots_txt, "/": Page(links), **{f"/{n}": Page("x") for n in range(9)}}
    options = Options(
        politeness=PolitenessSettings(delay_s=70.0),
        robots=RobotsSettings(stale_if_error=stale_if_error, give_up_after_s=86_400.0),
    )
    web, faults = run(db_path, SimulatedWeb, site, options)
    paths = [hit.path for hit in web.log]
    second = paths.index("/robots.txt", 1)
    assert "/" in paths[:second]
    assert set(paths[second:]) == {"/robots.txt"}
    assert faults == len(paths) - second > 3
    notes = run_virtual(lambda clock: rows(db_path, "SELECT note FROM robots_versions WHERE action = 'defer'"))
    assert notes
    assert all("ZeroDivisionError: a bug\ufffd of ours" in note for (note,) in notes)


def test_too_many_bugs_end_the_run(db_path: Path) -> None:
    links = "".join(f"<a href=/{n}/1>{n}</a>" for n in range(2 * MAX_FAULTS))
    site: Site = {"/robots.txt": plain(""), "/": Page(links)}
    with pytest.raises(ZeroDivisionError):
        run(db_path, type("", (Buggy,), {"times": 2 * MAX_FAULTS}), site)
    failed = run_virtual(lambda clock: rows(db_path, "SELECT count(*) FROM urls WHERE state = 'failed'"))
    assert failed == [(MAX_FAULTS,)]


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_the_log_has_each_request_that_was_sent_before_the_consumer_of_pages_failed(
    db_path: Path, error: type[BaseException]
) -> None:
    async def main(clock: VirtualClock) -> list[str]:
        async def on_pages(pages: list[Outcome]) -> None:
            await clock.sleep(20)  # meanwhile the workers go on
            raise error

        web = SimulatedWeb(clock, {"a.test": SITE}, latency_s=0.1)
        seeds = [f"http://a.test/{path}" for path in ("", "1", "2")]
        options = Options(politeness=PolitenessSettings(delay_s=3.0))
        async with session(clock, db_path, web, seeds, options, on_pages) as (crawl, _):
            with pytest.raises(error):
                await crawl.run()
        return sorted(hit.path for hit in web.log)

    sent = run_virtual(main)
    logged = run_virtual(lambda clock: rows(db_path, "SELECT url FROM requests"))
    assert sorted(url.removeprefix("http://a.test") for (url,) in logged) == sent == ["/", "/1", "/2", "/robots.txt"]
