"""WARC 1.1: for each page a response, a request and a metadata record, each compressed separately.

Source: "The WARC Format 1.1" (IIPC, https://iipc.github.io/warc-specifications/). The store does not keep every octet
that was sent, so the records are rebuilt from it. The warcinfo record says how, and metadata records refer to it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from crawler.export.job import NO_BODY, SQL, Job
from crawler.fetch.decoding import ACCEPT_ENCODING
from crawler.model import Preference
from crawler.settings.stored import recorded
from crawler.url import split
from crawler.warc.records import (
    REQUEST,
    RESPONSE,
    WARC_FIELDS,
    digest,
    gzip_member,
    new_id,
    one_line,
    preference_fields,
    record,
    warc_date,
    warc_fields,
    warcinfo,
)

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
    file.write(records.warcinfo(name, agents, job.now).data)
    async for page, body in archived_pages(job):
        file.writelines(each.data for each in records.of(page, body, agents.get(page.run_id)))


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


@dataclass(frozen=True, slots=True)
class Agent:
    """The headers that all requests of a run had."""

    headers: tuple[tuple[str, str], ...]
    user_agent: str
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
        email, user_agent = identity.contact_email, identity.user_agent(run["crawler_version"])
        headers = [
            ("User-Agent", user_agent),
            ("Accept", ", ".join(settings.fetch.types)),
            ("Accept-Encoding", ACCEPT_ENCODING),
            *([("From", email)] if email else []),
        ]
        agents[run["run_id"]] = Agent(tuple(headers), user_agent, identity.contact)
    return agents


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it is written to the file, and its WARC-Payload-Digest (none but of a response)."""

    data: bytes
    digest: str | None = None


class Records:
    """Makes the records of one file, beginning with warcinfo."""

    def __init__(self, *, compress: bool) -> None:
        self._compress = compress

    def warcinfo(self, filename: str, agents: dict[int | None, Agent], now: float) -> Record:
        fields = [
            *[("operator", contact) for contact in sorted({agent.contact for agent in agents.values()})],
            *[("http-header-user-agent", said) for said in sorted({agent.user_agent for agent in agents.values()})],
            ("description", REBUILT),
        ]
        self._info_id, info = warcinfo(filename, fields, now)
        return Record(self._written(info))

    def of(self, page: Any, body: bytes, agent: Agent | None) -> list[Record]:
        """The records of a page, beginning with the response. Without an agent there is no request record."""
        common = [("WARC-Target-URI", page.url), ("WARC-Date", warc_date(begun_at(page)))]
        common.append(("WARC-Warcinfo-ID", self._info_id))
        first, payload = new_id(), digest(body)
        head = _http_head(f"HTTP/1.1 {_status_line(page.status)}", _response_headers(page, body))
        fields = [*common, ("WARC-Payload-Digest", payload)]
        made = [Record(self._written(record("response", first, fields, head + body, RESPONSE)), payload)]
        common.append(("WARC-Concurrent-To", first))
        if agent is not None:
            lines = [("Host", split(page.url).site.partition("://")[2]), *agent.headers]
            request = _http_head(f"GET {split(page.url).path} HTTP/1.1", lines)
            made.append(Record(self._written(record("request", new_id(), common, request, REQUEST))))
        about = warc_fields(_metadata(page))
        made.append(Record(self._written(record("metadata", new_id(), common, about, WARC_FIELDS))))
        return made

    def _written(self, content: bytes) -> bytes:
        return gzip_member(content) if self._compress else content


def _http_head(first: str, headers: Sequence[tuple[str, str]]) -> bytes:
    return "".join([f"{first}\r\n", *(f"{name}: {value}\r\n" for name, value in headers), "\r\n"]).encode()


def _response_headers(page: Any, body: bytes) -> list[tuple[str, str]]:
    kind = page.content_type + (f"; charset={page.charset}" if page.charset else "")
    headers = [("Content-Type", kind), ("ETag", page.etag), ("Last-Modified", page.last_modified)]
    known = [(name, one_line(value)) for name, value in headers if value and value.isascii()]
    return [*known, ("Content-Length", str(len(body)))]


def _metadata(page: Any) -> list[tuple[str, str]]:
    fields = [("via", page.discovered_from or ""), ("hopsFromSeed", "L" * page.depth)]
    if page.started_at is not None:
        fields.append(("fetchTimeMs", str(round((page.fetched_at - page.started_at) * 1000))))
    if page.bytes is not None:
        fields.append(("bytesOnWire", str(page.bytes)))
    fields += preference_fields([*_preferences(page.preferences), *_preferences(page.robots_preferences)])
    return [*fields, ("bodySha256", page.body_sha256), ("rebuilt", "from a crawl's store, see warcinfo")]


def _preferences(stored: str | None) -> list[Preference]:
    return [Preference(**one) for one in json.loads(stored)] if stored else []


def _status_line(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} "
