"""WARC 1.1: for each page a response, a request and a metadata record, each compressed by itself.

Source: "The WARC Format 1.1" (IIPC, https://iipc.github.io/warc-specifications/). A store keeps what a crawl needs, not
every byte that was sent. What is written here is rebuilt from it: warcinfo says how, and metadata records point there.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

from crawler.audit.records import RunRecord
from crawler.errors import UsageError
from crawler.export.job import Job
from crawler.export.optional_libraries import load
from crawler.fetch.decoding import ACCEPT_ENCODING
from crawler.url import split
from crawler.version import VERSION

WARC_FORMAT = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
REBUILT = (
    "Rebuilt from a crawl's store. Exact: the body without its content and transfer codings, status, ETag, "
    "Last-Modified, times. Rebuilt: the status line; Content-Type, with the charset that the page was read in; "
    "Content-Length, of the body as it is here; the request, from the run's settings. "
    "Missing: other response headers, chunking, the server's address."
)

_PAGES = """
  SELECT p.url_id, p.url, p.status, p.content_type, p.charset, p.etag, p.last_modified, p.fetched_at, p.title,
         p.body_sha256, p.depth, (SELECT u.discovered_from FROM urls u WHERE u.url_id = p.url_id) AS discovered_from,
         q.started_at, q.bytes, q.run_id, p.directives
  FROM {kept} p LEFT JOIN requests q ON q.finished_at = p.fetched_at AND q.url = p.url AND q.purpose = 'page'
  WHERE p.body_sha256 IS NOT NULL"""
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class ArchivedPage:
    """A page and the request that brought it. Times in seconds since the epoch; ``bytes`` as on the wire."""

    url_id: int
    url: str
    status: int
    content_type: str
    charset: str | None
    etag: str | None
    last_modified: str | None
    fetched_at: float
    title: str | None
    body_sha256: str
    depth: int
    discovered_from: str | None
    started_at: float | None  # None where the request is not in the log: the process was killed
    bytes: int | None
    run_id: int | None

    @property
    def at(self) -> float:
        return self.fetched_at if self.started_at is None else self.started_at


async def write_warc(job: Job) -> None:
    """A WARC file; gzip is left out where the name says ``.warc``. Pages without a body (NOINDEX) are left out, and
    those of which no copy may be handed out (NOARCHIVE)."""
    file = job.open()
    records = Records(compress=not (isinstance(job.out, Path) and job.out.suffix == ".warc"))
    name = job.out.name if isinstance(job.out, Path) else ""
    agents = await agents_of(job)
    file.write(records.warcinfo(name, agents, job.now).data)
    async for visit, body in visits(job):
        for record in records.of(visit, body, agents.get(visit.run_id)):
            file.write(record.data)


async def visits(job: Job) -> AsyncIterator[tuple[ArchivedPage, bytes]]:
    """The pages that are kept, each with its body; those without, or with none to be handed out, are tallied."""
    (without,) = await job.store.query(f"SELECT count(*) AS pages FROM {job.kept} AS kept WHERE body_sha256 IS NULL")
    job.tally.left_out = without["pages"]
    async for row in job.rows(_PAGES.format(kept=job.kept), job.is_copied):
        visit = ArchivedPage(*row[:-1])
        body = await job.store.body(visit.url)
        assert body is not None
        yield visit, body


@dataclass(frozen=True, slots=True)
class Agent:
    """What the requests of a run said, whatever they asked for."""

    headers: tuple[tuple[str, str], ...]
    user_agent: str
    contact: str


async def agents_of(job: Job) -> dict[int | None, Agent]:
    """By run; none for a run whose settings this version cannot read."""
    agents: dict[int | None, Agent] = {}
    for run in await job.store.query("SELECT *, run_id AS run FROM runs ORDER BY run_id"):
        try:
            terms, fetch = RunRecord.from_row(run), json.loads(run["settings"])["fetch"]
        except UsageError:
            continue
        sender = [("From", terms.contact)] if "@" in terms.contact and "://" not in terms.contact else []
        headers = [
            ("User-Agent", terms.user_agent),
            ("Accept", ", ".join(fetch["accept_types"])),
            ("Accept-Encoding", ACCEPT_ENCODING),
            *sender,
        ]
        agents[run["run_id"]] = Agent(tuple(headers), terms.user_agent, terms.contact)
    return agents


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it goes into the file, and its WARC-Payload-Digest (none for warcinfo)."""

    data: bytes
    digest: str | None


class Records:
    """Makes the records of one file, first its warcinfo. Raises :class:`UsageError` where warcio is missing."""

    def __init__(self, *, compress: bool) -> None:
        self._compress = compress
        self._out = io.BytesIO()
        self._writer = load("warcio.warcwriter").WARCWriter(self._out, gzip=False, warc_version="1.1")
        self._head = load("warcio.statusandheaders").StatusAndHeaders

    def warcinfo(self, filename: str, agents: dict[int | None, Agent], now: float) -> Record:
        fields = [
            ("software", f"polite-crawler/{VERSION}"),
            ("format", "WARC File Format 1.1"),
            ("conformsTo", WARC_FORMAT),
            *[("operator", contact) for contact in sorted({agent.contact for agent in agents.values()}) if contact],
            *[("http-header-user-agent", said) for said in sorted({agent.user_agent for agent in agents.values()})],
            ("description", REBUILT),
        ]
        headers = {"WARC-Date": warc_date(now)} | ({"WARC-Filename": filename} if filename else {})
        info = self._record("", "warcinfo", warc_fields(fields), headers)
        self._info_id = self._last_id
        return info

    def of(self, visit: ArchivedPage, body: bytes, agent: Agent | None) -> list[Record]:
        """The response record first; without an agent, for a request that is not in the log, no request record."""
        headers = {"WARC-Date": warc_date(visit.at), "WARC-Warcinfo-ID": self._info_id}
        response = self._head(_status_line(visit.status), _response_headers(visit, body), protocol="HTTP/1.1")
        made = [self._record(visit.url, "response", body, dict(headers), response)]
        headers["WARC-Concurrent-To"] = self._last_id
        if agent is not None:
            lines = [("Host", split(visit.url).site.partition("://")[2]), *agent.headers]
            request = self._head(f"GET {split(visit.url).path} HTTP/1.1", lines, is_http_request=True)
            made.append(self._record(visit.url, "request", b"", dict(headers), request))
        made.append(self._record(visit.url, "metadata", warc_fields(_metadata(visit)), dict(headers)))
        return made

    def _record(self, url: str, kind: str, payload: bytes, headers: dict[str, str], http: Any = None) -> Record:
        record = self._writer.create_warc_record(
            url, kind, io.BytesIO(payload), len(payload), warc_headers_dict=headers, http_headers=http
        )
        self._last_id = str(record.rec_headers.get_header("WARC-Record-ID"))
        self._out.seek(0)
        self._out.truncate()
        self._writer.write_record(record)
        whole = self._out.getvalue()
        data = zlib.compress(whole, level=6, wbits=31) if self._compress else whole
        return Record(data, record.rec_headers.get_header("WARC-Payload-Digest"))


def _response_headers(visit: ArchivedPage, body: bytes) -> list[tuple[str, str]]:
    kind = visit.content_type + (f"; charset={visit.charset}" if visit.charset else "")
    said = [("Content-Type", kind), ("ETag", visit.etag), ("Last-Modified", visit.last_modified)]
    known = [(name, _CONTROLS.sub(" ", value)) for name, value in said if value and value.isascii()]
    return [*known, ("Content-Length", str(len(body)))]


def _metadata(visit: ArchivedPage) -> list[tuple[str, str]]:
    fields = [("via", visit.discovered_from or ""), ("hopsFromSeed", "L" * visit.depth)]
    if visit.started_at is not None:
        fields.append(("fetchTimeMs", str(round((visit.fetched_at - visit.started_at) * 1000))))
    if visit.bytes is not None:
        fields.append(("bytesOnWire", str(visit.bytes)))
    return [*fields, ("bodySha256", visit.body_sha256), ("rebuilt", "from a crawl's store, see warcinfo")]


def warc_fields(fields: Sequence[tuple[str, str]]) -> bytes:
    """As ``application/warc-fields``; those that say nothing are left out."""
    return "".join(f"{name}: {_CONTROLS.sub(' ', value)}\r\n" for name, value in fields if value).encode()


def _status_line(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} "


def warc_date(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
