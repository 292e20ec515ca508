"""``crawler why`` reads only the rows that it shows, in a crawl of any size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from crawler.inspect.why import explain
from tests.contract.visits import NOW, Harness, deferred, fetched, robots

A = "http://a.test/"


async def test_why_reads_no_more_links_than_it_shows(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    await harness.seed(*(f"{A}{n}" for n in range(30)))
    (claim,) = await harness.claim()
    await harness.finish(claim, *(fetched(queued, [A] if queued.depth == 0 else []) for queued in claim.urls))
    query, read = harness.store.query, []

    async def noting(sql: str, parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        rows = await query(sql, parameters)
        read.append(len(rows))
        return rows

    monkeypatch.setattr(harness.store, "query", noting)
    linked = (await explain(harness.store, A, now=NOW))["linked_from"]
    assert (linked["count"], len({link["url"] for link in linked["first"]})) == (30, 10)
    assert max(read) == 10
    assert (await explain(harness.store, f"{A}1", now=NOW))["linked_from"] == {"count": 0, "first": []}


async def test_why_judges_by_the_robots_txt_in_force_alone(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    await harness.seed(A)
    ((site,),) = [claim.sites.values() for claim in await harness.claim()]
    for at, text in enumerate((b"", b"User-agent: *\nDisallow: /\n", b"User-agent: *\nDisallow: /\n")):
        await harness.news(site.id, site.name, robots(text, at=NOW + at))
    in_force = robots(b"User-agent: *\nDisallow: /\n", at=NOW + 2)
    query, statements = harness.store.query, []

    async def noting(sql: str, parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        statements.append(sql)
        return await query(sql, parameters)

    monkeypatch.setattr(harness.store, "query", noting)
    known = (await explain(harness.store, A, now=NOW))["robots"]
    assert (known["version_sha256"], known["fetched_at"]) == (in_force.sha256.hex(), NOW + 2)
    assert (known["allowed"], known["line"]) == (False, 2)
    assert not [sql for sql in statements if "robots_versions" in sql]  # a view that sorts every answer of all sites
    await harness.news(site.id, site.name, deferred(NOW + 3, NOW + 60))
    known = (await explain(harness.store, A, now=NOW))["robots"]
    assert (known["action"], known["version_sha256"]) == ("defer", None)
