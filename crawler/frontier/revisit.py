"""When to revisit a page, and which pages a limited number of revisits goes to. Pure.

Times are in seconds; those that end in ``_at`` count from the epoch.

**How often a page changes.** The changes of a page are modelled as a Poisson process of rate λ. The statistics follow
J. Cho and H. Garcia-Molina, "Estimating frequency of change", ACM TOIT 3(3), 2003, section 5, for visits at irregular
times and a known date of the last change. X is the number of visits that found a change. T is the observed time without
a change; a visit that found a change contributes the time since that change. If ``Last-Modified`` does not date the
change, it is assumed half-way between the two visits. Their estimate, X/T with a correction of its bias, says nothing
about a page that was never seen to change. So X and T are combined with a Gamma prior, which is conjugate to that
likelihood: λ is distributed as Γ(X + a, T + b), with the mean (X + a)/(T + b). With a = ½, most pages hardly ever
change, and some change all the time. b is the initial value of T. It is chosen so that a page about which nothing is
known is due after ``first_s``. Older visits, and b with them, lose weight over time, because the rate may change.

**When a page is due.** A page is due when one in three such pages has changed. The probability of a change within t is
1 − (T/(T + t))^(X + a). With one in two, the crawl misses changes for which it has the budget. With one in four, it
sends a fifth more requests to find a fiftieth more changes.

**Which pages a budget goes to.** The page that has most likely changed goes first. If the rates are known, pages are
then visited in proportion to their rates, which finds the most changes: of n visits in a unit of time,
n(1 − e^(−λ/n)) find a change, and one more visit finds equally much at all pages with the same λ/n. This order does not
keep the most copies *fresh* (Cho and Garcia-Molina, "Effective page refresh policies for Web crawlers", ACM TODS 28(4),
2003): for that, the crawl would have to neglect pages that change faster than it can visit them.
``python -m tests.bench revisit`` measures both.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import msgspec

from crawler.fields.declaration import setting
from crawler.fields.kinds import COUNT_OR_NO_LIMIT, FLAG, MORE_THAN_0_SECONDS
from crawler.model import State
from crawler.reasons import Reason

DAY_S = 86_400.0
DUE_CHANCE = 1 / 3  # a page is due when it has changed with this probability

#: The time until the second visit, in units of ``first_s``, by the document state of the page (``docs/protocols.md``,
#: section 3). Sitemaps and feeds count as DYNAMIC, because they report changes of other pages; redirects as STATIC.
TEMPO = {"STATIC": 4.0, None: 1.0, "DYNAMIC": 1 / 7}

_SHAPE = 0.5  # a
_KEPT = 0.9  # the part of X and T that stays at each visit, so that about the last ten visits count
_LEAST_S = 1.0  # the least value of T
_STAMPED_S = 60.0  # a Last-Modified this near to the answer means that the page was generated for the answer


@dataclass(frozen=True, slots=True)
class RevisitSettings:
    """``None`` is no limit. The budgets ``per_day`` (all sites) and ``per_site`` are restored evenly over the day."""

    enabled: bool = setting(
        "enabled",
        False,
        FLAG,
        "Visit pages again when they are due, as well as going on with the crawl.",
        "The run ends when no page is due any more. Start it as often as you like, for instance from cron.",
        option="--revisit",
    )
    first_s: float = setting(
        "first",
        7 * DAY_S,
        MORE_THAN_0_SECONDS,
        "The time until the second visit of a page about which nothing else is known.",
        "A page that calls its state DYNAMIC is due after a seventh of this time, and a page that calls it STATIC "
        "after four times as long. After that, the changes of the page itself decide.",
    )
    min_interval_s: float = setting(
        "min_interval",
        3600.0,
        MORE_THAN_0_SECONDS,
        "The least time between two visits of a page, whatever the page or a sitemap says.",
    )
    max_interval_s: float = setting(
        "max_interval",
        90 * DAY_S,
        MORE_THAN_0_SECONDS,
        "The longest time after which a page is due again.",
    )
    per_day: int | None = setting(
        "per_day",
        None,
        COUNT_OR_NO_LIMIT,
        "The most revisits in a day over all sites; 0 is no limit.",
        "The pages that are most likely to have changed go first. The budget is restored evenly: an hour gives "
        "back a 24th of it.",
    )
    per_site: int | None = setting(
        "per_site",
        None,
        COUNT_OR_NO_LIMIT,
        "The most revisits of one site in a day; 0 is no limit.",
    )


class Habits(NamedTuple):
    """The statistics of a page's changes: X (``changes``) and T (``watched_s``, which includes b of the prior)."""

    changes: float
    watched_s: float

    @property
    def rate_per_s(self) -> float:
        """The estimated number of changes in a second."""
        return (self.changes + _SHAPE) / self.watched_s

    def chance(self, since_s: float) -> float:
        """The probability that the page has changed ``since_s`` seconds after it was seen, from 0 to 1."""
        return 1.0 - math.pow(self.watched_s / (self.watched_s + max(0.0, since_s)), self.changes + _SHAPE)

    def due_s(self) -> float:
        """The number of seconds after which the page has changed with the probability :data:`DUE_CHANCE`."""
        return self.watched_s * _odds(self.changes + _SHAPE)


def expected(first_s: float) -> Habits:
    """The statistics of a page that was seen once, which is due after ``first_s``."""
    return Habits(0.0, first_s / _odds(_SHAPE))


def _odds(shape: float) -> float:
    """The time until a page is due, in units of T. ``shape`` is X + a."""
    return math.pow(1.0 - DUE_CHANCE, -1.0 / shape) - 1.0


def learn(habits: Habits, interval_s: float, *, changed: bool, unchanged_s: float | None = None) -> Habits:
    """The statistics after another visit, ``interval_s`` after the previous one.

    ``unchanged_s`` is the age of the last change, if the page dates it.
    """
    watched_s = interval_s
    if changed:
        dated = unchanged_s is not None and _STAMPED_S <= unchanged_s <= interval_s
        watched_s = unchanged_s if dated and unchanged_s is not None else interval_s / 2
    return Habits(habits.changes * _KEPT + changed, max(_LEAST_S, habits.watched_s * _KEPT + watched_s))


class NextVisit(NamedTuple):
    """The time of the next visit, the reason in words, and the earliest time to which a hint may move the visit."""

    due_at: float
    why: str
    not_before: float


def next_visit(
    habits: Habits, now: float, settings: RevisitSettings, *, fresh_s: float | None = None, failures: int = 0
) -> NextVisit:
    """The next visit of a page that was visited at ``now``, within the bounds of the settings.

    ``fresh_s`` is the lifetime of its answer according to ``Cache-Control`` or ``Expires``: for that time, the server
    expects no other visit. The pause doubles with each of ``failures`` visits in a row that found no page.
    """
    least_s, most_s = settings.min_interval_s, max(settings.min_interval_s, settings.max_interval_s)
    pause_s, why = habits.due_s(), "one in three such pages has changed by then"
    if failures:
        pause_s, why = pause_s * 2.0 ** min(failures, 30), f"visits in a row that found no page: {failures}"
    if fresh_s is not None and fresh_s > pause_s:
        pause_s, why = fresh_s, "its answer is valid until then (Cache-Control, Expires)"
    if pause_s < least_s:
        pause_s, why = least_s, "revisit.min_interval"
    elif pause_s > most_s:
        pause_s, why = most_s, "revisit.max_interval"
    return NextVisit(now + pause_s, why, now + least_s)


class VisitResult(StrEnum):
    """The result of a revisit."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    GONE = "gone"  # 404 or 410: the last version is kept
    LOST = "lost"  # a permanent error, or a rule forbids the request now: the last version is kept
    UNREACHED = "unreached"  # temporary failures only: nothing changes
    UNCLEAR = "unclear"  # a 304 whose headers forbid more than before: the whole page is requested


#: The results that leave the state of the URL, its links and its offers unchanged.
BACK = (VisitResult.UNCHANGED, VisitResult.UNREACHED)


@dataclass(frozen=True, slots=True)
class Seen:
    """The results of earlier visits of a URL: its state before it was queued again, and its newest page, if any.

    ``content`` and ``text`` are SHA-256 digests in hex. ``version`` is 0 if there is no page.
    """

    state: State
    reason: Reason
    target: str | None  # as in :class:`crawler.frontier.decide.Outcome`
    checked_at: float
    habits: Habits
    failures: int
    hint: str | None
    version: int
    status: int | None
    etag: str | None
    last_modified: str | None
    content: str | None
    text: str | None
    noindex: bool
    nofollow: bool
    noarchive: bool = False
    until: float = math.inf  # ``unavailable_after``, in seconds since the epoch
    snippet_chars: float = math.inf

    @property
    def validators(self) -> tuple[str | None, str | None]:
        """ETag and Last-Modified for a conditional request; ``None`` for a page whose directives depend on the date."""
        return (self.etag, self.last_modified) if self.until == math.inf else (None, None)


class RevisitRecord(msgspec.Struct, frozen=True):
    """The results of a revisit that the store keeps for the next one, beside the page.

    ``checked_at`` is ``None`` if the revisit gave no information.
    """

    found: VisitResult
    next: NextVisit
    habits: Habits
    failures: int = 0
    checked_at: float | None = None
    hint_was_right: bool | None = None
    etag: str | None = None
    last_modified: str | None = None
    content: str | None = None


def hint_trust(tried: int, changed: int) -> float:
    """The probability that a hint is right, by the record of its source at the site: 2/3 without a record.

    ``changed`` of ``tried`` hints were right. Hints of a source below :data:`DUE_CHANCE` have no effect.
    """
    return (changed + 2) / (tried + 3)


# --- the budget -------------------------------------------------------------------------------


def allowance(paid_until: float, per_day: int, now: float) -> int:
    """How many visits may be queued now: those of a day, without those that the budget has not yet regained."""
    return math.floor((now - max(paid_until, now - DAY_S)) * per_day / DAY_S + 1e-6)


def pay(paid_until: float, visits: int, per_day: int, now: float) -> float:
    """The time until which the budget is spent, after ``visits`` more visits."""
    return max(paid_until, now - DAY_S) + visits * DAY_S / per_day


class Choice:
    """Chooses the URLs that have most likely changed: at most ``in_all``, and ``of_site(site)`` of each site.

    ``None`` is no limit. It keeps only as many URLs in memory as it may choose. Among URLs of equal probability the
    lower number wins, so the same offers give the same choice.
    """

    def __init__(self, in_all: int | None, of_site: Callable[[int], int | None]) -> None:
        self._in_all = in_all
        self._of_site = of_site
        self._heaps: dict[int | None, tuple[int | None, list[tuple[float, int]]]] = {}

    def offer(self, site: int, number: int, chance: float) -> None:
        """Offer the URL ``number``, which has changed with the probability ``chance``."""
        key = self._key(site)
        most, heap = self._heaps[key]
        if most is None or len(heap) < most:
            heapq.heappush(heap, (chance, -number))
        elif most:
            heapq.heappushpop(heap, (chance, -number))

    def chosen(self) -> list[int]:
        """The numbers of the chosen URLs."""
        rows = (row for _, heap in self._heaps.values() for row in heap)
        return [-number for _, number in (rows if self._in_all is None else heapq.nlargest(self._in_all, rows))]

    def _key(self, site: int) -> int | None:
        if site in self._heaps:
            return site
        most = self._of_site(site)
        key = None if most is None else site
        if key not in self._heaps:
            bounds = [bound for bound in (most, self._in_all) if bound is not None]
            self._heaps[key] = (min(bounds, default=None), [])
        return key
