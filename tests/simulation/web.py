"""A web in memory with the interface of the real fetcher, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from crawler.demo.pages import Fault, FictionalWeb, Hit, Page, Site, plain, retry_after_s, status_of
from crawler.model import Failed, Fetched, FetchResult, Headers, NotModified, Redirected, Request, header
from crawler.page.walls import wall_in_headers
from crawler.reasons import ErrorKind
from crawler.url import host_of, split
from tests.records import replace
from tests.virtual_time import VirtualClock

HTML_TYPES = ("text/html", "application/xhtml+xml", "")

_LOOK_UP_S = 0.01
_FAULTS = {
    Fault.RESET: ErrorKind.CONNECT,
    Fault.CUT: ErrorKind.TRUNCATED,
    Fault.RAW: ErrorKind.PROTOCOL,
}


def healthy(pages: int) -> Site:
    """A site whose start page links to all others."""
    links = "".join(f"<a href='/{n}'>{n}</a>" for n in range(1, pages))
    return {"/robots.txt": plain(""), "/": Page(links), **{f"/{n}": Page("x") for n in range(1, pages)}}


class SimulatedWeb:
    """Answers ``fetch`` from described sites after ``latency_s`` (of a host, or of all) and the page's own delay.

    Times are virtual seconds. The look-up of a host without a description fails as ``unknown`` says; a hanging page is
    given up after ``timeout_s``. ``addresses`` gives the address of a host, empty for one without a limit, and
    ``look_up_s`` the time of its look-up. Bodies are taken as they are: no content encoding is undone.
    """

    def __init__(
        self,
        clock: VirtualClock,
        sites: Mapping[str, Site],
        *,
        latency_s: float | Mapping[str, float] = 0.05,
        timeout_s: float = 60.0,
        user_agent: str = "SimulatedBot/1.0",
        addresses: Callable[[str], str] = lambda host: "",
        look_up_s: Callable[[str], float] = lambda host: _LOOK_UP_S,
        unknown: ErrorKind = ErrorKind.DNS,
    ) -> None:
        self.web = FictionalWeb(dict(sites))
        self._clock = clock
        self._latency_s = latency_s
        self._timeout_s = timeout_s
        self._agent = user_agent
        self._addresses = addresses
        self._look_up_s = look_up_s
        self._unknown = unknown
        self._looked_up: set[str] = set()
        self._looking: dict[str, asyncio.Task[None]] = {}

    @property
    def log(self) -> list[Hit]:
        """Every request so far, in the order in which the answers ended."""
        return self.web.log

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def is_limited(self, host: str) -> bool:
        """Whether a host has an address with a limit."""
        return bool(self._addresses(host))

    def cached(self, host: str) -> str | None:
        """The address of a host, if it was looked up."""
        address = self._addresses(host)
        return address if not address or host in self._looked_up else None

    def look_ups(self) -> str:
        """Look-ups are not counted here."""
        return "{}"

    async def look_up(self, host: str) -> str:
        """The address of a host, after a while."""
        if host not in self._looked_up:
            task = self._looking.get(host)
            if task is None or task.cancelled():  # it ended with a process that was killed
                task = self._looking[host] = asyncio.create_task(asyncio.sleep(self._look_up_s(host)))
            await asyncio.shield(task)
            self._looked_up.add(host)
        return self._addresses(host)

    def refused(self, host: str, address: str) -> bool:
        """Hosts have one address each."""
        return False

    async def fetch(self, request: Request) -> FetchResult:
        """One GET. Takes virtual time, never raises."""
        host, path = host_of(request.url), split(request.url).path
        started_at = self._clock.now()
        if host not in self.web.sites:
            return _failed(request, started_at, started_at, self._unknown, f"{host} has no address")
        page = self.web.answer(host, path, _sent_headers(request))
        begun, status = self._clock.loop.time(), 0
        try:
            await asyncio.sleep(self._takes_s(host, page))
            status = status_of(page)
        finally:  # also where the crawler gave up and cancelled us
            ended = self._clock.loop.time()
            self.web.log.append(Hit(host, path, begun, ended, status, self._agent, retry_after_s(page)))
        answer = _result(request, page, started_at, self._clock.now())
        return replace(answer, address=self._addresses(host))

    def _takes_s(self, host: str, page: Page) -> float:
        if page.fault is Fault.HANG:
            return self._timeout_s
        if isinstance(self._latency_s, Mapping):
            return self._latency_s.get(host, 0.0) + page.delay_s
        return self._latency_s + page.delay_s


def _sent_headers(request: Request) -> dict[str, str]:
    headers = {"if-none-match": request.etag, "if-modified-since": request.last_modified}
    return {name: value for name, value in headers.items() if value is not None}


def _result(request: Request, page: Page, started_at: float, now: float) -> FetchResult:
    headers, size = page.all_headers, len(page.octets)
    if page.fault is Fault.HANG:
        return _failed(request, started_at, now, ErrorKind.TIMEOUT, "no answer in time")
    if (wall := wall_in_headers(page.status, headers)) is not None:
        return _failed(request, started_at, now, ErrorKind.WALL, str(wall), page.status, headers)
    if page.fault is not None:
        return _failed(request, started_at, now, _FAULTS[page.fault], f"simulated {page.fault.name}")
    if 200 <= page.status < 300:
        return _fetched(request, page, started_at, now)
    if page.status == 304:
        return NotModified(request.url, started_at, now, headers, 0)
    location = header(headers, "Location")
    if page.status in (301, 302, 303, 307, 308) and location:
        return Redirected(request.url, started_at, now, headers, size, page.status, location)
    return _failed(request, started_at, now, ErrorKind.HTTP, f"status {page.status}", page.status, headers)


def _fetched(request: Request, page: Page, started_at: float, now: float) -> FetchResult:
    headers, body = page.all_headers, page.octets
    kind, _, parameters = (header(headers, "Content-Type") or "").partition(";")
    content_type = kind.strip().lower()
    if content_type not in HTML_TYPES and not request.any_type:
        detail = content_type
        return _failed(request, started_at, now, ErrorKind.UNWANTED_TYPE, detail, page.status, headers)
    too_large = len(body) > request.max_bytes
    if too_large and not request.truncate:
        detail = f"{len(body)} bytes"
        return _failed(request, started_at, now, ErrorKind.TOO_LARGE, detail, page.status, headers)
    charset = parameters.partition("charset=")[2].strip().lower() or None
    return Fetched(
        request.url,
        started_at,
        now,
        headers,
        len(body),
        status=page.status,
        content_type=content_type,
        charset=charset,
        plain=body[: request.max_bytes],
        truncated=too_large,
    )


def _failed(
    request: Request,
    started_at: float,
    now: float,
    kind: ErrorKind,
    detail: str,
    status: int | None = None,
    headers: Headers = (),
) -> Failed:
    return Failed(request.url, started_at, now, headers, 0, kind, status, detail)
