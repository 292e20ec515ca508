"""The servers that report changes, and their mails, in each store."""

from __future__ import annotations

import pytest

from crawler.reasons import MailCode, MailVerdict
from crawler.rup.protocol.info import FoundInfo, RupInfo
from crawler.rup.protocol.subscription import MailRow, Subscription
from crawler.rup.protocol.units import Span
from crawler.store.sql import subscriptions
from tests.contract.conftest import Opener

SITE = "http://a.test"
KNOWN = Subscription(
    "me@b.test", "a secret", Span(6, "hour"), 10.5, exclude=("^/a", "b, c"), sequence_number=7, site=SITE,
    cgi=f"{SITE}/cgi", units=("hour", "day"), max_query_span=Span(1, "month"), good_until=20.5, heard_at=30.5, quiet=2,
    question="a gap", lost="all of it",
)  # fmt: skip


async def test_a_registration_is_stored_unchanged_and_its_key_is_not_shown(opener: Opener) -> None:
    store = await opener()
    other = Subscription("me@b.test", "", Span(1, "day"), 1.0, site="http://b.test", cgi="http://b.test/")
    await store.rup.put([KNOWN, other], [], 40.0)
    assert await store.rup.subscriptions() == [KNOWN, other]
    await store.rup.remove("http://b.test")
    assert await store.rup.subscriptions() == [KNOWN]
    rows = await store.query("SELECT * FROM rup_servers")
    assert [(row["state_code"], row["state_detail"]) for row in rows] == [("to_be_asked", "a gap")]
    assert "a secret" not in str(rows)
    await store.close()


async def test_an_offer_is_stored_unchanged(opener: Opener) -> None:
    store = await opener()
    assert await store.rup.offered(SITE) is None
    info = RupInfo(f"{SITE}/cgi", "none", ("day",), (".*",), ("a",), Span(3, "week"))
    offered = FoundInfo(f"{SITE}/rupinfo.txt", 5.0, info)
    await store.rup.put_offered(offered)
    assert await store.rup.offered(SITE) == offered
    await store.close()


async def test_a_repeated_mail_is_counted_once(opener: Opener) -> None:
    store = await opener()
    await store.rup.put([KNOWN], [], 1.0)
    taken = MailRow(b"1" * 32, SITE, 1, MailVerdict(MailCode.TAKEN), 3, 2)
    ignored = MailRow(b"2" * 32, SITE, 1, MailVerdict(MailCode.UNNUMBERED))
    rows = [taken, ignored, MailRow(b"3" * 32, None, None, MailVerdict(MailCode.UNREADABLE, "?"))]
    await store.rup.put([], rows, 2.0)
    await store.rup.put([], rows, 3.0)
    assert await store.rup.read_before([b"1" * 32, b"3" * 32, b"4" * 32]) == {b"1" * 32, b"3" * 32}
    (row,) = await store.query("SELECT reports, ignored, changes, refused FROM rup_servers")
    assert tuple(row.values()) == (1, 1, 3, 2)
    await store.close()


async def test_the_oldest_mails_are_forgotten(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "_MAILS_KEPT", 2)
    store = await opener()
    digests = [bytes([n]) * 32 for n in range(4)]
    for n, digest in enumerate(digests):
        await store.rup.put([], [MailRow(digest, None, None, MailVerdict(MailCode.UNREADABLE, "?"))], float(n))
    assert await store.rup.read_before(digests) == set(digests[2:])
    await store.close()
