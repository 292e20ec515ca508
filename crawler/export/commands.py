"""The command ``crawler export``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from crawler.cli.on_store import on_rows
from crawler.cli.output import PrintableBytes, tell
from crawler.cli.progress import progress_line
from crawler.cli.shared import OneOf, cli, db_option
from crawler.clock import SystemClock
from crawler.engine.tasks import background_task
from crawler.errors import UsageError
from crawler.export import FORMATS, MIN_CHUNK, VIEWS, Addition, ExportOptions, ExportProgress
from crawler.export import export as export_to
from crawler.formatting import counted, duration, many
from crawler.preferences.purposes import UsePurpose
from crawler.store.computed import REFRESH, Computed, behind_sentence
from crawler.store.location import db_argument, names_dataset, shown

if TYPE_CHECKING:
    from crawler.store.sections import Store

_REFRESH_S = 0.2
#: Not a format of :data:`FORMATS`: it is a folder.
APPENDIX = "appendix"
#: By view, what has its rows.
_COMPUTED = {"ranks": Computed.RANKS, "site_ranks": Computed.RANKS, "near_duplicates": Computed.NEAR_DUPLICATES}


def _help() -> str:
    """The help of the command, with a line for each group of formats."""
    groups = [(" ".join(names), about) for about, names in groupby(FORMATS, key=lambda name: FORMATS[name].about)]
    groups.append((APPENDIX, "a folder OUT with the data of a study: tables, audit, codebook, citation"))
    width = max(len(names) for names, _ in groups)
    formats = "\n".join(f"{names:{width}}  {about}" for names, about in groups)
    return f"""Write the crawl's results to the file OUT ("-": standard output), whole or not at all.
    An earlier export at OUT is replaced.

    \b
{indent(formats, "    ")}

    --where is a condition on the columns of the view: of pages, for the link graph of links. For example
    --where "depth < 3 AND site = 'https://example.org'".
    """


@cli.command(no_args_is_help=True, help=_help())
@click.argument("format", type=OneOf([*FORMATS, APPENDIX]), metavar="FORMAT")
@click.argument("out", type=click.Path(path_type=Path, allow_dash=True))
@db_option
@click.option("--table", type=OneOf(list(VIEWS)), metavar="VIEW", help=f"One of {', '.join(VIEWS)}.")
@click.option("--where", metavar="SQL", help="Only the rows of that view that meet a condition.")
@click.option(
    "--add",
    multiple=True,
    type=OneOf([addition.value for addition in Addition]),
    help="Tables of pages: with their bodies (jsonl, parquet), their texts without navigation and the like (needs the "
    "extra `text`), or the languages that a classifier sees (needs the extra `language`); may be repeated.",
)
@click.option(
    "--allowed-for",
    multiple=True,
    type=OneOf([purpose.value for purpose in UsePurpose]),
    help="Leave out pages, and links of pages, that refuse this use.",
)
@click.option(
    "--study",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="appendix: a TOML file with the title, the authors and the variables of the study (docs/appendix.md).",
)
@click.option(
    "--chunk",
    type=click.IntRange(MIN_CHUNK),
    metavar="N",
    help="jsonl: the main texts of pages in chunks of at most N characters, with their headings and preferences.",
)
@click.option(
    "--since",
    hidden=True,  # named in docs/export.md
    type=click.IntRange(0),
    metavar="RUN",
    help="parquet: what runs after this one have added, as a further file of the folder OUT/VIEW.",
)
def export(format: str, out: Path, db: str, study: Path | None, **given: Any) -> None:
    """Run the command; its help is made from the table of formats. ``given`` are fields of :class:`ExportOptions`."""
    options = ExportOptions(**given)
    if format == APPENDIX:
        from crawler.appendix import commands as appendix

        if options != ExportOptions():
            raise UsageError("an appendix is of the whole crawl; leave the options of tables out")
        appendix.write(out, db, study)
        return
    if study is not None:
        raise UsageError("--study is for `crawler export appendix`")
    tally = ExportProgress(is_watched=sys.stderr.isatty())
    clock, needed, unit = SystemClock(), _COMPUTED.get(options.table or ""), FORMATS[format].counts
    began = clock.now()

    if names_dataset(db):
        _require_plain(db, format, options)

    async def write(store: Store) -> bool | None:
        target = _standard_output(format) if str(out) == "-" else out
        async with _progress(tally, unit):
            await export_to(store, format, target, options, now=began, tally=tally)
        if names_dataset(db):  # what is computed from it is as of its last round
            return False if tally.written else None
        return None if needed is None else (await store.computed()).get(needed)

    is_behind = on_rows(db, write)
    why = counted((reason, n) for reason, n in tally.left_out_for.items() if n)
    left_out = f" ({many(tally.left_out, 'page')} left out: {why})" if tally.left_out else ""
    in_chunks = "" if options.chunk is None else f" in {many(tally.chunks, 'chunk')}"
    written = many(tally.written, "page" if in_chunks else unit)
    tell(f"{out}: {written}{in_chunks} in {duration(clock.now() - began)}{left_out}")
    if tally.unread:
        reasons = counted((reason, n) for reason, n in tally.unread.items())
        tell(f"{out}: {many(tally.unread.total(), 'page')} without a main text: {reasons}")
    if needed is not None and is_behind is None:
        tell(f"the view {options.table} is empty: run `{REFRESH}{db_argument(db)}` first")
    elif needed is not None and is_behind:
        tell(behind_sentence({needed: True}, db))


def _require_plain(db: str, format: str, options: ExportOptions) -> None:
    """Raise :class:`UsageError` for an export that a dataset has not."""
    from crawler.dataset.views import EXPORTED

    if format not in ("jsonl", "csv", "parquet", "edges") or (options.table and options.table not in EXPORTED):
        raise UsageError(
            f"{shown(db)} is a dataset: jsonl, csv, parquet and edges can be made of it, of the tables "
            f"{', '.join(EXPORTED)}"
        )
    if options.add or options.chunk or options.allowed_for or options.since is not None:
        raise UsageError(f"{shown(db)} is a dataset: exports of it take --table and --where only")


def _standard_output(format: str) -> BinaryIO:
    """Standard output; a terminal gets text only, and only what is printable."""
    if not sys.stdout.isatty():
        return sys.stdout.buffer
    if not FORMATS[format].is_text:
        raise UsageError(f"{format} is a binary format, which a terminal cannot show; name a file, or use a pipe")
    return cast(BinaryIO, PrintableBytes(sys.stdout.buffer))


@asynccontextmanager
async def _progress(tally: ExportProgress, unit: str) -> AsyncIterator[None]:
    """Show how many units are written."""
    with progress_line(many(0, unit)) as say:

        async def follow() -> None:
            while True:
                done = tally.written + tally.left_out
                say(f"{unit}s" if tally.total else many(tally.written, unit), done, tally.total)
                await asyncio.sleep(_REFRESH_S)

        async with background_task(follow()):
            yield
