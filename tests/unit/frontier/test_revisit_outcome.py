"""How a revisit ends whose page could not be read at the visit before."""

from __future__ import annotations

from hashlib import sha256

import pytest

from crawler.engine.hooks import Hooks
from crawler.frontier.decide import Queued, after_fetch, unkept
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.revisit import Habits, RevisitSettings, Seen, VisitResult
from crawler.frontier.revisit_outcome import after_revisit
from crawler.frontier.scope import Scope, ScopeMode, ScopeSettings
from crawler.model import Failed, Fetched, NotModified, PageFacts, State
from crawler.reasons import ErrorKind, Reason, ReasonCode
from tests.records import replace

URL = "http://a.test/"
BODY = b"<p>hello"
WHY = "not parsed: too deep"
SETTINGS = RevisitSettings(True)
SCOPE = Scope(ScopeSettings(ScopeMode.ANY), [URL])
SEEN = Seen(
    state=State.FETCHED,
    reason=Reason(ReasonCode.UNREAD, f"200, {WHY}"),
    target=None,
    checked_at=0.0,
    habits=Habits(0.0, 86_400.0),
    failures=0,
    hint=None,
    version=1,
    status=200,
    etag=None,
    last_modified=None,
    content=sha256(BODY).hexdigest(),
    text=None,
    noindex=True,
    nofollow=True,
)


def reason_of(answer: Fetched | NotModified, facts: PageFacts | None) -> Reason:
    queued = Queued(1, URL, 1, 0, seen=SEEN)
    outcome = after_fetch(queued, answer, facts, SCOPE, RequestSettings())
    return after_revisit(outcome, answer, facts, SETTINGS).reason


@pytest.mark.parametrize("body", [BODY, b"<p>changed"])
def test_it_is_unread_while_it_cannot_be_read(body: bytes) -> None:
    unread = PageFacts(index=False, follow=False, is_read=False, note=WHY, body_sha256=sha256(body).digest())
    found = reason_of(Fetched(URL, 9.0, 9.0, status=200, plain=body), unread)
    assert (found.code, found.sentence) == (ReasonCode.UNREAD, SEEN.reason.sentence)


def test_it_is_unread_if_it_has_not_changed() -> None:
    assert reason_of(NotModified(URL, 9.0, 9.0), None) == SEEN.reason


def test_it_is_fetched_if_it_can_be_read_now() -> None:
    found = reason_of(Fetched(URL, 9.0, 9.0, status=200, plain=BODY), PageFacts(body_sha256=sha256(BODY).digest()))
    assert (found.code, found.sentence) == (ReasonCode.FETCHED, "200")


def test_a_wall_says_nothing_about_the_page() -> None:
    seen = replace(SEEN, reason=Reason(ReasonCode.FETCHED, "200"))
    answer = Fetched(URL, 9.0, 9.0, status=200, plain=BODY)
    outcome = after_fetch(Queued(1, URL, 1, 0, seen=seen), answer, PageFacts(wall="Anubis"), SCOPE, RequestSettings())
    outcome = after_revisit(outcome, answer, PageFacts(wall="Anubis"), SETTINGS)
    assert (outcome.state, outcome.reason.code, outcome.page) == (State.FETCHED, ReasonCode.UNREACHED, None)


async def test_a_page_that_keep_refused_is_fetched_whole_at_the_next_visit() -> None:
    """Its validators would bring a 304, and ``keep`` would never be asked about it again."""
    headers = (("ETag", '"1"'), ("Last-Modified", "Mon, 12 Jan 2026 00:00:00 GMT"))
    answer = Fetched(URL, 9.0, 9.0, headers, status=200, plain=BODY)
    facts = PageFacts(body_sha256=sha256(BODY).digest())
    hooks = Hooks(keep=lambda outcome: False, keep_name="no")
    for seen in (None, SEEN):
        visited = after_fetch(Queued(1, URL, 1, 0, seen=seen), answer, facts, SCOPE, RequestSettings())
        outcome = await hooks.keep_wanted(visited)
        assert outcome.page is not None
        assert (outcome.reason.code, outcome.page.body, outcome.page.etag) == (ReasonCode.NOT_KEPT, None, None)
        revisit = after_revisit(outcome, answer, outcome.page.facts, SETTINGS).revisit
        assert (
            revisit is None if seen is None else revisit is not None and revisit.etag is revisit.last_modified is None
        )


@pytest.mark.parametrize("body", [BODY, b"<p>changed"])
@pytest.mark.parametrize(("field", "code"), [("withheld", ReasonCode.WITHHELD), ("unkept", ReasonCode.NOT_KEPT)])
def test_it_is_left_out_whether_or_not_it_has_changed(body: bytes, field: str, code: ReasonCode) -> None:
    """Otherwise the report would count it as NOINDEX, and the caller's loop would get a page that keep refused."""
    facts = PageFacts(index=False, follow=False, body_sha256=sha256(body).digest())
    facts = replace(facts, withheld="why" if field == "withheld" else "")
    left_out = Reason(code, "200, why")
    seen = replace(SEEN, reason=left_out)
    queued = Queued(1, URL, 1, 0, seen=seen)
    for answer, said in ((Fetched(URL, 9.0, 9.0, status=200, plain=body), facts), (NotModified(URL, 9.0, 9.0), None)):
        outcome = after_fetch(queued, answer, said, SCOPE, RequestSettings())
        outcome = outcome if said is None or field == "withheld" else unkept(outcome, "why")
        assert after_revisit(outcome, answer, said, SETTINGS).reason == left_out


@pytest.mark.parametrize(("hint", "was_right"), [("rup", True), (None, None)])
def test_a_page_that_is_gone_proves_only_a_hint_that_was_given(hint: str | None, was_right: bool | None) -> None:
    gone = Failed(URL, 9.0, 9.0, kind=ErrorKind.HTTP, status=404)
    outcome = after_fetch(Queued(1, URL, 1, 0, seen=replace(SEEN, hint=hint)), gone, None, SCOPE, RequestSettings())
    revisit = after_revisit(outcome, gone, None, SETTINGS).revisit
    assert revisit is not None
    assert (revisit.found, revisit.hint_was_right) == (VisitResult.GONE, was_right)
