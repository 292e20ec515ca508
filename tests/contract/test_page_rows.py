"""What a page says of itself comes back from the view ``pages``."""

from __future__ import annotations

import json

from tests.contract.visits import Harness, fetched

SEED = "http://a.test/"
TEXTS = {
    "charset": "utf-8",
    "title": "A page",
    "description": "About it",
    "keywords": "page, test",
    "canonical_url": "http://a.test/one",
    "meta_url": "http://a.test/two",
    "document_state": "dynamic",
    "note": "cut short",
    "language": "de",
}


async def test_each_fact_of_a_page_is_stored(harness: Harness) -> None:
    await harness.seed(SEED)
    (claim,) = await harness.claim()
    facts = {**TEXTS, "index": True, "follow": False, "other_schemes": {"mailto": 2}, "directives": ("meta: nofollow",)}
    await harness.finish(claim, fetched(claim.urls[0], **facts))
    columns = (*TEXTS, "noindex", "nofollow", "other_schemes", "directives")
    (row,) = await harness.store.query(f"SELECT {', '.join(columns)} FROM pages")
    assert {name: row[name] for name in TEXTS} == TEXTS
    assert (row["noindex"], row["nofollow"]) == (0, 1)
    assert json.loads(row["other_schemes"]) == {"mailto": 2}
    assert json.loads(row["directives"]) == ["meta: nofollow"]


async def test_what_a_page_does_not_say_is_null(harness: Harness) -> None:
    await harness.seed(SEED)
    (claim,) = await harness.claim()
    await harness.finish(claim, fetched(claim.urls[0]))
    (row,) = await harness.store.query("SELECT title, canonical_url, other_schemes, directives FROM pages")
    assert not any(row.values())
