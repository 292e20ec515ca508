"""The bound of a statistical test, computed exactly, and the test of intervals by it."""

from __future__ import annotations

from collections.abc import Callable
from math import comb


def least_share(draws: int, share: float, chance: float = 0.001) -> float:
    """The least share of ``draws`` that is seen with a probability above ``chance`` if each holds with ``share``."""
    below = 0.0
    for held in range(draws + 1):
        below += comb(draws, held) * share**held * (1 - share) ** (draws - held)
        if below >= chance:
            return held / draws
    return 1.0


#: Intervals that hold 93 times of 100 fail one test in a thousand; those that hold 80 times fail 81 of a hundred.
#: The long tests of ``tests/unit/sampling/test_coverage.py`` draw more.
RUNS = 100
_AT_LEAST = least_share(RUNS, 0.93)


def require_coverage(run: Callable[[int], dict[str, bool]]) -> None:
    """Require that each interval holds often enough: ``run`` says which do in the sample with a seed."""
    runs = [run(seed) for seed in range(RUNS)]
    shares = {what: sum(each[what] for each in runs) / RUNS for what in runs[0]}
    assert min(shares.values()) >= _AT_LEAST, shares
