"""A crawl on several databases: what the parts find together, when they end, and what they do without one another.

a.test and f.test belong to the first of two parts, b.test, c.test and d.test to the second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.demo.pages import Page, Site, plain, redirect
from crawler.engine.crawl_settings import DiscoverySettings, LimitSettings
from crawler.errors import StoreError, UsageError
from crawler.frontier.parts import Parts
from crawler.frontier.revisit import DAY_S, RevisitSettings
from crawler.inspect.parts import part_status
from crawler.inspect.why import explain, explanation_rows
from crawler.robots.text import SMALL_BYTES
from crawler.store.merge import merge_parts
from crawler.store.rows import ClaimedSite
from crawler.store.sqlite.store import SqliteStore
from tests import kill
from tests.simulation.crawls import PATIENCE_S, Options, crawl, rows, session, states
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

SEEDS = ("http://a.test/",)
ALLOWED = plain("User-agent: *\nDisallow: /closed\n")
SITES: dict[str, Site] = {
    "a.test": {
        "/robots.txt": plain("User-agent: *\nSitemap: http://a.test/map.xml\n"),
        "/map.xml": Page("<urlset><url><loc>http://a.test/listed</loc></url></urlset>", content_type="application/xml"),
        "/": Page("<a href=/1>1</a><a href=http://b.test/old>b</a><a href=http://c.test/ rel=nofollow>c</a>"),
        "/1": Page("<a href=/2>2</a>"),
        "/2": Page("<a href=http://b.test/far>b</a><a href=http://c.test/>c</a>"),
        "/listed": Page("<link rel=canonical href=http://d.test/main>listed"),
        "/back": Page("<a href=http://b.test/closed>b</a>"),
    },
    "b.test": {
        "/robots.txt": ALLOWED,
        "/old": redirect("http://f.test/new"),
        "/far": Page("<a href=/farther>b</a>"),
        "/farther": Page("<a href=http://a.test/back>a</a>"),
        "/near": Page("<a href=/far>b</a>"),
    },
    "c.test": {"/robots.txt": ALLOWED, "/": Page("<a href=http://d.test/>d</a>")},
    "d.test": {"/robots.txt": ALLOWED, "/": Page("d"), "/main": Page("<a href=http://f.test/lasting>f</a>")},
    "f.test": {"/robots.txt": ALLOWED, "/new": Page("<a href=http://b.test/near>b</a>"), "/lasting": Page("f")},
}
OPTIONS = Options(discovery=DiscoverySettings(sitemaps=True))


def parts_in(folder: Path) -> list[Parts]:
    dbs = str(folder / "part-0.db"), str(folder / "part-1.db")
    return [Parts(dbs, 0), Parts(dbs, 1)]


async def crawl_part(clock: VirtualClock, web: SimulatedWeb, parts: Parts, options: Options = OPTIONS) -> str:
    """Crawl one part to its end; returns why it ended."""
    path = Path(parts.dbs[parts.own])
    async with session(clock, path, web, SEEDS, options, parts=parts) as (run, store):
        end = await run.run()
        await store.end_run(end, clock.now())
        return str(end)


async def look(path: Path) -> list[set[tuple[object, ...]]]:
    """The contents of a store. No row may occur twice."""
    found = [await rows(path, query) for query in kill.CONTENT]
    assert [len(set(each)) for each in found] == [len(each) for each in found]
    return [set(each) for each in found]


async def merged(folder: Path, clock: VirtualClock) -> Path:
    paths = [Path(db) for db in parts_in(folder)[0].dbs]
    stores = [await SqliteStore.open(path, read_only=True) for path in paths]
    target = await SqliteStore.open(folder / "merged.db")
    try:
        await merge_parts(stores, target, clock.now())
    finally:
        for store in (*stores, target):
            await store.close()
    return folder / "merged.db"


async def part_rows(parts: Parts) -> dict[str, object]:
    """What ``crawler status`` prints of a part."""
    store = await SqliteStore.open(Path(parts.dbs[parts.own]), read_only=True)
    try:
        await store.open_parts()
        status = await part_status(store)
        assert status is not None
        return dict(status.rows())
    finally:
        await store.close()


@pytest.mark.parametrize("options", [OPTIONS, replace(OPTIONS, limits=LimitSettings(max_depth=3))])
def test_the_parts_find_together_what_one_crawl_finds(tmp_path: Path, options: Options) -> None:
    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, SITES)
        await crawl(clock, tmp_path / "whole.db", web, SEEDS, options)
        asked = sorted((hit.host, hit.path) for hit in web.log)
        web.log.clear()
        ends = await asyncio.gather(*(crawl_part(clock, web, parts, options) for parts in parts_in(tmp_path)))
        assert set(ends) == {"nothing is left in the frontier"}
        assert sorted((hit.host, hit.path) for hit in web.log) == asked
        assert await look(await merged(tmp_path, clock)) == await look(tmp_path / "whole.db")
        for path in (tmp_path / "whole.db", tmp_path / "merged.db"):
            lost = "SELECT url FROM urls WHERE discovered_from IS NULL AND seed = 0 AND kind = 'page'"
            assert await rows(path, lost) == []
            assert await rows(path, "SELECT target FROM urls WHERE url = 'http://b.test/old'") == [
                ("http://f.test/new",)
            ]

    run_virtual(main)


def test_a_part_that_begins_late_takes_in_what_waits_for_it(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, SITES)
        first, second = parts_in(tmp_path)
        task = asyncio.create_task(crawl_part(clock, web, first))
        await clock.sleep(PATIENCE_S / 2)
        assert not task.done()
        assert {hit.host for hit in web.log} == {"a.test"}
        assert await part_rows(first) == {
            "Part": f"1 of 2 of the crawl; `crawler store merge {first.dbs[0]} whole.db` makes one store of all",
            "Part 2": f"{first.dbs[1]}: not begun, 4 offers to it not received yet",
            "Waiting": "for the other parts: nothing of this part is left, and they may still offer URLs",
        }
        await crawl_part(clock, web, second)
        await task
        store = await SqliteStore.open(Path(second.dbs[1]), read_only=True)
        try:
            await store.open_parts()
            why = [
                dict(explanation_rows(await explain(store, f"http://b.test/{page}", now=0), "b.db"))
                for page in ("far", "farther")
            ]
        finally:
            await store.close()
        assert [each["found by"] for each in why] == [
            "another part of the crawl, which offered it to this one",
            "http://b.test/far",
        ]
        assert "Waiting" not in await part_rows(first)
        assert {hit.host for hit in web.log} == set(SITES)

    run_virtual(main)


def test_a_part_without_signs_of_life_ends_the_wait_and_loses_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, SITES)
        first, second = parts_in(tmp_path)
        with pytest.raises(StoreError, match=r"part-1\.db.* no sign of life for 1 min"):
            await crawl_part(clock, web, first)
        assert capsys.readouterr().out.count("waits for this part, which shows no sign of life, until ") == 1
        path = Path(first.dbs[0])
        assert (await states(path))["http://b.test/old"][0] == "excluded"
        waiting = "SELECT url FROM outgoing ORDER BY url"
        assert ("http://b.test/old",) in await rows(path, waiting)
        await asyncio.gather(*(crawl_part(clock, web, parts) for parts in (first, second)))
        assert await rows(path, waiting) == []
        await crawl(clock, tmp_path / "whole.db", SimulatedWeb(clock, SITES), SEEDS, OPTIONS)
        assert await look(await merged(tmp_path, clock)) == await look(tmp_path / "whole.db")

    run_virtual(main)


def test_offers_taken_in_twice_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the process were killed before it could delete them where they come from."""

    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, SITES)
        deleted, failed = SqliteStore.delete_outgoing, list[int]()

        async def delete_outgoing(self: SqliteStore, part: int, numbers: Sequence[int]) -> None:
            if not failed:
                failed.extend(numbers)
                raise StoreError("the connection broke")
            await deleted(self, part, numbers)

        monkeypatch.setattr(SqliteStore, "delete_outgoing", delete_outgoing)
        await asyncio.gather(*(crawl_part(clock, web, parts) for parts in parts_in(tmp_path)))
        assert failed
        await crawl(clock, tmp_path / "whole.db", SimulatedWeb(clock, SITES), SEEDS, OPTIONS)
        assert await look(await merged(tmp_path, clock)) == await look(tmp_path / "whole.db")
        assert len(web.log) == len({(hit.host, hit.path) for hit in web.log})

    run_virtual(main)


def test_a_robots_txt_of_another_part_is_not_requested(tmp_path: Path) -> None:
    """Neither behind a redirect, which closes the site, nor to confirm a Host line, which is then ignored.

    A crawl on the merged store requests the closed site.
    """
    sites: dict[str, Site] = {
        "a.test": {
            "/robots.txt": plain("User-agent: *\nHost: b.test\n"),
            "/": Page("<a href=http://f.test/>f</a>"),
        },
        "f.test": {"/robots.txt": redirect("http://b.test/robots.txt"), "/": Page("<a href=/1>1</a>"), "/1": Page("1")},
        "b.test": {"/robots.txt": plain("User-agent: *\nDisallow: /closed\n"), "/": Page("b")},
    }

    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, sites)
        first, second = parts_in(tmp_path)
        await asyncio.gather(*(crawl_part(clock, web, parts) for parts in (first, second)))
        assert {hit.host for hit in web.log} == {"a.test", "f.test"}
        found = await states(Path(first.dbs[0]))
        assert found["http://a.test/"][0] == "fetched"
        closed = "redirects to http://b.test/robots.txt, which another part of the crawl requests"
        assert found["http://f.test/"] == ("excluded", f"robots: /robots.txt {closed}")
        store = await SqliteStore.open(Path(first.dbs[0]), read_only=True)
        try:
            await store.open_parts()
            why = dict(explanation_rows(await explain(store, "http://f.test/", now=clock.now()), "a.db"))
        finally:
            await store.close()
        goes_on = "after `crawler store merge a.db whole.db`, `crawler run --db whole.db` does"
        assert why["part"] == f"no part requests its site; {goes_on}"
        path = await merged(tmp_path, clock)
        assert (await states(path))["http://f.test/"][0] == "queued"
        await crawl(clock, path, web, SEEDS, OPTIONS)
        found = await states(path)
        assert [found[f"http://f.test/{page}"][0] for page in ("", "1")] == ["fetched"] * 2

    run_virtual(main)


def test_a_sitemap_on_a_domain_of_another_part_speaks_for_the_site_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if that site's part does not answer for a moment. It does not speak for f.test, which does not name it."""
    listed = "".join(f"<url><loc>http://{host}.test/listed</loc></url>" for host in "abf")
    large = "#" + "x" * SMALL_BYTES
    sites: dict[str, Site] = {
        "a.test": {
            "/robots.txt": plain(f"User-agent: *\nSitemap: http://b.test/map.xml\n{large}\n"),
            "/": Page("<a href=http://f.test/>f</a><a href=http://b.test/>b</a>"),
            "/listed": Page("a"),
        },
        "f.test": {"/robots.txt": ALLOWED, "/": Page("f"), "/listed": Page("f")},
        "b.test": {
            "/robots.txt": ALLOWED,
            "/": Page("b"),
            "/map.xml": Page(f"<urlset>{listed}</urlset>", content_type="application/xml"),
            "/listed": Page("b"),
        },
    }
    ask, failed = SqliteStore.site, list[str]()

    async def site(self: SqliteStore, name: str) -> ClaimedSite | None:
        if self.name.endswith("part-0.db") and name == "http://a.test" and not failed:
            failed.append(name)
            raise StoreError("the connection broke")
        return await ask(self, name)

    async def main(clock: VirtualClock) -> None:
        await crawl(clock, tmp_path / "whole.db", SimulatedWeb(clock, sites), SEEDS, OPTIONS)
        monkeypatch.setattr(SqliteStore, "site", site)
        web = SimulatedWeb(clock, sites)
        await asyncio.gather(*(crawl_part(clock, web, parts) for parts in parts_in(tmp_path)))
        assert failed
        assert ("a.test", "/listed") in {(hit.host, hit.path) for hit in web.log}
        assert ("f.test", "/listed") not in {(hit.host, hit.path) for hit in web.log}
        assert await look(await merged(tmp_path, clock)) == await look(tmp_path / "whole.db")

    run_virtual(main)


def test_a_part_that_never_begins_keeps_no_sitemap_from_being_read(tmp_path: Path) -> None:
    listed = "".join(f"<url><loc>http://{host}.test/listed</loc></url>" for host in "abcd")
    sites: dict[str, Site] = {
        "a.test": {
            "/robots.txt": plain("User-agent: *\nSitemap: http://a.test/map.xml\n"),
            "/map.xml": Page(f"<urlset>{listed}</urlset>", content_type="application/xml"),
            "/": Page("<a href=/1>1</a>"),
            "/1": Page("1"),
            "/listed": Page("a"),
        },
    }

    async def main(clock: VirtualClock) -> None:
        parts = parts_in(tmp_path)[0]
        with pytest.raises(StoreError, match="has shown no sign of life"):
            await crawl_part(clock, SimulatedWeb(clock, sites), parts)
        found = await states(Path(parts.dbs[0]))
        assert {found[f"http://a.test/{path}"][0] for path in ("", "1", "listed", "map.xml")} == {"fetched"}

    run_virtual(main)


def test_each_part_revisits_its_own_pages(tmp_path: Path) -> None:
    """A page that changed since offers a new URL to the other part, in the run that revisits it."""
    revisiting = replace(OPTIONS, revisit=RevisitSettings(enabled=True))
    changed = {**SITES, "b.test": {**SITES["b.test"], "/far": Page("<a href=http://f.test/since>f</a>")}}
    changed["f.test"] = {**SITES["f.test"], "/since": Page("<a href=http://d.test/since>d</a>")}
    changed["d.test"] = {**SITES["d.test"], "/since": Page("new")}

    async def main(clock: VirtualClock) -> None:
        first, second = parts_in(tmp_path)
        whole = tmp_path / "whole.db"
        web = SimulatedWeb(clock, SITES)
        await asyncio.gather(
            crawl(clock, whole, SimulatedWeb(clock, SITES), SEEDS, OPTIONS),
            *(crawl_part(clock, web, parts) for parts in (first, second)),
        )
        await clock.sleep(100 * DAY_S)
        web = SimulatedWeb(clock, changed)
        await asyncio.gather(
            crawl(clock, whole, SimulatedWeb(clock, changed), SEEDS, revisiting),
            *(crawl_part(clock, web, parts, revisiting) for parts in (first, second)),
        )
        assert (await states(whole))["http://d.test/since"][0] == "fetched"
        assert await look(await merged(tmp_path, clock)) == await look(whole)
        asked = [hit.path for hit in web.log if hit.host == "b.test"]
        assert sorted(asked) == sorted(set(asked))
        assert "/far" in asked

    run_virtual(main)


def test_a_merged_store_goes_on_with_what_was_under_way(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        first, second = parts_in(tmp_path)
        with pytest.raises(StoreError):
            await crawl_part(clock, SimulatedWeb(clock, SITES), first)
        async with session(clock, Path(second.dbs[1]), SimulatedWeb(clock, SITES), SEEDS, OPTIONS, parts=second):
            pass  # killed before its first request
        path = await merged(tmp_path, clock)
        assert (await states(path))["http://b.test/old"][0] == "queued"
        await crawl(clock, path, SimulatedWeb(clock, SITES), SEEDS, OPTIONS)
        await crawl(clock, tmp_path / "whole.db", SimulatedWeb(clock, SITES), SEEDS, OPTIONS)
        assert await look(path) == await look(tmp_path / "whole.db")

    run_virtual(main)


def test_the_parts_of_a_store_are_fixed(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        first, _ = parts_in(tmp_path)
        async with session(clock, Path(first.dbs[0]), SimulatedWeb(clock, SITES), SEEDS, OPTIONS, parts=first):
            pass
        store = await SqliteStore.open(Path(first.dbs[0]))
        try:
            await store.open_parts()
            for parts in (None, Parts((*first.dbs, "third.db"), 0), first._replace(own=1)):
                with pytest.raises(UsageError, match=r"was begun on .*part-0\.db, .*part-1\.db"):
                    await store.keep_parts(parts)
        finally:
            await store.close()

    run_virtual(main)
