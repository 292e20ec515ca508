"""WARC 1.1: for each page a response, a request and a metadata record, each compressed separately.

Source: "The WARC Format 1.1" (IIPC, https://iipc.github.io/warc-specifications/). The store does not keep every octet
that was sent, so the records are rebuilt from it. The warcinfo record says how, and metadata records refer to it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from crawler.export.job import NO_BODY, SQL, Job
from crawler.fetch.decoding import ACCEPT_ENCODING
from crawler.model import Exchange, Fetched, Preference, Purpose, Recorded
from crawler.settings.stored import recorded
from crawler.url import split
from crawler.warc.exchange import records_of
from crawler.warc.records import gzip_member, one_line, warcinfo

REBUILT = (
    "Rebuilt from a crawl's store. Exact: the body without its content and transfer codings, status, ETag, "
    "Last-Modified, times. Rebuilt: the status line; Content-Type, with the charset that the page was read in; "
    "Content-Length, of the body as it is here; the request, from the run's settings. "
    "Missing: other response headers, chunking, the server's address."
)


async def write_warc(job: Job) -> None:
    """Write a WARC file, without gzip if its name ends in ``.warc``.

    Pages without a body (NOINDEX), and pages that forbid copies (NOARCHIVE), are left out.
    """
    file = job.open()
    records = Records(compress=not (isinstance(job.out, Path) and job.out.suffix == ".warc"))
    name = job.out.name if isinstance(job.out, Path) else ""
    agents = await agents_of(job)
    file.write(records.warcinfo(name, agents, job.now))
    async for page, body in archived_pages(job):
        file.writelines(records.of(page, body, agents.get(page.run_id)))


async def archived_pages(job: Job) -> AsyncIterator[tuple[Any, bytes]]:
    """The selected pages, rows of ``archived_pages``, each with its body; others are counted as left out.

    The log may lack the request of a page, if the process was killed.
    """
    (without,) = await job.store.query(job.sql("pages_without_body"))
    job.tally.left_out_for[NO_BODY] += without["pages"]
    async for row in job.rows(job.sql("archived_pages"), job.not_copied):
        body = await job.store.bodies.of_page(row.url)
        assert body is not None
        yield row, body


def begun_at(page: Any) -> float:
    """When the request of a page began, in seconds since the epoch; without its log, when the page was fetched."""
    return float(page.fetched_at if page.started_at is None else page.started_at)


class Agent(NamedTuple):
    """The headers that all requests of a run had, the first of them ``User-Agent``, and its contact."""

    headers: Sequence[tuple[str, str]]
    contact: str


async def agents_of(job: Job) -> dict[int | None, Agent]:
    """The agent of each run. A run is omitted if its settings cannot be read."""
    agents: dict[int | None, Agent] = {}
    for run in await job.store.query(SQL["runs"]):
        try:
            settings = recorded(json.loads(run["settings"]))
        except (TypeError, ValueError):
            continue
        identity = settings.identity
        headers = [
            ("User-Agent", identity.user_agent(run["crawler_version"])),
            ("Accept", ", ".join(settings.fetch.types)),
            ("Accept-Encoding", ACCEPT_ENCODING),
            *([("From", identity.contact_email)] if identity.contact_email else []),
        ]
        agents[run["run_id"]] = Agent(headers, identity.contact)
    return agents


class Records:
    """Makes the records of one file, beginning with warcinfo."""

    def __init__(self, *, compress: bool) -> None:
        self._compress = compress

    def warcinfo(self, filename: str, agents: dict[int | None, Agent], now: float) -> bytes:
        fields = [
            *[("operator", contact) for contact in sorted({agent.contact for agent in agents.values()})],
            *[("http-header-user-agent", said) for said in sorted({agent.headers[0][1] for agent in agents.values()})],
            ("description", REBUILT),
        ]
        self._info_id, info = warcinfo(filename, fields, now)
        return self._written(info)

    def of(self, page: Any, body: bytes, agent: Agent | None) -> list[bytes]:
        """The records of a page, beginning with the response. Without an agent there is no request record."""
        request = b""
        if agent is not None:
            lines = [("Host", split(page.url).site.partition("://")[2]), *agent.headers]
            request = _http_head(f"GET {split(page.url).path} HTTP/1.1", lines)
        head = _http_head(f"HTTP/1.1 {_status_line(page.status)}", _response_headers(page, body))
        answer = Fetched(page.url, begun_at(page), page.fetched_at, exchange=Exchange(request, head + body, "", True))
        stated = (*_preferences(page.preferences), *_preferences(page.robots_preferences))
        made = records_of(
            Recorded(answer, Purpose.PAGE, depth=page.depth, preferences=stated), self._info_id, _more(page)
        )
        return [self._written(each) for each in made]

    def _written(self, content: bytes) -> bytes:
        return gzip_member(content) if self._compress else content


def _http_head(first: str, headers: Sequence[tuple[str, str]]) -> bytes:
    return "".join([f"{first}\r\n", *(f"{name}: {value}\r\n" for name, value in headers), "\r\n"]).encode()


def _response_headers(page: Any, body: bytes) -> list[tuple[str, str]]:
    kind = page.content_type + (f"; charset={page.charset}" if page.charset else "")
    headers = [("Content-Type", kind), ("ETag", page.etag), ("Last-Modified", page.last_modified)]
    known = [(name, one_line(value)) for name, value in headers if value and value.isascii()]
    return [*known, ("Content-Length", str(len(body)))]


def _more(page: Any) -> list[tuple[str, str]]:
    """What the metadata record says beside the facts of any request."""
    return [
        ("via", page.discovered_from or ""),
        ("bytesOnWire", "" if page.bytes is None else str(page.bytes)),
        ("bodySha256", page.body_sha256),
        ("rebuilt", "from a crawl's store, see warcinfo"),
    ]


def _preferences(stored: str | None) -> list[Preference]:
    return [Preference(**one) for one in json.loads(stored)] if stored else []


def _status_line(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} "
