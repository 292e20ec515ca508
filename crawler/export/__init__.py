"""Exports the results of a crawl to files for other tools, streamed from the store in bounded memory.

``job`` has the options and selects the rows. One module writes each family of formats: ``tables`` (with ``languages``),
``text_files`` (with ``main_text``), ``link_graph``, ``sitemap``, ``warc`` and ``wacz``. This module maps the names of
formats to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from crawler.atomic_files import AtomicFiles
from crawler.errors import Argument, UsageError
from crawler.export.job import SQL, Addition, ExportOptions, ExportProgress, Job
from crawler.preferences.purposes import UsePurpose
from crawler.store.views import VIEWS
from crawler.texts.reader import TextReader

if TYPE_CHECKING:
    from crawler.store.sections import Store

__all__ = ["FORMATS", "VIEWS", "Addition", "ExportOptions", "ExportProgress", "Format", "export"]


@dataclass(frozen=True, slots=True)
class Format:
    """A format: the module of its writer, the views that it can export (the first is the default), and what it counts.

    The writer is the function ``write_NAME`` of the module. ``about`` is its line in ``crawler export --help``, which
    consecutive formats share.
    """

    module: str
    views: tuple[str, ...]
    counts: str
    about: str
    additions: tuple[Addition, ...] = ()
    is_text: bool = True  # in UTF-8
    is_folder: bool = False  # OUT is a folder
    counts_rows: bool = True  # each unit is a row of the view


_ANY = ("pages", *(view for view in VIEWS if view != "pages"))

#: The least number of characters of a chunk of text.
MIN_CHUNK = 50

#: A view with one of these columns has rows about pages: the page itself, or the source of a link.
_ABOUT_PAGES = frozenset(("url_id", "source_id", "source"))

_TABLE = "a view as a table (--table, else pages)"
_TEXT = "the main text of each page as a file in the folder OUT; without NOINDEX and NOARCHIVE pages"
_ARCHIVE = "the pages with their bodies, for web archives; without NOINDEX and NOARCHIVE pages"
_GRAPH = "the link graph (edges also: --table links_glued, duplicates folded)"
_SITEMAP = "fetched pages that may be indexed and are no duplicates"

FORMATS = {
    "jsonl": Format("tables", _ANY, "row", _TABLE, tuple(Addition)),
    "csv": Format("tables", _ANY, "row", _TABLE, (Addition.TEXT, Addition.LANGUAGE)),
    "parquet": Format("tables", _ANY, "row", _TABLE, tuple(Addition), is_text=False),
    "markdown": Format("text_files", ("pages",), "page", _TEXT, is_folder=True),
    "text": Format("text_files", ("pages",), "page", _TEXT, is_folder=True),
    "warc": Format("warc", ("pages",), "page", _ARCHIVE, is_text=False),
    "wacz": Format("wacz", ("pages",), "page", _ARCHIVE, is_text=False),
    "graphml": Format("link_graph", ("links",), "graph element", _GRAPH, counts_rows=False),
    "edges": Format("link_graph", ("links", "links_glued"), "link", _GRAPH),
    "sitemap": Format("sitemap", ("pages",), "URL", _SITEMAP),
}


async def export(
    store: Store,
    format: str,
    out: Path | BinaryIO,
    options: ExportOptions = ExportOptions(),  # noqa: B008  it is frozen
    *,
    now: float,
    tally: ExportProgress | None = None,
) -> ExportProgress:
    """Write an export of ``store`` to ``out``, whole or not at all. An earlier export at ``out`` is replaced.

    The store must be opened read-only and for this call alone; the export shows one moment of it. ``now`` is in seconds
    since the epoch. ``tally`` may be read while the export runs. Raises :class:`UsageError` for options that do not fit
    together, an invalid condition, a missing library, or a file that cannot be written; and
    :class:`crawler.errors.StoreError` if the store fails.
    """
    chosen = _format(format)
    view = options.table or chosen.views[0]
    _require_fit(format, chosen, view, options)
    uses, tally = _uses(options.allowed_for), tally or ExportProgress()
    if uses and not _ABOUT_PAGES & VIEWS[view].keys():
        raise UsageError(Argument("allowed_for"), f": the rows of the table {view} are about no page")
    with AtomicFiles() as files:
        async with AsyncExitStack() as readers, TextReader() as texts:
            await store.begin_snapshot()
            source, out = await _added(store, view, options.since, out)
            job = Job(store, view, source, options, uses, files, readers, texts, out, tally, now)
            with job.blaming_condition():
                await job.require_condition()
                await job.count_refused()
                if tally.is_watched and chosen.counts_rows:
                    await job.count_rows(with_body=chosen.is_folder or options.chunk is not None)
                module = import_module(f"crawler.export.{chosen.module}")  # loaded only for its formats
                await getattr(module, f"write_{format}")(job)
    return tally


async def _added(store: Store, view: str, since: int | None, out: Path | BinaryIO) -> tuple[str, Path | BinaryIO]:
    """The rows to export, which may be those that runs after ``since`` have added, and the place for them.

    A view without the times or runs of its rows is exported whole; of ``urls``, the writer leaves known rows out.
    Raises :class:`UsageError` if there was no run since.
    """
    if since is None:
        return view, out
    if not isinstance(out, Path):
        raise UsageError(Argument("since"), ": name a folder, which gets a file for each export")
    (runs,) = await store.query(SQL["runs_since"], {"run": since})
    if runs["last"] is None:
        raise UsageError(Argument("since", since), ": there was no run after it")
    folder = out / view
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made: {error.strerror or error}") from None
    added = SQL.get(f"since_{view}")
    source = view if added is None else added.format(run=since, began_at=repr(runs["began_at"]))
    return source, folder / f"run={runs['last']:06}.parquet"


def _require_fit(format: str, chosen: Format, view: str, options: ExportOptions) -> None:
    """Raise :class:`UsageError` for options that do not fit the format and the view."""
    is_of_pages = view == "pages"
    if view not in chosen.views:
        raise UsageError(Argument("table", view), f": {format} is made of {' or '.join(chosen.views)}")
    for added in options.add:
        if added not in tuple(Addition):
            raise UsageError(Argument("add", added), f" must be one of {', '.join(Addition)}")
        if added not in chosen.additions or not is_of_pages:
            takers = ", ".join(name for name, each in FORMATS.items() if added in each.additions)
            raise UsageError(Argument("add", added), f": only the table pages takes it, in the formats {takers}")
    if options.chunk is not None:
        if format != "jsonl" or not is_of_pages or options.add:
            raise UsageError(Argument("chunk"), ": chunks are the main texts of pages alone, in the format jsonl")
        if options.chunk < MIN_CHUNK:
            raise UsageError(Argument("chunk"), f": a chunk has {MIN_CHUNK} characters at least")
    if options.since is not None and format != "parquet":
        raise UsageError(Argument("since"), f" is for parquet, not for {format}")


def _uses(names: Iterable[str]) -> tuple[UsePurpose, ...]:
    try:
        return tuple(UsePurpose(name) for name in names)
    except ValueError:
        raise UsageError(Argument("allowed_for"), f" must be one of {', '.join(UsePurpose)}") from None


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise UsageError(f"{name!r} is no format: choose one of {', '.join(FORMATS)}")
    return FORMATS[name]
