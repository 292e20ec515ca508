"""A crawl's results as files for other people's tools, streamed from the store in bounded memory.

``views`` (what columns there are) and ``writing`` (whole files or none) → ``job`` (which rows) → a module per family of
formats: ``tables`` · ``graph`` · ``sitemap`` · ``warc`` → ``wacz`` → this module, which puts them under one name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from crawler.atomic_files import AtomicFiles
from crawler.errors import Argument, UsageError
from crawler.export.job import ExportProgress, Job
from crawler.export.link_graph import write_edges, write_graphml
from crawler.export.sitemap import write_sitemap
from crawler.export.tables import write_csv, write_jsonl, write_parquet
from crawler.export.view_columns import VIEWS
from crawler.export.wacz import write_wacz
from crawler.export.warc import write_warc
from crawler.store.protocols import Store

__all__ = ["FORMATS", "VIEWS", "ExportProgress", "Format", "export"]


@dataclass(frozen=True, slots=True)
class Format:
    """How a format is written, from which views (the first unless told), and of what its tally counts."""

    write: Callable[[Job], Awaitable[None]]
    views: tuple[str, ...]
    counts: str
    takes_bodies: bool = False
    takes_base_url: bool = False


_ANY = ("pages", *(view for view in VIEWS if view != "pages"))

FORMATS = {
    "jsonl": Format(write_jsonl, _ANY, "rows", takes_bodies=True),
    "csv": Format(write_csv, _ANY, "rows"),
    "parquet": Format(write_parquet, _ANY, "rows", takes_bodies=True),
    "warc": Format(write_warc, ("pages",), "pages"),
    "wacz": Format(write_wacz, ("pages",), "pages"),
    "graphml": Format(write_graphml, ("links",), "nodes and edges"),
    "edges": Format(write_edges, ("links", "links_glued"), "links"),
    "sitemap": Format(write_sitemap, ("pages",), "URLs", takes_base_url=True),
}


async def export(
    store: Store,
    format: str,
    out: Path | BinaryIO,
    *,
    now: float,
    table: str | None = None,
    where: str | None = None,
    bodies: bool = False,
    base_url: str | None = None,
    tally: ExportProgress | None = None,
) -> ExportProgress:
    """Write what ``store``, opened for reading and for this alone, holds to ``out``: whole, or not at all.

    ``where`` is an SQL condition on the columns of the view that is exported; ``bodies`` adds the pages' bodies;
    ``base_url`` is where the folder of a sitemap in several files will be served; ``now`` is in seconds since the
    epoch; ``tally`` may be watched meanwhile. All is of one moment, also while a crawl goes on. Raises
    :class:`UsageError` for what does not fit together, a bad condition, a missing library, or a place that cannot
    be written, and :class:`crawler.errors.StoreError`.
    """
    chosen = _format(format)
    view = table or chosen.views[0]
    if view not in chosen.views:
        raise UsageError(Argument("table", view), f": {format} is made of {' or '.join(chosen.views)}")
    if bodies and not (chosen.takes_bodies and view == "pages"):
        takers = ", ".join(name for name, each in FORMATS.items() if each.takes_bodies)
        raise UsageError(
            Argument("bodies"),
            f": only the table pages has bodies, in the formats {takers} (warc and wacz always have them)",
        )
    if base_url is not None and not chosen.takes_base_url:
        raise UsageError(f"--base-url is for a sitemap, not for {format}")
    tally = tally or ExportProgress()
    with AtomicFiles() as files:
        async with AsyncExitStack() as readers:
            job = Job(store, view, where, files, readers, out, tally, now, bodies, base_url)
            with job.blaming_condition():
                await store.query("BEGIN")  # all statements see what the first one saw
                await job.require_condition()
                await chosen.write(job)
    return tally


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise UsageError(f"{name!r} is no format: choose one of {', '.join(FORMATS)}")
    return FORMATS[name]
