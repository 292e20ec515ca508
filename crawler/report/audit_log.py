"""What an audit reads from a store: the request log, the robots.txt versions, the settings of each run; no verdicts.

The log is read in slices, in an order in which each politeness group's requests stand together: so memory does not
grow with the log. The order is kept in temporary tables of the reading connection; the store itself is not written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from crawler.frontier.politeness import GroupBy, group_name
from crawler.report.audit_facts import Sent, Terms, Version, in_force
from crawler.store.interface import Store

#: Requests in a slice. Each may need a robots.txt of its own in memory, of half a megabyte at most.
_SLICE = 500
_PAGE = 10_000  # of rows without bodies

_TABLES = (
    "CREATE TEMP TABLE audit_site (id INTEGER PRIMARY KEY, unit TEXT NOT NULL)",
    "CREATE TEMP TABLE audit_order (n INTEGER PRIMARY KEY, id INTEGER NOT NULL)",
)
_ADD_SITES = "INSERT INTO audit_site SELECT value ->> 0, value ->> 1 FROM json_each(?)"
_ADD_ORDER = """INSERT INTO audit_order (id)
  SELECT q.id FROM request q JOIN audit_site s ON s.id = q.site_id ORDER BY s.unit, q.started_at, q.id"""
_REQUESTS = """SELECT q.id, q.run_id, a.unit, q.site_id, s.name, q.path, q.purpose, q.started_at, q.finished_at,
    q.status, q.error, q.bytes, q.retry_after_s, o.n
  FROM audit_order o JOIN request q ON q.id = o.id JOIN audit_site a ON a.id = q.site_id JOIN site s ON s.id = a.id
  WHERE o.n > ? ORDER BY o.n LIMIT ?"""
_VERSIONS = """SELECT r.site_id, r.valid_from, r.fetched_at, r.valid_until, r.action, r.status, r.text_id,
    coalesce(lower(hex(t.sha256)), '') AS sha256
  FROM robots_copy r LEFT JOIN robots_text t ON t.id = r.text_id
  WHERE r.site_id IN (SELECT value FROM json_each(?)) ORDER BY r.site_id, r.valid_from, r.id"""
_TEXTS = "SELECT id, sha256, body FROM robots_text WHERE id IN (SELECT value FROM json_each(?))"
#: The first redirects of a robots.txt, of two sites.
_REDIRECTS = """SELECT site_id, min(finished_at) AS at FROM request
  WHERE purpose = 'robots' AND status IN (301, 302, 303, 307, 308) AND error IS NULL
  GROUP BY site_id ORDER BY 2 LIMIT 2"""

_CANONICAL = (
    "SELECT 'run', id AS after, started_at, crawler_version, settings FROM run WHERE id > ? ORDER BY id LIMIT ?",
    """SELECT 'robots', r.id AS after, s.name, r.action, r.status, r.fetched_at, r.valid_from, r.valid_until,
         lower(hex(t.sha256)) AS sha256
       FROM robots_copy r JOIN site s ON s.id = r.site_id LEFT JOIN robots_text t ON t.id = r.text_id
       WHERE r.id > ? ORDER BY r.id LIMIT ?""",
    """SELECT 'request', q.id AS after, q.run_id, s.name, q.path, q.purpose, q.started_at, q.finished_at, q.status,
         q.error, q.bytes, q.retry_after_s
       FROM request q JOIN site s ON s.id = q.site_id WHERE q.id > ? ORDER BY q.id LIMIT ?""",
)


@dataclass(frozen=True, slots=True)
class Slice:
    """Some requests in the order to judge them, with the robots.txt versions of their sites.

    ``forged`` names the texts whose SHA-256 is not the recorded one; they are not among ``texts``.
    """

    requests: list[Sent]
    versions: dict[int, list[Version]]
    texts: dict[int, bytes]
    forged: set[str]


@asynccontextmanager
async def snapshot(store: Store) -> AsyncIterator[None]:
    """What is read within is of one moment, though a crawl may go on; temporary tables end with it."""
    await store.query("BEGIN")
    try:
        yield
    finally:
        await store.query("ROLLBACK")


async def runs(store: Store) -> list[Terms]:
    """Every run with its settings. Raises :class:`crawler.errors.UsageError` where they cannot be read."""
    return [Terms.read(row) for row in await store.query("SELECT * FROM run ORDER BY id")]


async def redirects(store: Store) -> list[tuple[int, float]]:
    """When robots.txt files first redirected: (site, end of the answer), of two sites at most."""
    return [(row["site_id"], row["at"]) for row in await store.query(_REDIRECTS)]


async def slices(store: Store, terms: Iterable[Terms]) -> AsyncIterator[Slice]:
    """The whole log, in the order of (unit, start). Call within a :func:`snapshot`."""
    by = GroupBy.DOMAIN if any(run.group is GroupBy.DOMAIN for run in terms) else GroupBy.HOST
    for statement in _TABLES:
        await store.query(statement)
    after = 0
    while rows := await store.query("SELECT id, name FROM site WHERE id > ? ORDER BY id LIMIT ?", (after, _PAGE)):
        units = [(row["id"], group_name(row["name"], by)) for row in rows]
        await store.query(_ADD_SITES, (json.dumps(units),))
        after = rows[-1]["id"]
    await store.query(_ADD_ORDER)
    after = 0
    while rows := await store.query(_REQUESTS, (after, _SLICE)):
        after = rows[-1]["n"]
        requests = []
        for row in rows:
            *values, _ = row.values()
            requests.append(Sent(*values))
        versions = await _versions(store, {sent.site_id for sent in requests})
        yield Slice(requests, versions, *await _texts(store, _needed(requests, versions)))


async def _versions(store: Store, sites: set[int]) -> dict[int, list[Version]]:
    found: dict[int, list[Version]] = {}
    for row in await store.query(_VERSIONS, (json.dumps(list(sites)),)):
        found.setdefault(row["site_id"], []).append(Version(*row.values()))
    return found


def _needed(requests: Iterable[Sent], versions: dict[int, list[Version]]) -> set[int]:
    used = (in_force(versions.get(sent.site_id, ()), sent.started_at) for sent in requests)
    return {version.text for version in used if version is not None and version.text is not None}


async def _texts(store: Store, numbers: set[int]) -> tuple[dict[int, bytes], set[str]]:
    texts: dict[int, bytes] = {}
    forged: set[str] = set()
    for row in await store.query(_TEXTS, (json.dumps(list(numbers)),)):
        if hashlib.sha256(row["body"]).digest() == row["sha256"]:
            texts[row["id"]] = row["body"]
        else:
            forged.add(row["sha256"].hex())
    return texts, forged


async def canonical_sha256(store: Store) -> str:
    """The SHA-256, in hex, of what was judged: runs, robots.txt versions and requests, as JSON, one array a line.

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
