"""Judge a crawl of the hostile web: by its store, by the server's log, and by the commands that read the store."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from crawler import open as open_crawl
from crawler.demo.pages import Hit
from crawler.reasons import DNS_KINDS
from crawler.url import host_of
from tests import judge
from tests.command import Ended, crawler, here
from tests.hostile.behaviour import Behaviour, Crawl, End
from tests.hostile.crawl import DELAY_S, STOPS_WITHIN_S, Crawled

MOST_BYTES = 550_000_000
MOST_LAG_S = 0.3
#: Seconds from the start of the command until each healthy site has had ten pages, on an idle machine.
TEN_PAGES_WITHIN_S = 15.0
#: How many times as long a healthy site may take beside the hostile ones as it takes alone on an idle machine.
MOST_STRETCH = 3.0

#: Everything that acts on a terminal or reorders its text: C0 but line feeds, DEL, C1, marks of direction, separators.
_UNPRINTABLE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
#: Errors of requests that a server need not have seen.
_UNSEEN = (*DNS_KINDS, "connect", "closing", "tls", "certificate", "address", "timeout", "protocol", "stopped")
#: Each format once, and the tables with what strangers have sent. Without a table: a format of pages or links alone.
_EXPORTS = (
    ("jsonl", "pages"), ("jsonl", "requests"), ("jsonl", "robots_versions"), ("csv", "urls"), ("csv", "links"),
    ("parquet", "pages"), ("graphml", ""), ("edges", ""), ("sitemap", ""), ("warc", ""), ("wacz", ""),
)  # fmt: skip
#: The commands that read a store. ``audit`` and ``status`` read that of each crawl, the others that of the main one.
_ALWAYS = (("audit",), ("status",), ("status", "--json"))
_OTHERS = (
    ("index",),
    ("search", "title"),
    ("search", "title", "--json"),
    ("rank",),
    ("duplicates",),
    ("rank",),
)


#: The exit codes of the command, and the ends of the run.
_CODES = {Crawl.MAIN: (0,), Crawl.ENDLESS: (0,), Crawl.GUARDED: (0, 5)}
_ENDED = {
    Crawl.MAIN: ("done", "max_pages_per_site"),
    Crawl.ENDLESS: ("max_time", "done"),
    Crawl.GUARDED: ("done", "seeds_left_out"),
}


@dataclass(slots=True)
class Verdict:
    """What was wrong, with each behaviour by its name and with the crawl as a whole by subject, and the figures."""

    wrong: dict[str, list[str]] = field(default_factory=dict)
    whole: dict[str, list[str]] = field(default_factory=dict)
    figures: dict[str, str] = field(default_factory=dict)


def judged(
    crawled: Crawled, hostile: Sequence[Behaviour], healthy: Sequence[Behaviour], ends: Crawl, *, quick: bool
) -> Verdict:
    """Judge everything but time. If ``quick``, ``why`` explains the last URL of each behaviour, as text or as JSON."""
    verdict = Verdict()
    by_host: dict[str, list[Hit]] = defaultdict(list)
    for hit in crawled.log:
        by_host[hit.host].append(hit)
    with closing(sqlite3.connect(f"file:{crawled.db}?mode=ro", uri=True)) as store:
        urls = {row[0]: row[1:] for row in store.execute("SELECT url, state, reason_code, reason FROM urls")}
        titles = dict(store.execute("SELECT url, title FROM pages"))
        for one in (*hostile, *healthy):
            hits = [hit for host, found in by_host.items() if _belongs(host, one) for hit in found]
            verdict.wrong[one.name] = [*wrong_ends(urls, titles, one, crawled.port), *_wrong_requests(one, hits)]
        verdict.whole["the run"] = list(_run(crawled, store, verdict, ends))
        unread = {one.host for one in hostile if one.at_accept is not None}
        verdict.whole["the servers' log and the store's"] = list(_log(store, crawled, unread))
    verdict.whole["audit, status"] = list(_read_by(_ALWAYS, crawled.db))
    if ends is Crawl.MAIN:
        verdict.whole["report, export, index, search, rank, query"] = list(_readers(crawled.db))
    forms: tuple[tuple[str, ...], ...] = ((), ("--json",))
    for number, one in enumerate(hostile):
        for path in [*one.ends][-1:] if quick else one.ends:
            for form in forms[number % 2 :][:1] if quick else forms:
                why = ("why", one.url(path, crawled.port), *form)
                verdict.wrong[one.name] += ended_well(why, here(*why, "--db", crawled.db))
    return verdict


def _belongs(host: str, one: Behaviour) -> bool:
    name = host.rstrip(".")
    return name == one.host or name.endswith(f".{one.host}")


def wrong_ends(
    urls: Mapping[str, tuple[str, str, str]], titles: Mapping[str, str | None], one: Behaviour, port: int
) -> Iterator[str]:
    for path, end in one.ends.items():
        row = urls.get(one.url(path, port))
        if row is None or not _meets(row, end):
            yield f"{path}: {'unknown' if row is None else '/'.join(row[:2])} ({row and row[2]!r}), expected {end}"
    for path, title in one.titles.items():
        found = titles.get(one.url(path, port))
        if found != title:
            yield f"{path}: title {found!r}, expected {title!r}"


def _meets(row: tuple[str, str, str], end: End) -> bool:
    state, code, sentence = row
    return state == end.state and code in end.codes and end.says in sentence


def _wrong_requests(one: Behaviour, hits: Sequence[Hit]) -> Iterator[str]:
    if len(hits) > one.most_requests:
        yield f"{len(hits)} requests, at most {one.most_requests} expected"
    for hit in hits:
        if hit.path.startswith(one.never) and one.never:
            yield f"{hit.path} was requested"


def _run(crawled: Crawled, store: sqlite3.Connection, verdict: Verdict, ends: Crawl) -> Iterator[str]:
    """The end of the run."""
    if crawled.spent.code not in _CODES[ends]:
        yield f"crawler run ended with {crawled.spent.code}: {crawled.output[-2000:]}"
    if "Traceback" in crawled.output:
        yield f"a traceback: {crawled.output[-2000:]}"
    yield from unprintable("crawler run", crawled.output)
    lag_s, ended = store.execute("SELECT worst_lag_s, ended_code FROM runs").fetchone()
    (faults,) = store.execute("SELECT count(*) FROM urls WHERE reason_code = 'fault'").fetchone()
    if ended not in _ENDED[ends]:
        yield f"the run ended by {ended}"
    if faults:
        yield f"{faults} URLs ended with a bug of the crawler"
    if store.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
        yield "the store is damaged"
    spent = crawled.spent
    verdict.figures |= {
        "end of the run": f"{ended}, after {spent.wall_s:.0f} s, {spent.cpu_s:.0f} s of processor time",
        "peak memory of all processes": f"{spent.peak_bytes / 1e6:.0f} MB",
        "worst lag": "unknown" if lag_s is None else f"{lag_s:.2f} s",
        "requests": f"{len(crawled.log):,} seen by the servers",
    }


def _log(store: sqlite3.Connection, crawled: Crawled, unread: Collection[str]) -> Iterator[str]:
    """The server's own log: polite, and the same requests as the store, but for hosts that read no request."""
    manners = judge.Manners(DELAY_S, agent="PoliteCrawler/")
    rules = (judge.robots_first, judge.overlaps, judge.pauses, judge.retry_after, judge.agents)
    impolite = [str(found) for rule in rules for found in rule(crawled.log, manners)]
    if impolite:
        yield f"{len(impolite)} violations by the server's log, such as {impolite[0]}"
    seen = Counter(f"http{{}}://{hit.host}:{crawled.port}{hit.path}" for hit in crawled.log)
    stored: Counter[str] = Counter()
    certain: Counter[str] = Counter()
    for url, kind in store.execute("SELECT url, error_kind FROM requests"):
        rest = url.partition("://")[2].replace(".test.:", ".test:")  # a Host header has no final dot
        stored[f"http{{}}://{rest}"] += 1
        certain[f"http{{}}://{rest}"] += kind not in _UNSEEN and host_of(url) not in unread
    unlogged = [url for url, count in seen.items() if count > stored[url]]
    if unlogged:
        yield f"{len(unlogged)} URLs were requested more often than the store says, such as {unlogged[0]}"
    invented = [url for url, count in certain.items() if count > seen[url]]
    if invented:
        yield f"{len(invented)} URLs were requested less often than the store says, such as {invented[0]}"


def _read_by(commands: Sequence[Sequence[str | Path]], db: Path) -> Iterator[str]:
    """Commands that read the store must end well and print nothing that acts on a terminal."""
    for arguments in commands:
        yield from ended_well(arguments, crawler(*arguments, "--db", db, timeout_s=300))


def _readers(db: Path) -> Iterator[str]:
    """Every command that reads the store ends well and prints nothing that acts on a terminal."""
    folder = db.parent
    yield from _read_by((*_OTHERS, ("report", folder / "report.html")), db)
    for format, table in _EXPORTS:
        export = ("export", format, folder / f"{table or 'all'}.{format}", *(("--table", table) if table else ()))
        yield from ended_well(export, here(*export, "--db", db))
    if not asyncio.run(_queried(db)):
        yield "a query finds no page"


async def _queried(db: Path) -> list[dict[str, Any]]:
    async with open_crawl(db) as crawl:
        return await crawl.query("SELECT url, title FROM pages")


def ended_well(arguments: Sequence[object], ended: Ended, codes: Collection[int] = (0,)) -> Iterator[str]:
    """Faults of a command's end: another exit code than these, a traceback, control characters on its output."""
    command = " ".join(map(str, arguments))
    if "Traceback" in ended.err:
        yield f"crawler {command} prints a traceback: {ended.err[-400:]}"
    if ended.code not in codes:
        yield f"crawler {command} ended with {ended.code}: {(ended.err or ended.out)[-400:]}"
    yield from unprintable(f"crawler {command}", ended.out + ended.err)


def unprintable(command: str, text: str) -> Iterator[str]:
    """The first control character in an output, with the text around it."""
    if found := _UNPRINTABLE.search(text):
        around = text[max(0, found.start() - 30) : found.end() + 30]
        yield f"{command} prints a control character: {around!r}"


def stretches(log: Sequence[Hit], healthy: Sequence[Behaviour]) -> list[float]:
    """For each healthy site, its time from the first request to the last by the server's log, over its pauses."""
    found = []
    for one in healthy:
        times = sorted(hit.started_at for hit in log if hit.host == one.host)
        least_s = DELAY_S * max(1, len(times) - 1)
        found.append((times[-1] - times[0]) / least_s if times else float("inf"))
    return sorted(found)


def ten_pages_s(crawled: Crawled, healthy: Sequence[Behaviour]) -> float:
    """When the last of the healthy sites had sent ten pages, or all, in seconds since the command was started."""
    last_at = crawled.started_at
    for one in healthy:
        ends = sorted(hit.finished_at for hit in crawled.log if hit.host == one.host and hit.path in one.ends)
        number = min(10, len(one.ends))
        last_at = max(last_at, ends[number - 1] if len(ends) >= number else float("inf"))
    return last_at - crawled.started_at


def judge_times(
    crawled: Crawled, healthy: Sequence[Behaviour], max_time_s: float, alone: float, verdict: Verdict
) -> None:
    """Judge what depends on time and on the machine. ``alone``: the stretch of healthy sites that are crawled alone.

    Beside hostile sites the crawl needs whole processors. If other programs take them, it may take so much longer.
    """
    slowness = crawled.slowness
    verdict.figures["slowness of the machine"] = f"{slowness:.1f} s for a second of processor time"
    wrong = verdict.whole["time and memory"] = []
    stretch = stretches(crawled.log, healthy)
    verdict.figures["healthy sites"] = (
        f"took {median(stretch):.1f} times as long as their pauses in the median, {stretch[-1]:.1f} times at worst; "
        f"alone {alone:.1f} times"
    )
    if stretch[-1] > MOST_STRETCH * alone * slowness:
        wrong.append(f"a healthy site took {stretch[-1]:.1f} times its pauses, and {alone:.1f} times alone")
    tenth_s = ten_pages_s(crawled, healthy)
    verdict.figures["ten pages"] = f"each healthy site had them after {tenth_s:.1f} s"
    if tenth_s > TEN_PAGES_WITHIN_S * slowness:
        wrong.append(f"a healthy site had ten pages after {tenth_s:.0f} s, {TEN_PAGES_WITHIN_S:.0f} s expected")
    if crawled.spent.wall_s > max_time_s + STOPS_WITHIN_S:
        wrong.append(f"the run took {crawled.spent.wall_s:.0f} s, with --max-time {max_time_s:.0f}")
    if crawled.spent.peak_bytes > MOST_BYTES:
        wrong.append(f"more than {MOST_BYTES / 1e6:.0f} MB at once")
    with closing(sqlite3.connect(crawled.db)) as store:
        (lag_s,) = store.execute("SELECT worst_lag_s FROM runs").fetchone()
    if lag_s is None:
        wrong.append("the lag of the event loop was not measured")
    elif lag_s > MOST_LAG_S * slowness:
        wrong.append(f"the event loop was held up for {lag_s:.1f} s, at most {MOST_LAG_S} s expected")


def wrong_ones(verdict: Verdict) -> set[str]:
    """The behaviours and subjects that are wrong."""
    return {name for name, faults in (*verdict.wrong.items(), *verdict.whole.items()) if faults}


def table(verdict: Verdict) -> str:
    """The verdict for people: everything that is wrong, the behaviours by family, the subjects, and the figures."""
    all_faults = (*verdict.wrong.items(), *verdict.whole.items())
    lines = [f"WRONG  {name}: {fault}" for name, faults in all_faults for fault in faults]
    families: dict[str, list[bool]] = {}
    for name, wrong in verdict.wrong.items():
        families.setdefault(_family(name), []).append(not wrong)
    rows = {family: f"{sum(good)} of {len(good)} as expected" for family, good in families.items()}
    rows |= {subject: "WRONG" if wrong else "fine" for subject, wrong in verdict.whole.items()} | verdict.figures
    return "\n".join([*lines, *(f"{name:50} {row}" for name, row in rows.items())])


def _family(name: str) -> str:
    return "healthy sites" if name.startswith("healthy") else name.partition("-")[0]
