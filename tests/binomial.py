"""The bound of a statistical test, computed exactly."""

from __future__ import annotations

from math import comb


def least_share(draws: int, share: float, chance: float = 0.001) -> float:
    """The least share of ``draws`` that is seen with a probability above ``chance`` if each holds with ``share``."""
    below = 0.0
    for held in range(draws + 1):
        below += comb(draws, held) * share**held * (1 - share) ** (draws - held)
        if below >= chance:
            return held / draws
    return 1.0
