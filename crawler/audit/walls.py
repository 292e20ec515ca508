"""The walls that a site answered by, as the log of requests has them, and the rests that follow (pure).

A wall that only the body of a page shows is in the log as a page. So the audit knows of fewer walls than the crawl.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from crawler.audit.records import LoggedRequest
from crawler.frontier.refusals import WALLS, is_unclear
from crawler.reasons import ErrorKind
from crawler.url import ROBOTS_PATH


@dataclass(slots=True)
class Walls:
    """The walls of a site in one run, since it last answered otherwise. Times in seconds since the epoch."""

    run: int = 0
    paths: set[str] = field(default_factory=set)
    rest_count: int = 0
    robots: int = 0  # in place of robots.txt
    rests_until: float = 0.0  # infinite: the site is closed
    last: LoggedRequest | None = None

    @property
    def began_at(self) -> float:
        """When the last wall ended that began a rest."""
        return 0.0 if self.last is None else self.last.finished_at

    def add(self, request: LoggedRequest, rests_s: tuple[float, ...]) -> None:
        """Count an answer. One in trouble, or none at all, says nothing."""
        is_wall, is_robots = request.error_kind == ErrorKind.WALL, request.path == ROBOTS_PATH
        if not is_wall:
            if is_unclear(request.status):
                return
            if is_robots:
                self.robots = 0
            else:
                self.paths, self.rest_count = set(), 0
            return
        if is_robots:
            self.robots += 1
            self._rest(request, self.robots, rests_s)
            return
        self.paths.add(request.path)
        if self.rest_count or len(self.paths) >= WALLS:
            self.rest_count += 1
            self._rest(request, self.rest_count, rests_s)

    def _rest(self, request: LoggedRequest, number: int, rests_s: tuple[float, ...]) -> None:
        self.last = request
        self.rests_until = request.finished_at + rests_s[number - 1] if number <= len(rests_s) else inf
