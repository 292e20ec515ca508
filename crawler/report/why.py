"""``crawler why URL``: everything known and decided about one URL, with the evidence."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from crawler.clock import iso, local_hhmm
from crawler.model import Reading
from crawler.robots.readings import read
from crawler.robots.text import parse
from crawler.store.interface import Store
from crawler.url import split

_LINKERS_SHOWN = 10
_CHAIN = 30


async def explain(store: Store, url: str, *, token: str, reading: Reading, now: float) -> dict[str, Any]:
    """What the store knows of a canonical URL, as one JSON object. ``known`` is false for a URL never met."""
    site, path = split(url)
    known: dict[str, Any] = {"url": url, "known": False, "at": now}
    number = await store.find(url)
    if number is not None:
        (row,) = await store.query(
            """SELECT u.state, u.reason, u.depth, u.attempts, u.seed, u.due_at,
                 (SELECT s.name || t.path FROM url t JOIN site s ON s.id = t.id >> 39 WHERE t.id = u.target) AS target
               FROM url u WHERE u.id = ?""",
            (number,),
        )
        known |= row | {"known": True, "seed": bool(row["seed"]), "chain": await _chain(store, number)}
        known["linked_from"] = await _linkers(store, number)
        known["page"] = await _page(store, number)
    known["requests"] = await store.query(
        "SELECT purpose, started_at, finished_at, status, error, bytes, robots_version, verdict_line FROM requests"
        " WHERE site = ? AND url = ? ORDER BY started_at",
        (site, url),
    )
    known["site"] = await _site(store, site)
    known["robots"] = await _robots(store, site, path, token, reading)
    if known.get("state") == "queued" and known["site"]:
        known["next_at"] = max(known["due_at"], known["site"]["next_at"])
        known["waits_for"] = _waits_for(known, now)
    return known


async def _chain(store: Store, number: int) -> list[str]:
    """The way from a seed to this URL, as it was first found."""
    chain: list[str] = []
    rows = await store.query(
        """WITH RECURSIVE way (id, found_on, n) AS (
             SELECT id, found_on, 0 FROM url WHERE id = ?
             UNION ALL SELECT u.id, u.found_on, n + 1 FROM way JOIN url u ON u.id = way.found_on WHERE n < ?)
           SELECT s.name || u.path AS url FROM way JOIN url u ON u.id = way.id JOIN site s ON s.id = u.id >> 39
           ORDER BY n DESC""",
        (number, _CHAIN),
    )
    for row in rows:
        if row["url"] not in chain:
            chain.append(row["url"])
    return chain


async def _linkers(store: Store, number: int) -> dict[str, Any]:
    rows = await store.query("SELECT source, anchor, rel FROM link WHERE target = ?", (number,))
    shown = []
    for row in rows[:_LINKERS_SHOWN]:
        (source,) = await store.query(
            "SELECT s.name || u.path AS url FROM url u JOIN site s ON s.id = u.id >> 39 WHERE u.id = ?",
            (row["source"],),
        )
        shown.append({"url": source["url"], "anchor": row["anchor"], "rel": row["rel"]})
    return {"count": len(rows), "first": shown}


async def _page(store: Store, number: int) -> dict[str, Any] | None:
    rows = await store.query("SELECT * FROM page WHERE url_id = ?", (number,))
    if not rows:
        return None
    page = {
        key: value for key, value in rows[0].items() if key not in ("url_id", "body_id") and value not in (None, "")
    }
    for key in ("directives", "other_schemes"):
        if key in page:
            page[key] = json.loads(page[key])
    return page


async def _site(store: Store, site: str) -> dict[str, Any] | None:
    rows = await store.query("SELECT * FROM sites WHERE site = ?", (site,))
    return rows[0] if rows else None


async def _robots(store: Store, site: str, path: str, token: str, reading: Reading) -> dict[str, Any] | None:
    """The robots.txt in force, and its verdict on this path, read anew."""
    rows = await store.query(
        "SELECT version_sha256, fetched_at, valid_until, status, action, note, body FROM robots_versions"
        " WHERE site = ? ORDER BY robots_copy DESC LIMIT 1",
        (site,),
    )
    if not rows:
        return None
    row = rows[0]
    body = row.pop("body")
    if row["action"] == "parse":
        rules = read(parse(body), token=token, reading=reading, site=site)
        verdict = rules.verdict(path)
        row |= {
            "allowed": verdict.allowed,
            "line": verdict.line,
            "rule": verdict.text.strip(),
            "reading": verdict.reading.value,
            "crawl_delay_s": rules.crawl_delay_s,
            "main_site": rules.main_site,
        }
    return row


def _waits_for(known: dict[str, Any], now: float) -> str:
    if known["next_at"] <= now:
        return "its turn: nothing stands against it but the URLs before it"
    if known["due_at"] == known["next_at"]:
        return "its next attempt"
    if known["robots"] and known["robots"]["action"] == "defer":
        return f"robots.txt, which could not be had ({known['robots']['status']})"
    return str(known["site"]["waits_for"] or "the pause of its site")


def render(known: dict[str, Any], console: Console) -> None:
    """Print an explanation for people."""
    now = known["at"]
    console.print(Text(known["url"], style="bold"))
    if not known["known"]:
        console.print("  not known to this store: no seed is it, and no page fetched links to it", style="yellow")
    else:
        seed = ", a seed" if known["seed"] else ""
        console.print(Text(f"  state      {known['state']}: {known['reason'] or 'waits in the frontier'}"))
        console.print(Text(f"  depth      {known['depth']}{seed}"))
        for step, url in enumerate(known["chain"][:-1]):
            console.print(Text(f"  {'found by' if step == 0 else '':10} {url}"))
        _render_links(known["linked_from"], console)
        if known.get("target"):
            console.print(Text(f"  leads to   {known['target']}"))
        if "next_at" in known:
            console.print(Text(f"  next at    {local_hhmm(known['next_at'], now)}, waits for {known['waits_for']}"))
    _render_robots(known["robots"], console)
    site = known["site"]
    if site and site["main_site"]:
        console.print(Text(f"  mirror     {site['site']} is a mirror of {site['main_site']}"))
    for request in known["requests"]:
        what = request["error"] or request["status"]
        took = request["finished_at"] - request["started_at"]
        console.print(
            Text(f"  request    {iso(request['started_at'])} {what}, {request['bytes']:,} bytes in {took:.2f} s")
        )
    for key, value in (known.get("page") or {}).items():
        shown = iso(value) if key == "fetched_at" else value
        console.print(Text(f"  page       {key}: {shown}"))


def _render_links(linked: dict[str, Any], console: Console) -> None:
    for step, link in enumerate(linked["first"]):
        label = "linked by" if step == 0 else ""
        rel = f" rel={link['rel']!r}" if link["rel"] else ""
        console.print(Text(f"  {label:10} {link['url']} “{link['anchor']}”{rel}"))
    if linked["count"] > len(linked["first"]):
        console.print(Text(f"  {'':10} … {linked['count']:,} pages link to it in all"))


def _render_robots(robots: dict[str, Any] | None, console: Console) -> None:
    if robots is None:
        console.print("  robots.txt not asked for yet")
        return
    version = f", version {robots['version_sha256'][:12]}" if robots["version_sha256"] else ""
    console.print(
        Text(f"  robots.txt {robots['status']} ({robots['action']}), fetched {iso(robots['fetched_at'])}, "
             f"in force until {iso(robots['valid_until'])}{version}")
    )  # fmt: skip
    if "allowed" in robots:
        verdict = "allowed" if robots["allowed"] else "forbidden"
        line = f" by line {robots['line']}: {robots['rule']}" if robots["line"] else ", no rule is about it"
        console.print(Text(f"  {'':10} {verdict}{line} ({robots['reading']})"))
