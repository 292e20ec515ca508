"""Why a run crawled nothing: neither a page came from it, nor an answer about a URL that pages led to."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from crawler.engine.progress import Progress
from crawler.formatting import many
from crawler.frontier.revisit import VisitResult
from crawler.inspect.unknown_hosts import first_wait
from crawler.model import State
from crawler.reasons import EndCode, ReasonCode, RunEnd
from crawler.settings.keys import terminal_name
from crawler.settings.settings import Settings
from crawler.store.location import db_argument

if TYPE_CHECKING:
    from crawler.store.sections import Store

_MAX_SENTENCES = 3  # of one code

#: The exit code of a run that crawled nothing.
NOTHING_CRAWLED = 5

#: The ends of a run that pages of earlier runs can bring about.
_PAGE_LIMITS = frozenset({EndCode.MAX_PAGES, EndCode.MAX_PAGES_NO_REVISIT_DUE, EndCode.MAX_PAGES_PER_SITE})
#: The ends of a run after which a higher limit lets the crawl go on.
_LIMITS = _PAGE_LIMITS | {EndCode.MAX_DISK}


async def why_nothing(store: Store, progress: Progress, end: RunEnd, settings: Settings, now: float) -> str | None:
    """The sentence that says why the run crawled nothing; ``None`` if it crawled something, or had nothing to do.

    What any worker of the run fetched counts. A run had nothing to do if the store holds pages, no URL is left queued,
    and the run either sent no request, or came to the end of the frontier with a sample drawn or with no seed failed or
    excluded: a crawl that was killed shortly before its end may request a robots.txt once more. A run that makes only
    revisits, because a limit on pages is reached, has nothing to do if none is due. Nor has one for which everything
    left waits too long, unless it sent requests and no server answered any: then perhaps the network is down.
    """
    visited = progress.revisits.total() - progress.revisits[VisitResult.UNREACHED]
    has_ended_urls = progress.ends_without_page > 0 and not progress.reached_nobody
    if progress.pages or has_ended_urls or visited or await store.fetched_by_run():
        return None
    queued = await store.queued_count()
    if end.code is EndCode.ALL_WAIT:
        has_no_work = not progress.reached_nobody
    elif queued:
        has_no_work = not progress.requests and settings.revisit.enabled and end.code in _PAGE_LIMITS
    else:
        is_complete = end.code is EndCode.DONE and (
            await store.samples.drawn() is not None
            or not any(state in (State.FAILED, State.EXCLUDED) for state, _ in await store.seed_states())
        )
        has_no_work = is_complete or not progress.requests
    if has_no_work and await store.fetched_count():
        return None
    seeds = await store.seeds()
    reason = await _reason(store, end, settings, now, has_one_seed=len(seeds) == 1)
    if queued and end.code in _LIMITS:  # the seeds may be fetched
        counted, left = "pages" if end.code in _PAGE_LIMITS else "files", many(queued, "queued URL")
        return f"nothing was crawled: {reason}; {counted} of all runs count, and a higher limit continues with {left}"
    named = await store.unfetched_seed() or seeds[0]
    return f"nothing was crawled: {reason}; `crawler why {quote(named)}{db_argument(settings.store.db)}` explains it"


async def _reason(store: Store, end: RunEnd, settings: Settings, now: float, *, has_one_seed: bool) -> str:
    if end.code in _PAGE_LIMITS:
        return end.message(terminal_name)
    if (wait := await store.next_ready(now)) is not None:  # URLs are left: the run ended for another reason
        ended = end.message(terminal_name)
        if end.code is EndCode.ALL_WAIT:
            return f"{ended}; it {first_wait(wait, settings.robots, now)}"
        if end.code is not EndCode.MAX_TIME or wait.until <= now:
            return ended
        return f"{ended}, and everything left {first_wait(wait, settings.robots, now)}"
    causes = causes_of(await store.seed_causes(), has_one_seed=has_one_seed)
    if end.code is EndCode.SEEDS_LEFT_OUT and len(causes) == 1:
        return f"every seed was left out: {causes[0].sentence}"
    return "; ".join(map(str, causes)) or end.message(terminal_name)


class Cause(msgspec.Struct, frozen=True):
    """Why so many seeds led to no page. ``seeds`` is ``None`` for the one seed of a crawl."""

    seeds: int | None
    state: State
    sentence: str

    def __str__(self) -> str:
        which = "the seed" if self.seeds is None else many(self.seeds, "seed")
        was = "" if self.state is State.FAILED else "was " if self.seeds in (None, 1) else "were "
        return f"{which} {was}{self.state}: {self.sentence}"


def causes_of(found: Iterable[tuple[State, ReasonCode, str, int]], *, has_one_seed: bool) -> list[Cause]:
    """The causes, most frequent first. Reasons with one code that differ much, as by host names, are one cause."""
    by_code: dict[tuple[State, ReasonCode], list[tuple[str, int]]] = {}
    for state, code, reason, seeds in found:
        by_code.setdefault((state, code), []).append((reason, seeds))
    causes = []
    for (state, code), reasons in by_code.items():
        if len(reasons) > _MAX_SENTENCES:
            causes.append(Cause(sum(seeds for _, seeds in reasons), state, code.meaning))
        else:
            causes += [Cause(seeds, state, code.message(reason, terminal_name)) for reason, seeds in reasons]
    causes.sort(key=lambda cause: -(cause.seeds or 0))
    return [replace(cause, seeds=None) for cause in causes] if has_one_seed else causes
