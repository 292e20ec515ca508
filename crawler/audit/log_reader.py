"""Reads what an audit judges: the request log, the robots.txt versions, and the settings of each run.

The log is read in slices, ordered by replay unit and time, so memory does not grow with the log. A replay unit is a set
of sites that contains every politeness group whole: a host, or a registered domain. The order is kept in temporary
tables of the reading connection; the store itself is not written.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from crawler.audit.records import (
    Event,
    FiledLicence,
    LicenceAnswer,
    LoggedRequest,
    RobotsResponse,
    RobotsVersion,
    RunRecord,
    SourceVersion,
)
from crawler.errors import UsageError
from crawler.frontier.politeness import GroupBy, group_name
from crawler.model import Headers
from crawler.preferences.purposes import categories_for
from crawler.robots.rsl import NO_LICENCE, NotALicence, read_licence
from crawler.store.named_rows import by_column
from crawler.store.statements import load_statements
from crawler.url import NotCrawlable, canonicalise

if TYPE_CHECKING:
    from crawler.store.sections import Store

#: Events in a slice. Each event may need one robots.txt file in memory, of at most half a megabyte.
_EVENTS_PER_SLICE = 500
_ROWS_PER_PAGE = 5_000  # three parameters a row: the databases take 32,766

_SQL = load_statements("crawler.audit")
_HASHED = ("hashed_runs", "hashed_robots", "hashed_requests", "hashed_orders")
_request_fields = itemgetter(*LoggedRequest._fields)


@dataclass(frozen=True, slots=True)
class Slice:
    """Consecutive events of the replay, and the robots.txt files in force during them.

    ``texts`` maps a text's number to its body. ``forged`` holds the recorded SHA-256 of each text whose body has
    another one; ``texts`` lacks these.
    """

    events: list[Event]
    texts: dict[int, bytes]
    forged: set[str]


@asynccontextmanager
async def snapshot(store: Store) -> AsyncIterator[None]:
    """Read one moment of the store while inside, even if a crawl is running. Temporary tables are dropped on exit."""
    await store.begin_notes()
    try:
        yield
    finally:
        await store.end_notes()


async def read_runs(store: Store) -> list[RunRecord]:
    """Every run with its settings. Raises :class:`crawler.errors.UsageError` if settings cannot be read."""
    return [RunRecord.from_row(row) for row in await store.query(_SQL["runs"])]


async def read_rows(
    store: Store, statement: str, among: Iterable[object] | None = None, **parameters: object
) -> list[Any]:
    """The rows of a statement in ``queries.sql``, by the names of their columns.

    The values of ``among`` stand for its ``{among}``.
    """
    sql = _SQL[statement]
    if among is not None:
        named = {f"among_{n}": value for n, value in enumerate(among)}
        sql, parameters = sql.format(among=", ".join(f":{name}" for name in named) or "NULL"), parameters | named
    return by_column(await store.query(sql, parameters))


async def read_licences(store: Store) -> dict[str, FiledLicence]:
    """Each licence of RSL with its answers, by its URL."""
    answers: dict[str, list[LicenceAnswer]] = {}
    for row in await read_rows(store, "licence_answers"):
        moved_to, is_failure = "", row.error_kind is not None
        if row.location is not None:
            try:
                moved_to = canonicalise(row.location, row.url)
            except NotCrawlable:
                is_failure = True
        answer = LicenceAnswer(row.finished_at, row.status, is_failure, moved_to)
        answers.setdefault(row.url, []).append(answer)
    licences: dict[str, FiledLicence] = {}
    for row in await read_rows(store, "licences"):
        why, licence = row.note, NO_LICENCE
        if not why:
            try:
                licence = read_licence(bytes(row.body))
            except NotALicence as error:
                why = str(error)
        licences[row.url] = FiledLicence(row.fetched_at, licence, why, answers.get(row.url, ()))
    return licences


async def read_pages_kept(store: Store, run: RunRecord) -> tuple[int, list[Any]]:
    """The number of pages that a run fetched, and those that it kept although they refuse a purpose of the run.

    A page that was visited again after the run is left out: its preferences may have changed.
    """
    until = math.inf if run.finished_at is None else run.finished_at
    (count,) = await read_rows(store, "pages_of_run", since=run.started_at, until=until)
    categories = categories_for(run.settings.identity.purpose)
    return count.pages, await read_rows(store, "pages_kept", categories, since=run.started_at, until=until)


async def read_slices(store: Store, runs: Iterable[RunRecord]) -> AsyncIterator[Slice]:
    """All events, ordered by replay unit and time. Call it within :func:`snapshot`.

    Raises :class:`crawler.errors.UsageError` if the recorded headers of a robots.txt cannot be read.
    """
    unit_is = GroupBy.DOMAIN if any(run.settings.politeness.group is GroupBy.DOMAIN for run in runs) else GroupBy.HOST
    await store.query(_SQL["create_site_table"])
    await store.query(_SQL["create_event_table"])
    await _add_sites(store, unit_is)
    await store.query(_SQL["add_events"])
    await store.query(_SQL["create_elsewhere_table"])
    await store.query(_SQL["add_elsewhere"])
    after, in_force = 0, _TextsInForce()
    while events := await _read_events(store, after):
        after += _EVENTS_PER_SLICE
        texts, forged = await _read_texts(store, in_force.advance(events))
        yield Slice(events, texts, forged)


async def canonical_sha256(store: Store) -> str:
    """The SHA-256, in hex, of all that was judged: runs, robots.txt versions, requests and orders.

    Each row is hashed as a JSON array on a line of its own; ``docs/audit.md`` specifies the form. Call it within the
    :func:`snapshot` of the audit.
    """
    digest = hashlib.sha256()
    async for lines in canonical_records(store):
        digest.update(lines)
    return digest.hexdigest()


async def canonical_records(store: Store) -> AsyncIterator[bytes]:
    """The octets of which :func:`canonical_sha256` is the hash, in pieces of whole lines."""
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    for name in _HASHED:
        lines = list[str]()
        async with aclosing(store.rows(_SQL[name])) as rows:
            async for row in rows:
                lines.append(f"{encode(list(row))}\n")
                if len(lines) == _ROWS_PER_PAGE:
                    yield "".join(lines).encode("utf-8", "surrogatepass")
                    lines = []
        yield "".join(lines).encode("utf-8", "surrogatepass")


async def _add_sites(store: Store, unit_is: GroupBy) -> None:
    after = 0
    while rows := await store.query(_SQL["sites"], {"after": after, "limit": _ROWS_PER_PAGE}):
        after = rows[-1]["site_id"]
        placeholders = ", ".join(f"(:site_id_{n}, :site_{n}, :unit_{n})" for n in range(len(rows)))
        values: dict[str, object] = {}
        for n, row in enumerate(rows):
            values |= {f"site_id_{n}": row["site_id"], f"site_{n}": row["site"]}
            values[f"unit_{n}"] = group_name(row["site"], unit_is)
        await store.query(_SQL["add_sites"].format(rows=placeholders), values)


async def _read_events(store: Store, after: int) -> list[Event]:
    bounds = {"after": after, "last": after + _EVENTS_PER_SLICE}
    found: list[tuple[int, Event]] = []
    for row in await store.query(_SQL["request_events"], bounds):
        request = LoggedRequest._make(_request_fields(row))
        found.append((row["n"], _event(row, RobotsResponse(request) if row["kind"] == 0 else request)))
    versions = await store.query(_SQL["version_events"], bounds)
    found += [(row["n"], _event(row, _version(row))) for row in versions]
    found.sort(key=lambda numbered: numbered[0])
    return [event for _, event in found]


def _event(row: Mapping[str, Any], fact: LoggedRequest | RobotsResponse | RobotsVersion) -> Event:
    return Event(row["unit"], row["event_site_id"], row["event_site"], fact)


def _version(row: Mapping[str, Any]) -> RobotsVersion:
    facts = {name: row[name] for name in RobotsVersion._fields if name in row}
    facts["headers"] = _headers(row["headers"], row["event_site"])
    if row["source_action"] is not None:
        source = (row["source_action"], row["source_text_id"], row["source_from"], row["source_until"])
        facts["source"] = SourceVersion(*source)
    return RobotsVersion(**facts)


def _headers(text: str | None, site: str) -> Headers:
    try:
        return tuple((str(name), str(value)) for name, value in json.loads("[]" if text is None else text))
    except (TypeError, ValueError) as error:
        raise UsageError(f"the recorded headers of the robots.txt of {site} cannot be read ({error})") from None


class _TextsInForce:
    """The robots.txt text in force at each site of the replay unit reached last."""

    def __init__(self) -> None:
        self._unit = ""
        self._text_of_site: dict[int, int | None] = {}

    def advance(self, events: Iterable[Event]) -> set[int]:
        """The numbers of the texts in force during ``events``, which follow the events of the call before."""
        numbers: set[int | None] = set()
        for event in events:
            if event.unit != self._unit:
                self._unit = event.unit
                self._text_of_site.clear()
            if isinstance(event.fact, RobotsVersion):
                self._text_of_site[event.site_id] = event.fact.text_id
            numbers.add(self._text_of_site.get(event.site_id))
        return {number for number in numbers if number is not None}


async def _read_texts(store: Store, numbers: set[int]) -> tuple[dict[int, bytes], set[str]]:
    """The texts by number, and the recorded SHA-256 of those whose body has another one."""
    texts: dict[int, bytes] = {}
    forged: set[str] = set()
    for row in await read_rows(store, "robots_texts", numbers):
        if hashlib.sha256(row.body).digest() == row.sha256:
            texts[row.text_id] = row.body
        else:
            forged.add(row.sha256.hex())
    return texts, forged
