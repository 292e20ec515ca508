"""The robots.txt of the server's own site: from its tree, or fetched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

from msgspec.structs import replace

from crawler.clock import Clock
from crawler.engine.gate import Fetcher
from crawler.model import Failed, Purpose, Reading, Request, RobotsAction, RobotsCopy
from crawler.reasons import DNS_KINDS, ErrorKind
from crawler.robots.readings import SiteRules, read
from crawler.robots.response import RobotsSettings, interpret
from crawler.robots.text import STRICT_MAX_BYTES, parse

#: How long the answer of a site that nobody serves is valid, and the longest validity of an answer, in seconds.
_NOBODY_S = 300.0
_HOLDS_S = 3600.0
_SETTINGS = RobotsSettings()
_NOBODY = DNS_KINDS | {ErrorKind.CONNECT}


#: For a product token, a test whether a robots.txt allows a path.
Allows = Callable[[str], Callable[[str], bool]]


class OwnRobots:
    """The robots.txt of ``site``.

    The file in the tree is read each time. If there is none, the server fetches it from the site, at most once an hour.
    A site that nobody serves counts as one without a file. An answer that defers holds all reports back.
    """

    def __init__(self, site: str, file: Path | None, fetcher: Fetcher, clock: Clock) -> None:
        self._site = site
        self._file = file  # None if the tree is not the site's root
        self._fetcher = fetcher
        self._clock = clock
        self._copy: RobotsCopy | None = None

    async def allows(self) -> Allows | None:
        """The paths that the server may report to each robot; ``None`` while that is unknown."""
        body = await asyncio.to_thread(self._in_tree)
        if body is None:
            copy = await self._served()
            if copy.action is RobotsAction.RESTRICTED:
                return lambda token: lambda path: False
            if copy.action is RobotsAction.DEFER:
                return None
            body = (copy.body or b"") if copy.action is RobotsAction.PARSE else b""
        return partial(_allows, body, self._site)

    def _in_tree(self) -> bytes | None:
        if self._file is None:
            return None
        try:
            with self._file.open("rb") as opened:
                return opened.read(STRICT_MAX_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None

    async def _served(self) -> RobotsCopy:
        now = self._clock.now()
        copy = self._copy
        if copy is not None and now < (copy.expires_at if copy.retry_at is None else copy.retry_at):
            return copy
        url, seen = f"{self._site}/robots.txt", list[str]()
        while True:
            request = Request(url, Purpose.ROBOTS, STRICT_MAX_BYTES, truncate=True, any_type=True)
            answer = await self._fetcher.fetch(request)
            now = self._clock.now()
            if isinstance(answer, Failed) and answer.kind in _NOBODY:
                self._copy = RobotsCopy(RobotsAction.FREE, "nobody there", now, now + _NOBODY_S)
                return self._copy
            follows = interpret(answer, settings=_SETTINGS, previous=copy, hops=len(seen), seen=seen, now=now)
            if isinstance(follows, RobotsCopy):
                self._copy = replace(follows, expires_at=min(follows.expires_at, now + _HOLDS_S))
                return self._copy
            seen.append(url)
            url = follows.url


@lru_cache(maxsize=256)
def _rules(body: bytes, token: str, site: str) -> SiteRules:
    return read(parse(body, max_bytes=STRICT_MAX_BYTES), token=token, reading=Reading.STRICT, site=site)


def _allows(body: bytes, site: str, token: str) -> Callable[[str], bool]:
    rules = _rules(body, token, site)
    return lambda path: rules.verdict(path).allowed
