"""Crawls in rounds: what a lost task has learned is kept, and an address is asked by one task at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest

from crawler.audit.checks import Check
from crawler.audit.of_dataset import audit_dataset
from crawler.dataset.objects import Objects
from crawler.dataset.records import Dataset, Done, Manifest, Plan, done_key, part
from crawler.dataset.views import Views
from crawler.demo.pages import Page, Site, plain, redirect, unavailable
from crawler.errors import StoreError
from crawler.frontier.buckets import bucket_of
from crawler.model import Reading
from crawler.preferences.purposes import UsePurpose
from crawler.reasons import EndCode, ErrorKind, RunEnd
from crawler.rounds.driver import Driver
from crawler.rounds.plan import commit, make_plan
from crawler.rounds.task import BucketTask
from tests import judge
from tests.simulation.crawls import Options, crawl, rows
from tests.simulation.rounds import LENGTH_S, SETTINGS, Crawler, Killed, hosts_of_buckets, killed_at
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

LONG_S = 5 * int(LENGTH_S)
BODIES = "SELECT DISTINCT body_id FROM pages_by_id WHERE body_id IS NOT NULL"


def linking(pages: int, robots: str = "") -> Site:
    links = "".join(f"<a href='/{n}'>{n}</a>" for n in range(pages))
    return {"/robots.txt": plain(robots), "/": Page(links), **{f"/{n}": Page("x") for n in range(pages)}}


def test_an_address_that_nobody_knew_is_asked_by_one_task_at_a_time(tmp_path: Path) -> None:
    hosts = hosts_of_buckets(5)

    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(
            clock, {host: linking(6) for host in hosts}, latency_s=1.0, addresses=lambda host: "192.0.2.1"
        )
        crawler = Crawler(clock, web, tmp_path)
        crawler.make([f"http://{host}/" for host in hosts])
        assert (await crawler.crawl()).code is EndCode.DONE
        assert {hit.host for hit in web.log} == set(hosts)
        at_address = [replace(hit, host="192.0.2.1") for hit in web.log]
        assert judge.most_at_once(at_address)["192.0.2.1"] <= 2
        assert judge.violations(web.log, judge.Manners(delay_s=1.0)) == []
        assert len(web.log) == len(hosts) * 8, "nothing was asked twice"
        assert clock.loop.time() < 2 * LENGTH_S, "nobody waits for the end of a round with nothing to do"

    run_virtual(main)


def test_a_task_whose_news_were_known_leaves_the_store_as_it_is(tmp_path: Path) -> None:
    hosts = hosts_of_buckets(2)

    async def main(clock: VirtualClock) -> None:
        links = "".join(f"<a href='http://{host}/'>{host}</a>" for host in hosts)
        site: Site = {"/robots.txt": plain(""), "/": Page(links)}
        crawler = Crawler(clock, SimulatedWeb(clock, dict.fromkeys(hosts, site)), tmp_path)
        dataset = crawler.make([f"http://{host}/" for host in hosts])
        assert (await crawler.crawl()).code is EndCode.DONE
        first, second = dataset.manifests()
        assert second.parts.keys() == first.parts.keys(), "the offers of the first round gave each bucket a task"
        assert [state.store for state in second.buckets.values()] == [1, 1]
        assert not any(state.has_news for state in second.buckets.values())
        assert set(dataset.objects.keys("stores")) == {part("stores", 1, bucket, "db.zst") for bucket in first.parts}

    run_virtual(main)


def test_bodies_leave_the_stores_when_they_are_in_the_dataset(tmp_path: Path) -> None:
    one, other = hosts_of_buckets(2)

    async def main(clock: VirtualClock) -> None:
        same = Page(f"<p>the same in both rounds<a href='http://{other}/'>x</a>")
        crawler = Crawler(clock, SimulatedWeb(clock, {one: {"/": same}, other: {"/": same}}), tmp_path)
        crawler.make([f"http://{one}/"])
        assert (await crawler.crawl()).code is EndCode.DONE
        with Views(crawler.location) as views:
            with mock.patch.object(views.dataset.objects, "local", wraps=views.dataset.objects.local) as local:
                bodies = await views.bodies.get([row["body_id"] for row in await views.query(BODIES)])
            assert list(bodies.values()) == [same.octets]
            ((files, _),) = (call.args for call in local.call_args_list)
            assert len(files) == 1, "files of buckets that have fetched no such page may be many, and stay away"
            for bucket in views.manifests[-1].buckets:
                async with views.store_of(bucket) as store:
                    assert store is not None
                    assert [row["data"] for row in await store.query("SELECT data FROM bodies_by_id")] == [None]

    run_virtual(main)


def test_a_page_counts_in_one_round_if_a_later_worker_has_an_earlier_clock(tmp_path: Path) -> None:
    one, other = hosts_of_buckets(2)

    class Late(VirtualClock):
        def now(self) -> float:
            return super().now() - LENGTH_S / 2

    class OfClocks(Crawler):
        async def work(self, plan: Plan) -> None:
            self.clock = Late(self.clock.loop) if plan.round == 3 else self.clock
            await super().work(plan)

    async def main(clock: VirtualClock) -> None:
        sites: dict[str, Site] = {
            one: {"/": Page(f"<a href='http://{other}/'>x</a>"), "/last": Page("x")},
            other: {"/": Page(f"<a href='http://{one}/last'>x</a>")},
        }
        crawler = OfClocks(clock, SimulatedWeb(clock, sites), tmp_path)
        crawler.make([f"http://{one}/"])
        assert (await crawler.crawl()).code is EndCode.DONE
        with Views(crawler.location) as views:
            assert len(views.manifests) == 3
            pages = [f"http://{one}/", f"http://{one}/last", f"http://{other}/"]
            assert views.fetch("SELECT url FROM pages ORDER BY url") == sorted((url,) for url in pages)
            assert views.fetch("SELECT count(*) FROM links") == [(2,)]

    run_virtual(main)


def test_a_task_stops_so_early_that_its_results_are_written_at_the_deadline(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        (host,) = hosts_of_buckets(1)
        web = SimulatedWeb(clock, {host: linking(60)})
        crawler = Crawler(clock, web, tmp_path)
        dataset, at = crawler.make([f"http://{host}/"]), clock.now()
        plan = make_plan(dataset, [], at)
        large = msgspec.structs.replace(plan, tasks=[msgspec.structs.replace(plan.tasks[0], writing_s=20.0)])
        dataset.objects.put("rounds/000001/plan.json", msgspec.json.encode(large))
        assert (await crawler.crawl()).code is EndCode.DONE
        first = dataset.manifest(1)
        assert first is not None
        assert LENGTH_S - 21.0 < first.ended_at - at < LENGTH_S - 18.0
        done = dataset.read(done_key(1, plan.tasks[0].bucket), Done)
        assert done is not None
        assert done.ended == EndCode.ROUND_OVER

    run_virtual(main)


@pytest.mark.parametrize(
    ("dies", "call", "key", "asked"),
    [
        ("driver", "create", "000002/plan.json", 1),
        ("driver", "create", "000001/manifest.json", 1),
        ("driver", "delete", "", 1),  # between the manifest and what follows it
        ("worker", "create", "000001/done/", 2),  # between a store and the result of its task
    ],
)
def test_a_crawl_that_was_cut_off_goes_on(tmp_path: Path, dies: str, call: str, key: str, asked: int) -> None:
    one, other = hosts_of_buckets(2)

    async def main(clock: VirtualClock) -> None:
        site = linking(0) | {"/": Page(f"<a href='http://{other}/'>x</a>")}
        web = SimulatedWeb(clock, {one: site, other: linking(2)})
        crawler = Crawler(clock, web, tmp_path)
        crawler.make([f"http://{one}/"])
        if dies == "worker":
            crawler.faults = [killed_at(call, key)]
        else:
            with pytest.raises(Killed):
                await crawler.crawl(killed_at(call, key))
        assert (await crawler.crawl()).code is EndCode.DONE
        assert Counter(hit.host for hit in web.log) == {one: 2 * asked, other: 4}
        assert judge.violations(web.log, judge.Manners(delay_s=1.0)) == []

    run_virtual(main)


def test_a_driver_whose_round_another_one_has_committed_goes_on_with_the_next(tmp_path: Path) -> None:
    """The other driver has deleted the offers that this one is about to read."""
    one, other = hosts_of_buckets(2)

    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, {one: {"/": Page(f"<a href='http://{other}/'>x</a>")}, other: linking(2)})
        crawler, committed = Crawler(clock, web, tmp_path), list[Manifest]()
        dataset = crawler.make([f"http://{one}/"])

        def overtaken(name: str, key: str) -> None:
            if name == "get" and key.startswith("rounds/000001/done/") and not committed:
                plan = dataset.plan(1)
                assert plan is not None
                committed.append(commit(dataset, plan, [], clock.now()))
                assert dataset.objects.keys("outgoing") == []

        assert (await crawler.crawl(overtaken)).code is EndCode.DONE
        assert dataset.manifests()[:1] == committed
        assert Counter(hit.host for hit in web.log) == {one: 2, other: 4}

    run_virtual(main)


def test_storage_that_fails_for_one_task_loses_that_task_alone(tmp_path: Path) -> None:
    one, other = hosts_of_buckets(2)

    def failing(name: str, key: str) -> None:
        if name == "put" and key == part("urls", 1, bucket_of(f"http://{one}", SETTINGS.rounds.buckets)):
            raise StoreError("no space is left")

    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, {host: linking(3) for host in (one, other)})
        crawler = Crawler(clock, web, tmp_path)
        dataset = crawler.make([f"http://{host}/" for host in (one, other)])
        crawler.faults = [failing]
        assert (await crawler.crawl()).code is EndCode.DONE
        first, second = (list(manifest.parts) for manifest in dataset.manifests())
        assert first == [bucket_of(f"http://{other}", SETTINGS.rounds.buckets)]
        assert second == [bucket_of(f"http://{one}", SETTINGS.rounds.buckets)]
        assert list(tmp_path.glob("worker-*/*")) == [], "the disk has room for the other tasks"
        assert judge.violations(web.log, judge.Manners(delay_s=1.0)) == []

    run_virtual(main)


def test_a_crawl_whose_tasks_are_lost_again_and_again_ends(tmp_path: Path) -> None:
    def failing(name: str, key: str) -> None:
        if name == "put" and key.startswith("urls/"):
            raise StoreError("no space is left")

    async def main(clock: VirtualClock) -> None:
        crawler = Crawler(clock, SimulatedWeb(clock, {"a.test": linking(1)}), tmp_path)
        crawler.make(["http://a.test/"])
        crawler.faults = [failing] * 9
        with pytest.raises(StoreError, match="in 5 rounds in a row, no task came to its end"):
            await crawler.crawl()

    run_virtual(main)


def test_the_end_names_what_stays_queued(tmp_path: Path) -> None:
    settings = replace(SETTINGS, limits=replace(SETTINGS.limits, max_pages_per_site=2))

    async def main(clock: VirtualClock) -> None:
        crawler = Crawler(clock, SimulatedWeb(clock, {"a.test": linking(5)}), tmp_path)
        crawler.make(["http://a.test/"], settings)
        assert str(await crawler.crawl()) == (
            "every site with queued URLs has reached limits.max_pages_per_site (2); 4 URLs stay queued"
        )

    run_virtual(main)


def audited(crawler: Crawler) -> Any:
    async def main(_: VirtualClock) -> Any:
        with Views(crawler.location) as views:
            return await audit_dataset(views, crawler.clock.now())

    return run_virtual(main)


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_pause_longer_than_a_round_outlives_the_task_that_learned_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    """The worker dies when it writes its first result: nothing but what it has written ahead is left of its round.

    It has worked for more than five seconds, so the log has its requests. The audit knows from them of the Retry-After;
    the robots.txt with the Crawl-delay is lost, but not its pause.
    """

    async def main(clock: VirtualClock) -> Crawler:
        slow, busy = linking(3, f"User-agent: *\nCrawl-delay: {LONG_S}\n"), linking(3) | {"/0": unavailable(LONG_S)}
        web = SimulatedWeb(clock, {"a.test": linking(6), "slow.a.test": slow, "busy.a.test": busy})
        crawler = Crawler(clock, web, tmp_path)
        crawler.make(["http://a.test/", "http://slow.a.test/", "http://busy.a.test/"])
        crawler.faults = [killed_at("put", "urls/")]
        if not is_kept:
            monkeypatch.setattr(BucketTask, "_write_ahead", _nothing)
        assert (await crawler.crawl()).code is EndCode.DONE
        assert len(list((tmp_path / "data" / "stores").glob("*/*.db.zst"))) == 2, "the last, and the one before"
        return crawler

    crawler = run_virtual(main)
    seen = judge.violations(crawler.web.log, judge.Manners(delay_s=1.0, crawl_delay_s={"slow.a.test": LONG_S}))
    assert {violation.host for violation in seen} == (set() if is_kept else {"slow.a.test", "busy.a.test"})
    result = audited(crawler)
    assert result.limits[0].startswith("1 task was lost. The log has ")
    found = {check for check, count in result.counts.items() if count.violations}
    assert found == (set() if is_kept else {Check.RETRY_AFTER})


async def _nothing(task: BucketTask, news: object) -> None:
    return None


def test_the_audit_finds_an_address_that_two_tasks_asked_and_a_log_that_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = hosts_of_buckets(2)

    async def main(clock: VirtualClock) -> Crawler:
        web = SimulatedWeb(clock, {host: linking(1) for host in hosts}, addresses=lambda host: "192.0.2.1")
        crawler = Crawler(clock, web, tmp_path)
        crawler.make([f"http://{host}/" for host in hosts])
        await crawler.crawl()
        return crawler

    monkeypatch.setattr(BucketTask, "_take_address", _always)
    crawler = run_virtual(main)
    (manifest,) = Dataset(Objects(crawler.location)).manifests()
    parts = {bucket: rows | {"requests": rows["requests"] + 1} for bucket, rows in manifest.parts.items()}
    changed = msgspec.json.encode(msgspec.structs.replace(manifest, parts=parts))
    (tmp_path / "data" / "rounds" / "000001" / "manifest.json").write_bytes(changed)
    result = audited(crawler)
    found = [violation for violation in result.violations if violation.check is Check.OVERLAP]
    assert [violation.required for violation in found] == ["192.0.2.1 asked by one task of round 1"]
    assert result.counts[Check.LOG].violations == 2


async def _always(task: BucketTask, network: str) -> bool:
    return True


def test_a_seed_without_a_host_ends_the_rounds_as_it_ends_a_plain_crawl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both ask for its address for an hour (``robots.unknown_host_after``), and say that they wait.

    The audit knows the look-ups, and that nothing was sent.
    """
    seeds, state = ["http://nosuch.invalid/"], "SELECT state, reason FROM urls"
    alike = Options(politeness=SETTINGS.politeness, identity=SETTINGS.identity)
    settings = replace(SETTINGS, rounds=replace(SETTINGS.rounds, length_s=600.0))

    async def plainly(clock: VirtualClock) -> tuple[str, float, list[tuple[str, ...]]]:
        end = await crawl(clock, tmp_path / "plain.db", dead(clock), seeds, alike)
        return str(end), clock.loop.time(), await rows(tmp_path / "plain.db", state)

    async def in_rounds(clock: VirtualClock) -> tuple[str, float, list[tuple[str, ...]]]:
        crawler = Crawler(clock, dead(clock), tmp_path)
        crawler.make(seeds, settings)
        end = await crawler.crawl()
        assert "nothing can be asked before 08:15:00Z: then the next round begins" in crawler.said
        with Views(crawler.location) as views:
            audited = await audit_dataset(views, clock.now())
            assert (audited.violation_count, audited.totals.requests, audited.totals.unsent) == (0, 0, 7)
            return str(end), clock.loop.time(), views.fetch(state)

    (end, took_s, states), in_the_rounds = run_virtual(plainly), run_virtual(in_rounds)
    assert (end, states) == (in_the_rounds[0], in_the_rounds[2])
    assert states == [("failed", "no such host: nosuch.invalid")]
    assert took_s == pytest.approx(in_the_rounds[1], abs=10)
    waits = "everything left waits, first for nosuch.invalid until 08:01:00Z: robots.txt: "
    assert f"round 1: 1 bucket in work: {waits}" in capsys.readouterr().err


def dead(clock: VirtualClock) -> SimulatedWeb:
    return SimulatedWeb(clock, {}, unknown=ErrorKind.DNS_NO_NAME)


def test_requests_in_flight_are_given_up_at_a_second_signal(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        crawler = Crawler(clock, SimulatedWeb(clock, {"a.test": linking(1)}, latency_s=4.0), tmp_path)
        dataset = crawler.make(["http://a.test/"])
        driver = Driver(dataset, crawler, clock, crawler.said.append)
        ended = asyncio.ensure_future(driver.run())
        await clock.sleep(1.0)
        driver.stop(RunEnd(EndCode.SIGNAL, "SIGINT"))
        await clock.sleep(1.0)
        assert not ended.done(), "the request in flight has time"
        driver.end_grace()
        assert (await ended).code is EndCode.SIGNAL
        assert clock.loop.time() < 3.0
        assert [manifest.lost for manifest in dataset.manifests()] == [{}], "its result was written"

    run_virtual(main)


def test_what_a_bucket_needs_of_the_sites_of_others_comes_from_their_tasks(tmp_path: Path) -> None:
    """A robots.txt, a main site, a licence and the permission for a sitemap.

    The states equal those of a plain crawl. A site whose robots.txt leads elsewhere is asked for it once more.
    """
    redirected, mirror, licensed, other, main_site, listed = hosts_of_buckets(6)
    entries = "".join(f"<url><loc>http://{host}/in-sitemap</loc></url>" for host in (listed, main_site))
    terms = '<content url="/"><license><prohibits type="usage">ai-train</prohibits></license></content>'
    robots, start = "User-agent: *\nDisallow: /x/\nCrawl-delay: 3\n", Page("<a href=/x/1>1</a><a href=/2>2</a>")
    sites: dict[str, Site] = {
        redirected: {"/robots.txt": redirect(f"http://{other}/robots.txt"), "/": start, "/2": Page("x")},
        mirror: linking(2, f"User-agent: *\nHost: {main_site}\n"),
        licensed: linking(1, f"User-agent: *\nLicense: http://{other}/terms.xml\n"),
        other: {
            "/robots.txt": plain(robots),
            "/terms.xml": plain(f"<rsl>{terms}</rsl>"),
            "/sitemap-of-listed.xml": plain(f"<urlset>{entries}</urlset>"),
        },
        listed: {
            "/robots.txt": plain(f"User-agent: *\nDisallow:\nSitemap: http://{other}/sitemap-of-listed.xml\n"),
            "/": Page("x"),
            "/in-sitemap": Page("x"),
        },
        main_site: linking(0, f"User-agent: *\nHost: {main_site}\n"),
    }
    seeds = [f"http://{host}/" for host in (redirected, mirror, licensed, listed)]
    identity = replace(SETTINGS.identity, purpose=(UsePurpose.TRAIN_AI,))
    reading = replace(SETTINGS.robots, reading=Reading.STRICT)
    discovery = replace(SETTINGS.discovery, sitemaps=True)
    settings = replace(SETTINGS, identity=identity, robots=reading, discovery=discovery)
    what = "SELECT url, state, reason_code FROM urls"

    async def plainly(clock: VirtualClock) -> tuple[Counter[Any], Counter[str]]:
        web = SimulatedWeb(clock, sites)
        options = Options(politeness=SETTINGS.politeness, identity=identity, robots=reading, discovery=discovery)
        await crawl(clock, tmp_path / "plain.db", web, seeds, options)
        return Counter(await rows(tmp_path / "plain.db", what)), Counter(f"{hit.host}{hit.path}" for hit in web.log)

    async def in_rounds(clock: VirtualClock) -> tuple[Counter[Any], Counter[str]]:
        web = SimulatedWeb(clock, sites)
        crawler = Crawler(clock, web, tmp_path)
        crawler.make(seeds, settings)
        assert (await crawler.crawl()).code is EndCode.DONE
        delays = dict.fromkeys((other, redirected), 3.0)
        assert judge.violations(web.log, judge.Manners(delay_s=1.0, crawl_delay_s=delays)) == []
        with Views(crawler.location) as views:
            assert (await audit_dataset(views, clock.now())).violations == []
            files = f"read_parquet('{crawler.location}/requests/*/*.parquet', filename = true)"
            for name, site in views.fetch(f"SELECT DISTINCT filename, site FROM {files}"):
                assert int(Path(name).stem) == views.bucket_of(site), "a site is asked by the task of its bucket"
            return Counter(views.fetch(what)), Counter(f"{hit.host}{hit.path}" for hit in web.log)

    (states, asked), (found, asked_in_rounds) = run_virtual(plainly), run_virtual(in_rounds)
    assert found == states
    assert {code for _, _, code in found} == {"fetched", "robots", "mirror", "preference", "sitemap", "no_sitemap"}
    assert [url for url, _, _ in found if url.endswith("/in-sitemap")] == [f"http://{listed}/in-sitemap"]
    assert asked_in_rounds - asked == Counter([f"{redirected}/robots.txt", f"{mirror}/robots.txt"])


@pytest.mark.parametrize("path", ["/robots.txt", "/rules.txt"])
def test_a_robots_txt_of_another_bucket_that_cannot_be_had_fails_its_site(path: str, tmp_path: Path) -> None:
    """It fails, or it stands at another path of its site: buckets publish no answer for that."""
    one, other = hosts_of_buckets(2)
    settings = replace(SETTINGS, robots=replace(SETTINGS.robots, give_up_after_s=600.0))

    async def main(clock: VirtualClock) -> None:
        sites: dict[str, Site] = {
            one: {"/robots.txt": redirect(f"http://{other}{path}"), "/": Page("x")},
            other: {"/robots.txt": unavailable(), "/rules.txt": plain("")},
        }
        web = SimulatedWeb(clock, sites)
        crawler = Crawler(clock, web, tmp_path)
        crawler.make([f"http://{one}/"], settings)
        assert (await crawler.crawl()).code is EndCode.DONE
        assert (other, "/rules.txt") not in {(hit.host, hit.path) for hit in web.log}
        with Views(crawler.location) as views:
            assert views.fetch("SELECT url, reason_code FROM urls") == [(f"http://{one}/", "robots_given_up")]
            assert (await audit_dataset(views, clock.now())).violations == []

    run_virtual(main)
