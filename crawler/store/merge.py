"""Merging the parts of a crawl into one store, on which every command works that reads.

Each part has numbers of its own, and a key of its own for hashes, so rows are numbered anew. The row of a URL or a
site is that of the part which requests it. Other parts have rows of it only because their pages link to it. The merged
store is a crawl on one database that can go on: an offer that its part has not received yet becomes a queued URL, and
so does a URL on a site whose robots.txt redirects to a domain of another part. The robots.txt of such a site is
requested again.

Ranks, near duplicates, the search index and the mirrors that were recognised by their pages are not merged: they are
computed from the whole. The numbers of sites, groups and bodies are kept in memory meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crawler.errors import StoreError, UsageError
from crawler.model import RobotsAction, State
from crawler.reasons import ReasonCode
from crawler.store.copy import TABLES, OnProgress
from crawler.store.keys import PROBES, new_key, numbers_from, render_keys, site_of, url_number

if TYPE_CHECKING:
    from crawler.store.sections import Store

_ROWS = 5_000  # in one transaction
#: The reasons of URLs that no part requests, and that a crawl on one database does.
_LIFTED = frozenset({ReasonCode.OTHER_PART.value, ReasonCode.ROBOTS_ELSEWHERE.value})

#: The columns with numbers that are given anew, of each table, and what they number. A table comes after those that it
#: names. Some tables are merged by methods of their own.
_NUMBERED: Mapping[str, Mapping[str, str]] = {
    "worker": {"id": "worker", "run_id": "run"},
    "robots_copy": {"id": "robots_copy", "site_id": "site", "text_id": "robots_text", "run_id": "run"},
    "page": {"url_id": "url", "body_id": "body"},
    "page_version": {"url_id": "url", "body_id": "body"},
    "frontier": {"site_id": "site", "url_id": "url"},
    "mirror": {},
    "agent_server": {"site_id": "site"},
    "tdmrep_file": {"site_id": "site"},
    "revisit": {"url_id": "url"},
    "hint_record": {"site_id": "site"},
    "rup_offer": {},
    "rup_server": {},
    "rup_mail": {"id": "rup_mail"},
    "control": {"id": "control", "run_id": "run"},
}
#: The same of the request log, which is merged in the order of time.
_REQUEST = {"run_id": "run", "site_id": "site", "robots_id": "robots_copy", "for_site_id": "site"}
#: Tables whose rows may be the same in several parts, with their keys.
_SHARED: Mapping[str, str] = {"preference_set": "id", "tls": "id", "answer": "id", "host_taken": "host"}
#: What is numbered from 1 in each part: its numbers follow those of the part before.
_FOLLOWING = ("worker", "robots_copy", "rup_mail", "control")
#: Tables that are not merged: those that are computed, and those of samples, which need a crawl on one database.
NOT_MERGED = frozenset(
    {
        *("rank", "site_rank", "text_signature", "site_template", "near_duplicate", "computation"),
        *("sample_draw", "sample", "frame_url"),
        *("change_under_way", "revisit_budget", "part", "outgoing", "hash_key", "skipped_seed"),
    }
)


@dataclass(slots=True)
class _Numbers:
    """The new numbers of one part's rows, by what they number."""

    maps: dict[str, dict[int, int]] = field(default_factory=dict)
    after: dict[str, int] = field(default_factory=dict)  # what is added to a number
    key: int = 0  # of the hashes in the target
    paths: dict[int, str] = field(default_factory=dict)  # of the URLs that the current rows name
    urls: dict[int, int] = field(default_factory=dict)  # only those that do not have the number of their hash

    def of(self, kind: str, number: int) -> int:
        if kind == "url":
            return self.urls.get(number) or self.hashed(number)
        return self.maps[kind][number] if kind in self.maps else number + self.after[kind]

    def hashed(self, number: int) -> int:
        """The number that the path of a URL has by its hash in the target."""
        return url_number(self.maps["site"][site_of(number)], self.paths[number], self.key)


async def merge_parts(
    parts: Sequence[Store], target: Store, now: float, on_progress: OnProgress = lambda table, rows, what: None
) -> None:
    """Merge ``parts``, those parts of a crawl that have begun, in their order, into ``target``.

    The target is empty, or has a merge of these parts that was cut off. Such a merge begins anew, because the parts may
    have changed since. One process at a time merges into a target. The parts must be opened for reading, and for this
    call alone. Raises :class:`UsageError` if the target has anything else, and if only some of the parts keep their
    bodies outside, or at several locations.
    """
    locations = {part.bodies.location for part in parts}
    if len(locations) > 1:
        raise UsageError(f"the bodies of the parts are at several locations: {', '.join(map(str, locations))}")
    location = locations.pop()
    async with target.beginning():
        await _begin(sorted(part.name for part in parts), target)
        if location is not None:
            await target.bodies.keep_in(location)
        for part in parts:
            await part.begin_complete_snapshot()
        await _Merger(parts, target, on_progress).merge()
        await target.prepare(None)
        await target.fail_circles()
        await target.find_content_mirrors(now)
        await target.finish_copy(now)


async def _begin(sources: Sequence[str], target: Store) -> None:
    """Note in the target that it becomes the merger of ``sources``, and empty it of an earlier attempt."""
    copies = await target.query("SELECT source, done_at FROM store_copy ORDER BY source")
    if not copies and not await target.query("SELECT 1 FROM run LIMIT 1"):
        await target.begin_copy(sources)
    elif [row["source"] for row in copies if row["done_at"] is None] == sources:
        await target.empty(TABLES)
    else:
        raise UsageError(f"{target.name}: not an empty store; merge into a new one")


class _Merger:
    def __init__(self, parts: Sequence[Store], target: Store, on_progress: OnProgress) -> None:
        self._parts = parts
        self._target = target
        self._on_progress = on_progress
        self._key = new_key()
        self._numbers = [_Numbers(key=self._key) for _ in parts]

    async def merge(self) -> None:
        await self._insert("hash_key", ["id", "key"], [(1, self._key)])
        await self._merge_runs()
        await self._merge_by("robots_text", "sha256")
        await self._merge_by("body", "sha256")
        await self._merge_dropped()
        for table, key in _SHARED.items():
            await self._merge_by(table, key, number=None)
        for kind in _FOLLOWING:
            after = 0
            for part, numbers in zip(self._parts, self._numbers, strict=True):
                numbers.after[kind] = after
                after += (await part.query(f"SELECT coalesce(max(id), 0) AS n FROM {kind}"))[0]["n"]
        await self._merge_tables("worker")
        await self._merge_sites()
        await self._merge_urls()
        await self._merge_tables(*(table for table in _NUMBERED if table != "worker"))
        await self._merge_requests()
        await self._merge_links()

    async def _merge_runs(self) -> None:
        """The runs of all parts in the order of their beginnings, with settings of a crawl on one database."""
        runs = [(row, n) for n, part in enumerate(self._parts) for row in await part.query("SELECT * FROM run")]
        runs.sort(key=lambda run: (run[0]["started_at"], run[1]))
        for numbers in self._numbers:
            numbers.maps["run"] = {}
        for number, (row, part) in enumerate(runs, 1):
            self._numbers[part].maps["run"][row["id"]] = row["id"] = number
            settings = json.loads(row["settings"])
            if "store" in settings:
                settings["store"]["parts"] = []
            row["settings"] = json.dumps(settings)
        if runs:
            await self._insert("run", list(runs[0][0]), [tuple(row.values()) for row, _ in runs])

    async def _merge_by(self, table: str, key: str, number: str | None = "id") -> None:
        """Merge the rows of a table that have the same key. They are numbered anew, if they have a number."""
        known: dict[object, int] = {}
        for part, numbers in zip(self._parts, self._numbers, strict=True):
            columns = await part.columns_of(table)
            mine = numbers.maps[table] = {}
            async for batch in self._batches(part, table, columns):
                new: list[tuple[object, ...]] = []
                for row in batch:
                    value = row[columns.index(key)]
                    is_new = value not in known
                    given = known.setdefault(value, len(known) + 1)
                    if number is not None:
                        mine[row[columns.index(number)]] = given
                        row[columns.index(number)] = given
                    if is_new:
                        new.append(tuple(row))
                await self._insert(table, columns, new)

    async def _merge_dropped(self) -> None:
        """The bodies to be deleted if no page names them; a page of another part may."""
        dropped = set[int]()
        for part, numbers in zip(self._parts, self._numbers, strict=True):
            rows = await part.query("SELECT body_id FROM body_to_drop")
            dropped |= {numbers.of("body", row["body_id"]) for row in rows}
        await self._insert("body_to_drop", ["body_id"], [(number,) for number in sorted(dropped)])

    async def _merge_tables(self, *tables: str) -> None:
        for table in tables:
            for part, numbers in zip(self._parts, self._numbers, strict=True):
                columns = await part.columns_of(table)
                positions = [(columns.index(column), kind) for column, kind in _NUMBERED[table].items()]
                where = " WHERE evidence <> 'content'" if table == "mirror" else ""
                urls = [position for position, kind in positions if kind == "url"]
                async for batch in self._batches(part, table, columns, where):
                    await self._read_paths(part, numbers, batch, urls)
                    for row in batch:
                        for position, kind in positions:
                            if row[position] is not None:
                                row[position] = numbers.of(kind, row[position])
                    await self._insert(table, columns, [tuple(row) for row in batch])

    async def _merge_sites(self) -> None:
        """Each site, with its group, as the part has it that requests it; then those that only others have."""
        groups: dict[str, int] = {}
        sites: dict[str, int] = {}
        columns = await self._target.columns_of("site")
        group_columns = await self._target.columns_of("politeness_group")
        for is_own in (True, False):
            for part, numbers in zip(self._parts, self._numbers, strict=True):
                numbers.maps.setdefault("site", {})
                where = f" WHERE other_part IS {'' if is_own else 'NOT '}NULL"
                closed = f"SELECT id FROM robots_copy WHERE action = '{RobotsAction.ELSEWHERE}'"
                elsewhere = {row["id"] for row in await part.query(closed)}
                named = f" WHERE id IN (SELECT group_id FROM site{where})"
                mine: dict[int, int] = {}
                async for batch in self._batches(part, "politeness_group", group_columns, named):
                    new: list[tuple[object, ...]] = []
                    for row in batch:
                        group = dict(zip(group_columns, row, strict=True))
                        is_new = group["name"] not in groups
                        mine[group["id"]] = group["id"] = groups.setdefault(group["name"], len(groups) + 1)
                        if is_new:
                            new.append(tuple((group | {"claimed_by": None}).values()))
                    await self._insert("politeness_group", group_columns, new)
                async for batch in self._batches(part, "site", columns, where):
                    new = []
                    for row in batch:
                        site = dict(zip(columns, row, strict=True))
                        is_new = site["name"] not in sites
                        number = sites.setdefault(site["name"], len(sites) + 1)
                        numbers.maps["site"][site["id"]] = number
                        if is_new:
                            robots = None if site["robots_id"] in elsewhere else site["robots_id"]
                            changed = {
                                "id": number,
                                "group_id": mine[site["group_id"]],
                                "robots_id": None if robots is None else numbers.of("robots_copy", robots),
                                "other_part": None,
                                "probe": None,
                            }
                            new.append(tuple((site | changed).values()))
                    await self._insert("site", columns, new)

    async def _merge_urls(self) -> None:
        """Each URL as the part has it that requests it; then those that only other parts have."""
        columns = await self._target.columns_of("url")
        for is_own in (True, False):
            for part, numbers in zip(self._parts, self._numbers, strict=True):
                where = (
                    f" WHERE site_of(id) IN (SELECT id FROM site WHERE other_part IS {'' if is_own else 'NOT '}NULL)"
                )
                async for batch in self._batches(part, "url", columns, render_keys(where)):
                    urls = [dict(zip(columns, row, strict=True)) for row in batch]
                    await self._read_paths(part, numbers, batch, list(map(columns.index, ("id", "found_on", "target"))))
                    await self._merge_batch(columns, urls, numbers)
        for part, numbers in zip(self._parts, self._numbers, strict=True):
            await self._correct_targets(part, numbers)

    @staticmethod
    def _url(url: Mapping[str, Any], numbers: _Numbers, number: int) -> dict[str, Any]:
        mapped = {
            column: None if url[column] is None else numbers.of("url", url[column]) for column in ("found_on", "target")
        }
        return {**url, **mapped, "id": number}

    async def _merge_batch(self, columns: Sequence[str], urls: Sequence[dict[str, Any]], numbers: _Numbers) -> None:
        """Merge URLs of a part. Of those on sites that another part requests, that part has most."""
        wanted = {url["id"]: numbers.hashed(url["id"]) for url in urls}
        known = await self._known(wanted.values())
        new: list[dict[str, Any]] = []
        found: list[tuple[int, int | None, int | None]] = []
        for url in urls:
            number = wanted[url["id"]]
            if number in known and known[number]["path"] != url["path"]:
                number = await self._number_apart(number, url["path"], known)
                numbers.urls[url["id"]] = number
            row = self._url(url, numbers, number)
            if number not in known:
                new.append(row)
                known[number] = row
            elif known[number]["found_on"] is None and not known[number]["seed"]:
                known[number]["found_on"] = row["found_on"]
                found.append((number, row["found_on"], None))
        await self._insert_urls(columns, new)
        await self._target.complete_urls(found)

    async def _number_apart(self, hashed: int, path: str, known: dict[int, dict[str, Any]]) -> int:
        """The number of a path, if another one has the number of its hash. Adds to the ``known`` URLs."""
        candidates = numbers_from(hashed)
        known |= await self._known(number for number in candidates if number not in known)
        for number in candidates:
            if number not in known or known[number]["path"] == path:
                return number
        raise StoreError(
            f"{self._target.name}: {PROBES} other paths of the site of {path} have the numbers that it may have; the "
            "same command begins the merge anew, with other numbers"
        )

    @staticmethod
    async def _read_paths(
        part: Store, numbers: _Numbers, rows: Iterable[Sequence[Any]], positions: Sequence[int]
    ) -> None:
        """Read the paths of the URLs whose numbers stand at these positions in the rows."""
        named = {row[position] for row in rows for position in positions if row[position] is not None}
        numbers.paths = {}
        if named:
            listed = ", ".join(map(str, sorted(named)))
            found = await part.query(f"SELECT id, path FROM url WHERE id IN ({listed})")
            numbers.paths = {row["id"]: row["path"] for row in found}

    async def _insert_urls(self, columns: Sequence[str], urls: Sequence[dict[str, Any]]) -> None:
        """Insert URLs, and queue those that no part requests."""
        lifted = [url for url in urls if url["reason_code"] in _LIFTED]
        for url in lifted:
            url |= {"state": State.QUEUED.value, "reason_code": ReasonCode.NEW.value, "reason": ""}
        await self._insert("url", columns, [tuple(url.values()) for url in urls])
        queued = [(site_of(url["id"]), url["due_at"], url["depth"], url["id"]) for url in lifted]
        await self._insert("frontier", ["site_id", "due_at", "depth", "url_id"], queued)

    async def _known(self, numbers: Iterable[int]) -> dict[int, dict[str, Any]]:
        listed = ", ".join(map(str, numbers)) or "NULL"
        rows = await self._target.query(f"SELECT id, path, seed, found_on FROM url WHERE id IN ({listed})")
        return {row["id"]: row for row in rows}

    async def _correct_targets(self, part: Store, numbers: _Numbers) -> None:
        """The targets of redirects that were numbered before the number of their path was known to be another."""
        for old, number in numbers.urls.items():
            rows = await part.query(f"SELECT id, path FROM url WHERE target = {old}")
            numbers.paths = {row["id"]: row["path"] for row in rows}
            await self._target.complete_urls([(numbers.of("url", row["id"]), None, number) for row in rows])

    async def _merge_requests(self) -> None:
        """The requests of all parts in the order of their beginnings. Those of one part keep their order."""
        columns = await self._target.columns_of("request")
        number, begun = columns.index("id"), columns.index("started_at")
        positions = [(columns.index(column), kind) for column, kind in _REQUEST.items()]
        streams = [self._rows(part, "request", columns) for part in self._parts]
        first = [await anext(stream, None) for stream in streams]
        rows: list[tuple[Any, ...]] = []
        count = 0
        while any(row is not None for row in first):
            part = min((row[begun], n) for n, row in enumerate(first) if row is not None)[1]
            row = first[part]
            assert row is not None
            for position, kind in positions:
                if row[position] is not None:
                    row[position] = self._numbers[part].of(kind, row[position])
            count += 1
            row[number] = count
            rows.append(tuple(row))
            first[part] = await anext(streams[part], None)
            if len(rows) == _ROWS:
                await self._insert("request", columns, rows)
                rows = []
        await self._insert("request", columns, rows)

    async def _merge_links(self) -> None:
        for part, numbers in zip(self._parts, self._numbers, strict=True):
            columns = await part.columns_of("link")
            source, target = columns.index("source"), columns.index("target")
            async for batch in self._batches(part, "link", columns):
                await self._read_paths(part, numbers, batch, [source, target])
                for row in batch:
                    row[source], row[target] = numbers.of("url", row[source]), numbers.of("url", row[target])
                await self._insert("link", columns, [tuple(row) for row in batch])

    async def _batches(
        self, part: Store, table: str, columns: Sequence[str], where: str = ""
    ) -> AsyncIterator[list[list[Any]]]:
        batch: list[list[Any]] = []
        count = 0
        async for row in self._rows(part, table, columns, where):
            batch.append(row)
            if len(batch) == _ROWS:
                yield batch
                count += len(batch)
                self._on_progress(table, count, "merged")
                batch = []
        if batch:
            yield batch

    @staticmethod
    async def _rows(
        part: Store, table: str, columns: Sequence[str], where: str = ""
    ) -> AsyncGenerator[list[Any], None]:
        order = f" ORDER BY {', '.join(TABLES[table])}" if TABLES[table] else ""
        async for row in part.rows(f"SELECT {', '.join(columns)} FROM {table}{where}{order}"):
            yield list(row)

    async def _insert(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            await self._target.insert_rows(table, columns, rows)
