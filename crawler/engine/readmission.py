"""Queues known URLs again: those that changed seeds or settings admit, and those that the operator names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from crawler.frontier.hints import Hint, HintKind
from crawler.frontier.revisit import RevisitSettings
from crawler.frontier.scope import Scope
from crawler.reasons import FRAME_CODES, ReasonCode

if TYPE_CHECKING:
    from crawler.store.sections import Store

_AT_ONCE = 5000
_SOURCE = "user"

#: The reasons of URLs that new seeds may bring back, since the scope widens with them.
WIDENED = frozenset(
    {
        ReasonCode.SCOPE,
        ReasonCode.PATTERN,
        ReasonCode.DEPTH,
        ReasonCode.MIRROR,
        ReasonCode.MIRROR_CYCLE,
        *FRAME_CODES,
    }
)
#: The reasons that are decided at the turn of a URL, so another turn may decide otherwise.
_AT_ITS_TURN = frozenset({ReasonCode.ROBOTS, ReasonCode.PREFERENCE, ReasonCode.ADDRESS, ReasonCode.TYPE})


async def readmit(store: Store, scope: Scope, codes: Collection[ReasonCode]) -> int:
    """Queue the URLs with one of the reasons ``codes`` that the scope admits now; returns how many."""
    lifted, after = 0, -1
    while codes and (rows := await store.excluded(after, _AT_ONCE)):
        after = rows[-1][0]
        lifted += await _lift(store, scope, codes, rows)
    return lifted


async def decide_again(store: Store, scope: Scope, number: int) -> None:
    """Queue a URL that robots.txt, or another rule that is applied at its turn, has excluded."""
    rows = await store.excluded(number - 1, 1)
    await _lift(store, scope, _AT_ITS_TURN, [row for row in rows if row[0] == number])


async def _lift(
    store: Store, scope: Scope, codes: Collection[ReasonCode], rows: Iterable[tuple[int, str, ReasonCode, int, bool]]
) -> int:
    again, blocked = [], []
    for number, url, code, depth, is_asked_for in rows:
        if code in codes:
            refusal = scope.refusal(url, depth, is_seed=is_asked_for)
            if refusal is None:
                again.append(number)
            elif refusal.code is ReasonCode.BLOCKED:  # no other rule refuses it
                blocked.append((number, refusal))
    await store.requeue(again)
    await store.exclude(blocked)
    return len(again)


async def visit_again(
    store: Store, scope: Scope, urls: Sequence[str], settings: RevisitSettings, per_site: int | None, now: float
) -> int:
    """Queue a visit of each of ``urls`` that was visited or failed; returns how many are queued.

    Neither the least interval nor the budget of revisits counts, because the operator asks for these visits.
    """
    unbounded = replace(settings, per_day=None, per_site=None)
    failed = 0
    for start in range(0, len(urls), _AT_ONCE):
        hints = [Hint(url, HintKind.CHANGED, now, _SOURCE) for url in urls[start : start + _AT_ONCE]]
        failed += (await store.revisits.apply_hints(hints, unbounded, now, scope.refusal)).new  # all are known
    return failed + await store.revisits.queue_due(unbounded, now, now, per_site, hinted_only=True)
