"""Orders of the operator during a crawl: they hold soon, and lose nothing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from crawler.demo.pages import Page, Site, plain, redirect
from crawler.engine import operator as operator_module
from crawler.engine.crawl import Crawl
from crawler.engine.operator import OperatorListener
from crawler.engine.sampling_frame import SamplingFrame
from crawler.errors import StoreError, UsageError
from crawler.frontier.operator import BLOCKED, Command, Order
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.sample_design import Per, SampleSettings
from crawler.frontier.scope import ScopeMode, ScopeSettings
from crawler.reasons import EndCode, RunEnd
from crawler.robots.response import RobotsSettings
from crawler.sampling import draw as survey_draw
from crawler.store.open import give_order_to_file
from crawler.store.rows import Beat
from crawler.store.sql.control import Control
from crawler.store.sqlite.store import SqliteStore
from tests.simulation.crawls import Found, Options, crawl, look, rows, session, states
from tests.simulation.test_redirected_robots import violations
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import EPOCH_S, VirtualClock, run_virtual
from tests.web import random_web

if TYPE_CHECKING:
    from crawler.store.sections import Store


def web_time() -> float:
    """The time now, by the clock of the simulated web's log."""
    return asyncio.get_running_loop().time()


def site(pages: int, *, robots: str = "") -> Site:
    links = "".join(f"<a href='/{n}'>{n}</a>" for n in range(pages))
    return {"/robots.txt": plain(robots), "/": Page(links), "*": Page("leaf")}


class Operator:
    """Gives orders to a crawl.

    While a store is open, the orders use its connection, one transaction after the other. Virtual time delivers the
    results of threads in the order of the calls, so a lock that another call waits for would never be released.
    """

    def __init__(self, path: Path, clock: VirtualClock) -> None:
        self.path, self.clock = path, clock
        self.store: SqliteStore | None = None

    async def ask(self, command: Command, name: str = "") -> None:
        if self.store is None:
            await give_order_to_file(str(self.path), command, name, self.clock)
            return
        await self.store.control.give(command, name, self.clock)

    @asynccontextmanager
    async def crawl(
        self,
        web: SimulatedWeb,
        seeds: Sequence[str] = (),
        frame: Callable[[Store], SamplingFrame] | None = None,
        options: Options | None = None,
    ) -> AsyncIterator[tuple[Crawl, asyncio.Task[RunEnd]]]:
        """A crawl that obeys this operator, in a task that is awaited on exit."""
        async with session(self.clock, self.path, web, seeds, options or Options(), frame=frame) as (run, self.store):
            async with run.obeying_operator():
                task = asyncio.create_task(run.run())
                try:
                    yield run, task
                finally:
                    await asyncio.wait([task])
            await self.store.end_run(RunEnd(EndCode.DONE), self.clock.now())
        self.store = None

    async def make_store(self) -> None:
        """Make a store without seeds, for orders before the first crawl."""
        store = await SqliteStore.open(self.path)
        await store.close()


def test_a_store_that_tells_orders_late_holds_up_no_crawl_for_good(
    db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_orders = Control.orders

    async def slowly(control: Control, after: int = 0) -> list[Order]:
        await asyncio.sleep(0.7)
        return await read_orders(control, after)

    monkeypatch.setattr(Control, "orders", slowly)

    async def main(clock: VirtualClock) -> tuple[int, float]:
        web = SimulatedWeb(clock, {"a.test": site(8)})
        operator, began = Operator(db_path, clock), web_time()
        async with operator.crawl(web, ["http://a.test/"]) as (run, task):
            await asyncio.wait([task], timeout=100)
            run.stop(RunEnd(EndCode.STOPPED))
        return len(web.log), web_time() - began

    sent, took_s = run_virtual(main)
    assert sent == 10
    assert took_s < 3 * 10


def test_orders_are_read_on_when_the_clock_steps_back_during_a_reading() -> None:
    class Stepping(VirtualClock):
        behind_s = 0.0

        def now(self) -> float:
            return super().now() - self.behind_s

    async def main(clock: VirtualClock) -> list[float]:
        stepping, read_at = Stepping(clock.loop), list[float]()

        async def orders(after: int) -> list[Order]:
            read_at.append(web_time())
            stepping.behind_s = 60.0
            return []

        store = SimpleNamespace(control=SimpleNamespace(orders=orders))
        gate = SimpleNamespace(knows_orders=lambda until: None)
        context: Any = SimpleNamespace(clock=stepping, store=store, gate=gate, progress=None)
        listening = asyncio.create_task(OperatorListener(context)._keep_listening())
        await clock.sleep(1.1)
        listening.cancel()
        return read_at

    assert run_virtual(main) == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


@pytest.mark.parametrize("reads_every_s", [0.25, 100.0], ids=["in_time", "late"])
def test_a_paused_crawl_sends_nothing_and_keeps_paces_afterwards(
    db_path: Path, reads_every_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator_module, "_POLL_EVERY_S", reads_every_s)

    async def main(clock: VirtualClock) -> tuple[list[float], float, float, str]:
        operator = Operator(db_path, clock)
        web = SimulatedWeb(clock, {"a.test": site(30), "b.test": site(30)})
        async with operator.crawl(web, ["http://a.test/", "http://b.test/"]) as (run, task):
            await clock.sleep(10)
            asked_at = web_time()
            await operator.ask(Command.PAUSE)
            await clock.sleep(200)
            assert run.progress.paused_since == EPOCH_S + asked_at
            assert not task.done()
            resumed_at = web_time()
            await operator.ask(Command.RESUME)
            ended_by = str(await task)
        return [hit.started_at for hit in web.log], asked_at, resumed_at, ended_by

    sent, asked_at, resumed_at, ended_by = run_virtual(main)
    assert ended_by == "nothing is left in the frontier"
    assert [at for at in sent if asked_at + 0.5 < at < resumed_at] == []
    assert min(at for at in sent if at >= resumed_at) <= resumed_at + 2 * reads_every_s
    assert len(sent) == 2 * 32  # nothing twice, nothing lost


def test_pauses_of_sites_run_on_while_the_crawl_is_paused(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> list[tuple[float, float]]:
        operator = Operator(db_path, clock)
        web = SimulatedWeb(clock, {"a.test": site(20, robots="User-agent: *\nCrawl-delay: 7")})
        async with operator.crawl(web, ["http://a.test/"]):
            for _ in range(15):
                await clock.sleep(4.3)
                await operator.ask(Command.PAUSE)
                await clock.sleep(1.1)
                await operator.ask(Command.RESUME)
        return [(hit.started_at, hit.finished_at) for hit in web.log]

    hits = run_virtual(main)
    assert len(hits) == 22
    assert min(start - end for (_, end), (start, _) in pairwise(hits[1:])) >= 7 - 1e-9


def test_a_pause_survives_a_crash(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> tuple[int, int, str]:
        operator = Operator(db_path, clock)
        web = SimulatedWeb(clock, {"a.test": site(30)})
        async with operator.crawl(web, ["http://a.test/"]) as (_, task):
            await clock.sleep(10)
            await operator.ask(Command.PAUSE)
            await clock.sleep(5)
            task.cancel()
        before = len(web.log)
        async with operator.crawl(web) as (run, task):
            await clock.sleep(100)
            assert run.progress.paused_since is not None
            paused = len(web.log)
            await operator.ask(Command.RESUME)
            return before, paused, str(await task)

    before, paused, ended_by = run_virtual(main)
    assert 0 < before == paused
    assert ended_by == "nothing is left in the frontier"


def test_a_paused_crawl_can_be_stopped(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> tuple[RunEnd, float]:
        operator = Operator(db_path, clock)
        web = SimulatedWeb(clock, {"a.test": site(30)})
        async with operator.crawl(web, ["http://a.test/"]) as (_, task):
            await operator.ask(Command.PAUSE)
            await clock.sleep(50)
            began = web_time()
            await operator.ask(Command.STOP)
            return await task, web_time() - began

    end, took_s = run_virtual(main)
    assert end == RunEnd(EndCode.OPERATOR)
    assert took_s <= 1


def test_a_stop_order_ends_its_own_run_only(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> str:
        operator = Operator(db_path, clock)
        web = SimulatedWeb(clock, {"a.test": site(5)})
        async with session(clock, db_path, web, ["http://a.test/"], Options()) as (_, operator.store):
            await operator.ask(Command.STOP)  # and killed before it is heard
        async with operator.crawl(web) as (_, task):
            return str(await task)

    assert run_virtual(main) == "nothing is left in the frontier"


def test_a_blocked_site_gets_no_request_and_its_urls_have_the_reason(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> tuple[list[float], float, dict[str, tuple[str, str]], str]:
        operator = Operator(db_path, clock)
        late = {"/99": Page("<a href='http://b.test/late'>b</a>")}  # found when it is blocked
        web = SimulatedWeb(clock, {"a.test": site(100) | late, "b.test": site(40)})
        async with operator.crawl(web, ["http://a.test/", "http://b.test/"]) as (_, task):
            await clock.sleep(12)
            asked_at = web_time()
            await operator.ask(Command.BLOCK, "b.test")
            ended_by = str(await task)
        return [hit.started_at for hit in web.web.hits("b.test")], asked_at, await states(db_path), ended_by

    sent, asked_at, urls, ended_by = run_virtual(main)
    assert sent
    assert max(sent) <= asked_at + 0.5
    of_b = [end for url, end in urls.items() if "//b.test/" in url]
    assert urls["http://b.test/late"] == ("excluded", BLOCKED.sentence)
    assert {state for state, _ in of_b} == {"fetched", "excluded"}
    assert all(end[0] == "fetched" for url, end in urls.items() if "//a.test/" in url)
    assert ended_by == "nothing is left in the frontier"


def test_a_site_blocked_before_the_crawl_gets_no_request_for_robots_txt(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> tuple[list[str], dict[str, tuple[str, str]]]:
        operator = Operator(db_path, clock)
        web = SimulatedWeb(clock, {"a.test": site(3), "b.test": site(3)})
        await crawl(clock, db_path, web, ["http://a.test/"])
        await operator.ask(Command.BLOCK, "b.test")
        await crawl(clock, db_path, web, ["http://b.test/"])
        return [hit.path for hit in web.web.hits("b.test")], await states(db_path)

    asked, urls = run_virtual(main)
    assert asked == []
    assert urls["http://b.test/"] == ("excluded", BLOCKED.sentence)


def test_a_robots_txt_that_redirects_to_a_blocked_site_defers_its_site(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> tuple[int, int, dict[str, tuple[str, str]]]:
        operator = Operator(db_path, clock)
        sites: dict[str, Site] = {
            "a.test": {"/robots.txt": redirect("http://rules.test/r"), "/": Page("x")},
            "rules.test": {"/r": plain(""), "/": Page("x")},
        }
        web = SimulatedWeb(clock, sites)
        await operator.make_store()
        await operator.ask(Command.BLOCK, "rules.test")
        async with operator.crawl(web, ["http://a.test/"]) as (_, task):
            await clock.sleep(3600)
            asked, abroad = len(web.web.hits("a.test")), len(web.web.hits("rules.test"))
            await operator.ask(Command.UNBLOCK, "rules.test")
            await task
            return asked, abroad, await states(db_path)

    asked, abroad, urls = run_virtual(main)
    assert 1 <= asked <= 12
    assert abroad == 0
    assert urls["http://a.test/"][0] == "fetched"


@pytest.mark.parametrize("blocked_after_s", [0.5, 2.5])
def test_a_site_that_is_blocked_while_a_robots_txt_waits_for_it_gets_no_further_request(
    db_path: Path, blocked_after_s: float
) -> None:
    """The block comes with the request for robots.txt in flight, or in the pause before the path."""

    async def main(clock: VirtualClock) -> tuple[list[str], dict[str, tuple[str, str]]]:
        operator = Operator(db_path, clock)
        sites: dict[str, Site] = {
            "a.test": {"/robots.txt": redirect("http://rules.test/r"), "/": Page("x")},
            "rules.test": {"/robots.txt": Page(status=404, delay_s=1.0), "/r": plain("")},
        }
        web = SimulatedWeb(clock, sites)
        options = Options(politeness=PolitenessSettings(delay_s=5.0))
        async with operator.crawl(web, ["http://a.test/"], options=options) as (run, _):
            while not web.web.hits("rules.test"):
                await clock.sleep(0.1)
            await clock.sleep(blocked_after_s - 0.5)
            await operator.ask(Command.BLOCK, "rules.test")
            await clock.sleep(1000)
            asked = [hit.path for hit in web.web.hits("rules.test")]
            run.stop(RunEnd(EndCode.CALLER))
        return asked, await states(db_path)

    asked, urls = run_virtual(main)
    assert asked == ["/robots.txt"]
    assert urls["http://a.test/"][0] == "queued"
    notes = asyncio.run(rows(db_path, "SELECT DISTINCT note FROM robots_answers WHERE site = 'http://a.test'"))
    assert notes == [(f"http://rules.test is {BLOCKED}",)]


@pytest.mark.parametrize(
    "blocked",
    [
        {"/robots.txt": Page(status=503)},
        {"/robots.txt": plain(""), "/": Page(status=503)},
        {"/robots.txt": plain(""), "/": Page(status=503, delay_s=10.0)},
    ],
    ids=["robots.txt deferred", "page retried", "page in flight"],
)
def test_a_blocked_site_keeps_no_crawl_waiting(db_path: Path, blocked: Site) -> None:
    async def main(clock: VirtualClock) -> tuple[float, dict[str, tuple[str, str]]]:
        operator = Operator(db_path, clock)
        web = SimulatedWeb(clock, {"b.test": blocked})
        async with operator.crawl(web, ["http://b.test/"]) as (_, task):
            await clock.sleep(5)
            await operator.ask(Command.BLOCK, "b.test")
            await asyncio.wait([task])
            return web_time(), await states(db_path)

    ended_at, urls = run_virtual(main)
    assert ended_at < 15
    assert urls == {"http://b.test/": ("excluded", BLOCKED.sentence)}


def test_an_unblock_wakes_a_waiting_crawl(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> float:
        operator = Operator(db_path, clock)
        web = SimulatedWeb(clock, {"a.test": site(3), "down.test": {"/robots.txt": Page(status=503)}})
        await operator.make_store()
        await operator.ask(Command.BLOCK, "a.test")
        async with operator.crawl(web, ["http://a.test/", "http://down.test/"]) as (run, task):
            await clock.sleep(600)  # the pauses before another attempt at robots.txt have grown
            assert web.web.hits("a.test") == []
            asked_at = web_time()
            await operator.ask(Command.UNBLOCK, "a.test")
            await clock.sleep(30)
            run.stop(RunEnd(EndCode.CALLER))
            await task
            return web.web.hits("a.test")[0].started_at - asked_at

    assert run_virtual(main) <= 2


class Slow:
    """Makes the store take ten seconds for each batch of URLs that an order excludes or queues again."""

    def __init__(self, store: SqliteStore, clock: VirtualClock) -> None:
        self.batches = 0
        self._clock, self._blocked_on = clock, store.control.blocked_on
        store.control.blocked_on = self.blocked_on  # type: ignore[method-assign]

    async def blocked_on(self, name: str, limit: int, after: int = 0) -> list[int]:
        self.batches += 1
        await self._clock.sleep(10)
        return await self._blocked_on(name, min(limit, 20), after)


def blocked_links(pages: int) -> dict[str, Site]:
    """A site whose pages are all known from another one, which lets itself be crawled for long."""
    links = "".join(f"<a href='http://big.test/{n}'>{n}</a>" for n in range(pages))
    return {
        "a.test": site(500) | {"/": Page(links + str(site(500)["/"].body))},
        "c.test": site(500),
        "big.test": site(0),
    }


def test_orders_hold_at_once_while_a_large_order_is_carried_out(db_path: Path) -> None:
    """Lifting a block takes 150 s. Meanwhile a pause, another block and a stop hold at once, and heartbeats go on."""

    async def main(clock: VirtualClock) -> tuple[list[list[float]], list[float], int, int]:
        operator = Operator(db_path, clock)
        web = SimulatedWeb(clock, blocked_links(300))
        await operator.make_store()
        await operator.ask(Command.BLOCK, "big.test")
        times: list[float] = []
        async with operator.crawl(web, ["http://a.test/", "http://c.test/"]) as (_, task):
            assert operator.store is not None
            await clock.sleep(20)
            slow = Slow(operator.store, clock)
            await operator.ask(Command.UNBLOCK, "big.test")
            await clock.sleep(15)
            for command, name in ((Command.BLOCK, "c.test"), (Command.PAUSE, ""), (Command.RESUME, "")):
                times.append(web_time())
                await operator.ask(command, name)
                await clock.sleep(10)
            (beat,) = await operator.store.control.beats()
            silent_s = clock.now() - beat.seen_at
            times += [web_time(), silent_s]
            await operator.ask(Command.STOP)
            await task
            times.append(web_time())
        waiting = len(await rows(db_path, "SELECT 1 FROM urls WHERE reason = ?", [BLOCKED.sentence]))
        hits = [[hit.started_at for hit in web.web.hits(host)] for host in ("a.test", "c.test")]
        return hits, times, slow.batches, waiting

    (of_a, of_c), (blocked_at, paused_at, resumed_at, stop_at, silent_s, ended_at), batches, waiting = run_virtual(main)
    assert [at for at in of_c if at > blocked_at + 0.5] == []
    assert [at for at in of_a + of_c if paused_at + 0.5 < at < resumed_at] == []
    assert [at for at in of_a if at > resumed_at]
    assert silent_s <= 5.5
    assert ended_at - stop_at <= 7
    assert batches <= 6
    assert waiting > 100


def test_an_order_is_dropped_when_a_later_one_is_about_the_same_name(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> tuple[int, dict[str, tuple[str, str]]]:
        operator = Operator(db_path, clock)
        web = SimulatedWeb(clock, blocked_links(300))
        await operator.make_store()
        await operator.ask(Command.BLOCK, "big.test")
        async with operator.crawl(web, ["http://a.test/"]) as (_, task):
            assert operator.store is not None
            await clock.sleep(20)
            slow = Slow(operator.store, clock)
            await operator.ask(Command.UNBLOCK, "big.test")
            await clock.sleep(15)
            await operator.ask(Command.BLOCK, "big.test")
            await task
        return slow.batches, await states(db_path)

    batches, urls = run_virtual(main)
    assert batches <= 3
    assert {end for url, end in urls.items() if "//big.test/" in url} <= {
        ("excluded", BLOCKED.sentence),
        ("fetched", "200"),
    }
    assert ("excluded", BLOCKED.sentence) in urls.values()


def test_orders_from_before_the_run_are_carried_out_before_its_first_request(db_path: Path) -> None:
    """A stop is obeyed meanwhile."""

    async def main(clock: VirtualClock) -> tuple[str, str, list[str]]:
        operator = Operator(db_path, clock)
        web = SimulatedWeb(clock, {"a.test": site(0), "big.test": site(9)})
        await operator.make_store()
        await operator.ask(Command.BLOCK, "big.test")
        async with operator.crawl(web, ["http://a.test/", "http://big.test/"]) as (_, first):
            await first
        before = len(web.log)
        await operator.ask(Command.UNBLOCK, "big.test")
        async with session(clock, db_path, web, (), Options()) as (run, operator.store):
            slow, asked = Slow(operator.store, clock), asyncio.create_task(clock.sleep(5))
            asked.add_done_callback(lambda _: run.stop(RunEnd(EndCode.CALLER)))
            async with run.obeying_operator():
                stopped = str(await run.run())
            assert slow.batches == 1
        operator.store = None
        assert len(web.log) == before
        async with operator.crawl(web) as (_, last):
            ended_by = str(await last)
        return stopped, ended_by, [hit.path for hit in web.web.hits("big.test")]

    stopped, ended_by, asked = run_virtual(main)
    assert (stopped, ended_by) == (
        "stopped by the caller; run() continues the crawl",
        "nothing is left in the frontier",
    )
    assert len(asked) == 11


def test_a_queued_url_becomes_a_seed_of_the_running_crawl_and_widens_its_scope(db_path: Path) -> None:
    """URLs that failed, or that robots.txt closed, are requested again, by the next run if none is on."""

    async def main(clock: VirtualClock) -> tuple[SimulatedWeb, dict[str, tuple[str, str]]]:
        operator = Operator(db_path, clock)
        away = "<a href='http://b.test/'>b</a><a href='http://b.test/x'>x</a>"
        start = Page(away + "".join(f"<a href='/{n}'>{n}</a>" for n in range(9)))
        closed = plain("User-agent: *\nDisallow: /closed\n")
        a: dict[str, Page] = {"/robots.txt": closed, "/": start, "/gone": Page("", status=404), "*": Page("leaf")}
        web = SimulatedWeb(clock, {"a.test": a, "b.test": {**site(2), "/x": Page("x")}})
        options = Options(scope=ScopeSettings(ScopeMode.DOMAIN))
        async with operator.crawl(
            web, ["http://a.test/", "http://a.test/gone", "http://a.test/closed"], options=options
        ):
            await clock.sleep(4)
            assert web.web.hits("b.test") == [], "out of scope"
            await operator.ask(Command.QUEUE, "http://b.test/")
            await operator.ask(Command.QUEUE, "http://a.test/gone")
        assert {hit.path for hit in web.web.hits("b.test")} == {"/robots.txt", "/", "/x", "/0", "/1"}
        web.web.sites["a.test"] = {**a, "/gone": Page("back"), "/robots.txt": plain("")}
        for path in ("gone", "gone", "closed"):
            await operator.ask(Command.QUEUE, f"http://a.test/{path}")
        async with operator.crawl(web, options=options):
            pass
        assert await rows(db_path, "SELECT order_id FROM orders WHERE done_at IS NULL") == []
        return web, await states(db_path)

    web, found = run_virtual(main)
    asked = [hit.path for hit in web.web.hits("a.test")]
    assert [asked.count(path) for path in ("/robots.txt", "/gone", "/", "/closed")] == [3, 3, 1, 1]
    assert {state for state, _ in found.values()} == {"fetched"}
    assert asyncio.run(violations(db_path, RobotsSettings())) == [], "no page under a copy that the order ended"


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(n, marks=pytest.mark.long) for n in range(3, 12))])
def test_blocks_that_are_lifted_leave_the_result_of_a_crawl_unchanged(seed: int, tmp_path: Path) -> None:
    """Orders come at random times, with stops and crashes. In the end the store has what an undisturbed crawl finds."""
    wild = random_web(seed, hosts=4, pages_per_host=12, across=0.4)

    async def undisturbed(clock: VirtualClock) -> Found:
        await crawl(clock, tmp_path / "calm.db", SimulatedWeb(clock, wild.sites), wild.seeds)
        return await look(tmp_path / "calm.db")

    async def disturbed(clock: VirtualClock) -> Found:
        path, chance = tmp_path / "wild.db", random.Random(seed)
        web, operator = SimulatedWeb(clock, wild.sites), Operator(path, clock)
        hosts = sorted(wild.sites)
        seeds: Sequence[str] = wild.seeds
        for _ in range(4):
            async with operator.crawl(web, seeds) as (run, task):
                seeds = ()
                for _ in range(chance.randrange(1, 6)):
                    await clock.sleep(chance.uniform(0, 3))
                    command = chance.choice(
                        (Command.BLOCK, Command.UNBLOCK, Command.BLOCK, Command.PAUSE, Command.RESUME)
                    )
                    name = chance.choice(hosts) if command in (Command.BLOCK, Command.UNBLOCK) else ""
                    with suppress(UsageError):  # nothing to resume or to unblock
                        await operator.ask(command, name)
                await clock.sleep(chance.uniform(0, 2))
                if chance.random() < 0.5:
                    task.cancel()
                else:
                    run.stop(RunEnd(EndCode.CALLER))
        with suppress(UsageError):  # not paused
            await operator.ask(Command.RESUME)
        for host in hosts:
            with suppress(UsageError):
                await operator.ask(Command.UNBLOCK, host)
        async with operator.crawl(web):
            pass
        undone = await rows(path, "SELECT name FROM control WHERE command = 'unblock' AND done_at IS NULL")
        blocked = await rows(path, "SELECT url FROM urls WHERE reason = ?", [BLOCKED.sentence])
        assert blocked == []
        assert {name for (name,) in undone} <= set(hosts)
        return await look(path)

    assert run_virtual(disturbed) == run_virtual(undisturbed)


def test_a_block_lifted_after_the_draw_opens_the_frame_again(db_path: Path) -> None:
    """No URL is requested that was not drawn, and a block after the draw changes nothing."""

    async def main(clock: VirtualClock) -> tuple[list[set[str]], list[str]]:
        web = SimulatedWeb(clock, {f"{name}.test": site(30) for name in "abc"})
        drawn: list[set[str]] = []
        operator = Operator(db_path, clock)
        await operator.make_store()
        await operator.ask(Command.BLOCK, "b.test")
        settings = SampleSettings(8, Per.SITE)

        def frame_of(store: Store) -> SamplingFrame:
            async def draw() -> None:
                await survey_draw.draw(store, settings, 1, None, clock.now())
                drawn.append({row["url"] for row in await store.query("SELECT url FROM samples")})

            return SamplingFrame(store, 1, draw)

        async with operator.crawl(web, [f"http://{name}.test/" for name in "abc"], frame_of) as (_, task):
            while not drawn:
                await clock.sleep(0.5)
            for command, name in [
                (Command.BLOCK, "c.test"), (Command.UNBLOCK, "c.test"), (Command.UNBLOCK, "b.test")
            ]:  # fmt: skip
                await operator.ask(command, name)
                await clock.sleep(1)
            await asyncio.wait([task])
        pages = [hit for hit in web.log if not hit.path.startswith(("/robots.txt", "/not-found-"))]
        return drawn, [f"http://{hit.host}{hit.path}" for hit in pages]

    drawn, asked = run_virtual(main)
    assert [len(urls) for urls in drawn] == [16, 24]
    assert drawn[0] < drawn[1]
    assert set(asked) == drawn[1] | {f"http://{name}.test/" for name in "abc"}
    assert len(asked) == len(set(asked))


def test_a_missed_heartbeat_does_not_end_the_crawl(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missed = []

    async def beat(self: Control, beat: Beat) -> None:
        missed.append(beat)
        raise StoreError("the database cannot be reached")

    async def main(clock: VirtualClock) -> str:
        web = SimulatedWeb(clock, {"a.test": site(20)})
        async with Operator(db_path, clock).crawl(web, ["http://a.test/"]) as (_, task):
            return str(await task)

    monkeypatch.setattr(Control, "beat", beat)
    assert run_virtual(main) == "nothing is left in the frontier"
    assert len(missed) > 1
