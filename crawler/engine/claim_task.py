"""Claim tasks: each goes through the batch of URLs of one claimed politeness group."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, assert_never

import msgspec

from crawler.engine import operator_log
from crawler.engine.answers import tagged
from crawler.engine.gate import Blocked, FetchPermit, GivenBack, Unsent
from crawler.engine.licences import Postponed
from crawler.errors import CrawlerError
from crawler.frontier.decide import (
    Allowed,
    Outcome,
    Queued,
    after_fault,
    awaiting_licence,
    before_fetch,
    before_robots,
    under_licences,
    without_answer,
)
from crawler.frontier.refusals import after_answer, without_request
from crawler.frontier.revisit_outcome import after_refusal
from crawler.model import Failed, Fetched, FetchResult, Kind, PageFacts, Preference, RobotsAction, State
from crawler.page.soft_404 import NO_EXAMPLE, NotFoundExample
from crawler.preferences.purposes import bounded
from crawler.robots.readings import SiteRules
from crawler.robots.rsl import inline_licence, named_licences
from crawler.store.rows import BrokenBody, Claim, ClaimedSite, RobotsTarget, SiteHold
from crawler.url import path_of

if TYPE_CHECKING:
    from crawler.engine.crawl import Crawl


class _Known(NamedTuple):
    """What is known of the site of a page before its request: rules, preferences for the page, and an example.

    ``stated`` are the preferences in robots.txt, ``filed`` those in the site's tdmrep.json, and ``not_found`` is the
    answer to a path that cannot exist.
    """

    rules: SiteRules | None
    stated: tuple[Preference, ...]
    filed: tuple[Preference, ...] = ()
    not_found: NotFoundExample = NO_EXAMPLE


class ClaimTask:
    """Works on one claim, one URL after the other, each at its time.

    Invariants:

    1. A URL leaves the task in one outcome, or in none: then it is still queued in the store.
    2. No page is requested under a robots copy that is not committed.
    3. Each page acquired from the counter is released or leads to an outcome with a page, also on cancellation.
    4. No commit has the log row of an answer alone, so a kill repeats no answer that is in the log: nothing is awaited
       between the row and the outcome of the answer, or, for a document, between the row and its entry among the unread
       answers. Documents that may not be kept unread are the exception.

    Cancellation between two URLs, or while one waits, loses nothing. A request that is cancelled in flight is logged as
    sent by the gate, and its URL is still queued.
    """

    def __init__(self, claim: Claim, context: Crawl) -> None:
        self._claim = claim
        self._context = context
        self._deferred: set[int] = set()  # sites whose robots.txt cannot be fetched now

    async def run(self) -> None:
        """Work until the batch is done, or until the group should be given back.

        Raises :class:`CrawlerError`. Any other exception is a bug outside the treatment of a single URL.
        """
        is_finished = False
        try:
            is_finished = await self._finish()
        finally:  # if others wait, the next claim of the group comes after theirs
            if not is_finished or self._context.bench.others_wait:
                self._context.gate.close_connections(self._claim.group)

    async def _finish(self) -> bool:
        """Work through the batch. Returns false if the group should be given back before its end."""
        context, claim = self._context, self._claim
        if not await self._answer_targets():
            return False
        for queued in claim.urls:
            if not context.outbox.has_room:
                await context.gate.wait_while_open(context.outbox.wait_for_room())
            if context.shutdown.requested or context.pages.ends_work or context.gate.should_release(claim.group):
                return False
            if queued.site_id in self._deferred or claim.sites[queued.site_id].target is not None:
                continue
            # It may have been claimed a little early.
            await context.gate.wait_until(max(queued.due_at, claim.sites[queued.site_id].rests_until))
            try:
                await self._process(queued)
            except Blocked:
                continue  # the next claim excludes the URL
            except GivenBack:
                return False  # the pace of the group says when it is to be claimed again
        return True

    async def _answer_targets(self) -> bool:
        """Get the URLs that the robots.txt of other sites wait for. Returns false if the group should be given back.

        No limit on pages counts them.
        """
        context, claim = self._context, self._claim
        sites = {site.name: site for site in claim.sites.values()}
        for target in claim.targets:
            if context.shutdown.requested or context.gate.should_release(claim.group):
                return False
            if target.site not in sites:
                sites[target.site] = await context.robots_cache.store_site(target.site)
            await context.gate.wait_until(sites[target.site].rests_until)
            try:
                if await context.licences.is_awaited(target):
                    await context.licences.answer(target, sites[target.site], claim.group)
                await context.robots_cache.answer(target, sites[target.site], claim.group)
            except Unsent:  # if it was blocked meanwhile, the next claim answers those that wait
                return False
        return True

    async def _process(self, queued: Queued) -> None:
        """Bring the site's robots.txt up to date, and visit the URL unless that takes the group too long.

        A bug that occurs in the visit fails this URL only: the crawl continues with the others.
        """
        context, site = self._context, self._claim.sites[queued.site_id]
        known = site.copy
        ended = before_robots(queued, context.scope) or without_request(queued, site.refusals)
        if ended is not None:
            self._refuse(ended)
            return
        copy = await context.robots_cache.in_force(site, self._claim.group)
        if isinstance(copy, RobotsTarget):
            return
        # A group with a new copy is kept longer: the copy might have expired when the group is claimed again.
        waits_long = copy is not known and context.gate.pauses_long(self._claim.group)
        if (ended := without_answer(queued, copy, context.scope)) is not None:
            self._refuse(ended)
        elif copy.action is RobotsAction.DEFER:
            self._deferred.add(queued.site_id)
        elif not context.shutdown.requested and not waits_long:
            try:
                await self._visit(queued, site)
            except (CrawlerError, Unsent):
                raise
            except Exception as error:
                self._refuse(after_fault(queued, context.progress.count_fault(error)))

    async def _visit(self, queued: Queued, site: ClaimedSite) -> None:
        """Decide on a URL and fetch it if that is the decision."""
        assert site.copy is not None, "in_force has set it"
        context = self._context
        context.rules_cache.require_reader(site.name, site.copy, self._claim.group)
        rules = await context.rules_cache.rules(site.name, site.copy)
        main = None if rules is None or rules.main_site is None else context.main_sites.main_of(site.name)
        path, purposes = path_of(queued.url), context.policy.purposes
        decision = before_fetch(queued, site.copy, rules, path, context.scope, main, purposes)
        match decision:
            case Outcome():
                self._refuse(decision)
            case Allowed():
                licensed = await self._under_licences(queued, rules, decision)
                if licensed is None:
                    return
                decision = licensed
                known = _Known(rules, decision.preferences)
                if context.tdmrep is not None and queued.kind is Kind.PAGE:
                    tdm = await context.tdmrep.of(site, self._claim.group, rules)
                    if tdm is None:
                        return  # the URL is still queued
                    known = known._replace(filed=tdm.of(path))
                if context.soft_404 is not None and queued.kind is Kind.PAGE:
                    example = await context.soft_404.of(site, self._claim.group, rules)
                    if example is None:
                        return
                    known = known._replace(not_found=example)
                permit = FetchPermit.under(site, self._claim.group, site.copy, rules, decision)
                await self._fetch(queued, permit, known)
            case _:
                assert_never(decision)

    async def _under_licences(self, queued: Queued, rules: SiteRules | None, allowed: Allowed) -> Allowed | None:
        """The decision under the licences that robots.txt names; ``None`` if the page is not requested now."""
        purposes = self._context.policy.purposes
        if rules is None or not purposes or queued.kind is not Kind.PAGE or not rules.preferences.licenses:
            return allowed
        urls, site = named_licences(rules.preferences.licenses), self._claim.sites[queued.site_id]
        said = await self._context.licences.of(site, self._claim.group, rules, urls, path_of(queued.url))
        if isinstance(said, Postponed):
            self._deferred.add(queued.site_id)
            self._context.outbox.add_hold(SiteHold(queued.site_id, said.until, said.why))
            return None
        if said is None:
            return None
        decision = under_licences(queued, allowed, said, purposes)
        if isinstance(decision, Outcome):
            self._refuse(decision)
            return None
        return decision

    async def _fetch(self, queued: Queued, permit: FetchPermit, known: _Known) -> None:
        context = self._context
        if counted := queued.seen is None and context.pages.is_limited:
            await context.gate.pause(permit.group)  # first: meanwhile another group may have this page
            if not await context.gate.wait_while_open(context.pages.acquire()):
                return
        is_page = False
        try:
            unread = await context.answers.unread(queued)
            answer = unread or await context.gate.send(context.answers.request(queued), permit)
            if answer is not None:  # else the robots copy has run out: the URL is still queued
                result = tagged(answer, known.rules)
                is_new = unread is None
                if is_new and isinstance(answer, Fetched) and context.answers.may_be_kept(result, known.filed):
                    context.outbox.add_unread(queued.id, answer)
                context.gate.begin_reading(permit.group)
                try:
                    outcome = await self._outcome(queued, permit, known, result, is_new=is_new)
                finally:
                    context.gate.end_reading(permit.group)
                if outcome is not None:
                    is_page = outcome.page is not None
                    context.main_sites.note_outcome(outcome)
        finally:
            if counted and not is_page:
                context.pages.release()
                context.alarm.ring()  # another group may be claimed for this page

    async def _outcome(
        self, queued: Queued, permit: FetchPermit, known: _Known, result: FetchResult, *, is_new: bool
    ) -> Outcome | None:
        """Put the outcome of an answer into the outbox; ``None`` if the answer is read again at a later claim.

        ``is_new``: the answer has come now, and was not left unread by another worker.
        """
        context = self._context
        decoded, facts = await context.answers.read(queued, result, known.not_found)
        if isinstance(decoded, Failed) and isinstance(result, Fetched):
            context.outbox.add_broken_body(BrokenBody.of(permit.site_id, decoded))
            if is_new:
                context.bench.unreadable(permit.group, decoded.kind)
        if isinstance(facts, PageFacts) and context.policy.purposes:
            facts = await self._licensed(queued, known, facts)
            if facts is None:
                context.outbox.leave_unread(queued.id)
                return None
        outcome = await context.answers.outcome(queued, decoded, facts, known.stated, known.filed)
        outcome = self._apply_refusals(outcome, result)
        is_retried = outcome.state is State.QUEUED
        if is_retried and (refused := before_robots(queued, context.scope)) is not None:
            self._refuse(refused)  # the operator has blocked its site during the request
        else:
            context.outbox.add_outcome(outcome)
        return outcome

    async def _licensed(self, queued: Queued, known: _Known, facts: PageFacts) -> PageFacts | None:
        """The facts of a page with what its licences say; ``None`` if one must come first: the URL stays queued."""
        urls = named_licences(facts.preferences)
        if not (urls or facts.inline_licence) or not self._context.answers.keeps(facts, known.filed):
            return facts
        site = self._claim.sites[queued.site_id]
        said = await self._context.licences.of(site, self._claim.group, known.rules, urls, path_of(queued.url))
        if isinstance(said, Postponed):
            self._context.outbox.add_outcome(awaiting_licence(queued, said.until, said.why))
            return None
        if said is None:
            return None
        if facts.inline_licence:
            said = (*said, *inline_licence(facts.inline_licence, queued.url))
        return msgspec.structs.replace(facts, preferences=bounded((*facts.preferences, *said)))

    def _apply_refusals(self, outcome: Outcome, result: FetchResult) -> Outcome:
        """The outcome of a URL. A site that rests from now on is left alone for the rest of the claim."""
        context, site = self._context, self._claim.sites[outcome.queued.site_id]
        rests_s = context.policy.robots.settings.rests_s
        outcome, news = after_answer(site.refusals, outcome, result, has_pages=site.fetched > 0, rests_s=rests_s)
        site.fetched += outcome.page is not None
        if news is not None:
            site.refusals = news.refusals
            context.outbox.add_refusals(news)
            if news.rests_until or news.refusals.closed:
                operator_log.refuses(site.name, news)
            if news.rests_until:
                self._deferred.add(site.id)
        return outcome

    def _refuse(self, outcome: Outcome) -> None:
        """Book an outcome without an answer."""
        context = self._context
        context.outbox.add_outcome(after_refusal(outcome, context.policy.revisit, context.clock.now()))


class ClaimTasks:
    """One task for each claimed group.

    Invariant: a group is entered at the gate while its task lives, and released through the outbox when the task ends,
    however it ends. A task that fails requests the shutdown.
    """

    def __init__(self, context: Crawl) -> None:
        self._context = context
        self._tasks: dict[int, asyncio.Task[None]] = {}  # by group number

    def start(self, claim: Claim) -> None:
        """Start a task on ``claim``."""
        context = self._context
        context.bench.enter(claim.group, claim.pace)
        task = asyncio.create_task(ClaimTask(claim, context).run())
        self._tasks[claim.group_id] = task
        context.progress.active += 1
        task.add_done_callback(lambda done: self._end(claim, done))

    def _end(self, claim: Claim, task: asyncio.Task[None]) -> None:
        context = self._context
        del self._tasks[claim.group_id]
        context.progress.active -= 1
        context.outbox.release(claim.group_id, claim.group, context.gate.leave(claim.group))
        if not task.cancelled() and (error := task.exception()) is not None:
            context.shutdown.fail(error)

    async def drain(self) -> None:
        """Wait until all tasks have ended."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def cancel(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
