"""The last answer of each site for its tdmrep.json."""

from __future__ import annotations

from crawler.model import Purpose, SiteFile
from tests.contract.visits import NOW, Harness

A = "http://a.test"
PATH = "/.well-known/tdmrep.json"


async def test_the_last_answer_of_a_site_is_kept(harness: Harness) -> None:
    site = await harness.site_number(A)
    assert site is not None
    assert await harness.store.site_file(site, PATH) is None
    for file in (
        SiteFile(PATH, Purpose.TDMREP, NOW, "200", b"[]"),
        SiteFile(PATH, Purpose.TDMREP, NOW + 1, "404", b"", "404 Not Found"),
    ):
        await harness.commit(files={(site, PATH): file})
        assert await harness.store.site_file(site, PATH) == file
    rows = await harness.store.query("SELECT site, fetched_at, status, note, body FROM site_files")
    assert [tuple(row.values()) for row in rows] == [(A, NOW + 1, "404", "404 Not Found", b"")]
