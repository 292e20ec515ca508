"""What an audit reads from a store: the request log, the robots.txt versions, the settings of each run; no verdicts.

The log is read in slices, in an order in which all that happened in a politeness group stands together: so memory does
not grow with the log. The order is kept in temporary tables of the reading connection; the store itself is not written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from crawler.audit.records import Event, LoggedRequest, RobotsResponse, RobotsVersion, RunRecord
from crawler.errors import UsageError
from crawler.frontier.politeness import GroupBy, group_name
from crawler.model import Headers
from crawler.store.protocols import Store

#: Events in a slice. Each may need a robots.txt of its own in memory, of half a megabyte at most.
_SLICE = 500
_PAGE = 10_000  # of rows without bodies

_TABLES = (
    "CREATE TEMP TABLE audit_site (id BIGINT PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL)",
    "CREATE TEMP TABLE audit_order (n INTEGER PRIMARY KEY, kind INTEGER NOT NULL, id BIGINT NOT NULL, site BIGINT)",
)
_ADD_SITES = "INSERT INTO audit_site VALUES "
#: What happens at the same time: answers for robots.txt (0), at the site that they are for; versions (1); requests (2).
_ADD_ORDER = """INSERT INTO audit_order (n, kind, id, site)
  SELECT row_number() OVER (ORDER BY unit, at, kind, id), kind, id, site FROM (
    SELECT s.unit AS unit, q.started_at AS at, 2 AS kind, q.id AS id, s.id AS site
    FROM request q JOIN audit_site s ON s.id = q.site_id
    UNION ALL SELECT s.unit, q.finished_at, 0, q.id, s.id
    FROM request q LEFT JOIN audit_site f ON f.id = q.for_site_id JOIN audit_site s ON s.id = coalesce(f.id, q.site_id)
    WHERE q.purpose = 'robots'
    UNION ALL SELECT s.unit, r.valid_from, 1, r.id, s.id
    FROM robots_copy r JOIN audit_site s ON s.id = r.site_id) AS e"""
_REQUESTS = """SELECT o.n, o.kind, s.unit, s.id AS at_id, s.name AS at_site, q.id, q.run_id, q.site_id, h.name, q.path,
    q.purpose, q.started_at, q.finished_at, q.status, q.error, q.bytes, q.retry_after_s, q.for_site_id, q.location
  FROM audit_order o JOIN request q ON q.id = o.id JOIN audit_site s ON s.id = o.site
    JOIN audit_site h ON h.id = q.site_id
  WHERE o.n > ?1 AND o.n <= ?1 + ?2 AND o.kind <> 1"""
_VERSIONS = """SELECT o.n, s.unit, s.id AS at_id, s.name AS at_site, r.valid_from, r.valid_until, r.action, r.status,
    r.text_id, coalesce(lower(hex(t.sha256)), '') AS sha256, r.run_id, r.answered_by, r.headers
  FROM audit_order o JOIN robots_copy r ON r.id = o.id JOIN audit_site s ON s.id = o.site
    LEFT JOIN robots_text t ON t.id = r.text_id
  WHERE o.n > ?1 AND o.n <= ?1 + ?2 AND o.kind = 1"""
_TEXTS = "SELECT id, sha256, body FROM robots_text WHERE id IN ({})"
#: Since when each run has redirects of a robots.txt in the log without their Location, as early stores left them.
_BLIND = """SELECT run_id, min(started_at) AS since FROM request
  WHERE purpose = 'robots' AND status IN (301, 302, 303, 307, 308) AND error IS NULL AND location IS NULL
  GROUP BY run_id"""

_CANONICAL = (
    "SELECT 'run', id AS after, started_at, crawler_version, settings FROM run WHERE id > ? ORDER BY id LIMIT ?",
    """SELECT 'robots', r.id AS after, s.name, r.action, r.status, r.fetched_at, r.valid_from, r.valid_until,
         nullif(lower(hex(t.sha256)), '') AS sha256, r.run_id, r.answered_by, r.headers
       FROM robots_copy r JOIN site s ON s.id = r.site_id LEFT JOIN robots_text t ON t.id = r.text_id
       WHERE r.id > ? ORDER BY r.id LIMIT ?""",
    """SELECT 'request', q.id AS after, q.run_id, s.name, q.path, q.purpose, q.started_at, q.finished_at, q.status,
         q.error, q.bytes, q.retry_after_s, q.for_site_id, q.location
       FROM request q JOIN site s ON s.id = q.site_id WHERE q.id > ? ORDER BY q.id LIMIT ?""",
    """SELECT 'control', id AS after, asked_at, command, name, run_id, done_at FROM control
       WHERE id > ? ORDER BY id LIMIT ?""",
)


@dataclass(frozen=True, slots=True)
class Slice:
    """Some of what happened, in the order to judge it, with the texts of the robots.txt versions that it needs.

    ``forged`` names the texts whose SHA-256 is not the recorded one; they are not among ``texts``.
    """

    events: list[Event]
    texts: dict[int, bytes]
    forged: set[str]


class RunCount(NamedTuple):
    """A run's requests: as many as the log holds, and as its workers counted; ``None``: an early store, no count."""

    run: int
    logged: int
    counted: int | None


@asynccontextmanager
async def snapshot(store: Store) -> AsyncIterator[None]:
    """What is read within is of one moment, though a crawl may go on; temporary tables end with it."""
    await store.begin_notes()
    try:
        yield
    finally:
        await store.query("ROLLBACK")


async def runs(store: Store) -> list[RunRecord]:
    """Every run with its settings. Raises :class:`crawler.errors.UsageError` where they cannot be read."""
    return [RunRecord.read(row) for row in await store.query("SELECT * FROM run ORDER BY id")]


async def blind(store: Store) -> dict[int, float]:
    """Since when the log of a run lacks where redirects of a robots.txt led; by run, of such runs only."""
    return {row["run_id"]: row["since"] for row in await store.query(_BLIND)}


async def slices(store: Store, terms: Iterable[RunRecord]) -> AsyncIterator[Slice]:
    """All that happened, in the order of (unit, time). Call within a :func:`snapshot`.

    Raises :class:`crawler.errors.UsageError` for headers of a robots.txt that cannot be read.
    """
    by = GroupBy.DOMAIN if any(run.group is GroupBy.DOMAIN for run in terms) else GroupBy.HOST
    for statement in _TABLES:
        await store.query(statement)
    after = 0
    while rows := await store.query("SELECT id, name FROM site WHERE id > ? ORDER BY id LIMIT ?", (after, _PAGE)):
        units = [(row["id"], row["name"], group_name(row["name"], by)) for row in rows]
        values = ", ".join(["(?, ?, ?)"] * len(units))
        await store.query(_ADD_SITES + values, [value for unit in units for value in unit])
        after = rows[-1]["id"]
    await store.query(_ADD_ORDER)
    after, in_force = 0, _InForce()
    while events := await _events(store, after):
        after += _SLICE
        yield Slice(events, *await _texts(store, in_force.needed(events)))


async def _events(store: Store, after: int) -> list[Event]:
    found: list[tuple[int, Event]] = []
    for row in await store.query(_REQUESTS, (after, _SLICE)):
        n, kind, unit, at_id, at_site, *values = row.values()
        sent = LoggedRequest(*values)
        found.append((n, Event(unit, at_id, at_site, RobotsResponse(sent) if kind == 0 else sent)))
    for row in await store.query(_VERSIONS, (after, _SLICE)):
        n, unit, at_id, at_site, *values, headers = row.values()
        found.append((n, Event(unit, at_id, at_site, RobotsVersion._make((*values, _headers(headers, at_site))))))
    found.sort(key=lambda numbered: numbered[0])
    return [event for _, event in found]


def _headers(text: Any, site: str) -> Headers | None:
    if text is None:
        return None
    try:
        return tuple((str(name), str(value)) for name, value in json.loads(text))
    except (TypeError, ValueError) as error:
        raise UsageError(f"the headers kept of the robots.txt of {site} cannot be read ({error})") from None


class _InForce:
    """Which text is in force at each site of the unit that was reached last."""

    def __init__(self) -> None:
        self._unit = ""
        self._texts: dict[int, int | None] = {}

    def needed(self, events: Iterable[Event]) -> set[int]:
        """The texts that go with ``events``, which follow those given before."""
        needed: set[int | None] = set()
        for event in events:
            if event.unit != self._unit:
                self._unit = event.unit
                self._texts.clear()
            if isinstance(event.fact, RobotsVersion):
                self._texts[event.site_id] = event.fact.text
            needed.add(self._texts.get(event.site_id))
        return {text for text in needed if text is not None}


async def _texts(store: Store, numbers: set[int]) -> tuple[dict[int, bytes], set[str]]:
    texts: dict[int, bytes] = {}
    forged: set[str] = set()
    for row in await store.query(_TEXTS.format(", ".join("?" * len(numbers)) or "NULL"), list(numbers)):
        if hashlib.sha256(row["body"]).digest() == row["sha256"]:
            texts[row["id"]] = row["body"]
        else:
            forged.add(row["sha256"].hex())
    return texts, forged


async def canonical_sha256(store: Store) -> str:
    """The SHA-256, in hex, of what was judged: as JSON, one array a line: runs, robots.txt versions, requests, orders.

    ``docs/audit.md`` has the form. Call within the :func:`snapshot` of the audit.
    """
    digest = hashlib.sha256()
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    for sql in _CANONICAL:
        after = 0
        while rows := await store.query(sql, (after, _PAGE)):
            after = rows[-1]["after"]
            digest.update("".join([encode(list(row.values())) + "\n" for row in rows]).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


async def numbering(store: Store) -> tuple[int, int, int]:
    """How many requests the log holds, how many name a site, and the last number given."""
    (row,) = await store.query(
        "SELECT count(*) AS n, coalesce(max(q.id), 0) AS last, count(s.id) AS placed"
        " FROM request q LEFT JOIN site s ON s.id = q.site_id"
    )
    return row["n"], row["placed"], row["last"]


async def counts(store: Store) -> list[RunCount]:
    """The requests of each run, as logged and as counted: a worker's count is of the same transaction as the rows."""
    rows = await store.query(
        "SELECT r.id AS run, coalesce(q.n, 0) AS logged, CAST(w.n AS BIGINT) AS counted FROM run r"
        " LEFT JOIN (SELECT run_id, count(*) AS n FROM request GROUP BY run_id) AS q ON q.run_id = r.id"
        " LEFT JOIN (SELECT run_id, sum(requests) AS n FROM worker GROUP BY run_id) AS w ON w.run_id = r.id"
        " ORDER BY r.id"
    )
    return [RunCount(**row) for row in rows]
