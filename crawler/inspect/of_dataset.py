"""`crawler status` and `crawler why` of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawler.cli.layout import Fact, facts, table
from crawler.clock import brief_time
from crawler.dataset.records import begins_at
from crawler.dataset.tables import SQL
from crawler.dataset.views import Views
from crawler.errors import UsageError
from crawler.formatting import many
from crawler.inspect import why
from crawler.model import State
from crawler.reasons import ReasonCode
from crawler.store.location import shown
from crawler.url import split

if TYPE_CHECKING:
    from crawler.cli.console import PrintableConsole

_LINKERS = 5
_COUNTS = ("pages", "links", "requests", "sites", "asked_sites")


# --- status -----------------------------------------------------------------------------------


def read_status(location: str) -> dict[str, Any]:
    """What a dataset holds, as one JSON object."""
    with Views(location) as views:
        last = views.manifests[-1] if views.manifests else None
        buckets = {} if last is None else last.buckets
        plan = views.dataset.plan(len(views.manifests) + 1)
        requests, done = (0, 0) if plan is None else views.dataset.progress(plan.round)
        return {
            "dataset": shown(location),
            "buckets": views.dataset.head.buckets,
            "rounds": len(views.manifests),
            "seeds": len(views.dataset.head.seeds),
            "round_under_way": None if plan is None else plan.round,
            "progress": None if plan is None else {"requests": requests, "done": done, "buckets": len(plan.tasks)},
            "states": dict(views.fetch(SQL["states_of_all"])),
            "reasons": [
                {"state": state, "reason_code": code, "urls": n} for state, code, n in views.fetch(SQL["reasons"])
            ],
            **dict(zip(_COUNTS, views.fetch(SQL["counts"])[0], strict=True)),
            "buckets_with_work": sum(state.ready_at is not None or bool(state.offers) for state in buckets.values()),
            "lost_tasks": sum(state.lost is not None for state in buckets.values()),
            "next_at": begins_at(buckets),
        }


def seed_causes(location: str) -> list[tuple[State, ReasonCode, str, int]]:
    """Why seeds led to no page, with the number of seeds."""
    with Views(location) as views:
        rows = views.fetch(SQL["seed_causes"])
    return [(State(state), ReasonCode(code), reason, n) for state, code, reason, n in rows]


def render_status(read: dict[str, Any], now: float, console: PrintableConsole) -> None:
    """Print the status for people."""
    states = ", ".join(f"{n:,} {state}" for state, n in read["states"].items())
    rows: list[Fact] = [
        ("Dataset", f"{read['dataset']}: {many(read['rounds'], 'round')} over {many(read['buckets'], 'bucket')}"),
        ("URLs", states or f"{many(read['seeds'], 'seed')}; the URLs that a round finds are counted when it has ended"),
        ("Pages", f"{read['pages']:,}, with {many(read['links'], 'link')}"),
        ("Requests", f"{read['requests']:,} to {many(read['asked_sites'], 'site')}"),
    ]
    if read["round_under_way"] is not None:
        progress = read["progress"]
        sent = f"{many(progress['requests'], 'request')}, {progress['done']:,} of {many(progress['buckets'], 'bucket')}"
        rows.append(("Under way", f"round {read['round_under_way']}: {sent} done; the other lines are from before it"))
    if read["next_at"] is not None:
        when = f", the first from {brief_time(read['next_at'], now)}" if read["next_at"] > now else ""
        rows.append(("Left", f"{many(read['buckets_with_work'], 'bucket')} with work{when}"))
    if read["lost_tasks"]:
        rows.append(("Lost", f"{many(read['lost_tasks'], 'task')} of the last round, done again in the next"))
    console.print(facts(rows))
    if read["reasons"]:
        reasons = [(row["state"], row["reason_code"], f"{row['urls']:,}") for row in read["reasons"]]
        console.print(table({"state": "left", "reason": "left", "URLs": "right"}, reasons))


# --- why --------------------------------------------------------------------------------------


async def explain(location: str, url: str, now: float) -> dict[str, Any]:
    """What :func:`crawler.inspect.why.explain` says of a URL by the store of its bucket; with the links of all buckets.

    The store is that of the last manifest.
    """
    with Views(location) as views:
        number = views.bucket_of(split(url)[0])
        async with views.store_of(number) as store:
            if store is None:
                raise UsageError(f"{shown(location)}: the bucket of {url} was not crawled yet")
            known = await why.explain(store, url, now=now)
        linkers = views.fetch(SQL["linkers"], {"url": url, "most": _LINKERS})
        count = views.fetch(SQL["count_linkers"], {"url": url})[0][0]
        first = [{"url": source, "anchor": anchor, "rel": rel} for source, anchor, rel in linkers]
        if known["known"]:
            known["linked_from"] = {"count": count, "first": first}
        return known | {"bucket": number, "round": views.manifests[-1].buckets[number].store}
