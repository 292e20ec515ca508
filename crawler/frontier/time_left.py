"""How long a crawl will take: a range, from the URLs that are queued and from how many new ones each page brings.

Times are in seconds. The range is for a crawl that goes on as it does now: servers answer as they answered so far,
pages bring as many new URLs as pages of their depth have brought, and as many URLs end without a request.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from crawler.frontier.politeness import PolitenessSettings, capped_crawl_delay_s

#: Standard deviations by which new URLs may be more than expected.
_DEVIATIONS = 2.0
#: With no event in n trials, the probability is at most 3/n (95 % confidence, "rule of three").
_NONE_SEEN = 3.0
#: The time of an answer of which nothing is known yet, in seconds.
QUICK_S = 0.1
#: Answers quicker than this are recorded as this (:class:`crawler.frontier.politeness.AnswerTimes`).
_SHORTEST_RECORDED_S = 0.1
_STEPS = 60  # of a bisection


class GroupBacklog(NamedTuple):
    """The queued URLs of one politeness group. Times in seconds since the epoch, spans in seconds.

    ``queued`` counts the URLs that limits let through, ``sites`` the sites with such URLs, and ``room`` the pages that
    limits still let through on these sites, new URLs included. No request starts before ``ready_at``; the last retry is
    not due before ``last_due_at``. If a robots.txt is awaited, the crawler gives it up at ``give_up_at``: at the first
    failure after ``tried_until``. ``usual_s`` is the usual time of an answer, ``pause_s`` the last pause.
    """

    group: str
    queued: int
    sites: int = 1
    room: float = math.inf
    ready_at: float = 0.0
    last_due_at: float = 0.0
    give_up_at: float | None = None
    tried_until: float | None = None
    pause_s: float = 0.0
    usual_s: float = 0.0
    crawl_delay_s: float | None = None


class DepthCount(NamedTuple):
    """Numbers of URLs at one depth: queued, answered, and refused without a request."""

    queued: int = 0
    answered: int = 0
    refused: int = 0


class Limits(NamedTuple):
    """What ends the crawl before its frontier is empty; infinite without a limit. ``slots`` are requests at once."""

    pages: float = math.inf
    time_s: float = math.inf
    max_depth: float = math.inf
    slots: int = 64


class End(StrEnum):
    """What is known about the upper bound."""

    BOUNDED = "bounded"
    TOO_EARLY = "too_early"
    NO_END_IN_SIGHT = "no_end_in_sight"
    AWAITED = "awaited"  # only sites whose robots.txt is awaited are left, and are given up by then


class TimeLeft(NamedTuple):
    """The range of the time that is left, in seconds.

    ``most_s`` is ``None`` unless ``end`` is ``BOUNDED`` or ``AWAITED``. ``new_per_page`` is the number of new URLs that
    a page brings. ``slowest`` is the group that alone needs longest: ``slowest_s`` for its ``slowest_queued`` URLs. If
    the end is ``AWAITED``, it is that of the ``groups`` that is tried longest: for ``tried_s``.
    """

    least_s: float
    most_s: float | None
    end: End
    new_per_page: float
    slowest: str
    slowest_queued: int
    slowest_s: float
    groups: int = 1
    tried_s: float | None = None

    @property
    def reason(self) -> str:
        """Why there is no upper bound, in words; "" if there is one."""
        match self.end:
            case End.BOUNDED | End.AWAITED:
                return ""
            case End.TOO_EARLY:
                return "too early for an upper end"
            case End.NO_END_IN_SIGHT:
                return f"each page still brings at least one new URL ({self.new_per_page:.1f})"


def time_left(
    backlogs: Sequence[GroupBacklog],
    depths: Mapping[int, DepthCount],
    politeness: PolitenessSettings,
    limits: Limits,
    now: float,
    *,
    least_answers: int = 10,
) -> TimeLeft | None:
    """The time that is left at ``now`` (seconds since the epoch), or ``None`` if nothing is queued.

    Lower bound: the group that alone needs longest with the shortest of its pauses, and the time of all answers in
    ``limits.slots`` at once. Upper bound: the URLs that the queued ones will bring, ``queued / (1 - R)`` with R by
    depth; each group takes its longest pause, and all answers come after one another in the slots. Fewer answers than
    ``least_answers`` say too little for an upper bound. If every group waits for a robots.txt, the upper bound is the
    time at which the last is given up.
    """
    backlogs = [backlog for backlog in backlogs if backlog.queued > 0]
    if not backlogs or limits.pages <= 0:
        return None
    quick = [_Pace.shortest(backlog, _share_requested(depths), politeness, now) for backlog in backlogs]
    slowest = max(quick, key=lambda pace: pace.end_s)
    least_s = min(_least_s(quick, limits), limits.time_s)
    growth = _Growth.of(depths, limits.max_depth)
    known_s = [backlog.usual_s for backlog in backlogs if backlog.usual_s > 0]
    others_s = sum(known_s) / len(known_s) if known_s else 0.0
    paces = [_Pace.longest(each, growth.factor, others_s, politeness, now) for each in backlogs]
    if all(backlog.give_up_at is not None for backlog in backlogs):
        last = max(range(len(paces)), key=lambda n: paces[n].start_s)
        most_s = max(least_s, min(paces[last].start_s, limits.time_s))
        tried, brings, groups = backlogs[last], growth.new_per_page, len(backlogs)
        tried_s = most_s if tried.tried_until is None else min(max(0.0, tried.tried_until - now), most_s)
        return TimeLeft(least_s, most_s, End.AWAITED, brings, tried.group, tried.queued, least_s, groups, tried_s)
    is_early = sum(count.answered for count in depths.values()) < least_answers
    most_s = limits.time_s if is_early else _most_s(paces, limits)
    without_bound = End.NO_END_IN_SIGHT if growth.new_per_page >= 1 else End.TOO_EARLY
    end = End.BOUNDED if math.isfinite(most_s) else without_bound
    return TimeLeft(
        least_s,
        max(most_s, least_s) if end is End.BOUNDED else None,
        end,
        growth.new_per_page,
        slowest.group,
        slowest.queued,
        slowest.end_s,
    )


class _Pace(NamedTuple):
    """The requests of a group one after the other: the first at ``start_s``, each ``cycle_s`` after the one before."""

    group: str
    queued: int
    requests: float
    start_s: float
    cycle_s: float
    answer_s: float
    known_end_s: float  # it does not end before

    @property
    def end_s(self) -> float:
        """When the last request has its answer, if the answer to the first one is about to arrive."""
        return max(self.start_s + max(0.0, self.requests - 1) * self.cycle_s, self.known_end_s)

    def pages_by(self, span_s: float) -> float:
        """How many requests are answered within ``span_s``."""
        if span_s < self.start_s:
            return 0.0
        done = 1 + (span_s - self.start_s) / self.cycle_s if self.cycle_s > 0 else self.requests
        return min(self.requests, done)

    def of_queued(self) -> _Pace:
        """The same pace without the URLs that the queued ones may bring."""
        return self._replace(requests=min(self.requests, self.queued))

    @classmethod
    def shortest(cls, backlog: GroupBacklog, share: float, politeness: PolitenessSettings, now: float) -> _Pace:
        """With the pauses that apply without trouble; ``share`` of the URLs are requested."""
        answer_s = backlog.usual_s if backlog.usual_s > _SHORTEST_RECORDED_S else 0.0
        pause_s = _undisturbed_pause_s(backlog, answer_s, politeness.of(backlog.group))
        start_s = max(0.0, backlog.ready_at - now)
        due_s = max(0.0, backlog.last_due_at - now)
        requests = max(1.0, math.floor(backlog.queued * share))
        if backlog.give_up_at is not None:  # then the URLs fail without a request
            start_s, due_s, requests = min(start_s, max(0.0, backlog.give_up_at - now)), 0.0, 1.0
        return cls(backlog.group, backlog.queued, requests, start_s, pause_s + answer_s, answer_s, due_s)

    @classmethod
    def longest(
        cls, backlog: GroupBacklog, factor: float, others_s: float, politeness: PolitenessSettings, now: float
    ) -> _Pace:
        """With the last pause, if it was longer. Each URL stands for ``factor`` requests, and each site for one more.

        ``others_s`` is the time of an answer of other groups, for a group that has not answered.
        """
        answer_s = max(backlog.usual_s or others_s, _SHORTEST_RECORDED_S)
        pause_s = max(backlog.pause_s, _undisturbed_pause_s(backlog, answer_s, politeness.of(backlog.group)))
        start_s = max(0.0, max(backlog.ready_at, backlog.last_due_at, backlog.give_up_at or 0.0) - now)
        # A request in two brings a page, as in _most_s.
        requests = min((backlog.queued + backlog.sites) * factor, 2 * backlog.room) + backlog.sites
        cycle_s = pause_s + answer_s
        return cls(backlog.group, backlog.queued, requests, start_s + cycle_s, cycle_s, answer_s, 0.0)


def _undisturbed_pause_s(backlog: GroupBacklog, answer_s: float, politeness: PolitenessSettings) -> float:
    """The pause after an answer that took ``answer_s`` without trouble."""
    slow_s = min(politeness.slow_factor * answer_s, politeness.slow_cap_s)
    return max(politeness.delay_s, slow_s, capped_crawl_delay_s(backlog.crawl_delay_s, politeness))


def _share_requested(depths: Mapping[int, DepthCount]) -> float:
    """The share of the URLs that were requested, among those that left the frontier."""
    answered = sum(count.answered for count in depths.values())
    refused = sum(count.refused for count in depths.values())
    return answered / (answered + refused) if answered else 1.0 if not refused else 0.0


def _least_s(paces: Sequence[_Pace], limits: Limits) -> float:
    requests = sum(pace.requests for pace in paces)
    if limits.pages >= requests:
        in_flight_s = max(pace.answer_s for pace in paces)
        in_slots_s = sum(pace.requests * pace.answer_s for pace in paces) / limits.slots
        return max(in_slots_s - in_flight_s, *(pace.end_s for pace in paces))
    return _first_time_s(paces, limits.pages)


def _most_s(paces: Sequence[_Pace], limits: Limits) -> float:
    """Greedy scheduling needs at most the longest chain and the work shared by the slots (Graham 1966, section 2)."""
    unlimited_s = max(pace.end_s for pace in paces) + sum(p.requests * p.answer_s for p in paces) / limits.slots
    if limits.pages < math.inf:
        # Not all answers are pages. The groups answer side by side as far as URLs are queued; new URLs may all be of
        # the slowest group: one page after another there.
        answers = 2 * limits.pages
        queued = [pace.of_queued() for pace in paces]
        of_queued = min(answers, sum(pace.requests for pace in queued))
        in_slots_s = of_queued * max(pace.answer_s for pace in paces) / limits.slots
        one_by_one_s = (answers - of_queued) * max(pace.cycle_s for pace in paces)
        unlimited_s = min(unlimited_s, _first_time_s(queued, of_queued) + in_slots_s + one_by_one_s)
    return min(unlimited_s, limits.time_s)


def _first_time_s(paces: Sequence[_Pace], pages: float) -> float:
    """The first time at which ``pages`` requests may have answers, by bisection."""
    early_s, late_s = 0.0, max(pace.end_s for pace in paces)
    for _ in range(_STEPS):
        middle_s = (early_s + late_s) / 2
        if sum(pace.pages_by(middle_s) for pace in paces) >= pages:
            late_s = middle_s
        else:
            early_s = middle_s
    return early_s


class _Growth(NamedTuple):
    """How many requests a queued URL stands for at most, and the new URLs of a page at the deepest answered depth."""

    factor: float
    new_per_page: float

    @classmethod
    def of(cls, depths: Mapping[int, DepthCount], max_depth: float) -> _Growth:
        """The growth by depth: the URLs at depth d + 1 that the answered URLs at depth d have brought."""
        queued = sum(count.queued for count in depths.values())
        answered_at = [depth for depth, count in depths.items() if count.answered]
        if not queued:  # but for revisits, which bring hardly any new URLs
            return cls(1.0, 0.0)
        if not answered_at:
            return cls(math.inf if max_depth > 0 else 1.0, 0.0)
        known = {depth: _new_urls(depths, depth) for depth in answered_at if depth < max_depth}
        factors: dict[int, float] = {}
        deepest = max(depths)
        beyond = _sum_of_series(_upper(*known[max(known)])) if known else 1.0
        factor = 1.0 if deepest >= max_depth else beyond
        for depth in range(deepest, min(depths) - 1, -1):
            nearest = max((known_depth for known_depth in known if known_depth <= depth), default=None)
            if depth >= max_depth:
                factor = 1.0
            elif nearest is not None:
                rate = _upper(*known[nearest])
                factor = 1.0 + (rate * factor if rate else 0.0)
            factors[depth] = factor
        total = sum(count.queued * factors[depth] for depth, count in depths.items() if count.queued)
        last = max((depth for depth in known if any(c.queued and d >= depth for d, c in depths.items())), default=None)
        brought, answered = known[last] if last is not None else (0, 1)
        return cls(total / queued, brought / answered)


def _new_urls(depths: Mapping[int, DepthCount], depth: int) -> tuple[int, int]:
    """The URLs one deeper than ``depth`` that were queued, and the answered URLs at ``depth``."""
    deeper = depths.get(depth + 1, DepthCount())
    return deeper.queued + deeper.answered + deeper.refused, depths[depth].answered


def _upper(brought: int, answered: int) -> float:
    """An upper bound of new URLs a page. Pages bring them in batches, about as large as their mean."""
    spread = math.sqrt(brought * (1 + brought / answered))
    return (brought + _DEVIATIONS * spread + _NONE_SEEN) / answered


def _sum_of_series(rate: float) -> float:
    """``1 + rate + rate² + …``."""
    return 1 / (1 - rate) if rate < 1 else math.inf
