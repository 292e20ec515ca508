"""``crawler why URL``: everything that is known and decided about one URL, with the evidence."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from shlex import quote
from typing import TYPE_CHECKING, Any

from rich.text import Text

from crawler.cli.console import PrintableConsole
from crawler.cli.layout import Fact, facts
from crawler.clock import brief_time, iso
from crawler.engine.robots_messages import MAX_CPU_S, RobotsQuestion
from crawler.engine.robots_reading import read_robots_alone
from crawler.formatting import counted, duration, many, size
from crawler.frontier.operator import standing
from crawler.frontier.scope import Scope
from crawler.frontier.site_settings import rule_for
from crawler.inspect.last_run import AT_LIMIT, low_disk, page_limit_reached
from crawler.inspect.refusing import is_refusing, refusal_advice, refusal_sentence
from crawler.inspect.revisits import about_revisits, revisits_of
from crawler.inspect.sampling_frame import open_frame
from crawler.inspect.unknown_hosts import advice
from crawler.model import Kind, Preference, Reading, RobotsAction
from crawler.page.directives import asked_of
from crawler.preferences.purposes import sentence_of
from crawler.reasons import ErrorKind, Reason, ReasonCode
from crawler.robots.doubts import Doubt, doubts_about
from crawler.robots.first_match import lost_to_first_match
from crawler.robots.mirrors import Contradiction
from crawler.robots.text import octets_read, parse
from crawler.settings.crawl_scope import adopt_known, crawl_scope
from crawler.settings.keys import terminal_name
from crawler.settings.settings import Settings
from crawler.settings.stored import stored_settings
from crawler.store.location import db_argument
from crawler.store.statements import load_statements, unlimited
from crawler.url import host_of, split

if TYPE_CHECKING:
    from crawler.store.sections import Store

_LINKERS_SHOWN = 10
_STEPS_SHOWN = 30
_DOUBTS_SHOWN = 3

_SQL = load_statements("crawler.inspect")


def remedy(db: str, path: str = "REGEX", site: str = "SITE") -> str:
    """How the operator of the crawl on ``db`` leaves out what the owner of a site may have meant to forbid."""
    argument = db_argument(db)
    return (
        f"`crawler run --exclude {quote(path)}{argument}` leaves out such paths, `crawler control block "
        f"{quote(site)}{argument}` the site"
    )


async def explain(store: Store, url: str, *, now: float) -> dict[str, Any]:
    """Everything that the store knows about a canonical URL, as one JSON object.

    ``known`` is false if the crawl never found the URL. The verdicts of robots.txt and of the scope are computed anew,
    with the settings of the last run; a setting that it did not record has its default.
    """
    site, path = split(url)
    settings = await stored_settings(store) or Settings()
    known: dict[str, Any] = {"url": url, "known": False, "at": now}
    number = await store.find(url)
    if number is not None:
        (row,) = await store.query(_SQL["url"], {"url_id": number})
        known |= row | {"known": True, "seed": bool(row["seed"]), "chain": await store.way_to(number)}
        known["leads_to"] = await _leads_to(store, number)
        known["linked_from"] = await _linkers(store, number)
        known["page"] = await _page(store, number, now)
        known["revisit"] = await revisits_of(store, number, now)
    known["requests"] = await store.query(_SQL["requests"], {"site": site, "url": url})
    known["site"] = await _site(store, site, settings)
    known["mirror"] = await _mirror(store, site)
    known["robots"] = await _robots(store, site, path, settings)
    refusal = await _scope(store, url, known, settings)
    known["scope"] = None if refusal is None else refusal.sentence
    known["scope_code"] = None if refusal is None else refusal.code.value
    rule = rule_for(host_of(url), settings.politeness.sites)
    known["site_settings"] = None if rule is None else {"name": rule.name} | rule.stated
    stands = standing(await store.control.orders())
    known["blocked_as"], known["blocked_because"] = stands.names_of(url), stands.why_blocked(url)
    known["ordered_at"] = stands.queued.get(url)
    robots = known["robots"] or {}
    if known.get("reason_code") == ReasonCode.NO_NAME or robots.get("status") == ErrorKind.DNS_NO_NAME:
        known["no_such_host"] = await advice(store, host_of(url))
    if known.get("state") == "queued" and known["site"]:
        limit = await _limit_reached(store, known, settings)
        known["next_at"] = None if limit else max(known["due_at"], known["site"]["next_at"])
        known["waits_for"] = await _held_back(store, known, now) or limit or _waits_for(known, now)
        known["low_disk"] = low_disk(await store.last_run(), await store.control.beats(), now)
    return known


async def _scope(store: Store, url: str, known: dict[str, Any], settings: Settings) -> Reason | None:
    """Why the scope of the last run, or a rule against traps, excludes this URL; ``None`` if they include it."""
    scope = await scope_of(store, settings, known["at"])
    wanted_itself = known.get("seed", False) or known.get("kind", Kind.PAGE) != Kind.PAGE
    return scope.refusal(url, known.get("depth", 0), is_seed=wanted_itself)


async def scope_of(store: Store, settings: Settings, now: float) -> Scope:
    """The scope of a run with these ``settings``, for the seeds of the store."""
    scope = crawl_scope(settings, await store.scope_urls(), now)
    scope.blocks.names = frozenset(standing(await store.control.orders()).blocked)
    await adopt_known(store, scope)
    return scope


async def _leads_to(store: Store, number: int) -> list[dict[str, Any]]:
    """The URLs that this URL leads to by redirects, a Host line or a canonical URL, in order; a circle is cut."""
    steps: dict[int, dict[str, Any]] = {}
    next_id: int | None = number
    while next_id is not None and next_id not in steps and len(steps) <= _STEPS_SHOWN:
        (row,) = await store.query(_SQL["step"], {"url_id": next_id})
        target = row.pop("target_id")
        steps[next_id], next_id = row, target
    repeated = [] if next_id not in steps else [steps[next_id]]
    return [*list(steps.values())[1:], *repeated]


async def _linkers(store: Store, number: int) -> dict[str, Any]:
    """The first pages that link to a URL, and how many there are. Each statement scans the links, so few are sent."""
    first = await store.query(_SQL["first_links_to"], {"url_id": number, "limit": _LINKERS_SHOWN})
    if len(first) < _LINKERS_SHOWN:
        return {"count": len(first), "first": first}
    (row,) = await store.query(_SQL["count_links_to"], {"url_id": number})
    return {"count": row["links"], "first": first}


async def _page(store: Store, number: int, now: float) -> dict[str, Any] | None:
    """The stored facts about a page, without empty ones; ``None`` if the URL is no fetched page."""
    rows = await store.query(_SQL["page"], {"url_id": number})
    if not rows:
        return None
    page = {key: value for key, value in rows[0].items() if value not in (None, "")}
    asked = asked_of(page.get("directives"))
    page |= {"noarchive": True} if not asked.archive else {}
    page |= {"unavailable_since": asked.until} if asked.until <= now else {}
    for key in ("directives", "other_schemes"):
        if key in page:
            page[key] = json.loads(page[key])
    if "text_sha256" in page:
        page["text_sha256"] = page["text_sha256"].hex()
    if stated := await store.query(_SQL["preferences"], {"url_id": number}):
        page["preferences"] = stated
    return page


async def _site(store: Store, site: str, settings: Settings) -> dict[str, Any] | None:
    sql = _SQL["site"].format(at_limit=AT_LIMIT)
    rows = await store.query(sql, {"site": site, "pages_per_site": unlimited(settings.limits.max_pages_per_site)})
    return rows[0] if rows else None


async def _mirror(store: Store, site: str) -> dict[str, Any] | None:
    """The main site of a mirror, and the evidence. ``leads_to`` is null if the Host lines form a circle."""
    rows = await store.query(_SQL["mirror"], {"site": site})
    return rows[0] if rows else None


async def _robots(store: Store, site: str, path: str, settings: Settings) -> dict[str, Any] | None:
    """The robots.txt in force, and its verdict on ``path``, computed anew."""
    rows = await store.query(_SQL["robots"], {"site": site})
    if not rows:
        return None
    row = rows[0]
    body, sha256 = row.pop("body"), row["version_sha256"]
    row["version_sha256"] = None if sha256 is None else sha256.hex()
    if row["action"] == "parse":
        reading = settings.robots.reading
        file = parse(body, max_bytes=octets_read(reading))
        mirror = await _mirror(store, site)
        refuted = mirror["main_site"] if mirror and mirror["contradiction"] else None
        known_hosts = tuple(pattern for pattern, _ in settings.fetch.resolve)
        most, agent = settings.robots.max_bytes, settings.identity.agent
        asked = f"{site}/robots.txt"
        question = RobotsQuestion(MAX_CPU_S, asked, body, site, agent, reading.value, known_hosts, refuted, most)
        rules = await asyncio.to_thread(read_robots_alone, question)
        verdict, server = rules.verdict(path), rules.agent_server(path)
        lost = None
        if reading is Reading.STRICT and not rules.unread:
            lost = lost_to_first_match(file, rules, token=settings.identity.agent, site=site, path=path)
        row |= {
            "allowed": verdict.allowed,
            "line": verdict.line,
            "rule": verdict.text.strip(),
            "reading": verdict.reading.value,
            "first_match": lost and lost.sentence,
            "crawl_delay_s": rules.crawl_delay_s,
            "main_site": rules.main_site,
            "host_line": rules.host_line,
            "agent_server": None if server.line is None else {"url": server.url, "line": server.line},
        } | doubts_about(body).as_json()
        if stated := rules.stated_for(path):
            row["preferences"] = [one._asdict() for one in stated]
    return row


async def _held_back(store: Store, known: dict[str, Any], now: float) -> str | None:
    """The sample that holds a queued URL back, and what delays its draw; ``None`` if none does."""
    frame = await open_frame(store, now)
    if frame is None or frame.depth is None or known["depth"] < frame.depth or known["kind"] != Kind.PAGE:
        return None
    return f"the draw: it is requested only if it is drawn; {frame.describe(now)}"


async def _limit_reached(store: Store, known: dict[str, Any], settings: Settings) -> str | None:
    """The limit on pages that keeps a queued URL from being requested; ``None`` if none does.

    ``--max-pages`` holds back no visit of a known URL.
    """
    most = settings.limits.max_pages
    if most is not None and known["revisit"] is None and await page_limit_reached(store, settings):
        return f"a higher --max-pages: the crawl has the {many(most, 'page')} that the last run allowed"
    if known["site"]["at_limit"]:
        own = known["site_settings"] or {}
        limit = f'max_pages in [site."{own["name"]}"]' if "max_pages" in own else "--max-pages-per-site"
        return f"a higher {limit}: its site has the pages that the last run allowed"
    return None


def _waits_for(known: dict[str, Any], now: float) -> str:
    if is_refusing(known["site"]) and known["site"]["next_at"] > now:
        return "the end of the rest of its site, which answers by walls or refusals"
    is_deferred = known["robots"] and known["robots"]["action"] == RobotsAction.DEFER
    deferred = is_deferred and f"robots.txt, which could not be fetched ({known['robots']['status']})"
    if known["next_at"] <= now and deferred:
        return f"{deferred} and is requested again first"
    if known["next_at"] <= now:
        return "its turn: only the URLs before it"
    if known["due_at"] == known["next_at"]:
        reason = known["site"]["waits_for"]
        return "its next attempt" + (f", {reason}" if reason and known["site"]["next_at"] > now else "")
    return str(deferred or known["site"]["waits_for"] or "the pause of its site")


def render(known: dict[str, Any], db: str, console: PrintableConsole) -> None:
    """Print an explanation from the store ``db`` for people."""
    console.print(Text(known["url"], style="bold", overflow="fold"))
    console.print(facts(explanation_rows(known, db), indent=2))


def explanation_rows(known: dict[str, Any], db: str) -> list[Fact]:
    """An explanation from the store ``db`` as labelled lines."""
    host = host_of(known["url"])
    rows = _fate(known) if known["known"] else [("state", "unknown: it is not a seed, and no fetched page links to it")]
    if "no_such_host" in known:
        rows.append(("host", f"{host} does not exist: {known['no_such_host']}"))
    if known.get("reason_code") == ReasonCode.FORGOTTEN:
        whole = known["blocked_as"] or [known["url"]]
        undo = f"`crawler store forget {quote(whole[0])} --undo{db_argument(db)}`"
        rows.append(("operator", f"has taken it out; {undo} lets it be fetched again"))
    elif known["ordered_at"] is not None:
        queued_at = brief_time(known["ordered_at"], known["at"])
        rows.append(("operator", f"has queued it at {queued_at}: the running crawl, or the next run, makes it a seed"))
    elif known["scope"] is None:
        rows.append(("scope", "includes it; --include leaves no seed out" if known.get("seed") else "includes it"))
    elif known["scope_code"] == ReasonCode.BLOCKED and known.get("reason_code") != ReasonCode.BLOCKED:
        unblock = f"`crawler control unblock {quote(known['blocked_as'][0])}{db_argument(db)}`"
        rows.append(("operator", f"has blocked its site; {unblock} puts its URLs back"))
    elif known["scope"] != known.get("reason"):
        excluded = ReasonCode(known["scope_code"]).message(known["scope"], terminal_name)
        rows.append(("scope", f"would exclude it: {excluded}"))
    if own := known["site_settings"]:
        stated = ", ".join(f"{word} {value}" for word, value in own.items() if word != "name")
        rows.append(("settings", f'{stated}, by [site."{own["name"]}"]; a longer pause that the site asks for holds'))
    if known["blocked_because"]:
        rows.append(("blocked", f"because {known['blocked_because']}"))
    if known["site"] and is_refusing(known["site"]):
        rows.append(("site", refusal_sentence(known["site"], known["at"])))
        rows.append(("site", refusal_advice(db, quote(known["site"]["site"]))))
    rows += _about_robots(known["robots"], remedy(db, re.escape(split(known["url"])[1]), split(known["url"])[0]))
    if known["mirror"]:
        rows.append(("mirror", _about_mirror(known["mirror"])))
    for request in known["requests"]:
        took = duration(request["finished_at"] - request["started_at"])
        error = request["error"] and ErrorKind(request["error_kind"]).message(request["error"], terminal_name)
        what = error or request["status"]
        rows.append(("request", f"{iso(request['started_at'])}: {what}, {size(request['bytes'])} in {took}"))
    rows += about_revisits(known.get("revisit"), known["at"])
    return rows + _about_page(known.get("page"), known.get("reason_code"))


def _fate(known: dict[str, Any]) -> list[Fact]:
    """The state of the URL, the links to it, and what happens next."""
    reason = known["reason"] and ReasonCode(known["reason_code"]).message(known["reason"], terminal_name)
    rows: list[Fact] = [
        ("state", f"{known['state']}: {reason or 'waits in the frontier'}"),
        ("depth", "0, a seed" if known["seed"] else f"{known['depth']}"),
    ]
    if known["kind"] == Kind.SITEMAP:
        rows.append(("kind", "a sitemap: the URLs in it are treated like links"))
    elif known["kind"] == Kind.RUP:
        rows.append(("kind", "requested to learn whether the site offers updates"))
    if known["lastmod"] is not None:
        rows.append(("changed", f"{iso(known['lastmod'])}, as a sitemap says"))
    rows += _leads(known)
    if "next_at" in known:
        next_at, now = known["next_at"], known["at"]
        when = f"{brief_time(next_at, now)}, " if next_at is not None and next_at > now else ""
        rows.append(("next", f"{when}waits for {known['waits_for']}"))
    if known.get("low_disk"):
        rows.append(("paused", f"{known['low_disk']}; the crawl goes on by itself when there is room"))
    rows += [("found by", url) for url in known["chain"][:-1]]
    linked = known["linked_from"]
    for link in linked["first"]:
        rel = f" rel={link['rel']!r}" if link["rel"] else ""
        rows.append(("linked by", f"{link['url']} “{link['anchor']}”{rel}"))
    if linked["count"] > len(linked["first"]):
        rows.append(("linked by", f"… {linked['count']:,} pages in all"))
    return rows


def _leads(known: dict[str, Any]) -> list[Fact]:
    """Each step of the way from a URL, and the state of the last URL."""
    steps = known["leads_to"]
    if not steps:
        return []
    before = [known["url"], *(step["url"] for step in steps[:-1])]
    end = steps[-1]
    reason = end["reason"] and ReasonCode(end["reason_code"]).message(end["reason"], terminal_name)
    fate = "a circle" if end["url"] in before else f"{end['state']}: {reason}"
    return [("leads to", step["url"]) for step in steps[:-1]] + [("leads to", f"{end['url']} ({fate.rstrip(': ')})")]


def _about_robots(robots: dict[str, Any] | None, way_out: str) -> list[Fact]:
    if robots is None:
        return [("robots.txt", "not requested yet")]
    meaning = RobotsAction(robots["action"]).meaning
    version = f", version {robots['version_sha256'][:12]}" if robots["version_sha256"] else ""
    rows: list[Fact] = [
        ("robots.txt", f"{robots['status']}, {meaning}{version}"),
        ("robots.txt", f"fetched {iso(robots['fetched_at'])}, in force until {iso(robots['valid_until'])}"),
    ]
    if robots["note"]:
        rows.append(("robots.txt", ErrorKind.ADDRESS.message(robots["note"], terminal_name)))
    if "allowed" in robots:
        verdict = "allowed" if robots["allowed"] else "forbidden"
        line = f" by line {robots['line']}: {robots['rule']}" if robots["line"] else ", no line matches"
        rows.append(("verdict", f"{verdict}{line} ({robots['reading']})"))
        if robots["first_match"]:
            rows.append(("verdict", robots["first_match"]))
        rows += _stated(robots.get("preferences", ()))
        if server := robots["agent_server"]:
            rows.append(("agents", f"{server['url'] or 'not taken in'}, by line {server['line']}"))
        rows += _in_doubt(robots, way_out)
    return rows


def _stated(preferences: Iterable[dict[str, Any]]) -> list[Fact]:
    """The preferences about use, each with its evidence."""
    stated = [Preference(**one) for one in preferences]
    return [("prefers", f"{one.category}: {one.value} ({sentence_of(one)})") for one in stated]


def _in_doubt(robots: dict[str, Any], way_out: str) -> list[Fact]:
    """The lines that may have been meant to forbid more, and what the operator can do."""
    said = [str(Doubt(**doubt)) for doubt in robots["doubts"][:_DOUBTS_SHOWN]]
    if not said:
        return []
    if left := robots["doubts_count"] - len(said):
        listed = len(robots["doubts"])
        which = "them all" if listed == robots["doubts_count"] else f"the first {listed}"
        said.append(f"and {many(left, 'more such line')}; --json lists {which}")
    return [("in doubt", line) for line in [*said, f"its owner may have meant to forbid more: {way_out}"]]


def _about_mirror(mirror: dict[str, Any]) -> str:
    main_site, leads_to = mirror["main_site"], mirror["leads_to"]
    if mirror["evidence"] == "content":
        return (
            f"has the same pages as {main_site}, judging by {mirror['sample']} that both have"
            f" (confidence {mirror['confidence']:.0%}); the crawl does not act on this"
        )
    if mirror["contradiction"]:
        why = Contradiction(mirror["contradiction"]).meaning
        return f"its site names {main_site} as its main site, but that {why}: the line is ignored"
    if leads_to is None:
        return (
            f"its site names {main_site} as its main site, but these names form a circle: none of the sites is fetched"
        )
    further = "" if leads_to == main_site else f", and that leads on to {leads_to}"
    return f"its site names {main_site} as its main site{further}"


def _about_page(page: dict[str, Any] | None, reason: str | None) -> list[Fact]:
    """The facts about the page as labelled lines; flags only if they are set. ``reason`` is the code of its URL."""
    rows: list[Fact] = []
    for key, value in (page or {}).items():
        if key == "noindex" and reason == ReasonCode.WITHHELD:
            rows.append(("page", "withheld: it refuses a declared purpose, so its body and texts are not kept"))
        elif key == "noindex" and reason == ReasonCode.NOT_KEPT:
            rows.append(("page", "not kept: the caller's function keep said no, so its body and texts are not kept"))
        elif key in _FLAGS:
            rows += [("page", f"{key}: " + _FLAGS[key])] if value else []
        elif key == "body_bytes":
            rows.append(("page", f"body: {size(value)}"))
        elif key in ("fetched_at", "last_seen_at", "gone_at"):
            rows.append(("page", f"{key.removesuffix('_at').replace('_', ' ')}: {iso(value)}"))
        elif key == "unavailable_since":
            rows.append(("page", f"unavailable since {iso(value)}, as the page states: search and export leave it out"))
        elif key == "other_schemes":
            rows.append(("page", f"links not followed: {counted(value.items())}"))
        elif key == "preferences":
            rows += _stated(value)
        elif key == "directives":
            rows += [("page", f"asks: {directive}") for directive in value]
        else:
            rows.append(("page", f"{key.replace('_', ' ')}: {value}"))
    return rows


_FLAGS = {
    "noindex": "its body and texts are not kept",
    "nofollow": "its links are not followed",
    "noarchive": "no copy of its body is exported",
}
