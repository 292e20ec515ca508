"""Limits that a user sets, and going on with changed ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crawler.audit.checks import Check, CheckCount
from crawler.audit.run_audit import run_audit
from crawler.demo.pages import Fault, Hit, Page, Site, first, plain, redirect
from crawler.engine import outbox
from crawler.engine.crawl_settings import LimitSettings
from crawler.engine.loop import STOP_GRACE_S
from crawler.engine.outbox import OutboxBounds
from crawler.errors import StoreError
from crawler.frontier.decide import Outcome
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.revisit import RevisitSettings
from crawler.frontier.scope import ScopeMode, ScopeSettings
from crawler.frontier.site_settings import SiteRule
from crawler.model import State
from crawler.reasons import EndCode, RunEnd
from crawler.session.nothing_crawled import why_nothing
from crawler.settings.settings import Settings
from crawler.store.rows import CommitBatch, CommitResult
from crawler.store.sqlite.store import SqliteStore
from tests.judge import Manners, violations
from tests.simulation.crawls import Options, crawl, crawl_for, look, rows, session, states
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual
from tests.web import RandomWeb, random_web

DONE = "nothing is left in the frontier"
WEB = random_web(5, hosts=6, pages_per_host=12, across=0.4)


def crawls(path: Path, web: RandomWeb, *several: Options) -> tuple[list[str], SimulatedWeb]:
    """Crawl ``web`` once with each of the options, on the same store. Returns why each crawl ended, and the web."""

    async def main(clock: VirtualClock) -> tuple[list[str], SimulatedWeb]:
        served = SimulatedWeb(clock, web.sites)
        return [await crawl(clock, path, served, web.seeds, options) for options in several], served

    return run_virtual(main)


def limited(**limits: int | float) -> Options:
    return Options(limits=LimitSettings(**limits))  # type: ignore[arg-type]


def per_site(path: Path) -> list[int]:
    return [n for (n,) in run_virtual(lambda clock: rows(path, "SELECT count(*) FROM pages GROUP BY site"))]


@pytest.mark.parametrize("limit", [1, 5, 23])
def test_max_pages_is_exact_and_counts_all_runs(limit: int, db_path: Path) -> None:
    more = 2 * limit
    ended, served = crawls(
        db_path, WEB, limited(max_pages=limit), limited(max_pages=limit), limited(max_pages=more), Options()
    )
    assert ended == [f"limits.max_pages reached ({n})" for n in (limit, limit, more)] + [
        "nothing is left in the frontier"
    ]
    assert violations(served.log, Manners(delay_s=1.0)) == []
    found = run_virtual(lambda clock: look(db_path))
    assert {url for url, _ in found.pages} == set(WEB.depths)


def test_pages_that_fail_do_not_use_up_max_pages(db_path: Path) -> None:
    links = "".join(f"<a href='/{n}'>x</a>" for n in range(30))
    odd = {f"/{n}": Page(status=404) if n % 2 else redirect("/x") for n in range(20)}
    site: Site = {"/robots.txt": plain(""), "/": Page(links), "*": Page("leaf"), **odd}

    async def main(clock: VirtualClock) -> None:
        served = SimulatedWeb(clock, {"a.test": site, "b.test": site})
        seeds = ["http://a.test/", "http://b.test/"]
        assert await crawl(clock, db_path, served, seeds, limited(max_pages=15)) == "limits.max_pages reached (15)"
        assert len((await look(db_path)).pages) == 15

    run_virtual(main)


def test_the_last_page_of_max_pages_does_not_wait_for_dead_links_of_one_site(db_path: Path) -> None:
    """One page is left, and a site of dead links takes it first. The other sites go on, each at its own pace."""
    dead: Site = {"/robots.txt": plain(""), "/": Page("".join(f"<a href='/{n}'>x</a>" for n in range(40)))}
    slow: Site = {"/robots.txt": plain(""), "/": Page("<a href='/1'>x</a>"), "/1": Page("x")}

    async def main(clock: VirtualClock) -> list[str]:
        served = SimulatedWeb(clock, {"dead.test": dead, "slow.test": slow}, latency_s={"slow.test": 0.2})
        seeds = ["http://dead.test/", "http://slow.test/"]
        assert await crawl(clock, db_path, served, seeds, limited(max_pages=3)) == "limits.max_pages reached (3)"
        return [hit.path for hit in served.log if hit.host == "dead.test"]

    assert len(run_virtual(main)) <= 2 + 3, "no more than goes by in slow.test's pause"


@pytest.mark.parametrize("living", [range(200), [137]], ids=["all", "one"])
def test_a_crawl_of_one_page_requests_few_robots_txt_files(living: Sequence[int], db_path: Path) -> None:
    async def main(clock: VirtualClock) -> int:
        served = SimulatedWeb(clock, {f"h{n}.test": {"/robots.txt": plain(""), "/": Page("x")} for n in living})
        seeds = [f"http://h{n}.test/" for n in range(200)]
        assert await crawl(clock, db_path, served, seeds, limited(max_pages=1)) == "limits.max_pages reached (1)"
        assert len((await look(db_path)).pages) == 1
        return sum(hit.path == "/robots.txt" for hit in served.log)

    assert run_virtual(main) <= 1 + 10


@pytest.mark.parametrize("limit", [1, 3])
def test_max_pages_per_site_is_exact_and_may_grow(limit: int, db_path: Path) -> None:
    ended, _ = crawls(db_path, WEB, limited(max_pages_per_site=limit))
    assert f"limits.max_pages_per_site ({limit})" in ended[0]
    assert per_site(db_path) == [limit] * 6
    crawls(db_path, WEB, limited(max_pages_per_site=limit + 2))
    assert per_site(db_path) == [limit + 2] * 6
    crawls(db_path, WEB, Options())
    assert {url for url, _ in run_virtual(lambda clock: look(db_path)).pages} == set(WEB.depths)


def test_a_site_with_a_page_limit_of_its_own_gives_so_many_pages_and_the_audit_judges_it(db_path: Path) -> None:
    hosts = sorted(WEB.sites)
    rules = (SiteRule(hosts[0], max_pages=2), SiteRule(hosts[1], max_pages=7))
    own = replace(limited(max_pages_per_site=4), politeness=PolitenessSettings(delay_s=1.0, sites=rules))

    async def main(clock: VirtualClock) -> tuple[str, dict[str, int], CheckCount]:
        ended = await crawl(clock, db_path, SimulatedWeb(clock, WEB.sites), WEB.seeds, own)
        counts = await rows(db_path, "SELECT host, count(*) FROM pages GROUP BY host")
        store = await SqliteStore.open(db_path, read_only=True)
        audited = await run_audit(store, clock.now())
        await store.close()
        return ended, dict(counts), audited.counts[Check.PAGES]

    ended, pages, judged = run_virtual(main)
    assert "limits.max_pages_per_site (4 or max_pages in a table [site])" in ended
    assert pages == dict.fromkeys(hosts, 4) | {hosts[0]: 2, hosts[1]: 7}
    assert judged == CheckCount(6, 0)


def test_max_time_ends_a_crawl_in_time(db_path: Path) -> None:
    ended, served = crawls(db_path, WEB, limited(max_time_s=7.5))
    assert ended == ["limits.max_time is over"]
    assert max(hit.started_at for hit in served.log) <= 7.5
    assert max(hit.finished_at for hit in served.log) > 6.0


@pytest.mark.parametrize(
    ("seeds", "bad", "told"),
    [
        (["bad.test", "good.test"], Page(status=503), [None, None]),
        (["bad.test"], Page(status=503), ["it waits, first for bad.test until", "it waits, first for bad.test until"]),
        (["bad.test", "good.test"], Page(fault=Fault.RESET), [None, "it waits, first for bad.test until"]),
    ],
)
def test_a_run_ends_at_once_if_everything_left_waits_until_after_it(
    seeds: list[str], bad: Page, told: list[str | None], db_path: Path
) -> None:
    """That is an ordinary end, unless there is no page, or no server answered: then perhaps the network is down."""
    options = replace(limited(max_time_s=600), revisit=RevisitSettings(enabled=True))

    async def main(clock: VirtualClock) -> None:
        served = SimulatedWeb(clock, {"good.test": {"*": Page("x")}, "bad.test": {"/robots.txt": bad, "*": Page("x")}})
        for sentence in told:
            async with session(clock, db_path, served, [f"http://{seed}/" for seed in seeds], options) as (run, store):
                began = clock.now()
                end = await run.run()
                why = await why_nothing(store, run.progress, end, Settings(), clock.now())
                await store.end_run(end, clock.now())
            assert end == RunEnd(EndCode.ALL_WAIT, "1 queued URL")
            assert clock.now() - began < 500
            assert why is None if sentence is None else sentence in str(why)
            await clock.sleep(6 * 3600)

    run_virtual(main)


@pytest.mark.parametrize("max_depth", [0, 1, 2])
def test_max_depth_admits_the_same_urls_in_any_order(max_depth: int, db_path: Path) -> None:
    options = Options(limits=LimitSettings(max_depth=max_depth))
    crawls(db_path, WEB, options)
    found = run_virtual(lambda clock: look(db_path))
    assert {url for url, _ in found.pages} == {url for url, depth in WEB.depths.items() if depth <= max_depth}
    assert all(state == "excluded" for _, state, depth in found.urls if depth > max_depth)


def test_wider_options_queue_excluded_urls_again(db_path: Path) -> None:
    narrow = Options(scope=ScopeSettings(ScopeMode.HOST, exclude=(r"/b/",)), limits=LimitSettings(max_depth=1))
    deeper = replace(narrow, limits=LimitSettings())
    wider = replace(deeper, scope=replace(deeper.scope, mode=ScopeMode.ANY, exclude=()))
    web = random_web(8, hosts=4, pages_per_host=15, across=0.1)
    web = replace(web, seeds=web.seeds[:1])
    reached = [0]
    for options in (narrow, deeper, wider):
        crawls(db_path, web, options)
        reached.append(len(run_virtual(lambda clock: look(db_path)).pages))
    assert sorted(set(reached)) == reached, "each time more"
    direct = db_path.with_name("direct.db")
    crawls(direct, web, wider)
    assert run_virtual(lambda clock: look(db_path)) == run_virtual(lambda clock: look(direct))


def test_narrower_options_fetch_nothing_outside_them(db_path: Path) -> None:
    narrow = Options(scope=ScopeSettings(ScopeMode.ANY, exclude=(r"/a/",)))
    _, served = crawls(db_path, WEB, limited(max_pages=8), narrow)
    before = {f"http://{hit.host}{hit.path}" for hit in served.log}
    excluded = run_virtual(lambda clock: rows(db_path, "SELECT url FROM urls WHERE reason LIKE '%scope.exclude%'"))
    assert excluded
    assert not before & {url for (url,) in excluded}


def test_a_new_seed_brings_its_domain_into_scope(db_path: Path) -> None:
    domain = Options(scope=ScopeSettings(ScopeMode.HOST))
    crawls(db_path, replace(WEB, seeds=WEB.seeds[:1]), domain)
    assert len(per_site(db_path)) == 1
    crawls(db_path, replace(WEB, seeds=WEB.seeds[:3]), domain)
    assert len(per_site(db_path)) == 3


def test_failures_are_retried_and_recorded_in_the_end(db_path: Path) -> None:
    site: Site = {
        "/robots.txt": plain(""),
        "/": Page("<a href=/soon>1</a><a href=/never>2</a><a href=/gone>3</a><a href=/loop>4</a><a href=/pdf>5</a>"),
        "/soon": first(2, Page(status=500), then=Page("here")),
        "/never": Page(fault=Fault.RESET),
        "/gone": Page(status=410),
        "/loop": redirect("/pool"),
        "/pool": redirect("/loop"),
        "/pdf": Page("%PDF", content_type="application/pdf"),
    }

    async def main(clock: VirtualClock) -> None:
        served = SimulatedWeb(clock, {"a.test": site})
        await crawl(clock, db_path, served, ["http://a.test/"], Options(fetch=RequestSettings(retries=2)))
        asked = [hit.path for hit in served.log]
        counted = {path: asked.count(path) for path in set(asked)}
        assert counted == {"/robots.txt": 1, "/soon": 3, "/never": 3} | dict.fromkeys(
            ("/", "/gone", "/loop", "/pool", "/pdf"), 1
        )
        ended = {url.removeprefix("http://a.test"): state for url, (state, _) in (await states(db_path)).items()}
        assert ended == {
            "/": "fetched",
            "/soon": "fetched",
            "/never": "failed",
            "/gone": "failed",
            "/loop": "redirected",
            "/pool": "redirected",
            "/pdf": "excluded",
        }
        never = [hit.started_at for hit in served.log if hit.path == "/never"]
        assert never[1] - never[0] >= 10
        assert never[2] - never[1] >= 30

    run_virtual(main)


def test_a_failing_store_ends_the_crawl_and_keeps_committed_pages(
    db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = 0
    whole = SqliteStore.commit

    async def failing(self: SqliteStore, batch: CommitBatch) -> CommitResult:
        nonlocal turns
        turns += 1
        if turns == 12:
            raise StoreError("database or disk is full")
        return await whole(self, batch)

    monkeypatch.setattr(SqliteStore, "commit", failing)
    with pytest.raises(StoreError, match="full"):
        crawls(db_path, WEB, Options())
    kept = run_virtual(lambda clock: look(db_path))
    assert 0 < len(kept.pages) < len(WEB.depths)
    crawls(db_path, WEB, Options())
    assert {url for url, _ in run_virtual(lambda clock: look(db_path)).pages} == set(WEB.depths)


def test_a_full_disk_loses_no_request_and_no_pause_that_fits(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SqliteStore.commit

    async def failing(self: SqliteStore, batch: CommitBatch) -> CommitResult:
        if await self.fetched_count() > 5 and any(outcome.page is not None for outcome in batch.outcomes):
            raise StoreError("database or disk is full")
        return await whole(self, batch)

    async def main(clock: VirtualClock) -> tuple[list[Hit], list[tuple[Any, ...]], float]:
        web = SimulatedWeb(clock, WEB.sites)
        with pytest.raises(StoreError, match="full"):
            await crawl(clock, db_path, web, WEB.seeds, Options())
        ((next_at,),) = await rows(db_path, "SELECT max(next_at) FROM politeness_group")
        return web.log, await rows(db_path, "SELECT url, finished_at FROM requests"), next_at

    monkeypatch.setattr(SqliteStore, "commit", failing)
    seen, logged, next_at = run_virtual(main)
    assert sorted(url for url, _ in logged) == sorted(f"http://{hit.host}{hit.path}" for hit in seen)
    assert next_at >= max(finished_at for _, finished_at in logged) + 1


def test_a_run_counts_committed_work_only(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SqliteStore.commit

    async def failing(self: SqliteStore, batch: CommitBatch) -> CommitResult:
        if len(batch.requests) > 1 and await self.fetched_count() > 5:
            raise StoreError("the database is gone")
        return await whole(self, batch)

    monkeypatch.setattr(SqliteStore, "commit", failing)

    async def main(clock: VirtualClock) -> None:
        async with session(clock, db_path, SimulatedWeb(clock, WEB.sites), WEB.seeds, Options()) as (run, store):
            with pytest.raises(StoreError, match="gone"):
                await run.run()
            assert run.progress.ends[State.FETCHED] == await store.fetched_count() > 5
            assert [{"n": run.progress.requests}] == await store.query("SELECT count(*) AS n FROM request")

    run_virtual(main)


@pytest.mark.parametrize("overfull", [outbox.OVERFULL._replace(outcomes=5), outbox.OVERFULL._replace(links=5)])
def test_a_slow_consumer_of_pages_slows_the_crawl(
    db_path: Path, monkeypatch: pytest.MonkeyPatch, overfull: OutboxBounds
) -> None:
    taken: list[str] = []
    at_once: list[int] = []
    monkeypatch.setattr(outbox, "OVERFULL", overfull)

    async def main(clock: VirtualClock) -> None:
        async def slowly(outcomes: list[Outcome]) -> None:
            at_once.append(len(outcomes))
            for outcome in outcomes:
                await clock.sleep(3.0)
                taken.append(outcome.queued.url)

        served = SimulatedWeb(clock, WEB.sites)
        async with session(clock, db_path, served, WEB.seeds, Options(), slowly) as (run, _):
            await run.run()

    run_virtual(main)
    assert max(at_once) <= 5 + len(WEB.sites), "and does not fill the memory"
    assert len(taken) == len(set(taken))
    assert set(taken) == set(WEB.depths)


def test_with_many_sites_a_robots_txt_is_used_before_it_expires(db_path: Path) -> None:
    """A round of all sites takes longer than a copy is valid: a new copy must be used for a page at once."""
    short_lived = Page("", content_type="text/plain", headers=(("Cache-Control", "no-cache"),))
    sites: dict[str, Site] = {f"s{n}.test": {"/robots.txt": short_lived, "/": Page("x")} for n in range(200)}

    async def main(clock: VirtualClock) -> None:
        served = SimulatedWeb(clock, sites, latency_s=2.0)
        options = Options(
            limits=LimitSettings(concurrency=1, claimed_groups=3), politeness=PolitenessSettings(delay_s=1.0)
        )
        assert await crawl(clock, db_path, served, [f"http://{host}/" for host in sites], options) == DONE
        assert len(served.log) == 2 * 200

    run_virtual(main)


def test_options_of_a_run_that_failed_at_its_start_have_no_effect(
    db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with a limit fails after the store has applied the limit, before the settings are stored."""
    sites: dict[str, Site] = {"a.test": {"/robots.txt": plain("")} | {f"/{n}": Page("x") for n in range(5)}}
    seeds = [f"http://a.test/{n}" for n in range(5)]
    limited = Options(limits=LimitSettings(max_pages_per_site=1))

    async def cut_off(*_: Any, **__: Any) -> int:
        raise StoreError("cut off")

    async def main(clock: VirtualClock) -> None:
        served = SimulatedWeb(clock, sites)
        assert not await crawl_for(clock, db_path, served, seeds, Options(), 3.0, crash=False)
        with monkeypatch.context() as patch:
            patch.setattr(SqliteStore, "start_run", cut_off)
            with pytest.raises(StoreError, match="cut off"):
                await crawl(clock, db_path, served, options=limited)
        assert await crawl(clock, db_path, served) == DONE
        assert len(served.log) == 5 + 2  # robots.txt again: the run cut off might have had another reading

    run_virtual(main)


def test_a_slow_store_does_not_lengthen_the_grace_of_requests_in_flight(
    db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit is under way when the crawl is told to end, and takes a minute."""
    hanging: Site = {"/robots.txt": plain(""), "*": Page(fault=Fault.HANG)}

    async def main(clock: VirtualClock) -> tuple[float, float]:
        late: Site = {"/robots.txt": plain(""), "/": Page("x", delay_s=9)}
        web = SimulatedWeb(clock, {"a.test": hanging, "b.test": late}, timeout_s=3600.0)
        async with session(clock, db_path, web, ["http://a.test/", "http://b.test/"], Options()) as (run, store):
            commit = store.commit

            async def slowly(batch: CommitBatch) -> CommitResult:
                if clock.loop.time() > 9:
                    await clock.sleep(60)
                return await commit(batch)

            monkeypatch.setattr(store, "commit", slowly)
            task = asyncio.create_task(run.run())
            await clock.sleep(12)
            run.stop(RunEnd(EndCode.CALLER))
            await task
        (cut,) = [hit for hit in web.web.hits("a.test") if hit.path == "/"]
        return cut.finished_at, clock.loop.time()

    cut_at, ended_at = run_virtual(main)
    assert cut_at == pytest.approx(12 + STOP_GRACE_S)
    assert ended_at <= 12 + 2 * 60 + 1, "the commit under way, and the last one"


def test_an_idle_worker_reads_the_store_and_commits_nothing(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another worker holds the last group for a minute."""
    commits, commit = list[float](), SqliteStore.commit

    async def main(clock: VirtualClock) -> None:
        async def others_at_work(self: SqliteStore, before: float) -> bool:
            return clock.loop.time() < 60

        async def counted(self: SqliteStore, batch: CommitBatch) -> CommitResult:
            commits.append(clock.loop.time())
            return await commit(self, batch)

        monkeypatch.setattr(SqliteStore, "others_at_work", others_at_work)
        monkeypatch.setattr(SqliteStore, "commit", counted)
        served = SimulatedWeb(clock, {"a.test": {"/robots.txt": plain(""), "/": Page("x")}})
        assert await crawl(clock, db_path, served, ["http://a.test/"]) == DONE
        assert 60 <= clock.loop.time() < 62

    run_virtual(main)
    assert [at for at in commits if 10 < at < 60] == []
