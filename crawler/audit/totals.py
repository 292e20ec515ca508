"""Totals of a request log: requests, answers, exclusions, and the sites that asked for the most restraint."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from crawler.formatting import many
from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SITES_SHOWN = 10

_SQL = load_statements("crawler.audit")


class AnswerCount(NamedTuple):
    """How many requests of a purpose had an answer of a class, such as ``2xx``, ``no answer`` or ``not sent``."""

    purpose: str
    answer: str
    requests: int


class RobotsActions(NamedTuple):
    """How many answers for robots.txt meant ``action``, and how many distinct texts they had."""

    action: str
    answers: int
    texts: int


class Exclusions(NamedTuple):
    """How many URLs were excluded for a reason; ``reason_code`` is a value of ``crawler.reasons.ReasonCode``."""

    reason_code: str
    urls: int


class CrawlDelay(NamedTuple):
    """The ``Crawl-delay`` of a site, in seconds."""

    site: str
    crawl_delay_s: float


class RetryAfters(NamedTuple):
    """The longest ``Retry-After`` of a site, in seconds, and how many of its answers had one."""

    site: str
    longest_s: float
    answers: int


class SiteCount(NamedTuple):
    """How often something happened at a site."""

    site: str
    times: int


class SiteTotals(NamedTuple):
    """What the crawl asked of a site, and what it keeps. Times in seconds since the epoch, ``bytes`` in octets.

    Requests, octets and times are those of requests that were sent; ``unsent`` counts the others. The
    columns are those of the table ``sites`` of the data appendix (``docs/appendix.md``).
    """

    site: str
    host: str
    registered_domain: str
    requests: int
    unsent: int
    robots_requests: int
    page_requests: int
    bytes: int
    first_at: float | None
    last_at: float | None
    crawl_delay_s: float | None
    pages: int
    noindex_pages: int
    noarchive_pages: int
    bodies_kept: int
    queued: int
    excluded: int
    failed: int
    forgotten: int
    blocked: int


class ClockStep(NamedTuple):
    """A run whose first request is earlier than the end of a run before it, and by how many seconds."""

    run: int
    back_s: float


@dataclass(frozen=True, slots=True)
class LogTotals:
    """Totals of a request log. Times in seconds since the epoch; ``None`` if the log is empty."""

    requests: int
    sites: int
    bytes: int
    first_at: float | None
    last_at: float | None
    redacted: int  # requests whose addresses were reduced to their sites
    unsent: int  # requests that were not sent, because there was no address to connect to
    sites_without_address: int  # the sites of these
    answers: list[AnswerCount]
    requests_per_run: dict[int, int]
    clock_steps: list[ClockStep]
    robots_actions: list[RobotsActions]
    exclusions: list[Exclusions]
    crawl_delays: list[CrawlDelay]
    retry_afters: list[RetryAfters]
    deferred: list[SiteCount]
    restricted: list[SiteCount]


def unsent_sentence(totals: LogTotals) -> str:
    """How many of the requests were not sent, as a sentence; empty if all were."""
    if not totals.unsent:
        return ""
    were = "was" if totals.unsent == 1 else "were"
    sites = many(totals.sites_without_address, "site")
    return f"{totals.unsent:,} of these {were} not sent: {sites} had no address that the crawler may connect to"


async def read_totals(store: Store) -> LogTotals:
    """Read the totals. The statements aggregate the whole log, and each returns a few rows."""
    (totals,) = await store.query(_SQL["totals"])
    runs = await store.query(_SQL["requests_per_run"])
    most = {"limit": _SITES_SHOWN}
    deferred = await store.query(_SQL["deferred_sites"], most)
    restricted = await store.query(_SQL["restricted_sites"], most)
    return LogTotals(
        **totals,
        answers=[AnswerCount(**row) for row in await store.query(_SQL["answers"])],
        requests_per_run={row["run"]: row["requests"] for row in runs},
        clock_steps=_clock_steps(runs),
        robots_actions=[RobotsActions(**row) for row in await store.query(_SQL["robots_actions"])],
        exclusions=[Exclusions(**row) for row in await store.query(_SQL["exclusions"])],
        crawl_delays=[CrawlDelay(**row) for row in await store.query(_SQL["longest_crawl_delays"], most)],
        retry_afters=[RetryAfters(**row) for row in await store.query(_SQL["longest_retry_afters"], most)],
        deferred=[SiteCount(row["site"], row["attempts"]) for row in deferred],
        restricted=[SiteCount(row["site"], row["answers"]) for row in restricted],
    )


async def site_totals(store: Store) -> AsyncIterator[SiteTotals]:
    """The totals of every site that the crawl knows, by name."""
    async with aclosing(store.rows(_SQL["site_totals"])) as rows:
        async for row in rows:
            yield SiteTotals(*row)


def _clock_steps(runs: Iterable[Mapping[str, Any]]) -> list[ClockStep]:
    """The runs, in order, before which the clock was set back.

    Runs of several parts of a crawl overlap: a run is compared with those whose requests all came before its own.
    """
    steps = []
    before: list[Mapping[str, Any]] = []
    for run in runs:
        latest = max((other["last_at"] for other in before if other["last"] < run["first"]), default=0.0)
        if run["first_at"] < latest:
            steps.append(ClockStep(run["run"], latest - run["first_at"]))
        before.append(run)
    return steps
