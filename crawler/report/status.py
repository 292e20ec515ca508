"""``crawler status``: what the store holds, per state and site, and what is waited for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from crawler.clock import iso, local_hhmm
from crawler.model import State
from crawler.store.interface import Counts, Store, Waiting

_SITES_SHOWN = 20
_STYLES = {"queued": "cyan", "fetched": "green", "redirected": "blue", "excluded": "yellow", "failed": "red"}


@dataclass(frozen=True, slots=True)
class Status:
    """One look at a store. Times in seconds since the epoch."""

    at: float
    counts: Counts
    last_run: Mapping[str, Any] | None
    sites: list[dict[str, Any]]
    more_sites: int
    excluded_for: list[tuple[str, int]]
    failed_for: list[tuple[str, int]]
    waiting: list[Waiting]


async def look(store: Store, now: float) -> Status:
    """Read the status of a store."""
    runs = await store.query("SELECT * FROM run ORDER BY id DESC LIMIT 1")
    sites = await store.query(
        "SELECT * FROM sites WHERE robots_status IS NOT NULL OR queued"
        " ORDER BY queued DESC, fetched DESC, site LIMIT ?",
        (_SITES_SHOWN,),
    )
    (worked,) = await store.query("SELECT count(*) AS n FROM site WHERE robots_id IS NOT NULL")
    return Status(
        at=now,
        counts=await store.counts(),
        last_run=runs[0] if runs else None,
        sites=sites,
        more_sites=max(0, worked["n"] - len(sites)),
        excluded_for=await _reasons(store, State.EXCLUDED),
        failed_for=await _reasons(store, State.FAILED),
        waiting=await store.waiting(now, 5),
    )


async def _reasons(store: Store, state: State) -> list[tuple[str, int]]:
    """Reasons without their particulars, the most frequent first."""
    rows = await store.query(
        """SELECT CASE WHEN instr(reason, ':') BETWEEN 2 AND 12 THEN substr(reason, 1, instr(reason, ':') - 1)
             WHEN reason LIKE 'mirror of %' THEN 'mirror' ELSE substr(reason, 1, 40) END AS why, count(*) AS n
           FROM url WHERE state = ? GROUP BY why ORDER BY n DESC, why LIMIT 10""",
        (state,),
    )
    return [(row["why"], row["n"]) for row in rows]


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
        "more_sites": status.more_sites,
        "excluded_for": dict(status.excluded_for),
        "failed_for": dict(status.failed_for),
        "waiting": [asdict(wait) for wait in status.waiting],
        "last_run": run,
    }


def render(status: Status, console: Console) -> None:
    """Print a status for people."""
    counts = status.counts
    states = Text("URLs    ")
    for state in State:
        states.append(f"{counts.states[state]:,} {state}  ", style=_STYLES[state])
    lines = [states, Text(f"Store   {counts.pages:,} pages, {counts.links:,} links, {counts.requests:,} requests")]
    if status.last_run is not None:
        lines.append(Text("Last run  " + _last_run(status.last_run), style="dim"))
    for title, reasons in (("excluded", status.excluded_for), ("failed", status.failed_for)):
        if reasons:
            lines.append(Text(f"{title}: " + ", ".join(f"{n:,} {why}" for why, n in reasons)))
    lines += [
        Text(f"waiting for {wait.group} until {local_hhmm(wait.until, status.at)}: {wait.reason}", style="magenta")
        for wait in status.waiting
    ]
    console.print(Group(*lines))
    if status.sites:
        console.print(_sites_table(status))
    if status.more_sites:
        console.print(f"… and {status.more_sites:,} more sites (view `sites`)", style="dim")


def _last_run(run: Mapping[str, Any]) -> str:
    started = iso(run["started_at"])
    if run["finished_at"] is None:
        return f"started {started}, running or ended without a word (the same command goes on with it)"
    return f"started {started}, ended {iso(run['finished_at'])}: {run['ended_by']}"


def _sites_table(status: Status) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("site", overflow="fold")
    for name in ("queued", "fetched"):
        table.add_column(name, justify="right")
    for name in ("robots.txt", "pause", "next at", "main site"):
        table.add_column(name)
    for row in status.sites:
        later = row["next_at"] > status.at and row["queued"]
        table.add_row(
            row["site"],
            f"{row['queued']:,}",
            f"{row['fetched']:,}",
            row["robots_status"] or "not asked yet",
            f"{row['delay_s']:.3g} s",
            local_hhmm(row["next_at"], status.at) if later else "now" if row["queued"] else "",
            row["main_site"] or "",
        )
    return table
