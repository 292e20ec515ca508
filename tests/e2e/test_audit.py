"""``crawler audit`` after real crawls of loopback webs: obedience is proven, a doctored log is found out."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import crawler
from crawler.demo.pages import Handler, Page, Site, plain, redirect
from crawler.robots.response import RobotsSettings
from tests.command import Ended
from tests.command import crawler as command
from tests.constants import constants
from tests.web import LoopbackWeb, random_web

HURRIED = {
    "fetch.resolve": [LoopbackWeb.resolve],
    "fetch.allow_private": True,
    "fetch.retry_pause": 0.1,
    "politeness.delay": 0.02,
    "politeness.slow_factor": 1,
    "politeness.backoff_first": 0.3,
    "robots.retry_first": 0.3,
    "scope.mode": "any",
}


def audit(db: Path, *options: str | Path) -> Ended:
    return command("audit", "--db", db, *options)


async def crawled(db: Path, *seeds: str, **settings: object) -> int:
    """Crawl to the end; how many pages came."""
    async with crawler.open(db, HURRIED | settings) as crawl:
        return len([page async for page in crawl.run(seeds=seeds)])


@pytest.mark.parametrize("group", ["host", "domain"])
async def test_a_random_web_is_crawled_without_violation(loopback: LoopbackWeb, db_path: Path, group: str) -> None:
    web = random_web(11, hosts=5, pages_per_host=8, port=loopback.port)
    loopback.sites.update(web.sites)
    pages = await crawled(db_path, *web.seeds, **{"politeness.group": group})
    assert pages == len(web.depths)
    done = audit(db_path, "--json")
    answer = json.loads(done.out)
    assert (done.code, done.err, answer["violations"]) == (0, "", [])
    judged = {check["check"]: check["judged"] for check in answer["checks"]}
    assert judged["permission"] == pages
    assert judged["log"] == pages + 5 == answer["requests"]
    assert judged["pause"] == judged["log"] - (5 if group == "host" else 1)


async def test_an_awkward_web_is_crawled_without_violation(loopback: LoopbackWeb, db_path: Path) -> None:
    """Robots.txt that is late, redirected, absent, forbidden or asks for pauses; pages that are refused for a while."""
    port = loopback.port
    hosts = ("busy", "late", "led", "led2", "none", "shut", "slow", "unasked")
    links = "".join(f"<a href='http://{host}.test:{port}/'>{host}</a>" for host in hosts)
    more = "<a href='/a'>a</a> <a href='/closed/b'>b</a>"
    site: Site = {"/": Page(more), "/a": Page(), "/closed/b": Page()}
    rules = plain("User-agent: *\nDisallow: /closed/\n")
    loopback.sites.update(
        {
            "hub.test": {"/": Page(links), "/robots.txt": rules},
            "slow.test": {**site, "/robots.txt": plain("User-agent: *\nDisallow: /closed/\nCrawl-delay: 0.5\n")},
            "none.test": {"/": Page("<a href='/a'>a</a>"), "/a": Page()},
            "shut.test": {**site, "/robots.txt": Page(status=403)},
            "late.test": {**site, "/robots.txt": lambda asked: rules if asked.before else Page(status=503)},
            "unasked.test": {**site, "/robots.txt": lambda asked: rules if asked.before else Page(status=304)},
            "led.test": {**site, "/robots.txt": redirect(f"http://slow.test:{port}/robots.txt")},
            "led2.test": {**site, "/robots.txt": redirect(f"http://slow.test:{port}/robots.txt")},
            "busy.test": {
                "/robots.txt": rules,
                "/": lambda asked: Page(more) if asked.before else Page(status=503, headers=(("Retry-After", "1"),)),
                "/a": Page(),
            },
        }
    )
    await crawled(db_path, loopback.url("hub.test"))
    done = audit(db_path, "--report", db_path.parent / "report.md")
    assert done.code == 0, done.out
    assert "No violation" in done.out
    assert "**No violation was found**" in (db_path.parent / "report.md").read_text()


async def test_copies_that_hold_for_moments(loopback: LoopbackWeb, db_path: Path) -> None:
    """Asked for again and again, renewed by 304, behind redirects, in force until a pause is over.

    What was reckoned when they came is reckoned again to the millisecond: a little more, and it is a violation.
    """
    port, rules = loopback.port, "User-agent: *\nDisallow: /closed/\n"
    short = (("Cache-Control", "no-cache"), ("ETag", '"1"'), ("Content-Type", "text/plain"))
    brief = Page(rules, headers=short, content_type="")
    robots: dict[str, Page | Handler] = {
        "renewed.test": lambda asked: Page(status=304, headers=short) if "if-none-match" in asked.headers else brief,
        "slow.test": replace(brief, body=rules + "Crawl-delay: 0.6\n"),
        "led.test": redirect(f"http://hub.test:{port}/hop"),
        "shaky.test": lambda asked: Page(status=503) if asked.before % 2 else brief,
        "gone.test": Page(status=404, headers=short[:1]),
    }
    hub = ""
    for host, answer in robots.items():
        n = 3 if host == "slow.test" else 30
        links = "".join(f"<a href='/{i}'>{i}</a>" for i in range(n))
        loopback.sites[host] = {"/robots.txt": answer, "/": Page(links), **{f"/{i}": Page() for i in range(n)}}
        hub += f"<a href='http://{host}:{port}/'>{host}</a>"
    loopback.sites["hub.test"] = {"/": Page(hub), "/hop": redirect("/rules?x"), "/rules": brief}
    moments = {"robots.retry_first": 0.1, "robots.stale_if_error": True}
    with constants(RobotsSettings, min_fresh_s=0.2):
        assert await crawled(db_path, loopback.url("hub.test"), **moments) == 1 + 4 + 4 * 31
    done = audit(db_path, "--json")
    audited = json.loads(done.out)
    assert (done.code, audited["violations"], audited["limits"]) == (0, [], [])
    with sqlite3.connect(db_path) as db:
        outlasting = "SELECT count(*) FROM robots_copy WHERE valid_until BETWEEN fetched_at + 0.6 AND fetched_at + 1"
        (long_kept,) = db.execute(outlasting).fetchone()
        (renewed,) = db.execute("SELECT count(*) FROM request WHERE status = 304").fetchone()
        db.execute("UPDATE robots_copy SET valid_until = valid_until + 0.002 WHERE action <> 'defer'")
    assert long_kept > 1
    assert renewed > 1
    found = json.loads(audit(db_path, "--json").out)["violations"]
    assert {violation["check"] for violation in found} == {"log"}
    assert len({violation["url"] for violation in found}) > 1


async def test_a_doctored_log_is_found_out(loopback: LoopbackWeb, db_path: Path) -> None:
    web = random_web(12, hosts=2, pages_per_host=6, port=loopback.port)
    loopback.sites.update(web.sites)
    await crawled(db_path, *web.seeds)
    with sqlite3.connect(db_path) as db:
        db.execute(
            "UPDATE request SET path = '/closed/x' WHERE id = (SELECT max(id) FROM request WHERE purpose = 'page')"
        )
    done = audit(db_path)
    assert done.code == 1
    assert "line 2: Disallow: /closed/" in done.out
    assert "1 violation in" in done.out
    with sqlite3.connect(db_path) as db:
        db.execute("DELETE FROM request WHERE id = (SELECT max(id) FROM request)")
    assert "as many requests of run 1 as its workers counted" in audit(db_path).out


async def test_the_pauses_of_single_sites_are_kept_shown_and_judged(loopback: LoopbackWeb, db_path: Path) -> None:
    pages = {"/": Page("<a href=/2>2</a>"), "/2": Page("2")}
    loopback.sites.update({"slow.test": pages, "quick.test": pages})
    seeds = [loopback.url("slow.test"), loopback.url("quick.test")]
    assert await crawled(db_path, *seeds, site={"slow.test": {"delay": 0.3}}) == 4
    assert json.loads(audit(db_path, "--json").out)["violations"] == []
    assert '0.3, by [site."slow.test"]' in command("why", seeds[0], "--db", db_path).out
    with sqlite3.connect(db_path) as db:
        times = db.execute(
            "SELECT started_at, finished_at FROM requests WHERE site LIKE '%slow%' ORDER BY 1"
        ).fetchall()
        (settings,) = db.execute("SELECT settings FROM run").fetchone()
        settings = settings.replace('["slow.test", 0.3', '["slow.test", 600')
        db.execute("UPDATE run SET settings = ?", (settings,))
    assert len(times) == 3
    assert all(later[0] - before[1] >= 0.299 for before, later in pairwise(times))
    assert audit(db_path).code == 1
