"""The last answer of each site for its tdmrep.json."""

from __future__ import annotations

from crawler.robots.tdmrep import TdmrepFile
from tests.contract.visits import NOW, Harness

A = "http://a.test"


async def test_the_last_answer_of_a_site_is_kept(harness: Harness) -> None:
    site = await harness.site_number(A)
    assert site is not None
    assert await harness.store.tdmrep_file(site) is None
    for file in (TdmrepFile(NOW, "200", b"[]"), TdmrepFile(NOW + 1, "404", b"", "404 Not Found")):
        await harness.commit(tdmrep={site: file})
        assert await harness.store.tdmrep_file(site) == file
    rows = await harness.store.query("SELECT site, fetched_at, status, note, body FROM tdmrep_files")
    assert [tuple(row.values()) for row in rows] == [(A, NOW + 1, "404", "404 Not Found", b"")]
