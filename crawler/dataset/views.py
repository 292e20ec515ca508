"""The views of a dataset in DuckDB over Parquet, read like those of a store."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from crawler.dataset.duckdb import duckdb
from crawler.dataset.objects import Objects
from crawler.dataset.records import GROWING, WHOLE, Dataset, bucket_in
from crawler.dataset.tables import SQL, columns_of
from crawler.errors import StatementError, require
from crawler.frontier.buckets import bucket_of
from crawler.model import State
from crawler.reasons import EndCode, RunEnd
from crawler.settings.settings import Settings
from crawler.settings.stores import existing_store
from crawler.store.bodies import decompress
from crawler.store.computed import Computed
from crawler.store.location import is_url, shown
from crawler.store.named_rows import row_class
from crawler.store.rows import (
    Counts,
    KeptText,
    NearDuplicate,
    PageRank,
    SampleDraw,
    SampleRow,
    SiteRank,
    SiteTemplate,
    TextSignature,
)
from crawler.store.views import ColumnType

if TYPE_CHECKING:
    from crawler.store.sections import Store

TABLES = (*WHOLE, *GROWING)
#: The views that are made of tables, as a store makes them; in the order in which they are made of one another.
_MADE = [name for name in SQL if name.endswith("_by_id") or name == "page_versions"]
#: The views whose rows a dataset has not, or not before a sample is drawn.
_EMPTY = ("orders", "resources", "samples", "sample_draws")
_JOINED = frozenset({"sites_by_id", "urls_by_id", "pages_by_id"})
_ROWS_AT_ONCE = 5_000
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")
#: In a store, the numbers of a site's URLs are a range, and equal paths on two sites have near places in it. In a
#: dataset they are hashes: the statements that use these ranges compare the numbers of the sites instead.
_RANGES = (
    (re.compile(r"(\w+)\.url_id BETWEEN (\w+)\.first_url_id AND \2\.last_url_id"), r"\1.site_id = \2.site_id"),
    (re.compile(r"(\w+)\.url_id = (\w+)\.first_url_id \+ \w+\.path_hash"), r"\1.site_id = \2.site_id"),
    (
        re.compile(r"p\.url_id > :after ORDER BY p\.url_id"),
        "(p.site_id, p.url_id) > (coalesce((SELECT site_id FROM pages_by_id WHERE url_id = :after), -1), :after) "
        "ORDER BY p.site_id, p.url_id",
    ),
    (re.compile(r"\w+\.url_id BETWEEN (\w+)\.near_id - \d+ AND \1\.near_id \+ \d+ AND"), ""),
)
#: The results that are computed from a dataset, as of its last round.
RESULTS = ("ranks", "site_ranks", "near_duplicates")
#: What can be exported.
EXPORTED = (*TABLES, *RESULTS)


class Views:
    """The views of the tables of a dataset in DuckDB, as of its last manifest. A context manager.

    Times are seconds and flags are 0 or 1, as in a store, so that a statement means the same.
    """

    def __init__(self, location: str, *, computes: bool = False) -> None:
        """``computes``: many statements follow, so views that most of them join are made once, as tables."""
        self._tables = _JOINED if computes else frozenset[str]()
        self.dataset = Dataset(Objects(location))
        self.manifests = self.dataset.manifests()
        self._stack = ExitStack()
        self._db: Any = None
        self._folder = Path()
        self._draws: list[SampleDraw] = []

    def __enter__(self) -> Self:
        self._db, self._folder = self._stack.enter_context(duckdb())
        parts = {name: self.dataset.parts(self.manifests, name) for name in TABLES}
        parts["lost"] = self.dataset.lost_parts(self.manifests)
        parts["requests"] += parts["lost"]
        for name, keys in (parts | {name: self._newest(name) for name in RESULTS}).items():
            self._show(name, keys)
        for name in ("make_texts", "make_signatures", "make_templates", "make_samples", "make_sample_frame"):
            self._db.execute(SQL[name])
        for name in _EMPTY:
            self._show(name, [])
        for name in _MADE:
            self._db.execute(SQL["table" if name in self._tables else "view"].format(name=name, rows=SQL[name]))
        self._make_runs()
        self._db.execute("SET GLOBAL TimeZone = 'UTC'")
        self._db.execute("SET GLOBAL integer_division = true")  # as in the databases of stores
        self._confine()
        return self

    def _show(self, name: str, keys: list[str]) -> None:
        """Make the view of the rows in these Parquet files."""
        files = self.dataset.objects.local(keys, self._folder)
        self._db.execute(SQL["view"].format(name=name, rows=_view(name, files)))

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def _newest(self, result: str) -> list[str]:
        """The key of the newest result of a kind, if there is one."""
        return sorted(self.dataset.objects.keys(result))[-1:]  # a listing has no order

    def _make_runs(self) -> None:
        """The rounds, as the view of runs."""
        self._db.execute(SQL["make_runs"])
        end, settings = RunEnd(EndCode.ROUND_OVER), json.dumps(self.dataset.head.settings)
        of_each = {"ended_code": end.code.value, "ended_by": end.sentence, "settings": settings}
        for each in self.manifests:
            terms = {"run_id": each.round, "started_at": each.begun_at, "finished_at": each.ended_at}
            self._db.execute(SQL["add_run"], of_each | terms | {"crawler_version": each.crawler_version})

    def _confine(self) -> None:
        """Let statements of the user read nothing but the dataset."""
        allowed = [f"{place}/" for place in (self.dataset.objects.location, self._folder) if not is_url(str(place))]
        listed = ", ".join(map(_quoted, allowed))
        self._db.execute(f"SET allowed_directories = [{listed}]")
        self._db.execute("SET enable_external_access = false")
        self._db.execute("SET lock_configuration = true")

    def fetch(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        """The rows of a statement. Raises :class:`StatementError` if DuckDB rejects it."""
        return cast(list[tuple[Any, ...]], self._execute(sql, parameters).fetchall())

    def _execute(self, sql: str, parameters: Mapping[str, object] | None = None, *, cursor: bool = False) -> Any:
        errors = require("rounds", "a dataset", "duckdb")
        try:
            return (self._db.cursor() if cursor else self._db).execute(sql, dict(parameters or {}) or None)
        except errors.Error as error:
            raise StatementError(str(error)) from ValueError(str(error).splitlines()[0])

    # --- for features that read a store --------------------------------------------------------

    async def _nothing(self, *_: object) -> None:
        """No-op: a manifest never changes, all that is kept is new, and the index knows of which round it is."""

    begin_snapshot = begin_notes = end_notes = cover = drop_old_texts = drop_signatures = _nothing

    async def query(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[dict[str, Any]]:
        """The rows of a statement over the views of a store."""
        found = self._store_statement(sql, parameters)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    async def rows(self, sql: str, parameters: Mapping[str, object] | None = None) -> AsyncGenerator[Any, None]:
        """As :meth:`query`, one by one as named tuples."""
        found = self._store_statement(sql, parameters)
        make = row_class(tuple(column[0] for column in found.description))._make
        while batch := found.fetchmany(_ROWS_AT_ONCE):
            for row in batch:
                yield make(row)

    def _store_statement(self, sql: str, parameters: Mapping[str, object] | None) -> Any:
        """Execute a statement that is written for the views of a store, on a cursor of its own."""
        for in_store, in_dataset in _RANGES:
            sql = in_store.sub(in_dataset, sql)
        statement = _PARAMETER.sub(r"$\1", sql)
        used = {name: value for name, value in (parameters or {}).items() if f"${name}" in statement}
        return self._execute(statement, used, cursor=True)

    async def counts(self) -> Counts:
        """See :meth:`crawler.store.sections.Store.counts`."""
        states = dict(self.fetch(SQL["states_of_all"]))
        ((pages, links, requests, sites, _),) = self.fetch(SQL["counts"])
        return Counts({state: states.get(state, 0) for state in State}, pages, links, requests, sites)

    @asynccontextmanager
    async def store_of(self, bucket: int) -> AsyncIterator[Store | None]:
        """The store of a bucket as of the last manifest, copied and open; ``None`` if it was not crawled yet."""
        state = self.manifests[-1].buckets.get(bucket) if self.manifests else None
        if state is None or not state.store:
            yield None
            return
        path, settings = self._folder / f"{bucket:05}.db", Settings()
        self.dataset.fetch_store(state.store, bucket, path)
        async with existing_store(replace(settings, store=replace(settings.store, db=str(path)))) as store:
            yield store
        path.unlink()

    def bucket_of(self, site: str) -> int:
        """The number of the bucket that a site belongs to."""
        return bucket_of(site, self.dataset.head.buckets)

    @asynccontextmanager
    async def deadline(self, seconds: float) -> AsyncIterator[None]:
        """No deadline: a search asks for few rows."""
        yield

    async def computed(self) -> dict[Computed, bool]:
        """See :meth:`crawler.store.sections.Store.computed`. The index knows itself of which round it is."""
        newest = {each: self._newest(each.value) for each in (Computed.NEAR_DUPLICATES, Computed.RANKS)}
        last = f"{len(self.manifests):06}.parquet"
        behind = {each: not keys[0].endswith(last) for each, keys in newest.items() if keys}
        return behind | {Computed.INDEX: False}

    @property
    def name(self) -> str:
        """The location, as commands name it."""
        return shown(self.dataset.objects.location)

    async def seeds(self) -> Sequence[str]:
        return self.dataset.head.seeds

    async def last_request(self) -> int:
        """A number after those of the requests of the last round: results are as of it."""
        return (len(self.manifests) + 1) << 32

    async def replace_ranks(self, pages: Iterable[PageRank], sites: Iterable[SiteRank], last_request: int) -> None:
        """Write the ranks into the dataset, as those of its last round."""
        self._replace_result("ranks", "page_ranks", PageRank._fields, pages)
        self._replace_result("site_ranks", "site_ranks", SiteRank._fields, sites)

    async def replace_near_duplicates(self, pages: Iterable[NearDuplicate], last_request: int) -> None:
        """Write the clusters of near-duplicates into the dataset, as those of its last round."""
        self._replace_result("near_duplicates", "near_duplicates", NearDuplicate._fields, pages)

    def _replace_result(self, name: str, statement: str, fields: Sequence[str], rows: Iterable[Any]) -> None:
        path = self._folder / f"{name}.parquet"
        with self._registered("result", fields, rows):
            self._db.execute(SQL[statement].format(file=path))
        self.dataset.objects.put(key := f"{name}/{len(self.manifests):06}.parquet", path)
        self._show(name, [key])

    @contextmanager
    def _registered(self, name: str, fields: Sequence[str], rows: Iterable[Any]) -> Iterator[None]:
        """A table of these rows, for the statements inside."""
        columns = list(zip(*rows, strict=True)) or [() for _ in fields]
        self._db.register(name, require("rounds", "a dataset", "pyarrow").table(columns, names=list(fields)))
        try:
            yield
        finally:
            self._db.unregister(name)

    async def keep_signatures(self, signatures: Sequence[TextSignature], templates: Sequence[SiteTemplate]) -> None:
        """Keep signatures and templates as long as this is open."""
        characters = [(each.url_id, each.digest, each.keys.decode("latin-1")) for each in signatures]
        self._keep("text_signatures_by_id", TextSignature._fields, characters)
        self._keep("site_templates_by_id", SiteTemplate._fields, templates)

    async def keep_texts(self, texts: Sequence[KeptText]) -> None:
        """Keep texts as long as this is open."""
        self._keep("main_texts_by_id", KeptText._fields, texts)

    def _keep(self, table: str, fields: Sequence[str], rows: Sequence[Any]) -> None:
        if rows:
            with self._registered("made", fields, rows):
                self._db.execute(SQL["keep"].format(table=table))

    @property
    def bodies(self) -> Self:
        """This object has the methods of the sections of a store."""
        return self

    results = samples = bodies

    async def get(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """The bodies of these numbers, out of the files of the buckets that have fetched them."""
        listed = ", ".join(map(str, numbers))
        self._db.execute(SQL["make_page_of_body"])
        buckets = {self.bucket_of(url) for (url,) in self.fetch(SQL["pages_of_bodies"].format(numbers=listed))}
        keys = [key for key in self.dataset.parts(self.manifests, "bodies") if bucket_in(key) in buckets]
        paths = self.dataset.objects.local(keys, self._folder)
        found = self.fetch(SQL["bodies_in"].format(files=_view("bodies", paths), numbers=listed))
        for path in {*self._folder.glob("bodies/*/*")}.difference(map(Path, paths)):
            path.unlink()  # a copy for an earlier call, which asked for pages of other buckets
        return {number: decompress(data) for number, data in found}

    async def last_run(self) -> dict[str, Any] | None:
        """The settings of the crawl, as those of its last run."""
        return {"settings": json.dumps(self.dataset.head.settings)}

    async def find(self, url: str) -> int | None:
        """The number of a URL."""
        rows = self.fetch(SQL["find"], {"url": url})
        return int(rows[0][0]) if rows else None

    async def replace(
        self, draw: SampleDraw, rows: Sequence[SampleRow], pages_per_site: int | None, frame: Sequence[int]
    ) -> None:
        """Keep a draw, for the statements that read it."""
        with self._registered("drawn", SampleRow._fields, rows):
            self._db.execute(SQL["add_samples"])
        with self._registered("framed", ["url_id"], [(number,) for number in frame]):
            self._db.execute(SQL["add_sample_frame"])
        self._draws = [draw._replace(number=1)]
        path = self._folder / "draw.parquet"
        with self._registered("drawn", SampleDraw._fields, self._draws):
            self._db.execute(SQL["keep_draw"].format(file=path))
        for name in ("sample_draws", "samples"):
            self._db.execute(SQL["view"].format(name=name, rows=SQL[name].format(file=path)))

    async def draws(self) -> list[SampleDraw]:
        """The draw of this sample, if it was drawn."""
        return self._draws

    async def drawn(self) -> SampleDraw | None:
        """See :meth:`draws`."""
        return self._draws[0] if self._draws else None


def _quoted(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _view(name: str, files: list[str]) -> str:
    """The statement of a view over Parquet files."""
    columns = columns_of(name)
    types = {ColumnType.TIME: "DOUBLE", ColumnType.NUMBER: "DOUBLE", ColumnType.BYTES: "BLOB"}
    types |= {ColumnType.INTEGER: "BIGINT", ColumnType.YES: "INTEGER"}
    if not files:
        empty = (f"NULL::{types.get(kind, 'VARCHAR')} AS {column}" for column, kind in columns.items())
        return SQL["no_rows"].format(columns=", ".join(empty))
    casts = {ColumnType.TIME: "epoch_us({0}) / 1e6 AS {0}", ColumnType.YES: "{0}::INTEGER AS {0}"}
    selected = ", ".join(casts.get(kind, "{0}").format(column) for column, kind in columns.items())
    listed = ", ".join(map(_quoted, files))
    statement = SQL["files"].format(columns=selected, files=listed)
    return SQL["once"].format(urls=statement) if name == "urls" else statement
