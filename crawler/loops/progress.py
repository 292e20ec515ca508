"""What a running crawl has done so far; the live display and the summary read it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from crawler.frontier.decide import Outcome
from crawler.frontier.revisit import Found
from crawler.model import Purpose, State
from crawler.store.interface import RequestRow, Waiting

_KINDS = [
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"^the name \S+ has", "a name has"),
        (r"^\S+ is no name", "no name"),
        (r"^(no connection to|no TLS with|no answer from) \S+", r"\1 a host"),
        (r"^\S+ is (an? [\w -]+ address)", r"\1"),
        (r"^\S+ is not loopback", "not loopback"),
    )
]


@dataclass(slots=True)
class Progress:
    """Counts of this run; ``ends`` of first visits by state, ``troubles`` by kind of failure."""

    started_at: float
    requests: int = 0
    wire_bytes: int = 0
    active: int = 0  # politeness groups being worked on
    ends: Counter[State] = field(default_factory=Counter)
    revisits: Counter[Found] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    idle_for: Waiting | None = None  # the group everything waits for
    worst_lag_s: float = 0.0  # see crawler.loops.lag
    recent_lag_s: float = 0.0  # the same, since the last take_lag
    paused_since: float | None = None  # by the operator
    stopped_by_operator: bool = False

    def sent(self, row: RequestRow) -> None:
        self.requests += 1
        self.wire_bytes += row.bytes
        if row.error is not None and not _is_nothing(row):
            self.troubles[str(row.status) if row.status and row.status >= 300 else kind_of(row.error)] += 1

    def late(self, lag_s: float) -> None:
        self.worst_lag_s = max(self.worst_lag_s, lag_s)
        self.recent_lag_s = max(self.recent_lag_s, lag_s)

    def take_lag(self) -> float:
        """The worst lag since this was last asked, in seconds."""
        lag_s, self.recent_lag_s = self.recent_lag_s, 0.0
        return lag_s

    def ended(self, outcome: Outcome) -> None:
        if outcome.again is not None:
            self.revisits[outcome.again.found] += 1
        else:
            self.ends[outcome.state] += 1


def kind_of(error: str) -> str:
    """What kind of trouble an error was: its words without the names and addresses that belong to one host."""
    words = error.partition(": ")[0]
    for pattern, kind in _KINDS:
        words = pattern.sub(kind, words)
    return words[:60]


def _is_nothing(row: RequestRow) -> bool:
    """No trouble: a site need not have a robots.txt or a sitemap, and what is no page is left alone as asked."""
    if row.error is not None and row.error.startswith("content type"):
        return True
    return row.purpose is not Purpose.PAGE and row.status in (401, 403, 404, 410)
