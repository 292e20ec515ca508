"""Seeds whose host names do not exist (NXDOMAIN): the crawl ends within two hours, and says what it waited for."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.clock import iso
from crawler.demo.pages import Page, Site, plain
from crawler.engine.tasks import background_task
from crawler.inspect.seeds import read_ledger
from crawler.inspect.time_left import read_time_left
from crawler.inspect.why import explain, explanation_rows
from crawler.reasons import EndCode, ErrorKind, RunEnd
from crawler.robots.response import RobotsSettings
from crawler.run.live_display import WaitNotes
from crawler.store.sqlite.store import SqliteStore
from tests.simulation.crawls import Options, crawl, rows, session, states
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import EPOCH_S, VirtualClock, run_virtual

HOUR_S = 3600.0
SITES: dict[str, Site] = {"example.test": {"/robots.txt": plain(""), "/": Page("x")}}
SEEDS = ["http://example.test/", "http://exmaple.test/"]


def unknown(clock: VirtualClock, sites: dict[str, Site] = SITES) -> SimulatedWeb:
    return SimulatedWeb(clock, sites, unknown=ErrorKind.DNS_NO_NAME)


def test_a_seed_without_a_host_fails_after_an_hour(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> float:
        await crawl(clock, db_path, unknown(clock), SEEDS)
        return clock.loop.time()

    assert HOUR_S <= run_virtual(main) < 2 * HOUR_S
    ended = run_virtual(lambda clock: states(db_path))
    assert ended["http://exmaple.test/"] == ("failed", "no such host: exmaple.test")
    asked = run_virtual(lambda clock: rows(db_path, "SELECT url FROM requests WHERE error_kind = 'dns_no_name'"))
    assert len(asked) == 7


def test_the_end_and_why_name_the_nearest_known_host(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> tuple[list[str], dict[str, str]]:
        await crawl(clock, db_path, unknown(clock), [*SEEDS, "http://other.invalid/"])
        store = await SqliteStore.open(db_path, read_only=True)
        try:
            known = await explain(store, SEEDS[1], now=clock.now())
            facts = {str(fact[0]): str(fact[1]) for fact in explanation_rows(known, "c.db")}
            ledger = await read_ledger(store, "c.db", clock.now())
            return ledger.lines_at_end(has_causes=False), facts
        finally:
            await store.close()

    said, facts = run_virtual(main)
    assert said == [
        "seed http://other.invalid/: no such host: other.invalid, no answer since 2027-01-15T08:00:00Z; "
        "`crawler control queue http://other.invalid/ --db c.db`",
    ], "the host that the other seed means is a seed too"
    assert facts["host"] == "exmaple.test does not exist: is it spelled right? The crawl knows example.test"


@pytest.mark.parametrize(
    ("kind", "said", "give_up_s"),
    [
        (ErrorKind.DNS_NO_NAME, "exmaple.test has no address; is it spelled right?", HOUR_S),
        (ErrorKind.DNS_TIMEOUT, "exmaple.test has no address", 86_400.0),
    ],
)
def test_a_note_says_what_is_waited_for_and_until_when(
    db_path: Path, kind: ErrorKind, said: str, give_up_s: float
) -> None:
    robots = RobotsSettings(give_up_after_s=86_400.0)

    async def main(clock: VirtualClock) -> list[str]:
        web, notes = SimulatedWeb(clock, SITES, unknown=kind), list[str]()

        def note(text: str) -> None:
            notes.append(text)
            run.stop(RunEnd(EndCode.STOPPED))

        async with (
            session(clock, db_path, web, SEEDS[1:], replace(Options(), robots=robots)) as (run, store),
            background_task(WaitNotes(run, store, clock, note, lambda: None, 60.0, "c.db", robots).keep_telling()),
        ):
            await run.run()
        return notes

    (first,) = run_virtual(main)
    until = iso(EPOCH_S + give_up_s)
    assert f"everything left waits, first for exmaple.test until {iso(EPOCH_S + 60)[11:]}" in first
    shown = until[11:] if give_up_s == HOUR_S else until[:16] + "Z"
    limit = "robots.unknown_host_after" if kind is ErrorKind.DNS_NO_NAME else "robots.give_up_after"
    assert f": robots.txt: {said} (tried again until {shown}: {limit}); " in first
    is_unknown = kind is ErrorKind.DNS_NO_NAME
    assert ("`crawler control queue URL --db c.db` adds the right address" in first) is is_unknown
    assert first.endswith("`crawler control block http://exmaple.test --db c.db` leaves it out")


def test_a_host_that_appears_meanwhile_is_crawled(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        web = unknown(clock, dict(SITES))
        clock.loop.call_later(HOUR_S / 2, web.web.sites.__setitem__, "exmaple.test", SITES["example.test"])
        await crawl(clock, db_path, web, SEEDS)

    run_virtual(main)
    assert run_virtual(lambda clock: states(db_path))["http://exmaple.test/"] == ("fetched", "200")


def test_an_address_that_the_operator_names_brings_the_seed_back(db_path: Path) -> None:
    """A changed ``robots.give_up_after`` does so too, at once, and not only when the last answer runs out."""

    async def main(clock: VirtualClock) -> float:
        await crawl(clock, db_path, unknown(clock), SEEDS)
        began = clock.loop.time()
        sites = {**SITES, "exmaple.test": SITES["example.test"]}
        longer = replace(Options(), robots=RobotsSettings(unknown_host_after_s=2 * HOUR_S))
        await crawl(clock, db_path, unknown(clock, sites), [], longer)
        return clock.loop.time() - began

    assert run_virtual(main) < HOUR_S
    assert run_virtual(lambda clock: states(db_path))["http://exmaple.test/"] == ("fetched", "200")


def test_the_time_left_is_bounded_by_the_time_at_which_the_host_is_given_up(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> tuple[float, float]:
        leaves: Site = {f"/{n}": Page("x") for n in range(100)}
        start = Page("".join(f"<a href={path}>x</a>" for path in leaves))
        sites: dict[str, Site] = {"example.test": {"/robots.txt": plain(""), "/": start, **leaves}}
        async with session(clock, db_path, unknown(clock, sites), SEEDS, Options()) as (run, store):
            task = asyncio.create_task(run.run())
            await clock.sleep(300)
            left = await read_time_left(store, clock.now())
            began = clock.loop.time()
            await task
        assert left is not None
        assert left.most_s is not None
        return left.most_s, clock.loop.time() - began

    most_s, took_s = run_virtual(main)
    assert took_s <= most_s < 24 * HOUR_S
