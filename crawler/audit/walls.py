"""The walls and refusals that a site answered by, as the log of requests has them, and the rests that follow (pure).

A wall that only the body of a page shows is in the log as a page. So the audit knows of fewer walls than the crawl.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from crawler.audit.records import LoggedRequest
from crawler.frontier.refusals import REFUSALS, REFUSED, WALLS, is_unclear
from crawler.model import Purpose
from crawler.reasons import ErrorKind
from crawler.url import ROBOTS_PATH


@dataclass(slots=True)
class Walls:
    """The walls and refusals of a site in one run, since it last answered otherwise. Times in seconds since the epoch.

    ``has_answered``: a page of the site was answered by 2xx in any run, so refusals of others do not make it rest.
    """

    run: int = 0
    has_answered: bool = False
    paths: set[str] = field(default_factory=set)  # of walls
    refused: set[str] = field(default_factory=set)
    rest_count: int = 0
    robots: int = 0  # in place of robots.txt
    rests_until: float = 0.0  # infinite: the site is closed
    last: LoggedRequest | None = None

    @property
    def began_at(self) -> float:
        """When the last wall ended that began a rest."""
        return 0.0 if self.last is None else self.last.finished_at

    def add(self, request: LoggedRequest, rests_s: tuple[float, ...]) -> None:
        """Count an answer. One in trouble, or none at all, says nothing, nor does a demand for another signature."""
        if request.error_kind == ErrorKind.SIGNATURE:
            return
        is_wall, is_robots = request.error_kind == ErrorKind.WALL, request.path == ROBOTS_PATH
        is_refused = not is_wall and request.status in REFUSALS and request.purpose == Purpose.PAGE
        if not is_wall and not is_refused:
            if is_unclear(request.status):
                return
            if is_robots:
                self.robots = 0
            else:
                self.paths, self.refused, self.rest_count = set(), set(), 0
                self.has_answered |= request.purpose == Purpose.PAGE and request.status in range(200, 300)
            return
        if is_robots:
            self.robots += 1
            self._rest(request, self.robots, rests_s)
            return
        (self.paths if is_wall else self.refused).add(request.path)
        is_refusing = len(self.refused) >= REFUSED and "/" in self.refused and not self.has_answered
        if self.rest_count or len(self.paths) >= WALLS or is_refusing:
            self.rest_count += 1
            self._rest(request, self.rest_count, rests_s)

    def _rest(self, request: LoggedRequest, number: int, rests_s: tuple[float, ...]) -> None:
        self.last = request
        self.rests_until = request.finished_at + rests_s[number - 1] if number <= len(rests_s) else inf
