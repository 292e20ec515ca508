"""The command ``rup status``, which sends nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from crawler.cli.console import console
from crawler.cli.layout import Align, table
from crawler.cli.on_store import on_store, show
from crawler.cli.output import say
from crawler.cli.shared import db_option, json_option
from crawler.clock import iso
from crawler.reasons import ServerState
from crawler.rup.commands import rup
from crawler.store.location import db_argument
from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.store.sections import Store


@rup.command()
@db_option
@json_option
def status(db: str, as_json: bool) -> None:
    """List the servers that report to this robot."""
    rows = on_store(db, _servers)
    show(as_json, lambda: {"servers": rows}, lambda: _render_servers(rows, db))


async def _servers(store: Store) -> list[dict[str, Any]]:
    """The rows of the view ``rup_servers``: patterns as lists, and the ``state`` also as a sentence."""
    rows = await store.query(load_statements("crawler.rup.robot")["servers"])
    for row in rows:
        row |= {name: json.loads(row[name]) for name in ("exclude", "include_only")}
        row["state"] = ServerState(row["state_code"]).render(row["state_detail"])
    return rows


def _render_servers(rows: list[dict[str, Any]], db: str) -> None:
    if not rows:
        command = f"crawler rup register SITE --email ADDRESS{db_argument(db)}"
        say(f"not registered with any server; `{command}` registers")
        return
    counts = ("reports", "changes", "ignored", "refused")
    columns: dict[str, Align] = {
        "site": "fold",
        "latency": "left",
        **dict.fromkeys(counts, "right"),
        "known until": "left",
        "state": "left",
    }
    cells = (
        (row["site"], row["latency"], *(f"{row[name]:,}" for name in counts), iso(row["known_until"]), row["state"])
        for row in rows
    )
    console.print(table(columns, cells))
