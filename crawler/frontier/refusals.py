"""What follows when a site refuses its documents one by one, although its robots.txt allows them. Pure.

A wall (:mod:`crawler.page.walls`) is a wish of the owner, and so is a refusal of every URL. A site that gives such
answers rests: nothing of it is requested for a time. Then one URL is requested again. If the site refuses that URL too,
it rests for longer, and at last it is closed. If it answers otherwise, it is open, and the URLs that it refused are
queued again. ``docs/protocols.md``, section 8, has the rule and its settings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from crawler.model import FetchResult, Kind, State
from crawler.reasons import Reason, ReasonCode
from crawler.url import split

if TYPE_CHECKING:
    from crawler.frontier.decide import Outcome, Queued

#: So many walls in a row make a site rest.
WALLS = 3
#: So many refused URLs in a row, the front page among them, make a site rest that has brought no page.
REFUSED = 10
#: The statuses of a refusal. A 404 says something about the URL, these say something about who asks.
REFUSALS = frozenset({401, 402, 403, 451})

_WALLED_CODES = frozenset({ReasonCode.WALL})
_REFUSED_CODES = frozenset({ReasonCode.WALL, ReasonCode.CLIENT_ERROR, ReasonCode.PAYMENT_REQUIRED})


@dataclass(frozen=True, slots=True)
class Refusals:
    """The refusals of a site that follow each other. Each is for another URL: a refused URL is not asked for again."""

    walls: int = 0
    refused: int = 0
    front_refused: bool = False
    rest_count: int = 0  # since the site last answered otherwise
    probe: int | None = None  # the number of the URL that is requested after the rest
    closed: bool = False

    @property
    def is_probed(self) -> bool:
        """Whether only one URL of the site may be requested."""
        return self.rest_count > 0 and not self.closed


NO_REFUSALS = Refusals()


class RefusalNews(NamedTuple):
    """New refusals of a site. ``rests_until`` is in epoch seconds, 0 if it does not rest.

    ``queues_again`` are the codes of those failed URLs of the site that are queued again, because it is open.
    ``before`` are the refusals that the worker knew: it adds the difference to those that are stored.
    """

    site_id: int
    refusals: Refusals
    rests_until: float = 0.0
    queues_again: frozenset[ReasonCode] = frozenset()
    before: Refusals = NO_REFUSALS

    @property
    def is_open(self) -> bool:
        """Whether the site has answered otherwise. Other news only add to the refusals that are known."""
        return self.refusals == NO_REFUSALS


def after_answer(
    before: Refusals, outcome: Outcome, result: FetchResult, *, has_pages: bool, rests_s: tuple[float, ...]
) -> tuple[Outcome, RefusalNews | None]:
    """The outcome of a URL, and what it changes for its site; ``None`` if nothing.

    ``has_pages``: the site has brought a page. ``rests_s`` are the rests in seconds, the first one first.
    """
    queued = outcome.queued
    is_wall = outcome.is_walled
    is_refused = not is_wall and result.status in REFUSALS and queued.kind is Kind.PAGE
    if not is_wall and not is_refused:
        if outcome.state is State.QUEUED or before == NO_REFUSALS or is_unclear(result.status):
            return outcome, None
        codes = (_REFUSED_CODES if before.refused >= REFUSED else _WALLED_CODES) if before.is_probed else frozenset()
        return outcome, RefusalNews(queued.site_id, NO_REFUSALS, queues_again=codes)
    now = replace(
        before,
        walls=before.walls + is_wall,
        refused=before.refused + is_refused,
        front_refused=before.front_refused or (is_refused and split(queued.url).path == "/"),
    )
    is_enough = before.is_probed or now.walls >= WALLS or (now.refused >= REFUSED and now.front_refused)
    if not is_enough or (is_refused and has_pages and not before.is_probed):
        return outcome, None if has_pages and is_refused else RefusalNews(queued.site_id, now, before=before)
    if before.rest_count >= len(rests_s):
        return outcome, RefusalNews(queued.site_id, replace(now, closed=True, probe=None), before=before)
    until = result.finished_at + rests_s[before.rest_count]
    now = replace(now, rest_count=before.rest_count + 1, probe=queued.id)
    return _again(outcome, until), RefusalNews(queued.site_id, now, until, before=before)


def without_request(queued: Queued, refusals: Refusals) -> Outcome | None:
    """The outcome of ``queued`` if its site is closed, so that not even robots.txt is requested."""
    if not refusals.closed:
        return None
    from crawler.frontier.decide import Outcome  # the rows of the store need the rest of this module only

    evidence = f"it answered by walls or refusals, also after {refusals.rest_count} rests"
    return Outcome(queued, State.EXCLUDED, Reason(ReasonCode.REFUSED_AT_THE_EDGE, evidence))


def is_unclear(status: int | None) -> bool:
    """Whether an answer says nothing about the site: there was none, or the server is in trouble."""
    return status is None or status == 429 or status >= 500


def _again(outcome: Outcome, until: float) -> Outcome:
    """The outcome of a URL that is requested after the rest of its site. A page that is revisited stays as it is."""
    if outcome.revisit is not None:
        return outcome
    reason = Reason(ReasonCode.RETRY, f"{outcome.reason.sentence}; asked again when its site has rested")
    return msgspec.structs.replace(outcome, state=State.QUEUED, reason=reason, retry_at=until)
