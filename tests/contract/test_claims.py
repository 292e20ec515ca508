"""One worker at a time claims a group and releases it with its pause; a crash loses nothing."""

from __future__ import annotations

import pytest

from crawler.frontier.decide import Outcome
from crawler.frontier.domain_addresses import addresses
from crawler.frontier.offers import Offer
from crawler.frontier.politeness import AnswerTimes, GroupBy, Pace, PolitenessSettings
from crawler.frontier.site_settings import SiteRule
from crawler.model import Kind, State
from crawler.reasons import EndCode, Reason, ReasonCode, RunEnd, StoredWaitReason, WaitCode, WaitReason
from tests.contract.visits import NOW, Harness, deferred, failed, fetched, queued_urls, redirected, retried, robots
from tests.reasons import reason
from tests.records import replace

A, B = "http://a.test/", "http://b.test/"


async def test_seeds_are_queued_at_depth_0_and_remembered(harness: Harness) -> None:
    await harness.store.add_seeds([(A, None), (B, reason("scope: not there"))])
    assert sorted(await harness.store.seeds()) == [A, B]
    assert await harness.urls("state, reason, depth, discovered_from") == {
        A: ("queued", "", 0, None),
        B: ("excluded", "scope: not there", 0, None),
    }
    assert await harness.store.queued_count() == 1


async def test_a_seed_named_again_changes_nothing(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    await harness.finish(claim, fetched(claim.urls[0]))
    await harness.seed(A)
    assert await harness.urls() == {A: "fetched"}
    assert await harness.claim() == []


async def test_a_found_url_named_as_a_seed_comes_to_depth_0_with_what_follows_from_it(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    await harness.finish(claim, fetched(claim.urls[0], [f"{A}x"]))
    (claim,) = await harness.claim()
    await harness.finish(claim, fetched(claim.urls[0], [f"{A}y"]))
    await harness.seed(f"{A}x")
    assert await harness.urls("depth") == {A: 0, f"{A}x": 0, f"{A}y": 1}


async def test_a_claimed_group_is_not_claimed_again_until_it_is_released(harness: Harness) -> None:
    await harness.seed(A, B)
    (first,) = await harness.claim(groups=1)
    (second,) = await harness.claim()
    assert {first.group, second.group} == {"a.test", "b.test"}
    assert await harness.claim() == []
    assert await harness.store.next_ready() is None
    await harness.commit(released=[first.group_id])
    (again,) = await harness.claim()
    assert queued_urls([again]) == queued_urls([first])


async def test_a_released_group_is_ready_when_its_pause_is_over(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    times = AnswerTimes(7, 0.125, 0.25)
    pace = Pace(NOW + 60, 60.0, 5.0, StoredWaitReason(WaitCode.CRAWL_DELAY, "Crawl-delay"), times)
    await harness.finish(claim, fetched(claim.urls[0], [f"{A}x"]), pace=pace)
    assert await harness.claim() == []
    ready = await harness.store.next_ready()
    assert ready is not None
    assert (ready.group, ready.until, ready.reason) == ("a.test", NOW + 60, "Crawl-delay")
    assert await harness.store.waiting(NOW, 10) == [ready]
    assert await harness.store.group_pace("a.test") == pace
    harness.now = NOW + 59.5
    (claim,) = await harness.claim()  # a little early: its worker waits
    assert claim.pace == pace


async def test_a_group_that_the_store_does_not_know_has_no_pace(harness: Harness) -> None:
    assert await harness.store.group_pace("never.test") == Pace()


async def test_a_group_released_and_ready_is_claimed_in_the_same_turn(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    result = await harness.commit(fetched(claim.urls[0], [f"{A}x"]), released=[claim.group_id], groups=1)
    assert queued_urls(result.claims) == [f"{A}x"]


async def test_a_batch_brings_the_nearest_urls_first_and_no_more_than_asked(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    await harness.finish(claim, fetched(claim.urls[0], [f"{A}{n}" for n in range(5)]))
    (claim,) = await harness.claim(per_group=1)
    await harness.finish(claim, fetched(claim.urls[0], [f"{A}deep"]))
    (claim,) = await harness.claim(per_group=4)
    assert [queued.depth for queued in claim.urls] == [1] * 4
    await harness.commit(released=[claim.group_id])
    (claim,) = await harness.claim()
    assert [queued.depth for queued in claim.urls] == [1, 1, 1, 1, 2]


async def test_groups_that_have_waited_longest_come_first(harness: Harness) -> None:
    await harness.seed(A, B, "http://c.test/")
    claims = {claim.group: claim for claim in await harness.claim()}
    paces = {"a.test": Pace(NOW - 1), "b.test": Pace(NOW - 3), "c.test": Pace(NOW - 2)}
    await harness.commit(released=[claim.group_id for claim in claims.values()], paces=paces)
    assert [claim.group for claim in await harness.claim(groups=2)] == ["b.test", "c.test"]


async def test_schemes_and_ports_of_a_host_are_one_group(harness: Harness) -> None:
    await harness.seed(A, "https://a.test/", "http://a.test:8080/")
    (claim,) = await harness.claim()
    assert {site.name for site in claim.sites.values()} == {"http://a.test", "https://a.test", "http://a.test:8080"}
    assert len(claim.urls) == 3


async def test_of_a_group_with_many_sites_only_the_next_in_turn_are_read(harness: Harness) -> None:
    sites = [f"http://a.test:{8000 + n}" for n in range(20)]
    await harness.seed(*(f"{site}/{n}" for site in sites for n in range(3)))
    (claim,) = await harness.claim(per_group=1)
    await harness.commit(released=[claim.group_id], paces={claim.group: Pace(harness.now, 2.0)})
    begun_with, claimed = set(), set()
    for _ in sites:  # as under a long pause: a claim is good for one request
        (claim,) = await harness.claim(per_group=4)
        assert len(claim.sites) == 4
        assert len({queued.site_id for queued in claim.urls}) == 4  # one of each
        begun_with.add(claim.urls[0].url.rpartition("/")[0])
        claimed |= {site.name for site in claim.sites.values()}
        harness.now += 2.0
        await harness.commit(released=[claim.group_id], paces={claim.group: Pace(harness.now, 2.0)})
    assert begun_with == claimed == set(sites)


async def test_a_site_without_work_does_not_delay_its_group(harness: Harness) -> None:
    await harness.seed(*(f"http://a.test:{8000 + n}/" for n in range(20)))
    (claim,) = await harness.claim()
    left = {"http://a.test:8004/", "http://a.test:8005/"}
    await harness.finish(claim, *(fetched(queued) for queued in claim.urls if queued.url not in left))
    begun_with = []
    for _ in range(4):
        harness.now += 1.0
        (claim,) = await harness.claim(per_group=1)
        begun_with += [queued.url for queued in claim.urls]
        await harness.commit(released=[claim.group_id])
    assert sorted(begun_with) == sorted([*left, *left])


async def test_a_retry_waits_for_its_time(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    await harness.finish(claim, retried(claim.urls[0], NOW + 30))
    assert await harness.urls("state, attempts, next_at") == {A: ("queued", 1, NOW + 30)}
    assert await harness.claim() == []
    harness.now = NOW + 30
    (claim,) = await harness.claim()
    assert (claim.urls[0].attempts, claim.urls[0].due_at) == (1, NOW + 30)
    await harness.finish(claim, fetched(claim.urls[0]))
    assert await harness.urls() == {A: "fetched"}
    assert await harness.store.queued_count() == 0


async def test_a_group_that_waits_longer_than_its_pause_waits_for_the_next_attempt(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    pace = Pace(NOW + 5, 5.0, 0.0, StoredWaitReason(WaitCode.DELAY, "delay"))
    await harness.finish(claim, retried(claim.urls[0], NOW + 30), pace=pace)
    ready = await harness.store.next_ready(NOW)
    assert ready is not None
    assert (ready.until, ready.reason) == (NOW + 30, WaitCode.RETRY.sentence)
    assert await harness.store.waiting(NOW, 9) == [ready]


async def test_a_deferred_site_waits_while_others_of_its_group_go_on(harness: Harness) -> None:
    await harness.seed(A, "https://a.test/")
    (claim,) = await harness.claim()
    site = next(site for site in claim.sites.values() if site.name == "http://a.test")
    await harness.news(site.id, site.name, deferred(NOW, NOW + 60))
    await harness.commit(released=[claim.group_id])
    (claim,) = await harness.claim()
    assert queued_urls([claim]) == ["https://a.test/"]
    await harness.finish(claim, fetched(claim.urls[0]))
    assert await harness.claim() == []
    assert [(wait.until, wait.reason) for wait in await harness.store.waiting(NOW, 9)] == [
        (NOW + 60, "robots.txt: 503")
    ]
    harness.now = NOW + 60
    (claim,) = await harness.claim()
    copy = claim.sites[site.id].copy
    assert copy is not None
    assert (copy.failures, copy.retry_at, copy.failing_since) == (1, NOW + 60, NOW)


async def test_urls_in_flight_at_a_crash_stay_queued_and_keep_their_pause(harness: Harness) -> None:
    await harness.seed(A, B)
    claims = {claim.group: claim for claim in await harness.claim()}
    await harness.commit(paces={"a.test": Pace(NOW + 1, 25.0, 0.0, WaitReason(WaitCode.CRAWL_DELAY))})
    await harness.finish(claims["b.test"], failed(claims["b.test"].urls[0]))
    harness.now = NOW + 5
    await harness.reopen()
    assert await harness.urls() == {A: "queued", B: "failed"}
    pace = await harness.store.group_pace("a.test")
    assert (pace.next_at, pace.waits_for.code, str(pace.waits_for)) == (NOW + 30, WaitCode.CRASH, "pause after a crash")
    assert await harness.claim() == []
    harness.now = NOW + 30
    assert queued_urls(await harness.claim()) == [A]


async def test_the_longest_pause_of_its_hosts_holds_for_a_group_after_a_crash(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SiteRule("slow.site.example", delay_s=60.0)
    settings = PolitenessSettings(delay_s=2.0, group=GroupBy.DOMAIN, sites=(slow,))
    monkeypatch.setattr("tests.contract.conftest.POLITENESS", settings)
    await harness.reopen()
    await harness.seed("http://slow.site.example/", "http://quick.site.example/")
    (claim,) = await harness.claim()
    await harness.reopen()
    assert (await harness.store.group_pace(claim.group)).next_at == NOW + 60


async def test_a_group_that_was_released_before_the_crash_need_not_wait(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    await harness.finish(claim, fetched(claim.urls[0], [f"{A}x"]))
    await harness.reopen()
    assert queued_urls(await harness.claim()) == [f"{A}x"]


async def test_pages_per_site_are_counted_over_all_runs(harness: Harness) -> None:
    harness.pages_per_site = 2
    await harness.seed(A)
    (claim,) = await harness.claim()
    await harness.finish(claim, fetched(claim.urls[0], [f"{A}{n}" for n in range(5)]))
    (claim,) = await harness.claim()
    assert len(claim.urls) == 1
    await harness.finish(claim, fetched(claim.urls[0]))
    assert await harness.claim() == []
    assert await harness.store.next_ready() is None
    await harness.reopen()
    assert await harness.claim() == []
    harness.pages_per_site = 4
    await harness.store.prepare(4)
    (claim,) = await harness.claim()
    assert len(claim.urls) == 2
    assert await harness.store.fetched_count() == 2


async def test_a_site_may_have_a_page_limit_of_its_own(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while the crawl allows fewer pages of each site, or none; a changed limit counts from the next run on."""

    async def opened(*rules: SiteRule) -> None:
        monkeypatch.setattr("tests.contract.conftest.POLITENESS", PolitenessSettings(delay_s=2.0, sites=rules))
        await harness.reopen()

    async def claimed() -> dict[str, int]:
        claims = await harness.claim()
        await harness.commit(released=[claim.group_id for claim in claims])
        return {claim.group: len(claim.urls) for claim in claims if claim.urls}

    await opened(SiteRule("test", max_pages=3), SiteRule("b.test", max_pages=1), SiteRule("c.test", delay_s=3.0))
    harness.pages_per_site = 2
    await harness.seed(*(f"http://{host}/{n}" for host in ("a.test", "b.test", "c.test", "d.xtest") for n in range(5)))
    assert await claimed() == {"a.test": 3, "b.test": 1, "c.test": 2, "d.xtest": 2}
    harness.pages_per_site = 0
    assert await claimed() == {}
    harness.pages_per_site = 2
    await opened(SiteRule("b.test", max_pages=0))
    assert await claimed() == {"a.test": 2, "b.test": 5, "c.test": 2, "d.xtest": 2}


async def test_the_robots_copy_in_force_comes_with_the_claim(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    (site,) = claim.sites.values()
    assert (site.copy, site.robots_id) == (None, None)
    copy = robots(etag='"1"', last_modified="then", note="a note")
    number = await harness.news(site.id, site.name, copy, crawl_delay_s=7.0)
    await harness.commit(released=[claim.group_id])
    (claim,) = await harness.claim()
    (site,) = claim.sites.values()
    assert (site.copy, site.robots_id, site.crawl_delay_s) == (copy, number, 7.0)
    assert await harness.store.site("http://a.test") == site
    assert await harness.store.site("http://unknown.test") is None


async def test_the_settings_of_the_run_before_are_remembered(harness: Harness) -> None:
    assert await harness.store.last_settings() is None
    await harness.reopen(settings={"depth": [1, 2]})
    assert await harness.store.last_settings() == {}
    await harness.store.end_run(RunEnd(EndCode.DONE), NOW + 9)
    await harness.reopen()
    assert await harness.store.last_settings() == {"depth": [1, 2]}
    runs = await harness.store.query("SELECT finished_at, ended_by FROM run ORDER BY id")
    assert [tuple(run.values()) for run in runs] == [
        (None, None),
        (NOW + 9, "nothing is left in the frontier"),
        (None, None),
    ]


async def test_excluded_urls_are_listed_in_parts_and_put_back(harness: Harness) -> None:
    seeds = [(f"{A}{n}", reason("scope: narrow")) for n in range(5)]
    await harness.store.add_seeds(seeds)
    first = await harness.store.excluded(-1, 3)
    rest = await harness.store.excluded(first[-1][0], 3)
    assert sorted(row[1] for row in first + rest) == sorted(url for url, _ in seeds)
    assert {row[2:] for row in first + rest} == {(ReasonCode.SCOPE, 0, True)}
    await harness.store.requeue([first[0][0], rest[0][0]])
    await harness.store.prepare(None)
    assert sorted(queued_urls(await harness.claim())) == sorted([first[0][1], rest[0][1]])


async def test_excluded_urls_are_marked_if_the_crawl_requests_them_by_itself(harness: Harness) -> None:
    await harness.store.add_seeds([(f"{A}1", None)])
    await harness.store.prepare(None)
    (claim,) = await harness.claim()
    offers = (Offer(f"{A}s", 1, reason("scope: narrow"), kind=Kind.SITEMAP), Offer(f"{A}p", 1, reason("scope: narrow")))
    await harness.finish(claim, replace(fetched(claim.urls[0]), offers=offers))
    rows = await harness.store.excluded(-1, 9)
    assert sorted((url, itself) for _, url, _, _, itself in rows) == [(f"{A}p", False), (f"{A}s", True)]


async def test_a_url_visited_since_its_lookup_is_neither_excluded_nor_requeued(harness: Harness) -> None:
    await harness.store.add_seeds([(f"{A}1", None), (f"{A}2", None), (f"{A}3", reason("blocked by the operator"))])
    await harness.store.prepare(None)
    numbers = [row[0] for row in await harness.store.queued(-1, 9)]
    (claim,) = await harness.claim()
    await harness.finish(claim, fetched(claim.urls[0]), redirected(claim.urls[1], f"{A}1"))
    await harness.store.exclude([(number, reason("blocked by the operator")) for number in numbers])
    ((left_out, *_),) = await harness.store.excluded(-1, 9)
    for _ in range(2):
        await harness.store.requeue([*numbers, left_out])
    rows = await harness.store.query("SELECT state FROM urls ORDER BY state")
    assert [row["state"] for row in rows] == ["fetched", "queued", "redirected"]
    assert await harness.store.query("SELECT url_id FROM frontier") == [{"url_id": left_out}]


async def test_the_addresses_of_a_domain_follow_one_another(harness: Harness) -> None:
    """The mark goes to the next address, in another group too, and back to the first; a redirect takes it away."""
    first, other = "https://d.test/", "https://www.d.test/"
    await harness.store.add_seeds([(first, None), (B, None)], {first})
    await harness.store.prepare(None)
    assert set(await harness.store.scope_urls()) == {B, *addresses(first)}
    for here, there, hops in ((first, other, 2), (other, first, 0), (first, other, 2)):
        (claim,) = (claim for claim in await harness.claim() if here in queued_urls([claim]))
        (queued,) = claim.urls
        assert queued.by_domain
        offer = Offer(there, 0, hops=hops, seed=True, by_domain=True)
        gone = Outcome(queued, State.EXCLUDED, Reason(ReasonCode.OTHER_ADDRESS, "x"), offers=(offer,), target=there)
        await harness.finish(claim, gone)
    (claim,) = await harness.claim()
    assert [queued.hops for queued in claim.urls] == [2]
    assert (await harness.urls("state, target"))[first] == ("excluded", other)
    await harness.finish(claim, replace(fetched(claim.urls[0]), offers=(Offer(first, 0, seed=True),)))
    (claim,) = await harness.claim()
    assert [(queued.url, queued.by_domain) for queued in claim.urls] == [(first, False)]
