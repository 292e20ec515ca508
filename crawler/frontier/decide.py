"""The two decisions on a URL: what to do when its turn has come, and what follows from the answer.

URL states (every URL is in exactly one; the arrows are all there are)::

    (offered) --admitted--> queued --2xx--> fetched
    (offered) --refused---> excluded        queued --3xx--> redirected
    excluded --better offer, wider scope, unblocked--> queued
    queued --robots.txt, mirror, type, scope, blocked--> excluded
    queued --permanent failure, 204, 205, 206, or retries spent--> failed
    queued --temporary failure--> queued (later)
    redirected --the end of a crawl shows a circle--> failed
    failed --changed options, or a server tells of it (RUP)--> queued
    fetched, redirected, failed, excluded --revisit is due--> queued (:mod:`crawler.frontier.revisit_outcome`)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from crawler.frontier.hints import Hint
from crawler.frontier.offers import Offer
from crawler.frontier.operator import BLOCKED
from crawler.frontier.revisit import Again, Seen
from crawler.frontier.scope import Scope
from crawler.model import (
    Body,
    Failed,
    Fetched,
    FetchResult,
    Kind,
    Link,
    NotModified,
    PageFacts,
    Redirected,
    RobotsAction,
    RobotsCopy,
    State,
    header,
)
from crawler.reasons import ErrorKind, Reason, ReasonCode
from crawler.robots.http_dates import retry_after_s
from crawler.robots.mirrors import Cycle, Main
from crawler.robots.readings import SiteRules
from crawler.robots.rules import Verdict
from crawler.rup.protocol.subscription import FoundInfo
from crawler.sitemaps import Sitemap, SitemapKind, Trust
from crawler.url import NotCrawlable, canonicalise, host_of, registrable_domain

_INDEX_DEPTH = 3  # an index lists sitemaps; one that lists indexes of indexes is a trap


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How failed requests are repeated. The pauses are ``retry_pause_s``, 3 × that, 9 × that and so on."""

    retries: int = 3
    retry_pause_s: float = 10.0
    max_redirects: int = 10


@dataclass(frozen=True, slots=True)
class Queued:
    """A URL whose turn has come. ``attempts`` counts the failed ones so far, ``hops`` the redirects before it.

    It may be claimed shortly before ``due_at``, the time of its next attempt in seconds since the epoch.
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
    seen: Seen | None = None  # of a revisit: what it is compared with

    @property
    def wanted_itself(self) -> bool:
        """Asked for by the user or by the crawl, not for a link to it: ``--include`` and traps are not about it."""
        return self.seed or self.kind is not Kind.PAGE


@dataclass(frozen=True, slots=True)
class Fetch:
    """Go on: no rule stands against it."""

    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class Page:
    """A page row: what was fetched, and what may be kept of it. ``body`` is ``None`` where it may not be."""

    status: int
    content_type: str
    fetched_at: float
    facts: PageFacts
    body: Body | None
    body_bytes: int
    etag: str | None
    last_modified: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that one visit of a URL leaves behind.

    The store commits an outcome whole or not at all. Links to other groups may arrive a moment later.
    """

    queued: Queued
    state: State
    reason: Reason
    page: Page | None = None
    links: tuple[Link, ...] = ()
    offers: tuple[Offer, ...] = ()
    target: str | None = None  # where a redirect, or a mirror's main host, leads
    retry_at: float | None = None  # with state queued
    again: Again | None = None  # of a revisit
    hints: tuple[Hint, ...] = ()
    offered: FoundInfo | None = None  # a /rupinfo.txt


def before_robots(queued: Queued, scope: Scope) -> Outcome | None:
    """How ``queued`` ends if its site is not even to be asked for robots.txt."""
    return Outcome(queued, State.EXCLUDED, BLOCKED) if scope.blocks.covers(queued.url) else None


def before_fetch(
    queued: Queued,
    copy: RobotsCopy,
    rules: SiteRules | None,
    path: str,
    scope: Scope,
    main: Main | Cycle | None = None,
) -> Fetch | Outcome:
    """Whether to fetch ``queued`` under the robots.txt in force, or how it ends without a request.

    ``rules`` is the reading of ``copy`` where its action is *parse*; ``main`` is where the chain of ``Host``
    claims from this site leads, where it is a mirror. The scope is asked again, for
    a crawl may go on with narrower options than it was started with.
    """
    if refusal := scope.refusal(queued.url, queued.depth, is_seed=queued.wanted_itself):
        return Outcome(queued, State.EXCLUDED, refusal)
    match copy.action:
        case RobotsAction.FREE:
            return Fetch(None)
        case RobotsAction.RESTRICTED:
            return Outcome(
                queued,
                State.EXCLUDED,
                Reason(ReasonCode.ROBOTS, f"{copy.status} for /robots.txt closes the whole site"),
            )
        case RobotsAction.GIVEN_UP:
            return Outcome(queued, State.FAILED, Reason(ReasonCode.ROBOTS_GIVEN_UP, copy.status))
        case RobotsAction.UNREACHABLE:
            return Outcome(queued, State.EXCLUDED, Reason(ReasonCode.ADDRESS, copy.note or copy.status))
        case RobotsAction.PARSE:
            assert rules is not None, "a parsed robots.txt has rules"
            if rules.main_site is not None:
                return _use_main_site(queued, rules, main or Main(rules.main_site), path, scope)
            verdict = rules.verdict(path)
            if verdict.allowed:
                return Fetch(verdict)
            return Outcome(queued, State.EXCLUDED, _forbidden(verdict))
        case RobotsAction.DEFER:
            raise AssertionError("a deferred site is waited for, not decided on")
        case _:
            assert_never(copy.action)


def _forbidden(verdict: Verdict) -> Reason:
    return Reason(ReasonCode.ROBOTS, f"line {verdict.line}, {verdict.text.strip()} ({verdict.reading})")


def _use_main_site(queued: Queued, rules: SiteRules, main: Main | Cycle, path: str, scope: Scope) -> Outcome:
    """A mirror's URL ends here; the same path of its main host is offered in its place, once.

    A robots.txt must not send the crawl where it was not going: the scope is asked. (It has adopted
    the main host where that has the mirror's registrable domain: :func:`may_adopt`.)
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


def may_adopt(site: str, main_site: str) -> bool:
    """Whether the scope takes a mirror's main host up as its own (``docs/protocols.md``, section 2)."""
    return registrable_domain(host_of(site)) == registrable_domain(host_of(main_site))


def adopt_mains(scope: Scope, mirrors: Iterable[tuple[str, str | None]]) -> None:
    """Have the scope take up what it may of these: (mirror, main site; or none)."""
    for site, main_site in mirrors:
        if main_site is not None and may_adopt(site, main_site):
            scope.adopt(main_site)


def after_fetch(
    queued: Queued, result: FetchResult, facts: PageFacts | None, scope: Scope, settings: RetrySettings
) -> Outcome:
    """How the visit of ``queued`` ends. ``facts`` were read from the page where ``result`` is one."""
    match result:
        case Fetched():
            assert facts is not None
            return _page(queued, result, facts, scope, settings)
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
    """The outcome of a visit that met a bug of the crawler: the URL fails, the run goes on.

    ``fault`` is from :func:`crawler.errors.fault`.
    """
    return Outcome(queued, State.FAILED, Reason(ReasonCode.FAULT, fault))


def _page(queued: Queued, result: Fetched, facts: PageFacts, scope: Scope, settings: RetrySettings) -> Outcome:
    depth = queued.depth + 1
    page = Page(
        status=result.status,
        content_type=result.content_type,
        fetched_at=result.finished_at,
        facts=facts,
        body=Body(facts.body_sha256, result.plain, result.gzipped) if facts.index else None,
        body_bytes=facts.body_bytes,
        etag=header(result.headers, "etag"),
        last_modified=header(result.headers, "last-modified"),
    )
    refusals = scope.link_refusals(facts.links, depth)
    offers = [Offer(link.url, depth, refusal) for link, refusal in zip(facts.links, refusals, strict=True)]
    target = facts.canonical_url if facts.follow and facts.canonical_url != queued.url else None
    if target is not None:  # the page's main address, as near to the seeds as the page itself
        hops = queued.hops + 1  # a new address at each asking would go on for ever
        refusal = scope.refusal(target, queued.depth) or _too_many_hops(hops, settings)
        offers.append(Offer(target, queued.depth, refusal, hops))
    reason = Reason(ReasonCode.FETCHED if facts.index else ReasonCode.NOINDEX, str(result.status))
    return Outcome(queued, State.FETCHED, reason, page=page, links=facts.links, offers=tuple(offers), target=target)


def after_sitemap(queued: Queued, result: Fetched, sitemap: Sitemap, trust: Trust, scope: Scope) -> Outcome:
    """How the visit of a sitemap ends: what it lists is offered, as far as it may speak for it.

    A page that was only called a sitemap is asked for again as what it is, by the rules for pages.
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
        said.append(f"{mistrusted} URLs passed over: this sitemap may not speak for them")
    return Outcome(queued, State.FETCHED, Reason(ReasonCode.SITEMAP, "; ".join(said)), offers=tuple(offers))


def _is_page(queued: Queued, result: Fetched, sitemap: Sitemap) -> bool:
    """Whether robots.txt called a page a sitemap, as some do with their site map for people (or with somebody's page).

    /sitemap.xml is asked for unbidden, and many a server has its start page for an answer to everything.
    """
    is_html = sitemap.kind is SitemapKind.UNKNOWN and result.content_type in ("text/html", "application/xhtml+xml")
    return is_html and not queued.url.endswith("/sitemap.xml")


def _redirect(queued: Queued, result: Redirected, scope: Scope, settings: RetrySettings) -> Outcome:
    try:
        target = canonicalise(result.location, queued.url)
    except NotCrawlable as error:
        return Outcome(queued, State.FAILED, Reason(ReasonCode.BAD_REDIRECT, f"{result.status} to nowhere: {error}"))
    if target == queued.url:
        return Outcome(queued, State.FAILED, Reason(ReasonCode.BAD_REDIRECT, f"{result.status} to itself"))
    hops = queued.hops + 1
    refusal = scope.refusal(target, queued.depth, is_seed=queued.wanted_itself)
    refusal = refusal or _too_many_hops(hops, settings)  # a circle ends where it began: Store.fail_circles finds it
    offer = Offer(
        target,
        queued.depth,
        refusal,
        hops,
        queued.seed and (refusal is None or refusal.code is ReasonCode.BLOCKED),
        queued.kind,
    )
    reason = Reason(ReasonCode.REDIRECT, f"{result.status} to {target}")
    return Outcome(queued, State.REDIRECTED, reason, offers=(offer,), target=target)


def _too_many_hops(hops: int, settings: RetrySettings) -> Reason | None:
    if hops <= settings.max_redirects:
        return None
    return Reason(ReasonCode.REDIRECTS, f"{hops} in a row, at most {settings.max_redirects} are followed")


_CODES = {
    ErrorKind.DNS: ReasonCode.NO_ADDRESS,
    ErrorKind.CONNECT: ReasonCode.NO_CONNECTION,
    ErrorKind.TLS: ReasonCode.TLS,
    ErrorKind.TIMEOUT: ReasonCode.TIMEOUT,
    ErrorKind.TRUNCATED: ReasonCode.TRUNCATED,
    ErrorKind.PROTOCOL: ReasonCode.PROTOCOL,
    ErrorKind.ENCODING: ReasonCode.ENCODING,
    ErrorKind.TOO_LARGE: ReasonCode.TOO_LARGE,
    ErrorKind.UNWANTED_TYPE: ReasonCode.TYPE,
    ErrorKind.ADDRESS: ReasonCode.ADDRESS,
    ErrorKind.STOPPED: ReasonCode.TRUNCATED,
    ErrorKind.FAULT: ReasonCode.FAULT,
}


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


def _failure(queued: Queued, result: Failed, settings: RetrySettings) -> Outcome:
    code = failure_code(result)
    if code in (ReasonCode.TYPE, ReasonCode.ADDRESS):
        return Outcome(queued, State.EXCLUDED, Reason(code, result.detail))
    if queued.kind is Kind.SITEMAP and code in (ReasonCode.NOT_FOUND, ReasonCode.GONE):
        return Outcome(queued, State.EXCLUDED, Reason(ReasonCode.NO_SITEMAP, str(result.status)))
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
    """Whether a failure may pass by itself."""
    if result.kind is ErrorKind.HTTP:
        return result.status in (408, 425, 429) or (result.status or 0) >= 500
    return result.kind in (ErrorKind.DNS, ErrorKind.CONNECT, ErrorKind.TIMEOUT, ErrorKind.TRUNCATED)
