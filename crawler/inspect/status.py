"""``crawler status``: the URLs of the store by state and site, and what the crawl waits for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.table import Table
from rich.text import Text

from crawler.cli.console import PrintableConsole
from crawler.cli.layout import STATE_STYLES, Align, Fact, facts, table
from crawler.clock import brief_time, iso
from crawler.engine.sandbox import Confinement, available
from crawler.formatting import counted, duration, many
from crawler.frontier.operator import Blocks, Standing, standing
from crawler.frontier.time_left import TimeLeft
from crawler.inspect.last_run import AT_LIMIT, SILENT_S, end_of, last_seen, low_disk, page_limit_reached
from crawler.inspect.refusing import refusal_advice, refusal_sentence
from crawler.inspect.revisits import count_revisits, revisit_rows
from crawler.inspect.sampling_frame import OpenFrame, open_frame
from crawler.inspect.time_left import as_json as time_left_json
from crawler.inspect.time_left import describe_time_left, read_time_left
from crawler.inspect.unknown_hosts import describe_wait
from crawler.model import RobotsAction, State
from crawler.reasons import ReasonCode
from crawler.robots.response import RobotsSettings
from crawler.settings.settings import Settings
from crawler.settings.stored import stored_settings
from crawler.store.computed import Computed, behind_sentence
from crawler.store.location import db_argument
from crawler.store.rows import Beat, Counts, Waiting
from crawler.store.statements import load_statements, unlimited

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SITES_SHOWN = 20
_SITE_PART = 0.4  # of the width of the terminal
_WORKERS_SHOWN = 50
_NUMBERS_SHOWN = 5
#: Claims in vain are shown from this number and this part of the requests on: fewer cost less than a tenth of the time.
_LEAST_VAIN_CLAIMS, _MOST_VAIN_PART = 1_000, 0.25
_LAG_SHOWN_S = 1.0  # a pause of a second is as long: less changes nothing that a person sees

_SQL = load_statements("crawler.inspect")


def resume_hint(db: str) -> str:
    """How the paused crawl on the store ``db`` is resumed."""
    return f"`crawler control resume{db_argument(db)}` or the dashboard resumes it"


class Status(NamedTuple):
    """The status of a store at one moment. Times in seconds since the epoch."""

    at: float
    counts: Counts
    last_run: Mapping[str, Any] | None
    sites: list[dict[str, Any]]
    crawl_at_limit: bool  # whether the crawl has all the pages that its last run allowed
    more_sites: int
    refusing: list[dict[str, Any]]  # sites that answer by walls or refusals, and rest or are closed
    fetched_for: list[tuple[ReasonCode, int]]
    excluded_for: list[tuple[ReasonCode, int]]
    failed_for: list[tuple[ReasonCode, int]]
    waiting: list[Waiting]
    robots: RobotsSettings  # of the last run
    workers: list[dict[str, Any]]
    revisits: Mapping[str, Any]
    standing: Standing
    beats: list[Beat]
    frame: OpenFrame | None  # the sampling frame, while it is open
    time_left: TimeLeft | None  # None: nothing is queued that may be fetched
    is_held: bool  # whether a process may be crawling into the store
    computed: Mapping[Computed, bool]  # what was computed from the crawl, and whether it is older than the crawl
    parsers: Confinement  # by which this machine can confine the processes that read pages


async def workers(store: Store) -> list[dict[str, Any]]:
    """The workers of the last run: first those at work, then those that have ended.

    ``alive`` is false for a worker that has ended or is known to be dead.
    """
    run = await store.last_run()
    if run is None:
        return []
    dead = await store.known_dead()
    rows = await store.query(_SQL["workers"], {"run_id": run["id"], "limit": _WORKERS_SHOWN})
    return [row | {"alive": row["ended_at"] is None and row["worker"] not in dead} for row in rows]


def are_several(workers: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the crawl has several workers, or could have."""
    return len(workers) > 1 or any(worker["lease_until"] is not None for worker in workers)


async def read_status(store: Store, now: float) -> Status:
    """Read the status of a store."""
    run = await store.last_run()
    settings = await stored_settings(store) or Settings()
    per_site = unlimited(settings.limits.max_pages_per_site)
    largest = _SQL["largest_sites"].format(at_limit=AT_LIMIT)
    sites = await store.query(largest, {"limit": _SITES_SHOWN, "pages_per_site": per_site})
    if crawl_at_limit := await page_limit_reached(store, settings):
        sites = [row | {"at_limit": row["queued"] > 0} for row in sites]
    (asked,) = await store.query(_SQL["count_asked_sites"])
    return Status(
        at=now,
        counts=await store.counts(),
        last_run=run,
        sites=sites,
        crawl_at_limit=crawl_at_limit,
        more_sites=max(0, asked["sites"] - len(sites)),
        refusing=await store.query(_SQL["refusing_sites"], {"limit": _SITES_SHOWN}),
        fetched_for=await reasons(store, State.FETCHED),
        excluded_for=await reasons(store, State.EXCLUDED),
        failed_for=await reasons(store, State.FAILED),
        waiting=await store.waiting(now, 5),
        robots=settings.robots,
        workers=await workers(store),
        revisits=await count_revisits(store, now),
        standing=standing(await store.control.orders()),
        beats=await store.control.beats(),
        frame=await open_frame(store, now),
        time_left=await read_time_left(store, now),
        is_held=store.is_held(),
        computed=await store.computed(),
        parsers=available(),
    )


async def reasons(store: Store, state: State) -> list[tuple[ReasonCode, int]]:
    """How many URLs are in ``state`` for each reason, the most frequent first."""
    rows = await store.query(_SQL["reasons"], {"state": state.value})
    return [(ReasonCode(row["reason_code"]), row["urls"]) for row in rows]


def as_json(status: Status) -> dict[str, Any]:
    """The status as one JSON object; times in seconds since the epoch."""
    run = dict(status.last_run) if status.last_run else None
    if run is not None:
        run.pop("settings")
    return {
        "at": status.at,
        "urls": {state.value: n for state, n in status.counts.states.items()},
        "pages": status.counts.pages,
        "links": status.counts.links,
        "requests": status.counts.requests,
        "sites": status.sites,
        "crawl_at_limit": status.crawl_at_limit,
        "more_sites": status.more_sites,
        "refusing_sites": status.refusing,
        "fetched_for": dict(status.fetched_for),
        "excluded_for": dict(status.excluded_for),
        "failed_for": dict(status.failed_for),
        "waiting": [wait._asdict() for wait in status.waiting],
        "time_left": time_left_json(status.time_left),
        "sampling_frame": None if status.frame is None else status.frame._asdict(),
        "revisits": dict(status.revisits),
        "last_run": run,
        "workers": status.workers,
        "paused_since": status.standing.paused_since,
        "low_disk": low_disk(status.last_run, status.beats, status.at),
        "blocked": dict(status.standing.blocked),
        "heartbeats": [beat._asdict() | {"look_ups": json.loads(beat.look_ups)} for beat in status.beats],
        "computed": {name: {"is_behind": is_behind} for name, is_behind in status.computed.items()},
        "parsers": status.parsers._asdict(),
    }


def render(status: Status, db: str, console: PrintableConsole) -> None:
    """Print a status of the store ``db`` for people."""
    counts = status.counts
    states = Text(", ").join(Text(f"{counts.states[state]:,} {state}", style=STATE_STYLES[state]) for state in State)
    rows: list[Fact] = [
        *_refusing(status, db),
        ("URLs", states),
        (
            "Store",
            f"{many(counts.pages, 'page')}, {many(counts.links, 'link')}, {many(counts.requests, 'request')}",
        ),
    ]
    if status.time_left is not None:
        rows.append(("Time", describe_time_left(status.time_left, status.at)))
    rows += revisit_rows(status.revisits, status.at, db)
    if status.last_run is not None:
        rows.append(("Last run", _last_run(status.last_run, status)))
        if (status.last_run["worst_lag_s"] or 0.0) >= _LAG_SHOWN_S:
            rows.append(
                ("Lag", f"the crawler was busy, and reacted up to {duration(status.last_run['worst_lag_s'])} late")
            )
    rows += _vain_claims(status)
    if status.standing.paused_since is not None:
        rows.append(("Paused", f"since {brief_time(status.standing.paused_since, status.at)}; {resume_hint(db)}"))
    if (shortage := low_disk(status.last_run, status.beats, status.at)) is not None:
        rows.append(("Paused", f"{shortage}; make room, and the crawl goes on by itself"))
    if status.standing.blocked:
        rows.append(("Blocked", ", ".join(status.standing.blocked)))
    if any(code is not ReasonCode.FETCHED for code, _ in status.fetched_for):
        rows.append(("Fetched", counted((code.label, n) for code, n in status.fetched_for)))
    if status.excluded_for:
        rows.append(("Excluded", counted((code.label, n) for code, n in status.excluded_for)))
    if status.failed_for:
        rows.append(("Failed", counted((code.label, n) for code, n in status.failed_for)))
    rows += [
        (
            "Waiting",
            f"for {wait.group} {_until(wait, status)}, {describe_wait(wait, status.robots, status.at)}",
        )
        for wait in status.waiting
    ]
    if status.frame is not None:
        rows.append(("Sample", status.frame.describe(status.at)))
    if missing := status.parsers.missing():
        rows.append(("Parsers", f"this machine reads pages without {' and '.join(missing)}"))
    if behind := behind_sentence(status.computed, db):
        rows.append(("Results", behind))
    rows += [("Mirrors", f"{row['site']} of {row['main_site']}") for row in status.sites if row["main_site"]]
    console.print(facts(rows))
    if are_several(status.workers):
        console.print()
        console.print(_workers_table(status))
        for reason, workers in _ends(status.workers).items():
            console.print(Text(f"{many(len(workers), 'worker')} ended ({_listed(workers)}): {reason}"))
    if status.sites:
        console.print()
        console.print(_sites_table(status, console.width))
    if status.more_sites:
        console.print(f"… and {many(status.more_sites, 'more site')} (view `sites`)", style="dim")


def _refusing(status: Status, db: str) -> list[Fact]:
    """The sites that answer by walls or refusals, and what an operator may do about them."""
    rows: list[Fact] = [("Refused", refusal_sentence(row, status.at)) for row in status.refusing]
    return [*rows, ("What to do", refusal_advice(db))] if rows else []


def _vain_claims(status: Status) -> list[Fact]:
    """The claims that led to no request, if they are so many that they cost the crawl time."""
    run_id = None if status.last_run is None else status.last_run["id"]
    in_vain = sum(beat.vain_claims for beat in status.beats if beat.run_id == run_id)
    requests = sum(worker["requests"] for worker in status.workers)
    if in_vain < _LEAST_VAIN_CLAIMS or in_vain < _MOST_VAIN_PART * requests:
        return []
    part = f"{in_vain:,} brought no request, beside {many(requests, 'request')}"
    return [("Claims", f"{part}: very many hosts share a domain or an address (`politeness.large_hosts`)")]


def _until(wait: Waiting, status: Status) -> str:
    """When a wait ends. Nothing is requested while no run is in progress."""
    until = brief_time(wait.until, status.at)
    run = status.last_run
    if run is None or run["finished_at"] is not None or _was_killed(status):
        return f"until the crawl goes on, at {until} at the earliest"
    return f"until {until}"


def _was_killed(status: Status) -> bool:
    """Whether no process is at work on the last run; for a run without an end."""
    return not status.is_held or bool(status.workers and not any(worker["alive"] for worker in status.workers))


def _last_run(run: Mapping[str, Any], status: Status) -> str:
    started = iso(run["started_at"])
    if run["finished_at"] is not None:
        return f"{started} to {iso(run['finished_at'])}: {end_of(run)}"
    if _was_killed(status):
        return f"since {started}: it was killed, or its disk was full; the same command continues"
    seen_at = last_seen(run, status.beats)
    if status.at - seen_at < SILENT_S:
        return f"since {started}: it is running"
    fate = "it was killed (the same command continues), or is stuck"
    return f"since {started}, no sign of life since {iso(seen_at)}: {fate}"


def _workers_table(status: Status) -> Table:
    numbers = ("sites held", "pages", "pages/s", "requests")
    columns: dict[str, Align] = {"Worker": "left", **dict.fromkeys(numbers, "right"), "lease": "left"}
    rows = (
        (
            f"{row['worker']} ({row['host']}, process {row['pid']})",
            f"{row['groups_held']:,}" if row["ended_at"] is None else "",
            f"{row['pages']:,}",
            f"{row['pages'] / max(row['seen_at'] - row['started_at'], 1.0):,.1f}",
            f"{row['requests']:,}",
            _lease(row, status.at),
        )
        for row in status.workers
    )
    return table(columns, rows)


def _ends(workers: list[dict[str, Any]]) -> dict[str, list[int]]:
    """The reasons for which workers ended, each with the numbers of these workers."""
    ends: dict[str, list[int]] = {}
    for row in workers:
        if row["ended_at"] is not None:
            ends.setdefault(str(end_of(row)), []).append(row["worker"])
    return ends


def _listed(workers: list[int]) -> str:
    more = " …" if len(workers) > _NUMBERS_SHOWN else ""
    return ", ".join(map(str, workers[:_NUMBERS_SHOWN])) + more


def _lease(row: Mapping[str, Any], now: float) -> str:
    if row["ended_at"] is not None:
        return "ended"
    if not row["alive"]:
        return "killed: other workers take over its sites"
    if row["lease_until"] is None:
        return "exclusive use of the store"
    left_s = row["lease_until"] - now
    return f"for {duration(left_s)} more" if left_s > 0 else "expired: other workers take over its sites"


def _sites_table(status: Status, width: int) -> Table:
    """The largest sites. A name is copied, so it is folded only if it takes more than its part of the terminal."""
    nexts = [_next(row, status) for row in status.sites]
    last: dict[str, Align] = {"next": "fold"} if any(nexts) else {}  # sites need the room
    columns: dict[str, Align] = {
        "Site": "fold", "queued": "right", "pages": "right", "robots": "left", "pause": "left", **last
    }  # fmt: skip
    rows = [
        (
            Text(row["site"], no_wrap=False),
            f"{row['queued']:,}",
            f"{row['fetched']:,}",
            row["robots_status"] or "not asked",
            duration(row["delay_s"]),
            *([then] if last else []),
        )
        for row, then in zip(status.sites, nexts, strict=True)
    ]
    made = table(columns, rows)
    if last:
        made.columns[0].no_wrap, made.columns[0].max_width = True, int(width * _SITE_PART)
    return made


def _next(row: Mapping[str, Any], status: Status) -> str:
    blocks, now = Blocks(), status.at
    blocks.names = frozenset(status.standing.blocked)
    if blocks.covers(f"{row['site']}/"):
        return "blocked"
    if not row["queued"]:
        return ""
    if status.standing.paused_since is not None:
        return "paused"
    again = "now" if row["next_at"] <= now else brief_time(row["next_at"], now)
    if row["robots_action"] == RobotsAction.DEFER:  # whatever the limits are, nothing else is requested before
        return f"robots.txt, {again}"  # the reason stands under Waiting
    if status.frame is not None and row["at_limit"]:
        return "held back"
    if status.crawl_at_limit or row["at_limit"]:
        return "crawl at its limit" if status.crawl_at_limit else "at its limit"
    return again if row["next_at"] <= now else f"{again}, {row['waits_for']}".rstrip(", ")
