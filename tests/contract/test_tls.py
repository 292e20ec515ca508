"""The TLS columns of the view ``requests``: facts that many requests share are stored once."""

from __future__ import annotations

from crawler.model import TlsFacts
from tests.contract.visits import Harness, fetched, request

NEW = TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384", 4_102_444_800.0)
UNVERIFIED = TlsFacts("TLSv1.2", "ECDHE-RSA-AES128-GCM-SHA256", None)


async def test_each_request_has_the_facts_of_its_connection(harness: Harness) -> None:
    await harness.seed("https://a.test/")
    for turn, connections in enumerate(([NEW, NEW, None], [UNVERIFIED, NEW])):
        for claim in await harness.claim():
            (queued,) = claim.urls
            asked = [request(queued.site_id, f"/{turn}{number}", tls=tls) for number, tls in enumerate(connections)]
            await harness.commit(
                fetched(queued, [f"https://a.test/{len(connections)}"]), requests=asked, released=[claim.group_id]
            )
    rows = await harness.store.query("SELECT tls_version, tls_cipher, certificate_until FROM requests ORDER BY url")
    assert [tuple(row.values()) for row in rows] == [NEW, NEW, (None, None, None), UNVERIFIED, NEW]
    assert await harness.store.query("SELECT count(*) AS n FROM tls") == [{"n": 2}]
