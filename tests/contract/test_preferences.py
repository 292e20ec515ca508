"""The view ``preferences``: what each page and its robots.txt state about use."""

from __future__ import annotations

from crawler.frontier.decide import Outcome
from crawler.model import Preference
from tests.contract.visits import Harness, fetched
from tests.records import replace

A = "http://a.test/"
ROBOTS = (Preference("content-signal", "train-ai", "n", "robots.txt", 2, "Content-Signal: ai-train=no"),)
OWN = (
    Preference("content-usage", "search", "y", "header", None, "Content-Usage: search=y"),
    Preference("noai", "train-ai", "n", "META", None, "META robots: noai \u201c\u201d"),
)
_ROWS = "SELECT url, scheme, category, value, source, line, text FROM preferences"


def stating(outcome: Outcome, own: tuple[Preference, ...], robots: tuple[Preference, ...]) -> Outcome:
    return replace(outcome, own_preferences=own, robots_preferences=robots)


async def rows(harness: Harness) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in await harness.store.query(_ROWS)), key=str)


async def test_each_page_has_its_preferences_and_those_of_robots_txt(harness: Harness) -> None:
    await harness.seed(f"{A}1", f"{A}2", f"{A}3")
    (claim,) = await harness.claim()
    one, two, three = sorted(claim.urls, key=lambda queued: queued.url)
    await harness.commit(
        stating(fetched(one), OWN, ROBOTS), stating(fetched(two), (), ROBOTS), stating(fetched(three), (), ())
    )
    assert await rows(harness) == [
        (f"{A}1", *ROBOTS[0]),
        (f"{A}1", *OWN[0]),
        (f"{A}1", *OWN[1]),
        (f"{A}2", *ROBOTS[0]),
    ]


async def test_pages_share_a_set(harness: Harness) -> None:
    await harness.seed(*(f"{A}{n}" for n in range(5)))
    (claim,) = await harness.claim()
    await harness.commit(*(stating(fetched(queued), (), ROBOTS) for queued in claim.urls))
    assert await harness.store.query("SELECT count(*) AS n FROM preference_set") == [{"n": 1}]
    assert len(await rows(harness)) == 5


async def test_the_pages_view_has_both_as_json(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    await harness.commit(stating(fetched(claim.urls[0]), OWN[:1], ()))
    (page,) = await harness.store.query("SELECT preferences, robots_preferences FROM pages")
    assert page["robots_preferences"] is None
    assert page["preferences"] == (
        '[{"scheme": "content-usage", "category": "search", "value": "y", "source": "header", "line": null, '
        '"text": "Content-Usage: search=y"}]'
    )
