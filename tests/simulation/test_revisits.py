"""Revisits in whole crawls: what is requested again, and what is kept. Nothing is lost, nothing is impolite."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from crawler.demo.pages import Asked, Page, Site, plain, redirect, unavailable
from crawler.engine.crawl_settings import DiscoverySettings, LimitSettings
from crawler.frontier.hints import Hint, HintCounts, HintKind
from crawler.frontier.operator import BLOCKED, Command
from crawler.frontier.revisit import RevisitSettings
from crawler.model import Fetched, PageFacts, Reading
from crawler.page.headers import unread_page
from crawler.reasons import ReasonCode
from crawler.store.open import give_order_to_file
from crawler.store.sqlite.store import SqliteStore
from tests.reading import ReaderInProcess
from tests.reasons import reason
from tests.records import replace
from tests.simulation.crawls import Options, crawl, crawl_for, rows, states
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

DAY_S = 86_400.0
SEED = "http://a.test/"
DAILY = RevisitSettings(enabled=True, first_s=DAY_S, min_interval_s=3_600.0, max_interval_s=30 * DAY_S)
AGAIN = Options(revisit=DAILY)
PAGE = "http://a.test/p"

Row = tuple[Any, ...]


class Shelf:
    """A site whose pages may be changed while a crawl of it goes on."""

    def __init__(self, robots: str = "", **pages: Page) -> None:
        self.robots = robots
        self.pages = pages
        links = "".join(f"<a href='/{name}'>{name}</a>" for name in pages)
        self.home = Page(f"<title>Home</title>{links}")

    def site(self) -> Site:
        return {"/robots.txt": lambda _: plain(self.robots), "/": lambda _: self.home, "*": self._page}

    def _page(self, asked: Asked) -> Page:
        return self.pages.get(asked.path.removeprefix("/"), Page("none", status=404))

    def put(self, page: Page | None) -> None:
        """Put up another page at ``/p``, or take it down."""
        self.pages = {name: old for name, old in self.pages.items() if name != "p"} | ({"p": page} if page else {})


def tagged(body: str, etag: str = '"1"', *headers: tuple[str, str]) -> Page:
    return Page(body, headers=(("ETag", etag), *headers))


def statuses(web: SimulatedWeb, path: str = "/p") -> list[int]:
    return [hit.status for hit in web.log if hit.path == path]


def revisited(
    db_path: Path, shelf: Shelf, *changes: Page | None, options: Options = AGAIN, days: float = 2, growing: float = 1
) -> list[int]:
    """Crawl the shelf; then, for each change, make it, let days pass and crawl again. The statuses of /p in order.

    ``growing`` is how many times as many days pass each time as before.
    """

    async def main(clock: VirtualClock) -> list[int]:
        web = SimulatedWeb(clock, {"a.test": shelf.site()})
        await crawl(clock, db_path, web, [SEED], options)
        for number, change in enumerate(changes):
            shelf.put(change)
            await clock.sleep(days * growing**number * DAY_S)
            await crawl(clock, db_path, web, (), options)
        return statuses(web)

    return run_virtual(main)


def look(db_path: Path, sql: str) -> list[Row]:
    async def main(clock: VirtualClock) -> list[Row]:
        return await rows(db_path, sql)

    return run_virtual(main)


def state(db_path: Path, url: str = PAGE) -> tuple[str, str]:
    async def main(clock: VirtualClock) -> tuple[str, str]:
        return (await states(db_path))[url]

    return run_virtual(main)


def body(db_path: Path, version: int | None = None) -> bytes | None:
    async def main(clock: VirtualClock) -> bytes | None:
        store = await SqliteStore.open(db_path, read_only=True)
        try:
            return await store.bodies.of_page(PAGE, version)
        finally:
            await store.close()

    return run_virtual(main)


def test_without_revisits_no_url_is_requested_twice(db_path: Path) -> None:
    page = tagged("<p>one")
    assert revisited(db_path, Shelf(p=page), page, options=Options(), days=400) == [200]
    assert look(db_path, "SELECT * FROM revisits") == []


def test_an_unchanged_page_gets_a_304_and_no_new_body(db_path: Path) -> None:
    page = tagged("<title>T</title><p>one")
    assert revisited(db_path, Shelf(p=page), page, page, growing=5) == [200, 304, 304]
    assert state(db_path) == ("fetched", "200, unchanged (304)")
    ((version, title, seen_for),) = look(
        db_path, f"SELECT version, title, last_seen_at - fetched_at FROM pages WHERE url = '{PAGE}'"
    )
    assert (version, title) == (1, "T")
    assert 11.9 * DAY_S < seen_for < 12.1 * DAY_S
    assert len(look(db_path, f"SELECT 1 FROM page_versions WHERE url = '{PAGE}'")) == 1


def test_unchanged_content_without_validators_makes_no_version(db_path: Path) -> None:
    page = Page("<p>one")
    assert revisited(db_path, Shelf(p=page), page) == [200, 200]
    assert state(db_path) == ("fetched", "200, unchanged (same content)")


def test_a_changed_page_makes_a_version_and_both_are_kept(db_path: Path) -> None:
    shelf = Shelf(p=tagged("<title>A</title>one <a href='/old'>o</a>"))
    changed = tagged("<title>B</title>two <a href='/new'>n</a>", '"2"')
    assert revisited(db_path, shelf, changed, changed) == [200, 200, 304]
    versions = look(
        db_path,
        "SELECT version, title, text_sha256 NOTNULL, last_seen_at > fetched_at FROM page_versions"
        f" WHERE url = '{PAGE}' ORDER BY version",
    )
    assert versions == [(1, "A", 1, 0), (2, "B", 1, 1)]
    assert look(db_path, f"SELECT title, version FROM pages WHERE url = '{PAGE}'") == [("B", 2)]
    assert look(db_path, f"SELECT target FROM links WHERE source = '{PAGE}'") == [("http://a.test/new",)]
    assert (body(db_path), body(db_path, 1)) == (changed.octets, b"<title>A</title>one <a href='/old'>o</a>")
    assert state(db_path, "http://a.test/new")[0] == "failed", "what the new version links to is asked for"


def test_changed_markup_makes_a_version_but_no_change(db_path: Path) -> None:
    shelf = Shelf(p=Page("<body class=x1><p>one"))
    revisited(db_path, shelf, Page("<body class=x2><p><b>one</b>"))
    assert state(db_path) == ("fetched", "200, only the mark-up changed")
    assert look(db_path, f"SELECT changes FROM revisits WHERE url = '{PAGE}'") == [(0.0,)]
    hashes = look(db_path, f"SELECT DISTINCT text_sha256 FROM page_versions WHERE url = '{PAGE}'")
    assert len(hashes) == 1


def test_a_removed_page_keeps_its_last_version_and_may_return(db_path: Path) -> None:
    page = tagged("<title>A</title>one")
    shelf = Shelf(p=page)
    assert revisited(db_path, shelf, None, days=4) == [200, 404]
    assert state(db_path) == ("failed", "status 404: gone")
    assert look(db_path, f"SELECT title, gone_at NOTNULL FROM pages WHERE url = '{PAGE}'") == [("A", 1)]
    assert body(db_path) == page.octets
    ((due_in_days,),) = look(db_path, f"SELECT (due_at - checked_at) / 86400 FROM revisits WHERE url = '{PAGE}'")
    assert due_in_days == pytest.approx(2), "twice what it was"

    async def main(clock: VirtualClock) -> None:
        shelf.put(page)
        web = SimulatedWeb(clock, {"a.test": shelf.site()})
        await clock.sleep(30 * DAY_S)
        await crawl(clock, db_path, web, (), AGAIN)

    run_virtual(main)
    assert state(db_path) == ("fetched", "200, unchanged (304)")
    assert look(db_path, f"SELECT gone_at, version FROM pages WHERE url = '{PAGE}'") == [(None, 1)]


def test_a_moved_page_is_redirected_and_keeps_its_version(db_path: Path) -> None:
    shelf = Shelf(p=Page("<title>A</title>one"), q=Page("there"))
    revisited(db_path, shelf, redirect("/q"), redirect("/q"))
    assert state(db_path) == ("redirected", "302 to http://a.test/q")
    assert look(db_path, f"SELECT title FROM pages WHERE url = '{PAGE}'") == [("A",)]


@pytest.mark.parametrize(("second", "changes"), [(redirect("/q", 301), 0), (redirect("/r"), 1)])
def test_a_redirect_has_changed_if_its_target_has(db_path: Path, second: Page, changes: int) -> None:
    asked = revisited(db_path, Shelf(p=redirect("/q")), second, days=40)
    assert len(asked) == 2
    assert look(db_path, f"SELECT changes FROM revisits WHERE url = '{PAGE}'") == [(changes,)]


def test_an_unreachable_redirect_keeps_its_target(db_path: Path) -> None:
    revisited(db_path, Shelf(p=redirect("/q")), unavailable(), days=40)
    assert state(db_path)[0] == "redirected"
    assert look(db_path, f"SELECT target FROM urls WHERE url = '{PAGE}'") == [("http://a.test/q",)]


def test_a_temporary_failure_keeps_the_page_and_is_retried(db_path: Path) -> None:
    page = tagged("<title>A</title>one")
    shelf = Shelf(p=page)
    asked = revisited(db_path, shelf, unavailable(), page, days=5)
    assert asked == [200, 503, 503, 503, 503, 304]
    assert state(db_path) == ("fetched", "200, unchanged (304)")


def test_an_unreachable_page_stays_as_it_was(db_path: Path) -> None:
    revisited(db_path, Shelf(p=tagged("one")), unavailable())
    assert state(db_path) == ("fetched", "200, not reachable at the last visit: status 503 (4 attempts)")
    assert look(db_path, f"SELECT failures FROM revisits WHERE url = '{PAGE}'") == [(1,)]


def test_a_page_that_becomes_noindex_loses_its_stored_texts(db_path: Path) -> None:
    shelf = Shelf(p=Page("<title>secret one</title>first"))
    closed = Page("<meta name=robots content=noindex><title>secret three</title>third")
    revisited(db_path, shelf, Page("<title>secret two</title>second"), closed)
    assert state(db_path) == ("fetched", "200, noindex: body and texts not kept, changed")
    versions = look(db_path, f"SELECT version, title, body_sha256, text_sha256 FROM page_versions WHERE url = '{PAGE}'")
    assert sorted(versions) == [(1, None, None, None), (2, None, None, None), (3, None, None, None)]
    assert len(look(db_path, "SELECT 1 FROM body")) == 1, "the home page's alone"
    dump = b"".join(path.read_bytes() for path in db_path.parent.glob("*.db*"))
    assert b"secret three" not in dump


@pytest.fixture
def unread_visits(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the parser process is killed while it reads ``/p``, for each visit in order; afterwards it reads."""
    killed, reads = list[bool](), ReaderInProcess.read

    async def read(
        reader: ReaderInProcess, document: Fetched, *, is_alone: bool = False, shingles: bool = False
    ) -> PageFacts:
        if document.url != PAGE or not killed or not killed.pop(0):
            return await reads(reader, document, is_alone=is_alone)
        asked = {"token": "x", "reading": Reading.STRICT, "now": document.finished_at}
        unread = unread_page("killed", url=document.url, headers=document.headers, **asked)
        return replace(unread, body_sha256=sha256(document.body).digest(), body_bytes=len(document.body))

    monkeypatch.setattr(ReaderInProcess, "read", read)
    return killed


@pytest.mark.parametrize(
    "html", ["<title>A</title>one", "<meta name=robots content='noindex, nofollow'><title>A</title>"]
)
def test_a_page_that_could_not_be_read_is_fetched_in_full_until_it_can_be(
    db_path: Path, html: str, unread_visits: list[bool]
) -> None:
    unread_visits += [True, True]
    page = tagged(html)
    assert revisited(db_path, Shelf(p=page), page, page, page, growing=5) == [200, 200, 200, 304]
    ((code,),) = look(db_path, f"SELECT reason_code FROM urls WHERE url = '{PAGE}'")
    assert code == ReasonCode.UNCHANGED


def test_an_unread_page_that_is_unreachable_meanwhile_is_fetched_in_full(
    db_path: Path, unread_visits: list[bool]
) -> None:
    unread_visits += [True]
    page = tagged("<title>A</title>one")
    asked = revisited(db_path, Shelf(p=page), unavailable(), page, days=5)
    assert (asked[0], asked[-1]) == (200, 200)
    assert look(db_path, f"SELECT title FROM pages WHERE url = '{PAGE}'") == [("A",)]


def test_a_page_that_was_read_keeps_its_version_while_it_cannot_be_read(
    db_path: Path, unread_visits: list[bool]
) -> None:
    unread_visits += [False, True]
    new = tagged("<title>B</title>two", '"2"')
    assert revisited(db_path, Shelf(p=tagged("<title>A</title>one")), new, new, growing=5) == [200, 200, 200]
    assert look(db_path, f"SELECT title, version FROM pages WHERE url = '{PAGE}'") == [("B", 2)]


def test_headers_of_a_304_are_read(db_path: Path) -> None:
    open_, closed = tagged("<title>A</title>one"), tagged("<title>A</title>one", '"1"', ("X-Robots-Tag", "noindex"))
    assert revisited(db_path, Shelf(p=open_), closed, closed, growing=5) == [200, 304, 200, 304]
    assert look(db_path, f"SELECT title, noindex FROM pages WHERE url = '{PAGE}'") == [(None, 1)]
    assert body(db_path) is None


@pytest.mark.parametrize(
    ("tag", "answers"),
    [
        ("noarchive", [200, 304, 200, 304]),
        ("nosnippet", [200, 304, 200, 304]),
        ("unavailable_after: 2126-01-01T00:00:00Z", [200, 304, 200, 200]),
    ],
)
def test_directives_about_copies_are_kept_up_to_date(db_path: Path, tag: str, answers: list[int]) -> None:
    html = "<title>A</title>one"
    before, after = tagged(html), tagged(html, '"1"', ("X-Robots-Tag", tag))
    assert revisited(db_path, Shelf(p=before), after, after, growing=5) == answers
    (directives,) = look(db_path, f"SELECT directives FROM pages WHERE url = '{PAGE}'")
    assert directives == (f'["X-Robots-Tag: {tag}"]',)
    lifted = db_path.with_name("lifted.db")
    revisited(lifted, Shelf(p=after), tagged(html, '"2"'), growing=5)
    assert look(lifted, f"SELECT directives, version FROM pages WHERE url = '{PAGE}'") == [(None, 2)]


def test_a_page_that_robots_txt_closes_is_kept_and_not_requested_again(db_path: Path) -> None:
    shelf = Shelf(p=tagged("<title>A</title>one"))

    async def main(clock: VirtualClock) -> list[int]:
        web = SimulatedWeb(clock, {"a.test": shelf.site()})
        await crawl(clock, db_path, web, [SEED], AGAIN)
        shelf.robots = "User-agent: *\nDisallow: /p"
        await clock.sleep(10 * DAY_S)
        await crawl(clock, db_path, web, (), AGAIN)
        return statuses(web)

    assert run_virtual(main) == [200]
    assert state(db_path)[0] == "excluded"
    assert look(db_path, f"SELECT title FROM pages WHERE url = '{PAGE}'") == [("A",)]


def test_a_changing_page_is_revisited_more_often(db_path: Path) -> None:
    shelf = Shelf(still=tagged("still"))
    shelf.pages["p"] = Page("0")
    shelf.home = Page("<a href=/p>p</a><a href=/still>s</a>")

    async def main(clock: VirtualClock) -> tuple[int, int]:
        web = SimulatedWeb(clock, {"a.test": shelf.site()})
        await crawl(clock, db_path, web, [SEED], AGAIN)
        for hour in range(24 * 5):
            shelf.put(Page(f"{hour}"))
            await clock.sleep(3_600)
            await crawl(clock, db_path, web, (), AGAIN)
        return len(statuses(web)), len(statuses(web, "/still"))

    often, seldom = run_virtual(main)
    assert often > 60, "half of the hours"
    assert seldom < 5


def test_cache_control_delays_a_revisit(db_path: Path) -> None:
    page = tagged("one", '"1"', ("Cache-Control", "max-age=864000"))
    assert revisited(db_path, Shelf(p=page), *[page] * 8, days=1.5) == [200, 304, 304]


def test_a_daily_budget_is_kept_and_refilled(db_path: Path) -> None:
    shelf = Shelf(**{f"p{n}": Page(f"{n}") for n in range(60)})
    options = replace(AGAIN, revisit=replace(DAILY, per_day=24))

    async def main(clock: VirtualClock) -> list[int]:
        web = SimulatedWeb(clock, {"a.test": shelf.site()})
        await crawl(clock, db_path, web, [SEED], options)
        counts, before = [], len(web.log)
        for wait_s in (3 * DAY_S, 3 * 3_600, 60):
            await clock.sleep(wait_s)
            await crawl(clock, db_path, web, (), options)
            counts.append(sum(hit.path != "/robots.txt" for hit in web.log[before:]))
            before = len(web.log)
        return counts

    assert run_virtual(main) == [24, 3, 0]


def test_page_limits_do_not_count_revisits(db_path: Path) -> None:
    shelf = Shelf(**{name: tagged(name, f'"{name}"') for name in "abcdefgh"})
    options = replace(AGAIN, limits=LimitSettings(max_pages=4))

    async def main(clock: VirtualClock) -> tuple[list[str], int, list[Row]]:
        web = SimulatedWeb(clock, {"a.test": shelf.site()})
        ended = [await crawl(clock, db_path, web, [SEED], options)]
        before = len(web.log)
        await clock.sleep(3 * DAY_S)
        ended.append(await crawl(clock, db_path, web, (), options))
        return ended, len(web.log) - before, await rows(db_path, "SELECT count(*) FROM pages")

    ended, requests, pages = run_virtual(main)
    assert ended == ["no revisit is due, and limits.max_pages is reached (4)"] * 2
    assert (requests, pages) == (4, [(4,)])


@pytest.mark.parametrize("limit", [4, 5])
def test_a_page_limit_holds_back_no_queued_visit_of_a_known_page(limit: int, db_path: Path) -> None:
    """The limit leaves room for a new page, or for none. The run plans no visits itself."""
    shelf = Shelf(**{name: tagged(name, f'"{name}"') for name in "abcdefgh"})

    async def main(clock: VirtualClock) -> tuple[str, list[str]]:
        web = SimulatedWeb(clock, {"a.test": shelf.site()})
        await crawl(clock, db_path, web, [SEED], Options(limits=LimitSettings(max_pages=4)))
        before = len(web.log)
        now, hint = clock.now(), Hint(SEED, HintKind.CHANGED, clock.now(), "user")
        store = await SqliteStore.open(db_path)
        await store.revisits.apply_hints([hint], DAILY, now, lambda *_: None)
        assert await store.revisits.queue_due(DAILY, now, now, None, hinted_only=True) == 1
        await store.close()
        ended = await crawl(clock, db_path, web, (), Options(limits=LimitSettings(max_pages=limit)))
        return ended, [hit.path for hit in web.log[before:] if hit.path != "/robots.txt"]

    ended, paths = run_virtual(main)
    assert (ended, paths.count("/"), len(paths)) == (f"limits.max_pages reached ({limit})", 1, 1 + limit - 4)


def test_a_crash_at_any_time_loses_no_revisit(db_path: Path) -> None:
    shelf = Shelf(**{f"p{n}": tagged(f"{n}", f'"{n}"') for n in range(30)})

    async def main(clock: VirtualClock) -> tuple[list[Row], list[Row], list[Row]]:
        web = SimulatedWeb(clock, {"a.test": shelf.site()})
        await crawl(clock, db_path, web, [SEED], AGAIN)
        await clock.sleep(3 * DAY_S)
        shelf.pages = {name: tagged(f"new {name}", f'"new {name}"') for name in shelf.pages}
        while not await crawl_for(clock, db_path, web, (), AGAIN, 7.3, crash=True):
            waiting = await rows(
                db_path, "SELECT reason FROM urls WHERE state = 'queued' AND url NOT IN (SELECT url FROM pages)"
            )
            assert waiting == []
        versions = await rows(db_path, "SELECT count(*), count(DISTINCT url) FROM page_versions WHERE version = 2")
        left = await rows(db_path, "SELECT * FROM urls WHERE state <> 'fetched'")
        pauses = await rows(
            db_path,
            "SELECT min(started_at - before) FROM"
            " (SELECT started_at, lag(finished_at) OVER (ORDER BY started_at) AS before FROM requests)",
        )
        return versions, left, pauses

    versions, left, ((pause_s,),) = run_virtual(main)
    assert (versions, left) == ([(30, 30)], [])
    assert pause_s >= 1


def test_a_run_without_revisits_ends_those_of_a_killed_run(db_path: Path) -> None:
    shelf = Shelf(**{f"p{n}": tagged(f"{n}", f'"{n}"') for n in range(10)})

    async def main(clock: VirtualClock) -> list[Row]:
        web = SimulatedWeb(clock, {"a.test": shelf.site()})
        await crawl(clock, db_path, web, [SEED], AGAIN)
        await clock.sleep(3 * DAY_S)
        await crawl_for(clock, db_path, web, (), AGAIN, 4, crash=True)
        await crawl(clock, db_path, web, (), Options())
        return await rows(db_path, "SELECT DISTINCT reason FROM urls WHERE url <> 'http://a.test/'")

    assert run_virtual(main) == [("200, unchanged (304)",)]


def sitemap(**lastmods: str) -> Page:
    entries = "".join(f"<url><loc>http://a.test/{n}</loc><lastmod>{at}</lastmod></url>" for n, at in lastmods.items())
    return Page(f"<urlset>{entries}</urlset>", content_type="application/xml")


def test_a_sitemap_brings_a_revisit_forward_and_is_revisited_itself(db_path: Path) -> None:
    shelf = Shelf(p=tagged("one"), q=tagged("two"), **{"sitemap.xml": sitemap(p="2027-01-01", q="2027-01-01")})
    seldom = replace(DAILY, first_s=7 * DAY_S)
    options = replace(AGAIN, revisit=seldom, discovery=DiscoverySettings(sitemaps=True))

    async def main(clock: VirtualClock) -> tuple[list[int], list[int], list[int]]:
        web = SimulatedWeb(clock, {"a.test": shelf.site()})
        await crawl(clock, db_path, web, [SEED], options)
        await clock.sleep(1.1 * DAY_S)
        shelf.pages |= {"p": tagged("new", '"2"'), "sitemap.xml": sitemap(p="2027-01-16T12:00:00Z", q="2027-01-01")}
        await crawl(clock, db_path, web, (), options)
        return statuses(web, "/sitemap.xml"), statuses(web), statuses(web, "/q")

    assert run_virtual(main) == ([200, 200], [200, 200], [200])
    assert look(db_path, "SELECT source, tried, changed FROM hint_record") == [("sitemap", 1, 1)]


def test_a_sitemap_with_wrong_dates_loses_its_effect(db_path: Path) -> None:
    shelf = Shelf(p=tagged("one"), q=tagged("two"))
    options = replace(AGAIN, revisit=replace(DAILY, first_s=7 * DAY_S), discovery=DiscoverySettings(sitemaps=True))

    async def main(clock: VirtualClock) -> int:
        web = SimulatedWeb(clock, {"a.test": shelf.site()})
        shelf.pages["sitemap.xml"] = sitemap(p="2027-01-01", q="2027-01-01")
        await crawl(clock, db_path, web, [SEED], options)
        for day in range(16, 31):
            await clock.sleep(1.01 * DAY_S)
            shelf.pages["sitemap.xml"] = sitemap(p=f"2027-01-{day}", q=f"2027-01-{day}")
            await crawl(clock, db_path, web, (), options)
        return len(statuses(web)) + len(statuses(web, "/q"))

    assert run_virtual(main) <= 8


def test_a_feed_named_by_a_page_is_read_for_changes(db_path: Path) -> None:
    shelf = Shelf(p=tagged("one"))
    shelf.home = Page("<link rel=alternate type=application/rss+xml href=/feed><a href=/p>p</a>")
    feed = "<rss><channel><item><link>/{}</link><pubDate>{}</pubDate></item></channel></rss>"
    shelf.pages["feed"] = Page(feed.format("p", "Fri, 01 Jan 2027 00:00:00 GMT"), content_type="application/rss+xml")
    options = replace(AGAIN, revisit=replace(DAILY, first_s=7 * DAY_S), discovery=DiscoverySettings(sitemaps=True))

    async def main(clock: VirtualClock) -> tuple[list[int], list[int]]:
        web = SimulatedWeb(clock, {"a.test": shelf.site()})
        await crawl(clock, db_path, web, [SEED], options)
        await clock.sleep(1.1 * DAY_S)
        news = feed.format("p", "Sat, 16 Jan 2027 09:00:00 GMT") + feed.format("fresh", "")
        shelf.pages |= {"p": tagged("new", '"2"'), "feed": Page(news, content_type="application/rss+xml")}
        await crawl(clock, db_path, web, (), options)
        return statuses(web, "/feed"), statuses(web)

    assert run_virtual(main) == ([200, 200], [200, 200])


def test_hints_bring_known_urls_forward_and_offer_new_ones(db_path: Path) -> None:
    shelf = Shelf(p=tagged("one"), q=tagged("two"))

    async def main(clock: VirtualClock) -> tuple[HintCounts, list[int], list[int], list[int]]:
        web = SimulatedWeb(clock, {"a.test": shelf.site()})
        await crawl(clock, db_path, web, [SEED], AGAIN)
        await clock.sleep(5_000)
        now = clock.now()
        hints = [
            Hint(PAGE, HintKind.CHANGED, now, "rup"),
            Hint("http://a.test/new", HintKind.NEW, now, "rup"),
            Hint("http://a.test/q", HintKind.CHANGED, now - DAY_S, "rup"),  # seen since
            Hint("http://a.test/q", HintKind.GONE, now + 9 * DAY_S, "rup"),  # from the future
            Hint("http://b.test/", HintKind.NEW, now, "rup"),
            Hint("http://a.test/none", HintKind.GONE, now, "rup"),
        ]
        store = await SqliteStore.open(db_path)
        counts = await store.revisits.apply_hints(
            hints, DAILY, now, lambda url, depth: reason("scope: elsewhere") if "b.test" in url else None
        )
        await store.close()
        await crawl(clock, db_path, web, (), AGAIN)
        return counts, statuses(web), statuses(web, "/q"), statuses(web, "/new")

    counts, p, q, new = run_virtual(main)
    assert counts == HintCounts(moved=1, new=1, ignored=3)
    assert (p, q, new) == ([200, 304], [200], [404])


def test_hostile_hints_do_not_raise_the_request_rate(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> int:
        web = SimulatedWeb(clock, {"a.test": Shelf(p=tagged("one")).site()})
        await crawl(clock, db_path, web, [SEED], AGAIN)
        for _ in range(30):
            await clock.sleep(100)
            store = await SqliteStore.open(db_path)
            await store.revisits.apply_hints(
                [Hint(PAGE, HintKind.CHANGED, clock.now(), "x")], DAILY, clock.now(), lambda *_: None
            )
            await store.close()
            await crawl(clock, db_path, web, (), AGAIN)
        return len(statuses(web))

    assert run_virtual(main) == 1


def test_a_blocked_site_gets_no_revisit_and_the_run_ends(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> tuple[str, list[int], str]:
        web = SimulatedWeb(clock, {"a.test": Shelf(p=tagged("one")).site()})
        await crawl(clock, db_path, web, [SEED], AGAIN)
        await clock.sleep(5 * DAY_S)
        await give_order_to_file(str(db_path), Command.BLOCK, "a.test", clock)
        ended_by = await crawl(clock, db_path, web, (), AGAIN)
        blocked, asked = (await states(db_path))[PAGE][1], statuses(web)
        await give_order_to_file(str(db_path), Command.UNBLOCK, "a.test", clock)
        await clock.sleep(60 * DAY_S)
        await crawl(clock, db_path, web, (), AGAIN)
        assert blocked == BLOCKED.sentence
        return ended_by, asked, (await states(db_path))[PAGE][1]

    ended, asked, lifted = run_virtual(main)
    assert ended == f"nothing is left in the frontier: every seed was left out: {BLOCKED}"
    assert asked == [200]
    assert lifted == "200, unchanged (304)"
    assert look(db_path, f"SELECT version FROM pages WHERE url = '{PAGE}'") == [(1,)]
