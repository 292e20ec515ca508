"""What a worker that has lost its lease may still write about sites: their waits only grow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawler.frontier.refusals import NO_REFUSALS, RefusalNews, Refusals
from crawler.model import Purpose, RobotsAction, RobotsCopy, SiteFile
from crawler.store.rows import Claim, RobotsNews, SiteNews
from tests.contract.visits import NOW, Harness, deferred, robots

A = "http://a.test"
PATH = "/.well-known/tdmrep.json"
URLS = [f"{A}/{n}" for n in range(4)]
UNTIL = NOW + 3600
TWO = Refusals(walls=2)


async def lost(harness: Harness, before: Refusals = NO_REFUSALS) -> tuple[Claim, int]:
    """A claim of the site that another worker has since been given, and the number of the site."""
    await harness.seed(*URLS)
    (claim,) = await harness.claim()
    (site_id,) = claim.sites
    await harness.commit(refusals=[RefusalNews(site_id, before)] if before != NO_REFUSALS else [])
    await harness.reopen()
    return claim, site_id


async def late(harness: Harness, **news: object) -> None:
    """Write the news of a lost worker. From then on the harness is the next worker."""
    await harness.store.commit_late(replace(SiteNews(NOW), **news))  # type: ignore[arg-type]
    await harness.reopen()


async def test_a_rest_counts_although_the_lease_was_lost(harness: Harness) -> None:
    claim, site_id = await lost(harness, TWO)
    resting = Refusals(walls=3, rest_count=1, probe=claim.urls[2].id)
    await late(harness, refusals=[RefusalNews(site_id, resting, UNTIL, before=TWO)])
    assert await harness.claim() == []
    harness.now = UNTIL
    (again,) = await harness.claim()
    assert [queued.url for queued in again.urls] == [URLS[2]]
    assert again.sites[site_id].refusals == resting


async def test_late_walls_are_added_to_those_of_another_worker(harness: Harness) -> None:
    """Also if the late worker has seen its site open before."""
    _, site_id = await lost(harness, Refusals(walls=1))
    one_more = RefusalNews(site_id, TWO, before=Refusals(walls=1))
    await harness.commit(refusals=[one_more])
    await late(harness, refusals=[one_more])
    site = await harness.store.site(A)
    assert site is not None
    assert site.refusals == Refusals(walls=3)
    first = RefusalNews(site_id, Refusals(walls=1))
    await late(harness, refusals=[one_more, RefusalNews(site_id, NO_REFUSALS), first])
    site = await harness.store.site(A)
    assert site is not None
    assert site.refusals == Refusals(walls=4)


async def test_late_refusals_never_end_a_rest_and_never_count_down(harness: Harness) -> None:
    claim, site_id = await lost(harness)
    resting = Refusals(walls=4, rest_count=2, probe=claim.urls[1].id)
    await harness.commit(refusals=[RefusalNews(site_id, resting, UNTIL)])
    fewer = Refusals(walls=3, rest_count=1, probe=claim.urls[2].id)
    opened = RefusalNews(site_id, NO_REFUSALS)
    for news in (RefusalNews(site_id, TWO), RefusalNews(site_id, fewer, NOW + 60), opened):
        await late(harness, refusals=[news])
        site = await harness.store.site(A)
        assert site is not None
        assert replace(site.refusals, walls=4) == resting
        assert site.refusals.walls >= 4
        assert await harness.claim() == []


async def test_a_closure_counts_although_the_lease_was_lost(harness: Harness) -> None:
    probed = Refusals(walls=5, rest_count=3, probe=1)
    _, site_id = await lost(harness, probed)
    closed = Refusals(walls=6, rest_count=3, closed=True)
    await late(harness, refusals=[RefusalNews(site_id, closed, before=probed)])
    site = await harness.store.site(A)
    assert site is not None
    assert site.refusals == closed


async def test_what_a_robots_txt_forbids_counts_although_the_lease_was_lost(harness: Harness) -> None:
    _, site_id = await lost(harness)
    await late(harness, robots=[RobotsNews(site_id, A, deferred(NOW, UNTIL), None, None)])
    assert await harness.claim() == []
    harness.now = UNTIL
    (claim,) = await harness.claim()
    await harness.commit(released=[claim.group_id])
    await late(harness, robots=[RobotsNews(site_id, A, robots(at=UNTIL), 9.0, None)])
    site = await harness.store.site(A)
    assert site is not None
    assert (site.copy and site.copy.action, site.crawl_delay_s) == (RobotsAction.PARSE, 9.0)


@pytest.mark.parametrize("is_newer", [False, True])
async def test_the_newer_of_two_robots_copies_is_in_force(harness: Harness, *, is_newer: bool) -> None:
    _, site_id = await lost(harness)
    await harness.news(site_id, A, deferred(NOW, UNTIL))
    copy = RobotsCopy(RobotsAction.FREE, "404", NOW + (1 if is_newer else -1), UNTIL)
    await late(harness, robots=[RobotsNews(site_id, A, copy, None, None)])
    site = await harness.store.site(A)
    assert site is not None
    assert (site.copy and site.copy.status) == ("404" if is_newer else "503")
    harness.now += 60  # the pause after the loss of the lease
    assert (await harness.claim() != []) == is_newer


async def test_the_newer_of_two_site_files_stays(harness: Harness) -> None:
    _, site_id = await lost(harness)
    newer = SiteFile(PATH, Purpose.TDMREP, NOW, "200", b"[]", "")
    await late(harness, files={(site_id, PATH): newer})
    await late(harness, files={(site_id, PATH): SiteFile(PATH, Purpose.TDMREP, NOW - 1, "404", b"", "")})
    assert await harness.store.site_file(site_id, PATH) == newer
