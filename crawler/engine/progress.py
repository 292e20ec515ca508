"""The progress of a running crawl, for the live display and the summary."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec

from crawler.errors import fault
from crawler.frontier.decide import Outcome
from crawler.frontier.revisit import VisitResult
from crawler.model import Purpose, State
from crawler.reasons import ErrorKind, ReasonCode
from crawler.store.rows import RequestRow, Waiting

#: How many bugs of the crawler a run survives. A larger number cannot be about single answers.
MAX_FAULTS = 100


@dataclass(slots=True)
class Progress:
    """Counts of this run. Times in seconds since the epoch, lags in seconds.

    ``ends`` counts first visits by state, ``revisits`` later ones by what they found, ``troubles`` failed requests by
    HTTP status or :class:`ErrorKind`, ``refusals`` pages that were not requested, or not kept, because of a preference,
    by reason. ``pages`` counts the visits that left a row in the view ``pages``: a sitemap is
    ``fetched``, and not a page.
    """

    started_at: float
    requests: int = 0  # of the log
    sent_requests: int = 0  # of these: the others had no address to connect to
    wire_bytes: int = 0
    active: int = 0  # politeness groups that are worked on
    pages: int = 0
    ends_without_page: int = 0  # of URLs that pages led to: they failed, or redirected
    ends: Counter[State] = field(default_factory=Counter)
    revisits: Counter[VisitResult] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    refusals: Counter[ReasonCode] = field(default_factory=Counter)
    idle_for: Waiting | None = None  # the group that the whole crawl waits for
    frame_closes_at: float | None = None  # when the sample is drawn without the sites that the crawl waits for
    worst_lag_s: float = 0.0  # see crawler.engine.loop_lag
    recent_lag_s: float = 0.0  # since the last pop_lag
    paused_since: float | None = None  # when the operator paused the crawl
    low_disk: str | None = None  # the disk for whose free space the crawl pauses
    open_orders: int = 0  # blocks and unblocks that were read, and are not carried out yet

    def committed(self, requests: Iterable[RequestRow], outcomes: Iterable[Outcome]) -> None:
        """A commit took these in. What is not committed is not counted: it is done again, and would count twice."""
        for row in requests:
            self.sent(row)
        for outcome in outcomes:
            self.ended(outcome)

    def note_wait(self, waiting: Waiting | None, frame_closes_at: float = math.inf) -> None:
        """The whole crawl waits for this group, or for none; its sampling frame until ``frame_closes_at`` at most."""
        self.idle_for = waiting
        self.frame_closes_at = None if waiting is None or frame_closes_at == math.inf else frame_closes_at

    def sent(self, row: RequestRow) -> None:
        """Count a request of the log."""
        self.requests += 1
        self.sent_requests += row.is_sent
        self.wire_bytes += row.bytes
        if row.error is not None and row.error.kind is not ErrorKind.FAULT and not _is_nothing(row):
            self.troubles[str(row.status) if row.status and row.status >= 300 else row.error.kind.value] += 1

    def count_fault(self, error: Exception) -> str:
        """Count a bug of the crawler and describe it on one line. Raises it beyond :data:`MAX_FAULTS`."""
        if self.faults >= MAX_FAULTS:
            raise error
        self.troubles[ErrorKind.FAULT.value] += 1
        return fault(error)

    @property
    def reached_nobody(self) -> bool:
        """Whether requests were sent, and no server answered any."""
        return 0 < self.requests <= sum(n for trouble, n in self.troubles.items() if not trouble.isdigit())

    @property
    def faults(self) -> int:
        """How many bugs of the crawler this run has met."""
        return self.troubles[ErrorKind.FAULT.value]

    def report(self) -> dict[str, Any]:
        """All counts as one JSON object, for :meth:`sum_of` in another process."""
        report: dict[str, Any] = msgspec.to_builtins(self)
        return report

    @classmethod
    def sum_of(cls, started_at: float, reports: Iterable[Mapping[str, Any]]) -> Self:
        """The progress of several processes together. The crawl waits for a group only if each process waits."""
        total, waits = cls(started_at), list[Waiting | None]()
        for report in reports:
            for name in ("requests", "sent_requests", "wire_bytes", "pages", "ends_without_page", "active"):
                setattr(total, name, getattr(total, name) + report[name])
            total.late(report["worst_lag_s"])
            total.paused_since = total.paused_since or report["paused_since"]
            total.low_disk = total.low_disk or report["low_disk"]
            total.ends.update({State(state): n for state, n in report["ends"].items()})
            total.revisits.update({VisitResult(found): n for found, n in report["revisits"].items()})
            total.troubles.update(report["troubles"])
            total.refusals.update({ReasonCode(code): n for code, n in report["refusals"].items()})
            waits.append(None if report["idle_for"] is None else Waiting(*report["idle_for"]))
        known = [wait for wait in waits if wait is not None]
        if known and len(known) == len(waits):
            total.idle_for = min(known, key=lambda wait: wait.until)
        return total

    def late(self, lag_s: float) -> None:
        """The event loop came late by ``lag_s``."""
        self.worst_lag_s = max(self.worst_lag_s, lag_s)
        self.recent_lag_s = max(self.recent_lag_s, lag_s)

    def pop_lag(self) -> float:
        """The worst lag since the last call, in seconds."""
        lag_s, self.recent_lag_s = self.recent_lag_s, 0.0
        return lag_s

    def ended(self, outcome: Outcome) -> None:
        """Count the outcome of a visit."""
        if outcome.reason.code in (ReasonCode.PREFERENCE, ReasonCode.WITHHELD):
            self.refusals[outcome.reason.code] += 1
        if outcome.revisit is not None:
            self.revisits[outcome.revisit.found] += 1
        else:
            self.ends[outcome.state] += 1
            self.pages += outcome.page is not None
            is_linked = outcome.queued.depth > 0
            self.ends_without_page += is_linked and outcome.state in (State.FAILED, State.REDIRECTED)


def _is_nothing(row: RequestRow) -> bool:
    """Whether an error is no trouble: a robots.txt or sitemap that is missing, or a type that is not wanted."""
    if row.error is not None and row.error.kind is ErrorKind.UNWANTED_TYPE:
        return True
    return row.purpose is not Purpose.PAGE and row.status in (401, 403, 404, 410)


def trouble(key: str) -> str:
    """A key of :attr:`Progress.troubles` in words: the meaning of its kind of error; a status as it is."""
    return key if key.isdigit() else ErrorKind(key).meaning
