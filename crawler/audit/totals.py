"""Totals of a request log: requests, answers and exclusions."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crawler.atomic_files import AtomicFiles
from crawler.audit.log_reader import read_rows
from crawler.clock import exact_time
from crawler.formatting import many
from crawler.store.statements import load_statements
from crawler.store.views import ColumnType, columns_of

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SQL = load_statements("crawler.audit")


#: What the crawl asked of a site, and what it keeps. Requests, octets and times are those of requests that were sent.
SITE_COLUMNS = columns_of(
    """\
site text
host text
registered_domain text
requests integer: all requests that were sent to the site
unsent integer: requests that were not sent, because the site had no address to connect to
robots_requests integer: requests for robots.txt
page_requests integer: requests for pages
bytes integer
first_at time: when the first request that was sent began
last_at time: when the last request ended
crawl_delay_s number: the Crawl-delay of the last robots.txt that was received
pages integer: pages fetched
noindex_pages integer: pages that say NOINDEX or refuse a declared purpose: kept without body and texts
noarchive_pages integer: pages that say NOARCHIVE: no export has their bodies
bodies_kept integer: pages whose body the store keeps
queued integer: URLs not yet requested
excluded integer: URLs excluded, by the rules, the scope or the sample
failed integer: URLs that gave no page
forgotten integer: URLs that were deleted and stay excluded
blocked integer: URLs excluded because the operator blocked the site
""".splitlines()
)


class ClockStep(NamedTuple):
    """A run whose first request is earlier than the end of a run before it, and by how many seconds."""

    run: int
    back_s: float


@dataclass(frozen=True, slots=True)
class LogTotals:
    """Totals of a request log. Times in seconds since the epoch; ``None`` if the log is empty.

    ``requests`` are those that were sent, ``sites`` those to which they were sent.
    A list of any type has the rows of a statement in ``queries.sql``.
    """

    requests: int
    sites: int
    bytes: int
    first_at: float | None
    last_at: float | None
    redacted: int  # requests whose addresses were reduced to their sites
    unsent: int  # further requests of the log, which had no address to connect to
    sites_without_address: int  # the sites of these
    answers: list[Any]
    requests_per_run: dict[int, int]
    clock_steps: list[ClockStep]
    robots_actions: list[Any]
    exclusions: list[Any]


def unsent_sentence(totals: LogTotals) -> str:
    """How many further requests of the log were not sent, as a sentence; empty if there are none."""
    if not totals.unsent:
        return ""
    unsent = f"{many(totals.unsent, 'further request')} {'was' if totals.unsent == 1 else 'were'} not sent"
    return f"{unsent}: {many(totals.sites_without_address, 'site')} had no address that the crawler may connect to"


async def read_totals(store: Store) -> LogTotals:
    """Read the totals. The statements aggregate the whole log, and each returns a few rows."""
    (totals,) = await store.query(_SQL["totals"])
    runs = await read_rows(store, "requests_per_run")
    return LogTotals(
        **totals,
        answers=await read_rows(store, "answers"),
        requests_per_run={row.run: row.requests for row in runs},
        clock_steps=_clock_steps(runs),
        robots_actions=await read_rows(store, "robots_actions"),
        exclusions=await read_rows(store, "exclusions"),
    )


async def site_totals(store: Store) -> AsyncIterator[list[Any]]:
    """The totals of every site that the crawl knows, by name, in the order of :data:`SITE_COLUMNS`."""
    async with aclosing(store.rows(_SQL["site_totals"])) as rows:
        async for row in rows:
            yield [getattr(row, name) for name in SITE_COLUMNS]


async def write_sites(path: Path, store: Store) -> None:
    """Write a row for each site as CSV, whole or not at all. Raises :class:`crawler.errors.UsageError` if it cannot."""
    with AtomicFiles() as files:
        text = io.TextIOWrapper(files.open(path).file, "utf-8", newline="", write_through=True)
        rows = csv.writer(text)
        rows.writerow(SITE_COLUMNS)
        async for site in site_totals(store):
            values = zip(site, SITE_COLUMNS.values(), strict=True)
            # No site name begins like a formula: it begins with its scheme.
            rows.writerow(exact_time(x) if kind is ColumnType.TIME and x is not None else x for x, (kind, _) in values)
        text.detach()


def _clock_steps(runs: Iterable[Any]) -> list[ClockStep]:
    """The runs, in order, before which the clock was set back.

    Runs of several parts of a crawl overlap: a run is compared with those whose requests all came before its own.
    """
    steps = []
    before: list[Any] = []
    for run in runs:
        latest = max((other.last_at for other in before if other.last < run.first), default=0.0)
        if run.first_at < latest:
            steps.append(ClockStep(run.run, latest - run.first_at))
        before.append(run)
    return steps
