"""The pure rule on sites that refuse: which answer counts, when a site rests, and when it is closed or open."""

from __future__ import annotations

import pytest

from crawler.frontier.decide import Outcome, Queued, after_fetch
from crawler.frontier.refusals import NO_REFUSALS, REFUSED, WALLS, RefusalNews, Refusals, after_answer, without_request
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.scope import Scope, ScopeMode, ScopeSettings
from crawler.model import Failed, Fetched, FetchResult, PageFacts, State
from crawler.reasons import ErrorKind, ReasonCode

RESTS = (10.0, 20.0)
SCOPE = Scope(ScopeSettings(ScopeMode.ANY), ["http://a.test/"])


def failed(kind: ErrorKind, status: int | None) -> Failed:
    return Failed("http://a.test/", 99.0, 100.0, kind=kind, status=status, detail="x")


WALL = failed(ErrorKind.WALL, 403)
FORBIDDEN = failed(ErrorKind.HTTP, 403)
PAGE = Fetched("http://a.test/", 99.0, 100.0, status=200, plain=b"<p>x")


def visits(
    answers: list[FetchResult], before: Refusals = NO_REFUSALS, *, has_pages: bool = False, first: str = "/"
) -> tuple[Outcome, RefusalNews | None, Refusals]:
    """The last outcome, its news and the refusals after answers to so many URLs of a site, the front page first."""
    refusals, news, outcome = before, None, None
    for n, result in enumerate(answers):
        queued = Queued(n + 1, f"http://a.test{first if n == 0 else f'/{n}'}", 5, 0)
        facts = PageFacts() if isinstance(result, Fetched) else None
        outcome = after_fetch(queued, result, facts, SCOPE, RequestSettings())
        outcome, news = after_answer(refusals, outcome, result, has_pages=has_pages, rests_s=RESTS)
        refusals = refusals if news is None else news.refusals
    assert outcome is not None
    return outcome, news, refusals


def test_the_third_wall_in_a_row_makes_a_site_rest_and_its_url_is_asked_for_again() -> None:
    outcome, news, _ = visits([WALL] * WALLS)
    assert (outcome.state, outcome.retry_at) == (State.QUEUED, 110.0)
    assert news is not None
    assert (news.refusals.rest_count, news.refusals.probe, news.rests_until) == (1, WALLS, 110.0)


@pytest.mark.parametrize("between", [PAGE, FORBIDDEN.__class__("http://a.test/", 1, 2, status=404)])
def test_another_answer_between_walls_begins_the_count_anew(between: FetchResult) -> None:
    assert visits([WALL, WALL, between, WALL])[2] == Refusals(walls=1)


def test_trouble_between_walls_says_nothing() -> None:
    for trouble in (failed(ErrorKind.TIMEOUT, None), failed(ErrorKind.HTTP, 503), failed(ErrorKind.HTTP, 429)):
        assert visits([WALL, trouble, WALL])[2].walls == 2
        assert visits([trouble], Refusals(walls=3, rest_count=1, probe=1))[1] is None


def test_after_the_last_rest_the_site_is_closed() -> None:
    resting = Refusals(walls=3, rest_count=1, probe=1)
    outcome, news, again = visits([WALL], resting)
    assert (outcome.state, again.rest_count, news and news.rests_until) == (State.QUEUED, 2, 120.0)
    outcome, news, last = visits([WALL], again)
    assert (outcome.state, outcome.reason.code) == (State.FAILED, ReasonCode.WALL)
    assert (last.closed, last.probe, last.is_probed, news and news.rests_until) == (True, None, False, 0.0)
    ended = without_request(Queued(9, "http://a.test/9", 5, 0), last)
    assert ended is not None
    assert (ended.state, ended.reason.code) == (State.EXCLUDED, ReasonCode.REFUSED_AT_THE_EDGE)
    assert without_request(Queued(9, "http://a.test/9", 5, 0), again) is None


def test_an_open_site_gets_its_walled_urls_back() -> None:
    _, news, after = visits([PAGE], Refusals(walls=3, rest_count=1, probe=1))
    assert after == NO_REFUSALS
    assert news is not None
    assert news.queues_again == {ReasonCode.WALL}
    _, news, _ = visits([PAGE], Refusals(refused=REFUSED, front_refused=True, rest_count=1, probe=1))
    assert news is not None
    assert news.queues_again == {ReasonCode.WALL, ReasonCode.CLIENT_ERROR, ReasonCode.PAYMENT_REQUIRED}


@pytest.mark.parametrize("status", [401, 402, 403, 451])
def test_ten_refused_urls_with_the_front_page_make_a_site_rest(status: int) -> None:
    refusal = failed(ErrorKind.HTTP, status)
    assert visits([refusal] * (REFUSED - 1))[2].rest_count == 0
    assert visits([refusal] * REFUSED)[2].rest_count == 1
    assert visits([refusal] * (REFUSED + 5), first="/page")[2].rest_count == 0
    assert visits([refusal] * (REFUSED + 5), has_pages=True)[2] == NO_REFUSALS
    assert visits([refusal] * 5 + [PAGE] + [refusal] * 9)[2].rest_count == 0
    assert visits([failed(ErrorKind.HTTP, 404)] * 20)[2] == NO_REFUSALS
