"""How many groups a worker process may hold, and for how long it holds one that must wait."""

from __future__ import annotations

from crawler.clock import Clock
from crawler.store.rows import HORIZON_S

#: How long a claimed group may wait for its next request, in seconds. One that must wait longer is given back.
HOLD_S = 10.0
_CROWDED_HOLD_S = 0.1  # the same while more groups are ready than may be claimed
_CROWDED_URLS = 2  # a group that is held so briefly is hardly asked more often
_CROWDED_S = 60.0  # a crowd is assumed for so long after it was last seen


class ClaimCapacity:
    """Adapts claims to the number of groups that are ready, and to other worker processes.

    At most half of the groups that may be claimed are past their pauses, or as many as there are slots. More would wait
    for the same slots, answers and processor, and each of them needs memory and an idle connection.

    There is a *crowd* while more groups are ready than may be claimed at once. A claimed group that waits for its pause
    then keeps another group from being claimed, so groups are held for a moment only. Already when a commit has claimed
    all that it asked for, others are ready, and a group whose claim ends has its next turn after theirs.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._crowded_until = 0.0
        self.others_wait = False  # groups that are ready, and were when this process last claimed some
        self._held = 0
        self._share: int | None = None

    def note_held(self, groups: int) -> None:
        """This process holds ``groups`` groups."""
        self._held = groups

    def learn_share(self, share: int | None) -> None:
        """How many groups are this process's share; ``None`` if no other process takes part."""
        self._share = share

    def room(self, most: int, slots: int, in_pause: int) -> int:
        """How many more groups may be claimed, of ``most`` in all. ``in_pause`` of those held wait for their pauses."""
        most_served = max((most + 1) // 2, slots)
        return max(0, min(most - self._held, most_served - (self._held - in_pause)))

    def note_claims(self, claimed: int, asked: int, most: int, now: float) -> None:
        """A commit has ``claimed`` groups of the ``asked`` for. ``most`` may be held."""
        if asked:
            self.others_wait = claimed == asked
            if self.others_wait and self._held >= most:
                self._crowded_until = now + _CROWDED_S

    @property
    def exceeds_share(self) -> bool:
        """Whether this process holds more groups than its share."""
        return self._share is not None and self._held > self._share

    @property
    def is_crowded(self) -> bool:
        """Whether there was a crowd lately."""
        return self._clock.now() < self._crowded_until

    def hold_s(self) -> float:
        """How long a claimed group may wait for its next request, in seconds."""
        return _CROWDED_HOLD_S if self.is_crowded else HOLD_S

    def horizon_s(self) -> float:
        """How long before its time a group may be claimed, in seconds."""
        return min(HORIZON_S, self.hold_s())

    def urls_per_group(self, delay_s: float) -> int:
        """How many URLs of a group are claimed with it, if requests to it are ``delay_s`` seconds apart at least."""
        return _CROWDED_URLS if self.is_crowded else 50 if delay_s < 0.5 else 10
