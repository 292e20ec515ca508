"""A main site that is none: its mirrors' URLs are queued again, and every worker hears of it."""

from __future__ import annotations

from typing import Any

import pytest

from crawler.frontier.decide import Outcome, Queued
from crawler.frontier.offers import Offer
from crawler.model import State
from crawler.reasons import Reason, ReasonCode
from crawler.robots.mirrors import Contradiction
from crawler.store.rows import Refuted
from tests.contract.visits import Harness, failed, fetched, redirected, robots

SHOP, WWW = "http://shop.test", "http://www.shop.test"


def left_to(main_site: str, queued: Queued) -> Outcome:
    url = main_site + "/"
    reason = Reason(ReasonCode.MIRROR, f"{main_site} (Host, line 2)")
    return Outcome(queued, State.EXCLUDED, reason, offers=(Offer(url, 0, seed=True),), target=url)


async def mirrored(harness: Harness) -> Queued:
    """A crawl that has left the front page of the shop to the main site; the URL there."""
    await harness.seed(f"{SHOP}/")
    (claim,) = await harness.claim()
    await harness.news(claim.urls[0].site_id, SHOP, robots(), main_site=WWW)
    await harness.finish(claim, left_to(WWW, claim.urls[0]))
    (claim,) = await harness.claim()
    assert [queued.url for queued in claim.urls] == [f"{WWW}/"]
    return claim.urls[0]


async def known(harness: Harness) -> list[tuple[Any, ...]]:
    rows = await harness.store.query("SELECT site, main_site, evidence, leads_to, contradiction FROM mirrors")
    return [tuple(row.values()) for row in rows]


async def test_a_refuted_mirror_is_queued_again_and_told(harness: Harness) -> None:
    main = await mirrored(harness)
    assert await known(harness) == [(SHOP, WWW, "host", WWW, None)]
    refuted = Refuted(SHOP, WWW, Contradiction.REDIRECTS)
    result = await harness.commit(redirected(main, f"{SHOP}/"), refuted=[refuted])
    assert refuted in result.heard.refuted
    assert await known(harness) == [(SHOP, WWW, "refuted", None, "redirects")]
    assert await harness.urls() == {f"{SHOP}/": "queued", f"{WWW}/": "redirected"}
    assert (await harness.store.heard()).mirrors == []
    assert await harness.store.query("SELECT main_site FROM sites WHERE site = :site", {"site": SHOP}) == [
        {"main_site": None}
    ]
    await harness.reopen()
    assert (await harness.store.heard()).refuted == [refuted]


@pytest.mark.parametrize("why", [Contradiction.NO_PAGE, Contradiction.UNREACHABLE])
async def test_a_suspected_main_site_is_judged_after_the_outcomes(harness: Harness, why: Contradiction) -> None:
    main = await mirrored(harness)
    await harness.commit(failed(main), suspected_mains={WWW: why})
    assert await known(harness) == [(SHOP, WWW, "refuted", None, why.value)]
    assert (await harness.urls())[f"{SHOP}/"] == "queued"


async def test_a_main_site_that_may_yet_bring_a_page_is_refuted_only_if_it_cannot_be_reached(harness: Harness) -> None:
    await mirrored(harness)
    await harness.commit(suspected_mains={WWW: Contradiction.NO_PAGE})
    assert [row[2] for row in await known(harness)] == ["host"]
    await harness.commit(suspected_mains={WWW: Contradiction.UNREACHABLE})
    assert [row[2] for row in await known(harness)] == ["refuted"]


async def test_a_main_site_with_a_page_is_not_refuted_by_suspicion(harness: Harness) -> None:
    main = await mirrored(harness)
    await harness.commit(fetched(main), suspected_mains={WWW: Contradiction.UNREACHABLE})
    assert [row[2] for row in await known(harness)] == ["host"]


async def test_a_url_left_to_a_main_site_that_was_refuted_meanwhile_is_queued_again(harness: Harness) -> None:
    """A worker had decided before it heard of the contradiction."""
    await mirrored(harness)
    await harness.seed(f"{SHOP}/late")
    (claim,) = [claim for claim in await harness.claim() if claim.group == "shop.test"]
    await harness.commit(refuted=[Refuted(SHOP, WWW, Contradiction.REDIRECTS)])
    late = next(queued for queued in claim.urls if queued.url == f"{SHOP}/late")
    await harness.finish(claim, left_to(WWW, late))
    assert (await harness.urls())[f"{SHOP}/late"] == "queued"


async def test_a_robots_txt_that_names_no_main_site_ends_the_contradiction(harness: Harness) -> None:
    await mirrored(harness)
    await harness.commit(refuted=[Refuted(SHOP, WWW, Contradiction.REDIRECTS)])
    site = (await harness.store.site(SHOP)).id
    await harness.news(site, SHOP, robots())
    assert await known(harness) == []
