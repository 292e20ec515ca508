"""Revisits in ``crawler why`` and ``crawler status``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crawler.cli.layout import Fact
from crawler.clock import brief_time, iso
from crawler.formatting import duration, many
from crawler.frontier.revisit import Habits
from crawler.store.location import db_argument
from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.store.sections import Store

_VERSIONS_SHOWN = 10

_SQL = load_statements("crawler.inspect")


async def revisits_of(store: Store, number: int, now: float) -> dict[str, Any] | None:
    """When and why a URL is revisited, and its versions, the newest first; ``None`` if it is not revisited."""
    rows = await store.query(_SQL["revisit"], {"url_id": number})
    if not rows:
        return None
    row = rows[0]
    habits = Habits(row["changes"], row["watched_s"])
    row["changes_every_s"] = 1.0 / habits.rate_per_s
    row["chance_of_change"] = habits.chance(now - row["checked_at"])
    row["versions"] = await store.query(_SQL["versions"], {"url_id": number, "limit": _VERSIONS_SHOWN})
    return row


def about_revisits(revisit: Mapping[str, Any] | None, now: float) -> list[Fact]:
    """The result of :func:`revisits_of` as labelled lines."""
    if revisit is None:
        return []
    seen = f"{revisit['changes']:.1f} changes seen lately, {duration(revisit['watched_s'])} without"
    chance, every = f"{revisit['chance_of_change']:.0%}", duration(revisit["changes_every_s"])
    rows: list[Fact] = [
        ("revisit", f"due {brief_time(revisit['due_at'], now)}: {revisit['why']}"),
        ("revisit", f"last seen {iso(revisit['checked_at'])}; has changed since with a chance of {chance}"),
        ("revisit", f"changes about every {every} ({seen})"),
    ]
    if revisit["hint"]:
        rows.append(("revisit", f"has changed {iso(revisit['hinted_at'])}, says a hint ({revisit['hint']})"))
    if len(revisit["versions"]) > 1:
        rows += [
            ("version", f"{row['version']}: {iso(row['fetched_at'])} to {iso(row['last_seen_at'])}")
            for row in revisit["versions"]
        ]
    return rows


async def count_revisits(store: Store, now: float) -> dict[str, Any]:
    """How many URLs have revisits, how many of them are queued or due, and when the first of the others is due."""
    (row,) = await store.query(_SQL["count_revisits"], {"now": now})
    return row


def revisit_rows(counts: Mapping[str, Any], now: float, db: str) -> list[Fact]:
    """The result of :func:`count_revisits` of the store ``db`` as labelled lines; empty if no run had ``--revisit``."""
    if not counts["known"]:
        return []
    told = [f"{counts['queued']:,} of {many(counts['known'], 'URL')} queued"] if counts["queued"] else []
    if counts["next_at"] is not None:
        due = f"{counts['due']:,} of {many(counts['known'], 'URL')} {'is' if counts['due'] == 1 else 'are'} due"
        first = brief_time(counts["next_at"], now)
        told.append(f"{due} for `crawler run --revisit{db_argument(db)}`, the first {first}")
    return [("Revisits", "; ".join(told))]
