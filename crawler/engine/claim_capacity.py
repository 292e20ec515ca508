"""How many groups a worker may hold, whether there are more than that, and for how long one may then be held."""

from __future__ import annotations

from crawler.clock import Clock
from crawler.store.protocols import HORIZON_S

HOLD_S = 10.0  # a group that must be left alone for longer goes back to the store
_CROWDED_HOLD_S = 0.1  # the same, while there are more groups than may be claimed
_CROWDED_URLS = 2  # a claim is hardly good for more then
_CROWDED_S = 60.0  # that is how it stays for so long after it was last seen


class ClaimCapacity:
    """Remembers for a while that there was a crowd of groups."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = 0.0
        self.share: int | None = None  # of the groups, where there are other workers

    def has_too_many(self, held: int) -> bool:
        """Whether others want for some of so many groups."""
        return self.share is not None and held > self.share

    def seen(self, now: float) -> None:
        self._until = now + _CROWDED_S

    @property
    def is_here(self) -> bool:
        return self._clock.now() < self._until

    def hold_s(self) -> float:
        """For how long a claimed group may wait for its next request, in seconds.

        Where there are more groups than may be claimed, one that waits would keep another from its turn.
        """
        return _CROWDED_HOLD_S if self.is_here else HOLD_S

    def horizon_s(self) -> float:
        """How long before its time a group may be claimed, in seconds."""
        return min(HORIZON_S, self.hold_s())

    def urls_per_group(self, delay_s: float) -> int:
        """How many URLs of a group are claimed with it, where requests to it are so far apart at least."""
        return _CROWDED_URLS if self.is_here else 50 if delay_s < 0.5 else 10
