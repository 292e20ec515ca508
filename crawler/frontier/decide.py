"""The two decisions on a URL: whether to fetch it, and what follows from the answer.

Every URL is in exactly one state. ARCHITECTURE.md, "The states of a URL", has the table of transitions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, assert_never

import msgspec
from msgspec.structs import replace

from crawler.frontier.domain_addresses import ROUNDS, addresses_around, is_silent
from crawler.frontier.offers import Offer
from crawler.frontier.operator import BLOCKED
from crawler.model import (
    NO_ANSWER,
    AnswerFacts,
    Body,
    Failed,
    Fetched,
    FetchResult,
    Kind,
    Link,
    NotModified,
    PageFacts,
    Preference,
    Redirected,
    RobotsAction,
    RobotsCopy,
    State,
    validators,
)
from crawler.preferences.purposes import UsePurpose, bounded, first_refusal, sentence_of
from crawler.reasons import DNS_KINDS, ErrorKind, Reason, ReasonCode
from crawler.robots.http_seconds import retry_after_s
from crawler.robots.mirrors import Cycle, Main
from crawler.sitemaps.findings import Sitemap, SitemapKind
from crawler.url import NotCrawlable, canonicalise, host_of

if TYPE_CHECKING:
    from crawler.frontier.hints import Hint
    from crawler.frontier.request_settings import RequestSettings
    from crawler.frontier.revisit import RevisitRecord, Seen
    from crawler.frontier.scope import Scope
    from crawler.robots.readings import SiteRules
    from crawler.robots.rules import Verdict
    from crawler.rup.protocol.info import FoundInfo
    from crawler.sitemaps.trust import Trust

_INDEX_DEPTH = 3  # the levels of sitemap indexes that are followed; deeper ones are a trap


class Queued(msgspec.Struct, frozen=True):
    """A URL that a worker has claimed. ``attempts`` counts its failed attempts, ``hops`` the redirects that led to it.

    ``due_at`` is the time of its next attempt in seconds since the epoch. A worker may claim it shortly before.
    """

    id: int
    url: str
    site_id: int
    depth: int
    attempts: int = 0
    hops: int = 0
    seed: bool = False
    due_at: float = 0.0
    kind: Kind = Kind.PAGE
    seen: Seen | None = None  # for a revisit: what earlier visits found
    by_domain: bool = False  # the seed stands for a domain: if it gives no answer, its other addresses are tried
    is_answered: bool = False  # the store has an answer that was not read before a worker ended

    @property
    def wanted_itself(self) -> bool:
        """Whether the user named the URL, or the crawl needs it. ``--include`` and the rules on traps do not apply."""
        return self.seed or self.kind is not Kind.PAGE


class Allowed(msgspec.Struct, frozen=True):
    """The decision to fetch a URL: no rule forbids it. ``preferences`` are those of robots.txt about its use."""

    verdict: Verdict | None
    preferences: tuple[Preference, ...] = ()


class FetchedPage(msgspec.Struct, frozen=True):
    """A page row: the facts of a fetched page. ``body`` is ``None`` if the page forbids to keep it."""

    status: int
    content_type: str
    fetched_at: float
    facts: PageFacts
    body: Body | None
    body_bytes: int
    etag: str | None
    last_modified: str | None
    answer: AnswerFacts = NO_ANSWER


class Outcome(msgspec.Struct, frozen=True):
    """The result of one visit of a URL. The store commits it as a whole, or not at all.

    Only the offers to other politeness groups may be applied shortly after that commit.
    """

    queued: Queued
    state: State
    reason: Reason
    page: FetchedPage | None = None
    links: tuple[Link, ...] = ()
    offers: tuple[Offer, ...] = ()
    target: str | None = None  # the target of a redirect, or the URL on a mirror's main site
    adopted_host: str | None = None  # the host that takes the place of this seed: see Scope.adopted_host
    retry_at: float | None = None  # if the state is queued
    revisit: RevisitRecord | None = None  # the outcome of a revisit
    hints: tuple[Hint, ...] = ()
    rupinfo: FoundInfo | None = None  # a /rupinfo.txt
    own_preferences: tuple[Preference, ...] | None = None  # of the page about its use; None: unknown, or as before
    robots_preferences: tuple[Preference, ...] = ()  # of robots.txt about the use of the page
    is_walled: bool = False  # a bot defence has answered in place of the site
    awaits_licence: bool = False  # the answer stays unread until a licence that the page names can be had


def before_robots(queued: Queued, scope: Scope) -> Outcome | None:
    """The outcome of ``queued`` if the operator has blocked its site, so that not even robots.txt is requested."""
    return Outcome(queued, State.EXCLUDED, BLOCKED) if scope.blocks.covers(queued.url) else None


def without_answer(queued: Queued, copy: RobotsCopy, scope: Scope) -> Outcome | None:
    """The outcome of an address of a domain whose robots.txt got no answer in HTTP; ``None`` if it is to be retried.

    It is excluded, and the next address in the order is offered. After the last one the first is offered again: in up
    to :data:`ROUNDS` rounds, which the pauses of the robots.txt files keep apart, and then as a URL like any other, so
    that the first address is retried for as long as any site. A site that answers, with whatever status, is the one to
    ask: another address must not get around its robots.txt. So is a site that was visited before.
    """
    if not queued.by_domain or queued.seen is not None or not is_silent(copy):
        return None
    offers = [
        Offer(url, queued.depth, scope.refusal(url, queued.depth, is_seed=True), position, seed=True, by_domain=True)
        for position, url in enumerate(addresses_around(queued.url, queued.hops))
    ]
    offer = next((offer for offer in offers[queued.hops + 1 :] if offer.refusal is None), offers[0])
    if offer.url == queued.url:
        return None
    is_last = offer is offers[0]
    if is_last and (copy.action is not RobotsAction.DEFER or copy.failures >= ROUNDS):
        offer = replace(offer, by_domain=False)
    evidence = f"{copy.note or copy.status}; {offer.url} is tried {'again' if is_last else 'instead'}"
    reason = Reason(ReasonCode.OTHER_ADDRESS, evidence)
    return Outcome(queued, State.EXCLUDED, reason, offers=(offer,), target=offer.url)


def before_fetch(
    queued: Queued,
    copy: RobotsCopy,
    rules: SiteRules | None,
    path: str,
    scope: Scope,
    main: Main | Cycle | None = None,
    purposes: Collection[UsePurpose] = (),
) -> Allowed | Outcome:
    """Decide whether to fetch ``queued`` under the robots.txt in force, or return its outcome without a request.

    ``rules`` are those of ``copy`` if its action is *parse*. ``main`` is the end of the chain of ``Host`` lines from
    this site if it is a mirror. A page that robots.txt refuses for one of the declared ``purposes`` is not fetched; a
    sitemap is, because it is read for its links only. The scope is checked again, because a crawl may continue with
    narrower options.
    """
    if refusal := scope.refusal(queued.url, queued.depth, is_seed=queued.wanted_itself):
        return Outcome(queued, State.EXCLUDED, refusal)
    match copy.action:
        case RobotsAction.FREE:
            return Allowed(None)
        case RobotsAction.RESTRICTED:
            return Outcome(
                queued,
                State.EXCLUDED,
                Reason(ReasonCode.ROBOTS, f"{copy.status} for /robots.txt forbids the whole site"),
            )
        case RobotsAction.GIVEN_UP if copy.status == ErrorKind.DNS_NO_NAME:
            return Outcome(queued, State.FAILED, Reason(ReasonCode.NO_NAME, host_of(queued.url)))
        case RobotsAction.GIVEN_UP if copy.status == ErrorKind.WALL:
            return Outcome(queued, State.EXCLUDED, Reason(ReasonCode.REFUSED_AT_THE_EDGE, copy.note))
        case RobotsAction.GIVEN_UP:
            return Outcome(queued, State.FAILED, Reason(ReasonCode.ROBOTS_GIVEN_UP, copy.status))
        case RobotsAction.UNREACHABLE:
            return Outcome(queued, State.EXCLUDED, Reason(ReasonCode.ADDRESS, copy.note or copy.status))
        case RobotsAction.UNTRUSTED:
            return Outcome(queued, State.FAILED, Reason(ReasonCode.CERTIFICATE, copy.note or copy.status))
        case RobotsAction.PARSE:
            assert rules is not None, "a parsed robots.txt has rules"
            if rules.main_site is not None:
                return _use_main_site(queued, rules, main or Main(rules.main_site), path, scope)
            verdict = rules.verdict(path)
            if not verdict.allowed:
                return Outcome(queued, State.EXCLUDED, _forbidden(verdict))
            stated = rules.preferences.of(path)
            refused = first_refusal(stated, purposes) if queued.kind is Kind.PAGE else None
            if refused is not None:
                return Outcome(queued, State.EXCLUDED, Reason(ReasonCode.PREFERENCE, sentence_of(refused)))
            return Allowed(verdict, stated)
        case RobotsAction.DEFER:
            raise AssertionError("no URL of a deferred site is decided on")
        case _:
            assert_never(copy.action)


def under_licences(
    queued: Queued, allowed: Allowed, said: tuple[Preference, ...], purposes: Collection[UsePurpose]
) -> Allowed | Outcome:
    """The decision on a page whose licences have ``said`` something: they refuse as its robots.txt does."""
    refused = first_refusal(said, purposes)
    if refused is not None:
        return Outcome(queued, State.EXCLUDED, Reason(ReasonCode.PREFERENCE, sentence_of(refused)))
    return replace(allowed, preferences=bounded((*allowed.preferences, *said)))


def awaiting_licence(queued: Queued, until: float, why: str) -> Outcome:
    """The outcome of a page that names a licence that cannot be had now: it is read again at ``until`` (epoch s)."""
    return Outcome(queued, State.QUEUED, Reason(ReasonCode.RETRY, why), retry_at=until, awaits_licence=True)


def _forbidden(verdict: Verdict) -> Reason:
    return Reason(ReasonCode.ROBOTS, f"line {verdict.line}, {verdict.text.strip()} ({verdict.reading})")


def _use_main_site(queued: Queued, rules: SiteRules, main: Main | Cycle, path: str, scope: Scope) -> Outcome:
    """The outcome of a URL on a mirror: excluded, and the same path on the main site is offered instead.

    A robots.txt must not lead the crawl out of its scope, so the scope decides on that offer. The scope has adopted a
    main site with the registered domain of the mirror (:func:`~crawler.frontier.scope.may_adopt`).
    """
    if isinstance(main, Cycle):
        cycle = " → ".join([*main.members, main.members[0]])
        return Outcome(queued, State.EXCLUDED, Reason(ReasonCode.MIRROR_CYCLE, cycle))
    url = main.site + path
    evidence = f"{main.site} (Host, line {rules.host_line})"
    refusal = scope.refusal(url, queued.depth, is_seed=queued.wanted_itself)
    offer = Offer(url, queued.depth, refusal, hops=queued.hops, seed=queued.seed, kind=queued.kind)
    if not offer.is_good:
        return Outcome(queued, State.EXCLUDED, Reason(ReasonCode.MIRROR, f"{evidence}, which is out of scope"))
    return Outcome(queued, State.EXCLUDED, Reason(ReasonCode.MIRROR, evidence), offers=(offer,), target=url)


def withheld(facts: PageFacts, purposes: Collection[UsePurpose]) -> PageFacts:
    """The facts to keep of a page: without its body and texts if it refuses one of the declared ``purposes``.

    Such a page is treated as NOINDEX: it has a row, and its links are followed unless it says NOFOLLOW.
    """
    refused = first_refusal(facts.preferences, purposes)
    if refused is None:
        return facts
    return replace(_without_content(facts), withheld=sentence_of(refused))


def unkept(outcome: Outcome, why: str) -> Outcome:
    """The outcome of a page that the caller does not want, because of ``why``: kept as :func:`withheld` says.

    It gets no validators, so that the next visit fetches the whole page and the caller is asked again.
    """
    assert outcome.page is not None, "the caller was asked about the page"
    facts = replace(_without_content(outcome.page.facts), unkept=why)
    page = replace(outcome.page, facts=facts, body=None, etag=None, last_modified=None)
    return replace(outcome, page=page, reason=Reason(ReasonCode.NOT_KEPT, f"{page.status}, {why}"))


def _without_content(facts: PageFacts) -> PageFacts:
    return replace(
        facts,
        index=False,
        title=None,
        description=None,
        keywords=None,
        text_sha256=None,
        language=None,
        resources=(),
    )


def after_fetch(
    queued: Queued,
    result: FetchResult,
    facts: PageFacts | None,
    scope: Scope,
    settings: RequestSettings,
    answer: AnswerFacts = NO_ANSWER,
) -> Outcome:
    """The outcome of the visit of ``queued``. ``facts`` are those of the page if ``result`` is :class:`Fetched`.

    ``answer`` is what the store keeps of the answer beside the page.
    """
    match result:
        case Fetched():
            assert facts is not None
            return _page(queued, result, facts, scope, settings, answer)
        case NotModified():
            return Outcome(
                queued,
                State.FAILED,
                Reason(ReasonCode.NO_DOCUMENT, "304 Not Modified to a request without a validator"),
            )
        case Redirected():
            return _redirect(queued, result, scope, settings)
        case Failed():
            return _failure(queued, result, settings)
        case _:
            assert_never(result)


def after_fault(queued: Queued, fault: str) -> Outcome:
    """The outcome of a visit that met a bug in the crawler: the URL fails, and the run continues.

    ``fault`` is from :func:`crawler.errors.fault`.
    """
    return Outcome(queued, State.FAILED, Reason(ReasonCode.FAULT, fault))


def _page(
    queued: Queued, result: Fetched, facts: PageFacts, scope: Scope, settings: RequestSettings, answer: AnswerFacts
) -> Outcome:
    """The outcome of a page. A page that could not be read gets no validators: the next visit fetches it in full."""
    if facts.wall:
        return Outcome(queued, State.FAILED, Reason(ReasonCode.WALL, facts.wall), is_walled=True)
    depth = queued.depth + 1
    etag, last_modified = validators(result.headers) if facts.is_read else (None, None)
    page = FetchedPage(
        status=result.status,
        content_type=result.content_type,
        fetched_at=result.finished_at,
        facts=facts,
        body=Body(facts.body_sha256, result.plain, result.gzipped) if facts.index else None,
        body_bytes=facts.body_bytes,
        etag=etag,
        last_modified=last_modified,
        answer=answer,
    )
    offers = scope.link_offers(facts.links, depth)
    named = facts.refresh_url or facts.canonical_url
    target = named if facts.follow and named != queued.url else None
    if target is not None:  # the URL that stands for the page has its depth
        hops = queued.hops + 1  # a site that names another URL on each page would lead on for ever
        refusal = scope.refusal(target, queued.depth) or _too_many_hops(hops, settings)
        offers.append(Offer(target, queued.depth, refusal, hops))
    return Outcome(
        queued,
        State.FETCHED,
        _why_fetched(result, facts),
        page=page,
        links=facts.links,
        offers=tuple(offers),
        target=target,
    )


def _why_fetched(result: Fetched, facts: PageFacts) -> Reason:
    if not facts.is_read:
        return Reason(ReasonCode.UNREAD, f"{result.status}, {facts.note}")
    if facts.withheld:
        return Reason(ReasonCode.WITHHELD, f"{result.status}, {facts.withheld}")
    if not facts.index:
        return Reason(ReasonCode.NOINDEX, str(result.status))
    if facts.refresh_url is not None:
        return Reason(ReasonCode.REFRESH, f"{result.status}, refresh to {facts.refresh_url}")
    return Reason(ReasonCode.FETCHED, str(result.status))


def after_sitemap(queued: Queued, result: Fetched, sitemap: Sitemap, trust: Trust, scope: Scope) -> Outcome:
    """The outcome of the visit of a sitemap: an offer for each listed URL for which the sitemap may speak.

    A page that was named as a sitemap is queued again, as a page and under the rules for pages.
    """
    if _is_page(queued, result, sitemap):
        as_page = replace(queued, kind=Kind.PAGE)
        return Outcome(as_page, State.QUEUED, Reason(ReasonCode.NOT_A_SITEMAP), retry_at=result.finished_at)
    depth, offers, mistrusted = queued.depth + 1, [], 0
    for entry in sitemap.entries:
        if trust.refusal(entry.url) is None:
            offers.append(Offer(entry.url, depth, scope.refusal(entry.url, depth), lastmod=entry.lastmod))
        else:
            mistrusted += 1
    for url in sitemap.sitemaps:
        if trust.refusal(url) is None and queued.hops < _INDEX_DEPTH:
            refusal = scope.refusal(url, queued.depth, is_seed=True)
            offers.append(Offer(url, queued.depth, refusal, hops=queued.hops + 1, kind=Kind.SITEMAP))
        else:
            mistrusted += 1
    found = f"{len(sitemap.entries)} URLs" if not sitemap.sitemaps else f"{len(sitemap.sitemaps)} sitemaps"
    said = [f"{result.status}, sitemap ({sitemap.kind}): {found}", *sitemap.notes]
    if mistrusted:
        said.append(f"{mistrusted} URLs ignored: this sitemap may not speak for them")
    return Outcome(queued, State.FETCHED, Reason(ReasonCode.SITEMAP, "; ".join(said)), offers=tuple(offers))


def _is_page(queued: Queued, result: Fetched, sitemap: Sitemap) -> bool:
    """Whether robots.txt named a page as a sitemap. Some name their site map for people, or another page.

    /sitemap.xml is excepted: the crawler requests it although nothing names it, and many servers answer any unknown
    path with their start page.
    """
    is_html = sitemap.kind is SitemapKind.UNKNOWN and result.content_type in ("text/html", "application/xhtml+xml")
    return is_html and not queued.url.endswith("/sitemap.xml")


def _redirect(queued: Queued, result: Redirected, scope: Scope, settings: RequestSettings) -> Outcome:
    try:
        target = canonicalise(result.location, queued.url)
    except NotCrawlable as error:
        return Outcome(queued, State.FAILED, Reason(ReasonCode.BAD_REDIRECT, f"{result.status} to nowhere: {error}"))
    if target == queued.url:
        return Outcome(queued, State.FAILED, Reason(ReasonCode.BAD_REDIRECT, f"{result.status} to itself"))
    hops = queued.hops + 1
    host = scope.adopted_host(queued.url, target) if queued.seed and queued.kind is Kind.PAGE else None
    if host is not None:
        scope.adopt_hosts([host])
    refusal = scope.refusal(target, queued.depth, is_seed=queued.wanted_itself)
    refusal = refusal or _too_many_hops(hops, settings)  # Store.fail_circles finds redirects in a circle
    offer = Offer(
        target,
        queued.depth,
        refusal,
        hops,
        queued.seed and (refusal is None or refusal.code is ReasonCode.BLOCKED),
        queued.kind,
    )
    reason = Reason(ReasonCode.REDIRECT, f"{result.status} to {target}")
    return Outcome(queued, State.REDIRECTED, reason, offers=(offer,), target=target, adopted_host=host)


def _too_many_hops(hops: int, settings: RequestSettings) -> Reason | None:
    if hops <= settings.max_redirects:
        return None
    return Reason(ReasonCode.REDIRECTS, f"{hops} in a row, at most {settings.max_redirects} are followed")


_CODES = {
    ErrorKind.DNS: ReasonCode.NO_ADDRESS,
    ErrorKind.DNS_NO_NAME: ReasonCode.LOOK_UP_FAILED,  # robots.unknown_host_after decides when a name is unknown
    ErrorKind.DNS_FAILED: ReasonCode.LOOK_UP_FAILED,
    ErrorKind.DNS_TIMEOUT: ReasonCode.LOOK_UP_TIMEOUT,
    ErrorKind.CONNECT: ReasonCode.NO_CONNECTION,
    ErrorKind.CLOSING: ReasonCode.NO_CONNECTION,
    ErrorKind.SIGNATURE: ReasonCode.CLIENT_ERROR,
    ErrorKind.TLS: ReasonCode.TLS,
    ErrorKind.CERTIFICATE: ReasonCode.CERTIFICATE,
    ErrorKind.TIMEOUT: ReasonCode.TIMEOUT,
    ErrorKind.TRUNCATED: ReasonCode.TRUNCATED,
    ErrorKind.PROTOCOL: ReasonCode.PROTOCOL,
    ErrorKind.ENCODING: ReasonCode.ENCODING,
    ErrorKind.TOO_LARGE: ReasonCode.TOO_LARGE,
    ErrorKind.UNWANTED_TYPE: ReasonCode.TYPE,
    ErrorKind.WALL: ReasonCode.WALL,
    ErrorKind.PAYMENT: ReasonCode.PAYMENT_REQUIRED,
    ErrorKind.ADDRESS: ReasonCode.ADDRESS,
    ErrorKind.STOPPED: ReasonCode.TRUNCATED,
    ErrorKind.FAULT: ReasonCode.FAULT,
}


_TEMPORARY = DNS_KINDS | {ErrorKind.CONNECT, ErrorKind.CLOSING, ErrorKind.TIMEOUT, ErrorKind.TRUNCATED}


def failure_code(result: Failed) -> ReasonCode:
    """The code of a URL whose last request ended with ``result``."""
    if result.kind is not ErrorKind.HTTP:
        return _CODES[result.kind]
    match result.status:
        case 404:
            return ReasonCode.NOT_FOUND
        case 410:
            return ReasonCode.GONE
        case int(status) if 400 <= status < 500:
            return ReasonCode.CLIENT_ERROR
        case int(status) if 500 <= status < 600:
            return ReasonCode.SERVER_ERROR
    return ReasonCode.NO_DOCUMENT


def _failure(queued: Queued, result: Failed, settings: RequestSettings) -> Outcome:
    code = failure_code(result)
    if code in (ReasonCode.TYPE, ReasonCode.ADDRESS):
        return Outcome(queued, State.EXCLUDED, Reason(code, result.detail))
    if queued.kind is Kind.SITEMAP and code in (ReasonCode.NOT_FOUND, ReasonCode.GONE):
        return Outcome(queued, State.EXCLUDED, Reason(ReasonCode.NO_SITEMAP, str(result.status)))
    if code in (ReasonCode.WALL, ReasonCode.PAYMENT_REQUIRED):
        reason = Reason(code, result.detail)
        return Outcome(queued, State.FAILED, reason, is_walled=code is ReasonCode.WALL)
    if not is_temporary(result):
        return Outcome(queued, State.FAILED, Reason(code, result.error.sentence))
    attempts = queued.attempts + 1
    if attempts > settings.retries:
        return Outcome(queued, State.FAILED, Reason(code, f"{result.error} ({attempts} attempts)"))
    pause_s = settings.retry_pause_s * 3 ** (attempts - 1)
    pause_s = max(pause_s, retry_after_s(result.headers, result.finished_at) or 0.0)
    reason = Reason(ReasonCode.RETRY, f"{result.error}, attempt {attempts} of {settings.retries + 1}")
    return Outcome(queued, State.QUEUED, reason, retry_at=result.finished_at + pause_s)


def is_temporary(result: Failed) -> bool:
    """Whether a later request may succeed."""
    if result.kind is ErrorKind.HTTP:
        return result.status in (408, 425, 429) or (result.status or 0) >= 500
    return result.kind in _TEMPORARY
