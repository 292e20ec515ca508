"""How the visit of a /rupinfo.txt ends."""

from __future__ import annotations

import pytest

from crawler.frontier.decide import Queued
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.rup_offer import after_rupinfo
from crawler.frontier.scope import Scope, ScopeSettings
from crawler.model import Failed, Fetched, FetchResult, Kind, Redirected, State

TXT, TEX = "http://a.test/rupinfo.txt", "http://a.test/rupinfo.tex"
SCOPE = Scope(ScopeSettings(), ["http://a.test/"])


def ended(url: str, result: FetchResult) -> tuple[State, str, list[tuple[str, Kind]], str | None]:
    outcome = after_rupinfo(Queued(1, url, 1, 0, kind=Kind.RUP), result, SCOPE, RequestSettings())
    offers = [(offer.url, offer.kind) for offer in outcome.offers]
    return outcome.state, outcome.reason.sentence, offers, None if outcome.rupinfo is None else outcome.rupinfo.info.cgi


def test_one_that_is_there_is_kept() -> None:
    answer = Fetched(TXT, 1, 2, plain=b"RUP-CGI: /cgi\n")
    assert ended(TXT, answer) == (State.FETCHED, "200, rupinfo: http://a.test/cgi", [], "http://a.test/cgi")


def test_where_there_is_none_the_other_name_is_tried_once() -> None:
    none = (State.EXCLUDED, "rup: there is none (404)")
    assert ended(TXT, Failed(TXT, 1, 2, status=404)) == (*none, [(TEX, Kind.RUP)], None)
    assert ended(TEX, Failed(TEX, 1, 2, status=404)) == (*none, [], None)


@pytest.mark.parametrize(
    ("result", "state", "reason"),
    [
        (Fetched(TXT, 1, 2, plain=b"<h1>Welcome"), State.EXCLUDED, "rup: no rupinfo, no RUP-CGI line"),
        (Redirected(TXT, 1, 2, location="http://b.test/"), State.EXCLUDED, "rup: 302 to another URL"),
        (Failed(TXT, 1, 2, status=403, detail="403 Forbidden"), State.FAILED, "403 Forbidden"),
        (Failed(TXT, 1, 2, status=503, detail="503"), State.QUEUED, "503, attempt 1 of 4"),
    ],
)
def test_anything_else_offers_nothing(result: FetchResult, state: State, reason: str) -> None:
    found, why, offers, cgi = ended(TXT, result)
    assert (found, offers, cgi) == (state, [], None)
    assert why.startswith(reason)
