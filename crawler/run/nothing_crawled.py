"""Why a run crawled nothing: neither a page nor an answer about a known page came from it."""

from __future__ import annotations

from shlex import quote

from crawler.clock import brief_time
from crawler.engine.progress import Progress
from crawler.frontier.revisit import VisitResult
from crawler.inspect.unknown_hosts import told_wait
from crawler.model import State
from crawler.reasons import EndCode, RunEnd
from crawler.settings.keys import terminal_name
from crawler.settings.settings import Settings
from crawler.store.location import db_argument
from crawler.store.protocols import EngineStore

#: The exit code of a run that crawled nothing.
NOTHING_CRAWLED = 5

#: The ends of a run that pages of earlier runs can bring about.
_PAGE_LIMITS = frozenset({EndCode.MAX_PAGES, EndCode.MAX_PAGES_NO_REVISIT_DUE, EndCode.MAX_PAGES_PER_SITE})


async def why_nothing(
    store: EngineStore, progress: Progress, end: RunEnd, settings: Settings, now: float
) -> str | None:
    """The sentence that says why the run crawled nothing; ``None`` if it crawled something, or had nothing to do.

    What any worker of the run fetched counts. A run had nothing to do if the store holds pages, no URL is left queued,
    and the run either sent no request, or came to the end of the frontier with no seed failed or excluded: a crawl that
    was killed shortly before its end may request a robots.txt once more. A run that makes only revisits, because a
    limit on pages is reached, has nothing to do if none is due.
    """
    visited = progress.revisits.total() - progress.revisits[VisitResult.UNREACHED]
    if progress.pages or visited or await store.fetched_by_run():
        return None
    is_complete = end.code is EndCode.DONE and not any(
        state in (State.FAILED, State.EXCLUDED) for state, _ in await store.seed_states()
    )
    has_work_left = await store.queued_count() and not (settings.revisit.enabled and end.code in _PAGE_LIMITS)
    if (is_complete or not progress.requests) and not has_work_left and await store.fetched_count():
        return None
    seeds = await store.seeds()
    reason = await _reason(store, end, settings, now, has_one_seed=len(seeds) == 1)
    if end.code in _PAGE_LIMITS:  # which explain themselves; the seeds may be fetched
        return f"nothing was crawled: {reason}"
    named = await store.unfetched_seed() or seeds[0]
    return f"nothing was crawled: {reason}; `crawler why {quote(named)}{db_argument(settings.store.db)}` explains it"


async def _reason(store: EngineStore, end: RunEnd, settings: Settings, now: float, *, has_one_seed: bool) -> str:
    if end.code is EndCode.SEEDS_LEFT_OUT:
        return f"every seed was left out: {end.code.told(end.detail, terminal_name)}"
    if end.code in _PAGE_LIMITS:
        return end.told(terminal_name)
    if (wait := await store.next_ready(now)) is not None:  # URLs are left: the run ended for another reason
        ended = end.told(terminal_name)
        if end.code is not EndCode.MAX_TIME or wait.until <= now:
            return ended
        waits = f"waits, first for {wait.group} until {brief_time(wait.until, now)}"
        return f"{ended}, and everything left {waits}: {told_wait(wait, settings.robots, now)}"
    seeds = await store.seed_states()
    if not seeds or seeds[0][0] in (State.FETCHED, State.QUEUED):
        return end.told(terminal_name)
    (state, reason), others = seeds[0], len(seeds) - 1
    more = f"; and {others:,} other reason{'s' * (others > 1)}" if others else ""
    verb = state if state is State.FAILED else f"{'was' if has_one_seed else 'were'} {state}"
    return f"{'the seed' if has_one_seed else 'the seeds'} {verb}: {reason}{more}"
