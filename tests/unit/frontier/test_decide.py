"""The two decisions on a URL: each branch, and what it leaves behind."""

from __future__ import annotations

import pytest

from crawler.frontier.decide import Allowed, Outcome, Queued, after_fetch, before_fetch
from crawler.frontier.offers import Offer
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.scope import Scope, ScopeMode, ScopeSettings, may_adopt
from crawler.model import (
    Failed,
    Fetched,
    Headers,
    Kind,
    Link,
    NotModified,
    PageFacts,
    Reading,
    Redirected,
    RobotsAction,
    RobotsCopy,
    State,
)
from crawler.preferences.purposes import UsePurpose
from crawler.reasons import ErrorKind, Reason, ReasonCode
from crawler.robots.readings import SiteRules, read
from crawler.robots.text import parse
from crawler.url import split
from tests.reasons import said
from tests.records import replace

URL = "http://a.example.org/page"
NOW = 1_800_000_000.0
QUEUED = Queued(7, URL, 1, 2)
ANY = Scope(ScopeSettings(ScopeMode.ANY), [URL])
HOST = Scope(ScopeSettings(ScopeMode.HOST), [URL])
RETRY = RequestSettings()


def rules(text: str, url: str = URL) -> SiteRules:
    return read(parse(text.encode()), token="TestBot", reading=Reading.STRICT, site=split(url).site)


def copy(action: RobotsAction, status: str = "200", note: str = "") -> RobotsCopy:
    return RobotsCopy(action, status, NOW, NOW + 9, note=note)


def before(action: RobotsAction, text: str | None = None, *, scope: Scope = ANY, **more: str) -> Allowed | Outcome:
    read_rules = None if text is None else rules(text)
    return before_fetch(QUEUED, copy(action, **more), read_rules, "/page", scope)


def ended(decision: Allowed | Outcome) -> tuple[State, str]:
    assert isinstance(decision, Outcome)
    assert decision.queued is QUEUED
    return decision.state, decision.reason.sentence


def test_before_a_fetch_that_nothing_stands_against() -> None:
    assert before(RobotsAction.FREE) == Allowed(None)
    allowed = before(RobotsAction.PARSE, "User-agent: *\nDisallow: /other\nAllow: /page")
    assert isinstance(allowed, Allowed)
    assert allowed.verdict is not None
    assert (allowed.verdict.allowed, allowed.verdict.line) == (True, 3)


def test_before_a_fetch_that_robots_txt_forbids() -> None:
    assert ended(before(RobotsAction.PARSE, "User-agent: *\nDisallow: /page")) == (
        State.EXCLUDED,
        "robots: line 2, Disallow: /page (draft1996)",
    )


@pytest.mark.parametrize(
    ("kind", "purposes", "code"),
    [
        (Kind.PAGE, (UsePurpose.TRAIN_AI,), ReasonCode.PREFERENCE),
        (Kind.PAGE, (UsePurpose.SEARCH, UsePurpose.TRAIN_AI), ReasonCode.PREFERENCE),
        (Kind.PAGE, (UsePurpose.SEARCH,), None),
        (Kind.PAGE, (), None),
        (Kind.SITEMAP, (UsePurpose.TRAIN_AI,), None),
    ],
)
def test_before_a_fetch_that_robots_txt_refuses_for_a_purpose(
    kind: Kind, purposes: tuple[UsePurpose, ...], code: ReasonCode | None
) -> None:
    text = "User-agent: *\nContent-Usage: /page train-ai=n\n"
    queued = replace(QUEUED, kind=kind)
    decision = before_fetch(queued, copy(RobotsAction.PARSE), rules(text), "/page", ANY, None, purposes)
    if code is None:
        assert isinstance(decision, Allowed)
        assert [one.line for one in decision.preferences] == [2]
    else:
        assert isinstance(decision, Outcome)
        assert (decision.state, decision.reason.code) == (State.EXCLUDED, code)
        assert decision.reason.sentence == "preference: line 2 of robots.txt, Content-Usage: /page train-ai=n"


@pytest.mark.parametrize(
    ("action", "state", "reason"),
    [
        (RobotsAction.RESTRICTED, State.EXCLUDED, "robots: 403 for /robots.txt forbids the whole site"),
        (RobotsAction.GIVEN_UP, State.FAILED, "robots: given up, no usable answer for /robots.txt (403)"),
        (RobotsAction.UNREACHABLE, State.EXCLUDED, "address: private"),
        (RobotsAction.UNTRUSTED, State.FAILED, "private"),
    ],
)
def test_before_a_fetch_of_a_site_closed_as_a_whole(action: RobotsAction, state: State, reason: str) -> None:
    assert ended(before(action, status="403", note="private")) == (state, reason)


def test_before_a_fetch_from_a_host_that_does_not_exist() -> None:
    assert ended(before(RobotsAction.GIVEN_UP, status="dns_no_name")) == (State.FAILED, "no such host: a.example.org")


def test_before_a_fetch_the_scope_is_asked_again() -> None:
    narrow = Scope(ScopeSettings(ScopeMode.ANY, exclude=("page",)), [], max_depth=1)
    assert ended(before(RobotsAction.FREE, scope=narrow)) == (State.EXCLUDED, "pattern: matches scope.exclude ('page')")
    shallow = Scope(ScopeSettings(ScopeMode.ANY), [], max_depth=1)
    assert ended(before(RobotsAction.FREE, scope=shallow))[1].startswith("depth: 2")


def test_a_deferred_site_is_never_decided_on() -> None:
    with pytest.raises(AssertionError):
        before(RobotsAction.DEFER)


MIRROR = "User-agent: *\nHost: www.example.org"


def test_a_mirrors_url_is_offered_on_the_main_host_in_scope() -> None:
    decision = before(RobotsAction.PARSE, MIRROR)
    assert ended(decision) == (State.EXCLUDED, "mirror of http://www.example.org (Host, line 2)")
    assert isinstance(decision, Outcome)
    assert decision.offers == (Offer("http://www.example.org/page", 2),)
    assert decision.target == "http://www.example.org/page"


def test_a_mirrors_main_host_out_of_scope_gets_nothing() -> None:
    decision = before(RobotsAction.PARSE, MIRROR, scope=HOST)
    state, reason = ended(decision)
    assert (state, reason) == (State.EXCLUDED, "mirror of http://www.example.org (Host, line 2), which is out of scope")
    assert isinstance(decision, Outcome)
    assert (decision.offers, decision.target) == ((), None)
    adopted = Scope(ScopeSettings(ScopeMode.HOST), [URL])
    adopted.adopt("http://www.example.org")
    taken = before(RobotsAction.PARSE, MIRROR, scope=adopted)
    assert isinstance(taken, Outcome)
    assert taken.offers


@pytest.mark.parametrize(
    ("site", "main", "may"),
    [
        ("http://a.example.org", "http://www.example.org:81", True),
        ("http://example.org", "http://example.com", False),
        ("http://a.co.uk", "http://b.co.uk", False),
    ],
)
def test_only_a_main_host_of_the_same_domain_is_adopted(site: str, main: str, may: bool) -> None:
    assert may_adopt(site, main) == may


def page(headers: Headers = (), body: bytes = b"<p>hello") -> Fetched:
    return Fetched(URL, NOW, NOW + 1, headers, status=200, content_type="text/html", plain=body)


def test_a_page() -> None:
    links = (
        Link("http://a.example.org/in", "in", "", True),
        Link("http://a.example.org/no", "no", "nofollow", False),
        Link("http://b.example.org/out", "out", "", True),
    )
    outcome = after_fetch(
        QUEUED,
        page((("ETag", '"e"'), ("Last-Modified", "m"))),
        PageFacts(links=links, body_sha256=b"digest", body_bytes=8),
        HOST,
        RETRY,
    )
    assert (outcome.state, outcome.reason.sentence, outcome.links) == (State.FETCHED, "200", links)
    assert [(offer.url, offer.depth, offer.refusal.code if offer.refusal else "") for offer in outcome.offers] == [
        ("http://a.example.org/in", 3, ""),
        ("http://a.example.org/no", 3, "nofollow"),
        ("http://b.example.org/out", 3, "scope"),
    ]
    row = outcome.page
    assert row is not None
    assert row.body is not None
    assert (row.status, row.fetched_at, row.body.decoded(), row.body_bytes) == (200, NOW + 1, b"<p>hello", 8)
    assert row.body.sha256 == b"digest"
    assert (row.etag, row.last_modified) == ('"e"', "m")


def test_the_body_of_a_page_that_asks_not_to_be_indexed_is_not_kept() -> None:
    outcome = after_fetch(QUEUED, page(), PageFacts(index=False, body_bytes=8), ANY, RETRY)
    assert outcome.reason.sentence == "200, noindex: body and texts not kept"
    assert outcome.page is not None
    assert (outcome.page.body, outcome.page.body_bytes) == (None, 8)


def test_a_page_that_could_not_be_read_says_why_and_is_not_kept() -> None:
    unread = PageFacts(index=False, follow=False, is_read=False, note="not parsed: too deep", body_bytes=8)
    outcome = after_fetch(QUEUED, page(), unread, ANY, RETRY)
    assert outcome.state is State.FETCHED
    assert outcome.reason.code is ReasonCode.UNREAD
    assert outcome.reason.sentence == "200, not parsed: too deep; body and texts not kept"
    assert outcome.page is not None
    assert (outcome.page.body, outcome.page.body_bytes) == (None, 8)


def test_a_wall_with_200_is_no_page() -> None:
    outcome = after_fetch(
        QUEUED, page(), PageFacts(wall="Anubis (a cookie)", links=(Link(URL, "", "", True),)), ANY, RETRY
    )
    assert (outcome.state, outcome.reason.code) == (State.FAILED, ReasonCode.WALL)
    assert outcome.reason.sentence == "a wall in place of the document: Anubis (a cookie)"
    assert (outcome.page, outcome.offers, outcome.links) == (None, (), ())


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [(ErrorKind.WALL, 429, ReasonCode.WALL), (ErrorKind.PAYMENT, 402, ReasonCode.PAYMENT_REQUIRED)],
)
def test_a_wall_and_a_price_are_not_asked_for_again(kind: ErrorKind, status: int, code: ReasonCode) -> None:
    failed = Failed(URL, NOW, NOW, kind=kind, status=status, detail="USD 0.01")
    outcome = after_fetch(QUEUED, failed, None, ANY, RETRY)
    assert (outcome.state, outcome.reason, outcome.retry_at) == (State.FAILED, Reason(code, "USD 0.01"), None)


def test_a_304_to_what_was_no_question_is_no_page() -> None:
    outcome = after_fetch(QUEUED, NotModified(URL, NOW, NOW), None, ANY, RETRY)
    assert (outcome.state, outcome.page) == (State.FAILED, None)


def redirected(location: str, queued: Queued = QUEUED, scope: Scope = ANY) -> Outcome:
    return after_fetch(queued, Redirected(URL, NOW, NOW, status=301, location=location), None, scope, RETRY)


def test_a_redirect_offers_its_target_at_the_same_depth() -> None:
    outcome = redirected("../x?y#z")
    assert (outcome.state, outcome.reason.sentence) == (State.REDIRECTED, "301 to http://a.example.org/x?y")
    assert outcome.offers == (Offer("http://a.example.org/x?y", 2, hops=1),)
    assert outcome.target == "http://a.example.org/x?y"


def test_a_redirect_out_of_scope_is_recorded_and_not_followed() -> None:
    (offer,) = redirected("http://elsewhere.test/", scope=HOST).offers
    assert offer.refusal is not None
    assert offer.refusal.code is ReasonCode.SCOPE


def test_where_a_seed_redirects_counts_as_a_seed_while_in_scope() -> None:
    seed = Queued(7, URL, 1, 0, seed=True)
    wanted = Scope(ScopeSettings(ScopeMode.HOST, include=("/blog",)), [URL])
    (offer,) = redirected("/home", seed, wanted).offers
    assert (offer.refusal, offer.seed) == (None, True)
    (offer,) = redirected("http://elsewhere.test/", seed, wanted).offers
    assert offer.seed is False


@pytest.mark.parametrize("location", [URL, "#top", "/page#x", "mailto:me@x.org", "http://", "//u:p@h.org/"])
def test_redirects_to_nowhere_fail(location: str) -> None:
    outcome = redirected(location)
    assert (outcome.state, outcome.offers) == (State.FAILED, ())


def test_a_chain_of_redirects_ends() -> None:
    (offer,) = redirected("/x", Queued(7, URL, 1, 2, hops=9)).offers
    assert (offer.refusal, offer.hops) == (None, 10)
    (offer,) = redirected("/x", Queued(7, URL, 1, 2, hops=10)).offers
    assert said(offer.refusal) == "redirects: 11 in a row, at most 10 are followed"


def failure(kind: ErrorKind, status: int | None = None, *, attempts: int = 0, headers: Headers = ()) -> Outcome:
    result = Failed(URL, NOW - 1, NOW, headers, kind=kind, status=status, detail="it broke")
    return after_fetch(Queued(7, URL, 1, 2, attempts), result, None, ANY, RETRY)


TEMPORARY = [
    *((ErrorKind.HTTP, status) for status in (408, 425, 429, 500, 502, 503, 504)),
    *((kind, None) for kind in (ErrorKind.DNS, ErrorKind.CONNECT, ErrorKind.TIMEOUT, ErrorKind.TRUNCATED)),
]


@pytest.mark.parametrize(("kind", "status"), TEMPORARY)
def test_temporary_failures_are_tried_again_at_growing_pauses(kind: ErrorKind, status: int | None) -> None:
    outcomes = [failure(kind, status, attempts=n) for n in range(4)]
    assert [outcome.retry_at for outcome in outcomes] == [NOW + 10, NOW + 30, NOW + 90, None]
    assert [outcome.state for outcome in outcomes] == [State.QUEUED] * 3 + [State.FAILED]
    assert outcomes[0].reason.sentence == "it broke, attempt 1 of 4"
    assert outcomes[3].reason.sentence == "it broke (4 attempts)"


def test_one_answer_that_the_name_does_not_exist_says_nothing_of_the_host() -> None:
    """Its robots.txt was fetched; ``robots.unknown_host_after`` says when a host is taken to be unknown."""
    assert failure(ErrorKind.DNS_NO_NAME, attempts=3).reason == Reason(
        ReasonCode.LOOK_UP_FAILED, "it broke (4 attempts)"
    )


def test_retry_after_holds_for_the_url_too() -> None:
    assert failure(ErrorKind.HTTP, 503, headers=(("Retry-After", "3600"),)).retry_at == NOW + 3600
    assert failure(ErrorKind.HTTP, 503, headers=(("Retry-After", "1"),)).retry_at == NOW + 10


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        *((ErrorKind.HTTP, status) for status in (400, 401, 403, 404, 410, 451)),
        *((kind, 200) for kind in (ErrorKind.TLS, ErrorKind.PROTOCOL, ErrorKind.ENCODING, ErrorKind.TOO_LARGE)),
    ],
)
def test_permanent_failures_are_not_tried_again(kind: ErrorKind, status: int) -> None:
    outcome = failure(kind, status)
    assert (outcome.state, outcome.retry_at) == (State.FAILED, None)
    assert outcome.reason.sentence.startswith(kind.render("it broke"))


def test_types_and_addresses_that_are_not_wanted_are_excluded() -> None:
    assert failure(ErrorKind.UNWANTED_TYPE, 200).reason.sentence == "type: content type it broke is not wanted"
    assert failure(ErrorKind.ADDRESS).reason.sentence == "address: it broke"
    assert failure(ErrorKind.ADDRESS).state is State.EXCLUDED


def test_every_kind_of_failure_ends_in_one_of_three_states() -> None:
    for kind in ErrorKind:
        assert failure(kind, attempts=99).state in (State.FAILED, State.EXCLUDED)
