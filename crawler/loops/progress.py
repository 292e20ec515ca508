"""What a running crawl has done so far; the live display and the summary read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from crawler.frontier.decide import Outcome
from crawler.model import Purpose, State
from crawler.store.interface import RequestRow, Waiting


@dataclass(slots=True)
class Progress:
    """Counts of this run; ``ends`` by state, ``troubles`` by kind of failure."""

    started_at: float
    requests: int = 0
    wire_bytes: int = 0
    active: int = 0  # politeness groups being worked on
    ends: Counter[State] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    idle_for: Waiting | None = None  # the group everything waits for
    lost_leases: int = 0  # see crawler.loops.lease
    worst_lag_s: float = 0.0  # see crawler.loops.lag

    def sent(self, row: RequestRow) -> None:
        self.requests += 1
        self.wire_bytes += row.bytes
        if row.error is not None and not _is_nothing(row):
            self.troubles[
                str(row.status) if row.status and row.status >= 300 else row.error.partition(":")[0][:60]
            ] += 1

    def report(self) -> dict[str, Any]:
        """All of it as one JSON object, for :meth:`sum_of`."""
        report = {field.name: getattr(self, field.name) for field in fields(self)}
        idle_for = None if self.idle_for is None else asdict(self.idle_for)
        return report | {"ends": dict(self.ends), "troubles": dict(self.troubles), "idle_for": idle_for}

    @classmethod
    def sum_of(cls, started_at: float, reports: Iterable[Mapping[str, Any]]) -> Self:
        """The progress of several processes together. Everything waits only where each of them does."""
        total, waits = cls(started_at), list[Waiting | None]()
        for report in reports:
            total.requests += report["requests"]
            total.wire_bytes += report["wire_bytes"]
            total.active += report["active"]
            total.lost_leases += report["lost_leases"]
            total.worst_lag_s = max(total.worst_lag_s, report["worst_lag_s"])
            total.ends.update({State(state): n for state, n in report["ends"].items()})
            total.troubles.update(report["troubles"])
            waits.append(None if report["idle_for"] is None else Waiting(**report["idle_for"]))
        known = [wait for wait in waits if wait is not None]
        if known and len(known) == len(waits):
            total.idle_for = min(known, key=lambda wait: wait.until)
        return total

    def ended(self, outcome: Outcome) -> None:
        self.ends[outcome.state] += 1


def _is_nothing(row: RequestRow) -> bool:
    """No trouble: a site need not have a robots.txt or a sitemap, and what is no page is left alone as asked."""
    if row.error is not None and row.error.startswith("content type"):
        return True
    return row.purpose is not Purpose.PAGE and row.status in (401, 403, 404, 410)
