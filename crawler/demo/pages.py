"""Descriptions of sites, for the loopback server and for simulations in memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from crawler.model import Headers, header

_SECONDS = re.compile(r"[0-9]{1,9}")


class Fault(Enum):
    """A fault below HTTP while a page is served."""

    RESET = auto()  # the connection ends without a byte
    CUT = auto()  # half the body, then the connection ends
    HANG = auto()  # nothing comes until the client leaves
    RAW = auto()  # the server sends only the body, which contains its own status line and headers


@dataclass(frozen=True, slots=True)
class Page:
    """One answer. ``delay_s`` passes before its first byte; an empty ``content_type`` sends no such header."""

    body: str | bytes = ""
    status: int = 200
    headers: Headers = ()
    content_type: str = "text/html; charset=utf-8"
    delay_s: float = 0.0
    fault: Fault | None = None

    @property
    def octets(self) -> bytes:
        """The body as it is sent."""
        return self.body.encode() if isinstance(self.body, str) else self.body

    @property
    def all_headers(self) -> Headers:
        """The headers, including the content type."""
        return (("Content-Type", self.content_type), *self.headers) if self.content_type else self.headers


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a handler sees it. ``before`` counts the earlier requests of the same URL."""

    host: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    before: int


Handler = Callable[[Asked], Page]
Site = Mapping[str, Page | Handler]
"""Pages by path with query, else by path without query, else by ``"*"``; else the answer is 404."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One request in a server's log. Times in seconds on the server's monotonic clock.

    ``started_at``: after the server has read the request. ``finished_at``: before the server writes the end of the
    answer, or when it notices that the client left. ``status`` is 0 unless the server sent a whole answer.
    ``retry_after_s`` is the ``Retry-After`` of a 429 or 503 if it is in seconds.
    """

    host: str
    path: str
    started_at: float
    finished_at: float
    status: int
    user_agent: str
    retry_after_s: float | None = None


@dataclass(slots=True)
class FictionalWeb:
    """Sites by host, and the log of requests in the order in which their answers ended."""

    sites: dict[str, Site] = field(default_factory=dict)
    log: list[Hit] = field(default_factory=list)
    _asked: Counter[tuple[str, str]] = field(default_factory=Counter)

    def answer(self, host: str, path: str, headers: Mapping[str, str]) -> Page:
        """The page to serve. A request whose validators still hold gets a 304."""
        asked = Asked(host, path, headers, self._asked[host, path])
        self._asked[host, path] += 1
        page = _find(self.sites.get(host, {}), asked)
        return Page(status=304, headers=page.headers, content_type="") if _still_valid(page, headers) else page

    def hits(self, host: str) -> list[Hit]:
        """The requests to one host, in the order of their starts."""
        return sorted((hit for hit in self.log if hit.host == host), key=lambda hit: hit.started_at)


def redirect(location: str, status: int = 302) -> Page:
    """A redirect to ``location``, which is sent unchanged."""
    return Page(status=status, headers=(("Location", location),))


def plain(text: str) -> Page:
    """A ``text/plain`` page, such as robots.txt."""
    return Page(text, content_type="text/plain; charset=utf-8")


def unavailable(retry_after_s: int | None = None) -> Page:
    """A 503, with ``Retry-After`` unless ``retry_after_s`` is None."""
    after = () if retry_after_s is None else (("Retry-After", str(retry_after_s)),)
    return Page("<title>Closed</title><p>Back soon.", status=503, headers=after)


def first(times: int, page: Page, then: Page) -> Handler:
    """``page`` for the first ``times`` requests, ``then`` for all others."""
    return lambda asked: page if asked.before < times else then


def status_of(page: Page) -> int:
    """The status for the log: 0 if the client got no whole answer."""
    return page.status if page.fault in (None, Fault.RAW) else 0


def retry_after_s(page: Page) -> float | None:
    """The seconds that a 429 or 503 asks the client to wait; None for a date or without the header."""
    value = header(page.headers, "Retry-After") if page.status in (429, 503) else None
    return float(value) if value is not None and _SECONDS.fullmatch(value) else None


def _find(site: Site, asked: Asked) -> Page:
    for key in (asked.path, asked.path.partition("?")[0], "*"):
        found = site.get(key)
        if found is not None:
            return found(asked) if callable(found) else found
    return Page("<title>Not found</title><p>There is no such page.", status=404)


def _still_valid(page: Page, headers: Mapping[str, str]) -> bool:
    if page.status != 200 or page.fault:
        return False
    if (wanted := headers.get("if-none-match")) is not None:
        return wanted == header(page.headers, "ETag")
    since = headers.get("if-modified-since")
    return since is not None and since == header(page.headers, "Last-Modified")
