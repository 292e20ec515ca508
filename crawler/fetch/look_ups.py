"""Counts look-ups of names."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

#: The outcomes of look-ups that do not fail; others have the code of their failure (:data:`crawler.reasons.DNS_KINDS`).
FOUND = "found"
CACHED = "cached"  # the answer was known: nothing was asked


@dataclass(slots=True)
class LookUps:
    """The look-ups of this process: for each outcome their number, and the seconds that they took."""

    outcomes: dict[str, list[float]] = field(default_factory=dict)

    def add(self, outcome: str, took_s: float = 0.0) -> None:
        """Count a look-up that took ``took_s``."""
        counts = self.outcomes.setdefault(outcome, [0, 0.0])
        counts[0] += 1
        counts[1] += took_s

    def as_json(self) -> str:
        """The counts for the heartbeat: ``{"cached": [5, 0.0], "found": [2, 0.031]}``."""
        return json.dumps({outcome: [n, round(took_s, 3)] for outcome, (n, took_s) in self.outcomes.items()})
