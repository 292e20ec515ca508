"""When to come again, and what a budget is spent on. Pure; times in seconds, since the epoch where they end in ``_at``.

**How often a page changes.** Changes are taken for a Poisson process of rate λ. What visits tell of it is summed as in
J. Cho and H. Garcia-Molina, "Estimating frequency of change", ACM TOIT 3(3), 2003, section 5, for visits at irregular
times and a last change whose date is known: X visits found a change; T is the time without one that they saw, of a
visit that found a change the time since that change. Where ``Last-Modified`` does not date it, it was half-way between
the two visits. Their estimate, X/T less its bias, says nothing of a page never seen to change. So X and T are taken
together with a Gamma prior, which is conjugate to that likelihood: λ is distributed as Γ(X + a, T + b), and on average
(X + a)/(T + b). With a = ½ most pages hardly ever change and some all the time; b, with which T begins, is such that a
page of which nothing is known is due after ``first_s``. Older visits fade, and b with them, for a page's habits change.

**When it is due.** When one in three such pages has changed: the chance that it has within t is
1 − (T/(T + t))^(X + a). At one in two, changes are missed that a budget could have found; at one
in four, a fifth more requests find a fiftieth more changes.

**What a budget is spent on.** The page most likely to have changed goes first. With known rates that visits pages in
proportion to their rates, which finds the most changes: of n visits in a unit of time, n(1 − e^(−λ/n)) find one, and
one visit more finds as much everywhere where λ/n is the same. It is not what keeps most copies *fresh* (Cho and
Garcia-Molina, "Effective page refresh policies for Web crawlers", ACM TODS 28(4), 2003): that gives up pages which
change faster than they can be visited. ``python -m tests.bench revisit`` measures both.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from crawler.model import State
from crawler.reasons import Reason

DAY_S = 86_400.0
DUE_CHANCE = 1 / 3  # of having changed, at which a page is due

#: How long a page that says STATIC, DYNAMIC (``docs/protocols.md``, section 3) or nothing is given at first, in
#: ``first_s``; sitemaps and feeds, which bring the news of others, count as DYNAMIC, redirects as STATIC.
TEMPO = {"STATIC": 4.0, None: 1.0, "DYNAMIC": 1 / 7}

_SHAPE = 0.5  # a
_KEPT = 0.9  # of X and T at each visit: the last ten count
_LEAST_S = 1.0  # that T may come to
_STAMPED_S = 60.0  # a Last-Modified this near to the answer is that of a page made for it


@dataclass(frozen=True, slots=True)
class RevisitSettings:
    """``None`` is no limit. The budget, ``per_day`` in all and ``per_site``, is regained evenly over the day."""

    enabled: bool = False
    first_s: float = 7 * DAY_S
    min_interval_s: float = 3600.0
    max_interval_s: float = 90 * DAY_S
    per_day: int | None = None
    per_site: int | None = None


class Habits(NamedTuple):
    """What visits have told of a page's changes: X and T, in T what is expected of a page like it."""

    changes: float
    watched_s: float

    @property
    def rate_per_s(self) -> float:
        """How often it changes, as far as is known."""
        return (self.changes + _SHAPE) / self.watched_s

    def chance(self, since_s: float) -> float:
        """How likely it is to have changed ``since_s`` seconds after it was seen, from 0 to 1."""
        return 1.0 - math.pow(self.watched_s / (self.watched_s + max(0.0, since_s)), self.changes + _SHAPE)

    def due_s(self) -> float:
        """After how long the chance that it has changed is :data:`DUE_CHANCE`."""
        return self.watched_s * _odds(self.changes + _SHAPE)


def expected(first_s: float) -> Habits:
    """The habits of a page that was seen once: it is due after ``first_s``."""
    return Habits(0.0, first_s / _odds(_SHAPE))


def _odds(shape: float) -> float:
    """How much longer than it has been watched a page is left alone, if it changed so often meanwhile."""
    return math.pow(1.0 - DUE_CHANCE, -1.0 / shape) - 1.0


def learn(habits: Habits, interval_s: float, *, changed: bool, unchanged_s: float | None = None) -> Habits:
    """The habits after a visit ``interval_s`` after the one before; ``unchanged_s`` is how old the last change is."""
    watched_s = interval_s
    if changed:
        dated = unchanged_s is not None and _STAMPED_S <= unchanged_s <= interval_s
        watched_s = unchanged_s if dated and unchanged_s is not None else interval_s / 2
    return Habits(habits.changes * _KEPT + changed, max(_LEAST_S, habits.watched_s * _KEPT + watched_s))


class NextVisit(NamedTuple):
    """When to come again, in words why, and before when no hint may bring it."""

    due_at: float
    why: str
    not_before: float


def next_visit(
    habits: Habits, now: float, settings: RevisitSettings, *, fresh_s: float | None = None, failures: int = 0
) -> NextVisit:
    """When to visit a page again after a visit at ``now``, within the bounds of the settings.

    ``fresh_s`` is for how long its answer may be used, as ``Cache-Control`` or ``Expires`` said: the server sees no
    use in an earlier visit. The pause doubles with each of ``failures`` visits in a row that found no page.
    """
    least_s, most_s = settings.min_interval_s, max(settings.min_interval_s, settings.max_interval_s)
    pause_s, why = habits.due_s(), "one in three such pages has changed by then"
    if failures:
        pause_s, why = pause_s * 2.0 ** min(failures, 30), f"visits in a row that found no page: {failures}"
    if fresh_s is not None and fresh_s > pause_s:
        pause_s, why = fresh_s, "its answer holds until then (Cache-Control, Expires)"
    if pause_s < least_s:
        pause_s, why = least_s, "revisit.min_interval"
    elif pause_s > most_s:
        pause_s, why = most_s, "revisit.max_interval"
    return NextVisit(now + pause_s, why, now + least_s)


class Found(StrEnum):
    """What a revisit came to."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    GONE = "gone"  # 404 or 410: the last version is kept
    LOST = "lost"  # an error that lasts, or a rule that forbids it now: the last version is kept
    UNREACHED = "unreached"  # temporary failures only: nothing is known, everything stays as it was
    UNCLEAR = "unclear"  # a 304 whose headers ask for other treatment than before: it is asked for whole


#: The URL's state, and what it leads to, stay.
BACK = (Found.UNCHANGED, Found.UNREACHED)


@dataclass(frozen=True, slots=True)
class Seen:
    """What earlier visits of a URL left: its state before it was queued again, and its newest page if it has one.

    ``content`` and ``text`` are SHA-256 in hex; ``version`` is 0 where there is no page.
    """

    state: State
    reason: Reason
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

    @property
    def validators(self) -> tuple[str | None, str | None]:
        """ETag and Last-Modified to ask with; a 304 would not do where what a page says depends on the date."""
        return (self.etag, self.last_modified) if self.until == math.inf else (None, None)


@dataclass(frozen=True, slots=True)
class Again:
    """What a revisit leaves, beside the page, for the next one. ``checked_at`` is ``None`` where it told nothing."""

    found: Found
    next: NextVisit
    habits: Habits
    failures: int = 0
    checked_at: float | None = None
    hint_was_right: bool | None = None
    etag: str | None = None
    last_modified: str | None = None
    content: str | None = None


def hint_trust(tried: int, changed: int) -> float:
    """How likely a hint is right, by the record of its source at its site: two of three, before there is one.

    Hints of a source below :data:`DUE_CHANCE` bring nothing forward.
    """
    return (changed + 2) / (tried + 3)


# --- the budget -------------------------------------------------------------------------------


def allowance(paid_until: float, per_day: int, now: float) -> int:
    """How many visits may be planned now: a day's, less those whose time is not over yet."""
    return math.floor((now - max(paid_until, now - DAY_S)) * per_day / DAY_S + 1e-6)


def pay(paid_until: float, visits: int, per_day: int, now: float) -> float:
    """Until when the budget is spent after so many visits more."""
    return max(paid_until, now - DAY_S) + visits * DAY_S / per_day


class Choice:
    """The likeliest to have changed of many URLs: so many ``in_all``, and ``of_site`` each; ``None`` is no limit.

    Holds no more than it may choose. Equals are told apart by their number, so that a choice can be repeated.
    """

    def __init__(self, in_all: int | None, of_site: Callable[[int], int | None]) -> None:
        self._in_all = in_all
        self._of_site = of_site
        self._heaps: dict[int | None, tuple[int | None, list[tuple[float, int]]]] = {}

    def offer(self, site: int, number: int, chance: float) -> None:
        """Take a URL into consideration."""
        key = self._key(site)
        most, heap = self._heaps[key]
        if most is None or len(heap) < most:
            heapq.heappush(heap, (chance, -number))
        elif most:
            heapq.heappushpop(heap, (chance, -number))

    def chosen(self) -> list[int]:
        """The numbers of the URLs chosen."""
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
