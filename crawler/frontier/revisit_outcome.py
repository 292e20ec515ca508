"""The outcome of a revisit: beside that of any visit, what has changed, and when the next visit is due. Pure.

A URL that is due for a revisit is queued like any other, and keeps its page meanwhile. The visit ends like this::

    304, or the same content  -> the state before, with the time of this visit
    other content             -> fetched: a new version; the older ones are kept
    a redirect                -> redirected; the versions are kept
    404, 410                  -> failed: gone; the last version is kept
    another permanent failure, or robots.txt, scope, type -> failed or excluded; the versions are kept
    temporary failures only   -> the state before, when the retries are spent

A page that could not be read, or that the caller did not want to keep, gets no validators. So its next visit fetches
the whole page: it is read again, and the caller is asked again.

A page has *changed* if its text differs, or its content if the text of a version is unknown. So a page that differs
in its mark-up only gets a new version, but is not visited more often.
"""

from __future__ import annotations

from msgspec.structs import replace

from crawler.dates import http_date
from crawler.frontier.decide import Outcome, is_temporary
from crawler.frontier.offers import Offer
from crawler.frontier.revisit import RevisitRecord, RevisitSettings, Seen, VisitResult, learn, next_visit
from crawler.frontier.scope import Scope
from crawler.model import Failed, Fetched, FetchResult, Headers, Kind, NotModified, PageFacts, Redirected, State, header
from crawler.reasons import Reason, ReasonCode
from crawler.robots.response import lifetime_left_s

#: Reasons that stand whether or not the page has changed.
_LASTING = frozenset((ReasonCode.WITHHELD, ReasonCode.NOT_KEPT, ReasonCode.REFRESH))


def after_refusal(outcome: Outcome, settings: RevisitSettings, now: float) -> Outcome:
    """The outcome of a revisit that was not sent, because robots.txt or the scope forbids it now.

    The outcome of a first visit is returned as it is.
    """
    seen = outcome.queued.seen
    return outcome if seen is None else replace(outcome, revisit=_missed(VisitResult.LOST, seen, settings, now))


def same_sitemap(queued_seen: Seen | None, body_sha256: bytes) -> bool:
    """Whether a sitemap has not changed since the previous visit, so that it need not be read."""
    return queued_seen is not None and queued_seen.content == body_sha256.hex()


def after_revisit(
    outcome: Outcome,
    result: FetchResult,
    facts: PageFacts | None,
    settings: RevisitSettings,
    *,
    sitemap_sha256: bytes = b"",
) -> Outcome:
    """The outcome of a revisit. ``outcome`` is what it would be for a first visit.

    The outcome of a first visit, and one that is a retry, are returned as they are. ``facts`` are those of the page, or
    those in the headers of a 304; a sitemap has the digest of its body instead.
    """
    seen, now = outcome.queued.seen, result.finished_at
    if seen is None or outcome.state is State.QUEUED:
        return outcome
    if outcome.is_walled:  # it says nothing about the page
        return replace(_unreached(outcome, seen, outcome.reason.sentence, settings, now), is_walled=True)
    match result:
        case NotModified():
            return _not_modified(outcome, seen, result, facts, settings)
        case Fetched():
            if facts is not None and not facts.is_read and seen.version and not _was_unread(seen):
                return _unreached(outcome, seen, facts.note, settings, now)
            content = sitemap_sha256 if facts is None else facts.body_sha256
            ended = _fetched(outcome, seen, result, facts, content.hex(), settings)
            is_whole_next = facts is not None and (not facts.is_read or facts.unkept)
            return _without_validators(ended) if is_whole_next else ended
        case Redirected():
            changed = seen.state is not State.REDIRECTED or outcome.target != seen.target
            revisit = _seen(seen, result, changed, settings) if outcome.state is State.REDIRECTED else None
            return replace(outcome, revisit=revisit or _missed(VisitResult.LOST, seen, settings, now))
        case Failed():
            if result.status in (404, 410) and not is_temporary(result):
                revisit = replace(
                    _missed(VisitResult.GONE, seen, settings, now), hint_was_right=True if seen.hint else None
                )
                reason = Reason(outcome.reason.code, f"{outcome.reason}: gone") if seen.version else outcome.reason
                return replace(outcome, reason=reason, revisit=replace(revisit, checked_at=now))
            if is_temporary(result):
                return _unreached(outcome, seen, outcome.reason.sentence, settings, now)
            return replace(outcome, revisit=_missed(VisitResult.LOST, seen, settings, now))


def feeds_of(facts: PageFacts, depth: int, scope: Scope) -> tuple[Offer, ...]:
    """Offers for the feeds that a page names. Feeds are read as sitemaps."""
    return tuple(Offer(url, depth, scope.refusal(url, depth, is_seed=True), kind=Kind.SITEMAP) for url in facts.feeds)


def _not_modified(
    outcome: Outcome, seen: Seen, result: NotModified, facts: PageFacts | None, settings: RevisitSettings
) -> Outcome:
    if facts is not None and _asks_more(facts, seen):
        revisit = replace(_missed(VisitResult.UNCLEAR, seen, settings, result.finished_at), failures=seen.failures)
        reason = Reason(ReasonCode.REVISIT_WHOLE)
        return replace(outcome, state=State.QUEUED, reason=reason, retry_at=result.finished_at, revisit=revisit)
    return _unchanged(outcome, seen, result, "304", settings)


def _without_validators(outcome: Outcome) -> Outcome:
    """The outcome of a page that the next visit fetches in full."""
    assert outcome.revisit is not None, "a revisit has one"
    return replace(outcome, revisit=replace(outcome.revisit, etag=None, last_modified=None))


def _was_unread(seen: Seen) -> bool:
    """Whether the page could not be read at the visit before."""
    return seen.reason.code is ReasonCode.UNREAD


def _asks_more(facts: PageFacts, seen: Seen) -> bool:
    """Whether a page now forbids what it did not forbid before."""
    return (
        (not facts.index and not seen.noindex)
        or (not facts.follow and not seen.nofollow)
        or (not facts.archive and not seen.noarchive)
        or facts.until < seen.until
        or facts.snippet_chars < seen.snippet_chars
    )


def _fetched(
    outcome: Outcome, seen: Seen, result: Fetched, facts: PageFacts | None, content: str, settings: RevisitSettings
) -> Outcome:
    page = outcome.page
    as_asked = facts is None or (
        facts.index is not seen.noindex
        and facts.follow is not seen.nofollow
        and facts.archive is not seen.noarchive
        and facts.until == seen.until
        and facts.snippet_chars == seen.snippet_chars
    )
    is_read_now = _was_unread(seen) and facts is not None and facts.is_read
    if content == seen.content and as_asked and not is_read_now:
        return _unchanged(outcome, seen, result, "same content", settings)
    known = seen.content is not None
    text = None if facts is None or facts.text_sha256 is None else facts.text_sha256.hex()
    changed = content != seen.content and (text is None or seen.text is None or text != seen.text)
    revisit = _seen(seen, result, changed, settings) if known else _seen(seen, result, None, settings)
    kept = content if page is None or page.body is None else None
    is_lasting = outcome.reason.code in _LASTING
    if page is not None and known and seen.version and not _was_unread(seen) and not is_lasting:
        code = ReasonCode.CHANGED if changed else ReasonCode.MARKUP_CHANGED
        outcome = replace(outcome, reason=Reason(code, outcome.reason.sentence))
    return replace(outcome, revisit=replace(revisit, found=VisitResult.CHANGED, content=kept))


def _unchanged(
    outcome: Outcome, seen: Seen, result: Fetched | NotModified, how: str, settings: RevisitSettings
) -> Outcome:
    """The outcome of an unchanged page: its state, links and offers stay, and no version is written."""
    revisit = _seen(seen, result, False, settings)
    revisit = replace(revisit, content=seen.content if seen.noindex or not seen.version else None)
    reason = seen.reason  # the reason of a sitemap says what it lists
    first = seen.reason if isinstance(result, NotModified) else outcome.reason
    if first.code in _LASTING:
        reason = first
    elif seen.version and not _was_unread(seen):
        reason = Reason(ReasonCode.UNCHANGED, f"{seen.status}{', noindex' * seen.noindex}, unchanged ({how})")
    return Outcome(
        outcome.queued,
        State.FETCHED,
        reason,
        revisit=revisit,
        own_preferences=outcome.own_preferences,
        robots_preferences=outcome.robots_preferences,
    )


def _seen(seen: Seen, result: FetchResult, changed: bool | None, settings: RevisitSettings) -> RevisitRecord:
    """The statistics after a visit that found a document. ``changed`` is ``None`` if there is no earlier one."""
    now, headers, habits = result.finished_at, result.headers, seen.habits
    # A 304 need not repeat the validators.
    etag, last_modified = (seen.etag, seen.last_modified) if isinstance(result, NotModified) else (None, None)
    if changed is not None:
        dated = http_date(header(headers, "last-modified") or "")
        unchanged_s = None if dated is None else now - dated
        habits = learn(habits, max(0.0, now - seen.checked_at), changed=changed, unchanged_s=unchanged_s)
    return RevisitRecord(
        found=VisitResult.CHANGED if changed else VisitResult.UNCHANGED,
        next=next_visit(habits, now, settings, fresh_s=_fresh_s(headers, now)),
        habits=habits,
        checked_at=now,
        hint_was_right=changed if seen.hint else None,
        etag=header(headers, "etag") or etag,
        last_modified=header(headers, "last-modified") or last_modified,
    )


def _fresh_s(headers: Headers, now: float) -> float | None:
    left_s = lifetime_left_s(headers, now)
    return left_s if left_s and left_s > 0 else None


def _missed(found: VisitResult, seen: Seen, settings: RevisitSettings, now: float) -> RevisitRecord:
    """The statistics after a visit that found no page."""
    failures = seen.failures + 1
    return RevisitRecord(found, next_visit(seen.habits, now, settings, failures=failures), seen.habits, failures)


def _unreached(outcome: Outcome, seen: Seen, why: str, settings: RevisitSettings, now: float) -> Outcome:
    """The outcome of a visit that did not reach the page: only the time of the next visit changes."""
    reason = seen.reason
    if seen.state is State.FETCHED and seen.version and not _was_unread(seen):
        reason = Reason(ReasonCode.UNREACHED, f"{seen.status}, not reachable at the last visit: {why}")
    return Outcome(outcome.queued, seen.state, reason, revisit=_missed(VisitResult.UNREACHED, seen, settings, now))
