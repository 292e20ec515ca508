"""From an answer to an outcome: has the page or sitemap read that came, and applies the rules."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from crawler.engine import sitemaps
from crawler.engine.crawl_policy import CrawlPolicy
from crawler.engine.hooks import Hooks
from crawler.engine.outbox import Outbox
from crawler.engine.parser_pool import PageReader
from crawler.engine.recording import of_broken, of_document
from crawler.engine.rules_cache import RulesCache
from crawler.engine.sitemap_messages import SitemapFacts, question_about_sitemap
from crawler.errors import Fault
from crawler.fetch.decoding import decode_gzip
from crawler.frontier.decide import Outcome, Queued, after_fetch, withheld
from crawler.frontier.revisit_outcome import after_revisit, feeds_of, same_sitemap
from crawler.frontier.rup_offer import RUPINFO_BYTES, after_rupinfo
from crawler.frontier.scope import Scope
from crawler.model import (
    NO_ANSWER,
    AnswerFacts,
    Failed,
    Fetched,
    FetchResult,
    Kind,
    NotModified,
    PageFacts,
    Preference,
    Purpose,
    Request,
    State,
)
from crawler.page.directives import SITE_TAG
from crawler.page.headers import direct, header_facts, kept_headers
from crawler.page.soft_404 import NO_EXAMPLE, NotFoundExample
from crawler.preferences.use import use_terms
from crawler.reasons import ErrorKind, Reason, ReasonCode, RequestError
from crawler.robots.readings import SiteRules
from crawler.robots.tdmrep import supplemented
from crawler.sitemaps.findings import Sitemap
from crawler.url import path_of

if TYPE_CHECKING:
    from crawler.store.sections import Store

R = TypeVar("R", bound=FetchResult)


class Answers:
    """Makes the request for a URL, and the outcome of its answer. Documents go into ``archive`` if there is one."""

    def __init__(
        self,
        policy: CrawlPolicy,
        scope: Scope,
        rules_cache: RulesCache,
        store: Store,
        reader: PageReader,
        archive: Outbox | None,
        hooks: Hooks | None = None,
    ) -> None:
        self._policy = policy
        self._scope = scope
        self._rules_cache = rules_cache
        self._store = store
        self._archive = archive
        self._reader = reader
        self._hooks = hooks

    def request(self, queued: Queued) -> Request:
        """The request for a URL; conditional if the URL was fetched before."""
        request = Request(queued.url, Purpose.PAGE, max_bytes=self._policy.fetch.max_body_bytes, keep_gzip=True)
        if queued.kind is Kind.SITEMAP:
            request = sitemaps.request_for(queued.url)
        elif queued.kind is Kind.RUP:
            request = Request(queued.url, Purpose.RUP, max_bytes=RUPINFO_BYTES, truncate=True, any_type=True)
        if queued.seen is None:
            return request
        etag, last_modified = queued.seen.validators
        return replace(request, etag=etag, last_modified=last_modified)

    async def unread(self, queued: Queued) -> Fetched | None:
        """The answer that the store has for ``queued``, if a worker ended before it had read it."""
        return await self._store.unread_answer(queued.id) if queued.is_answered else None

    def may_be_kept(self, result: FetchResult, filed: tuple[Preference, ...]) -> bool:
        """Whether the store may have a document before it is read: no header and no file of the site forbids that.

        ``result`` is :func:`tagged`.
        """
        if not isinstance(result, Fetched):
            return False
        if not filed and not direct(result.headers):
            return True
        return self.keeps(self._header_facts(result), filed)

    def keeps(self, facts: PageFacts, filed: tuple[Preference, ...]) -> bool:
        """Whether a page does not refuse by itself, nor by the file of its site, to be kept."""
        return withheld(_supplemented(facts, filed), self._policy.purposes).index

    async def read(
        self,
        queued: Queued,
        result: FetchResult,
        not_found: NotFoundExample = NO_EXAMPLE,
    ) -> tuple[FetchResult, PageFacts | SitemapFacts | None]:
        """The answer with its body decoded, and the facts of a document; an answer whose body is broken has failed.

        The body of a sitemap stays as it was received.

        ``result`` is :func:`tagged` with the rules of the robots.txt under which the request was sent. A parser process
        reads the document. One that an earlier worker has left unread is read alone in a process.
        A page is compared with ``not_found``.
        Raises :class:`crawler.errors.Fault` for a bug that the answer brought to light.
        """
        if isinstance(result, Failed) and result.kind is ErrorKind.FAULT:
            raise Fault(result.detail)
        if not isinstance(result, Fetched) or queued.kind is Kind.RUP:
            return result, None
        if queued.kind is Kind.SITEMAP:
            sitemap = await self._reader.ask(question_about_sitemap(result), is_alone=queued.is_answered)
            return result if sitemap.broken is None else _broken(result, sitemap.broken), sitemap
        shingles = bool(not_found.shingles)
        facts = await self._reader.read(result, is_alone=queued.is_answered, shingles=shingles)
        if not_found.is_known:
            facts = replace(facts, soft_404=not_found.is_like(result.url, facts), shingles=b"")
        result = await _as_read(result, facts)
        if isinstance(result, Failed) and self._archive is not None:
            self._archive.add_record(of_broken(result))
        return result, facts

    async def outcome(
        self,
        queued: Queued,
        result: FetchResult,
        read: PageFacts | SitemapFacts | None,
        stated: tuple[Preference, ...] = (),
        filed: tuple[Preference, ...] = (),
    ) -> Outcome:
        """The outcome of the request for ``queued``; :meth:`read` has returned ``result`` and ``read``.

        ``stated`` are the preferences about use in the robots.txt under which it was sent, and ``filed`` those of the
        site's tdmrep.json for this URL. Functions of the caller are awaited.

        Raises :class:`crawler.errors.Fault` for a bug that the answer brought to light,
        :class:`crawler.errors.HookError` for a function of the caller that failed, and
        :class:`crawler.errors.StoreError`.
        """
        facts: PageFacts | None = None
        sitemap = read if isinstance(read, SitemapFacts) else None
        if queued.kind is Kind.RUP:
            return after_rupinfo(queued, result, self._scope, self._policy.fetch)
        if sitemap is not None and isinstance(result, Fetched):
            outcome = await self._sitemap(queued, result, sitemap)
        else:
            if isinstance(result, Fetched) and isinstance(read, PageFacts):
                facts = withheld(_supplemented(read, filed), self._policy.purposes)
            elif isinstance(result, NotModified) and queued.kind is Kind.PAGE:
                facts = withheld(_supplemented(self._header_facts(result), filed), self._policy.purposes)
            answer = NO_ANSWER if facts is None else self._answer_facts(result)
            outcome = after_fetch(queued, result, facts, self._scope, self._policy.fetch, answer)
            if self._hooks is not None:
                outcome = await self._hooks.choose(await self._hooks.keep_wanted(outcome))
            if isinstance(result, Fetched) and facts is not None:
                facts = facts if outcome.page is None else outcome.page.facts
                self._record(queued, result, facts, stated)
                facts = None if facts.wall else facts
        if self._takes_feeds() and facts is not None and outcome.page is not None:
            feeds = feeds_of(facts, queued.depth, self._scope)
            outcome = replace(outcome, offers=(*outcome.offers, *feeds))
        if facts is not None:
            outcome = _with_preferences(outcome, result, facts, stated)
        digest = b"" if sitemap is None else sitemap.body_sha256
        return after_revisit(outcome, result, facts, self._policy.revisit, sitemap_sha256=digest)

    def _answer_facts(self, result: FetchResult) -> AnswerFacts:
        return AnswerFacts(
            kept_headers(result.headers, self._policy.kept_headers),
            result.address or None,
            None if result.tls is None else result.tls.version,
        )

    async def _sitemap(self, queued: Queued, result: Fetched, facts: SitemapFacts) -> Outcome:
        said = self._header_facts(result)
        self._record(queued, result, replace(said, wall=facts.wall))
        if not said.follow:
            facts = replace(facts, sitemap=Sitemap(facts.sitemap.kind, notes=("NOFOLLOW", *facts.sitemap.notes)))
        if same_sitemap(queued.seen, facts.body_sha256):
            return Outcome(queued, State.FETCHED, Reason(ReasonCode.FETCHED))
        hinting = self._policy.revisit.enabled
        about = (self._rules_cache, self._scope, self._store)
        return await sitemaps.outcome_of(queued, result, facts, *about, hinting=hinting)

    def _record(self, queued: Queued, result: Fetched, facts: PageFacts, stated: tuple[Preference, ...] = ()) -> None:
        if self._archive is not None:
            self._archive.add_record(of_document(queued, result, facts, stated))

    def _header_facts(self, result: Fetched | NotModified) -> PageFacts:
        robots = self._policy.robots
        return header_facts(
            result.headers, url=result.url, token=robots.token, reading=robots.settings.reading, now=result.finished_at
        )

    def _takes_feeds(self) -> bool:
        """Whether feeds are queued: they tell of changes, so they serve a crawl with revisits."""
        return self._policy.revisit.enabled and self._policy.discovery.sitemaps


def tagged(result: R, rules: SiteRules | None) -> R:
    """``result`` with the terms of the site's robots.txt for it: Robots-Tag lines and ``Content-Signal: use``."""
    if rules is None or not isinstance(result, Fetched | NotModified):
        return result
    use = use_terms(rules.preferences.of(path_of(result.url))) if rules.preferences.signals else ""
    tags = tuple((SITE_TAG, terms) for terms in (rules.robots_tag, use) if terms)
    return replace(result, headers=(*result.headers, *tags)) if tags else result


async def _as_read(answer: Fetched, facts: PageFacts) -> Fetched | Failed:
    """An answer whose body a parser process has decoded: the failure if there is none, the plain body if it is kept."""
    if facts.broken is not None:
        return _broken(answer, facts.broken)
    if facts.is_one_gzip or answer.gzipped is None:
        return answer
    decoded = await asyncio.to_thread(decode_gzip, answer.gzipped, facts.body_bytes)
    assert not isinstance(decoded, RequestError), "the parser process has decoded it"
    return replace(answer, plain=decoded[0], gzipped=None)


def _broken(answer: Fetched, why: RequestError) -> Failed:
    """The failure of an answer whose body cannot be decoded."""
    return Failed(
        answer.url,
        answer.started_at,
        answer.finished_at,
        answer.headers,
        answer.wire_bytes,
        exchange=answer.exchange,
        tls=answer.tls,
        address=answer.address,
        kind=why.kind,
        status=answer.status,
        detail=why.detail,
    )


def _supplemented(facts: PageFacts, filed: tuple[Preference, ...]) -> PageFacts:
    """The facts with those preferences of the site's tdmrep.json that hold for the page."""
    return replace(facts, preferences=supplemented(facts.preferences, filed)) if filed else facts


def _with_preferences(
    outcome: Outcome, result: FetchResult, facts: PageFacts, stated: tuple[Preference, ...]
) -> Outcome:
    """The outcome with all preferences about use. After a 304, those of the page stay as they were."""
    own = facts.preferences if isinstance(result, Fetched) else None
    if not own and not stated and outcome.queued.seen is None:
        return outcome
    return replace(outcome, own_preferences=own, robots_preferences=stated)
