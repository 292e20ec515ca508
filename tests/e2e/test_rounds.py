"""``crawler rounds``: equal to a plain crawl, and to itself when processes are killed or frozen."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crawler.demo.pages import Page, plain, redirect
from tests import judge, kill
from tests.command import HASTY, here
from tests.web import LoopbackWeb

HOSTS = 12
CONFIG = f"""{HASTY}total_timeout = 1
resolve = ["*.test=127.0.0.1"]
allow_private = true
[scope]
mode = "any"
[output]
progress = false
[rounds]
buckets = 7
length = 60
"""
#: The depth of an excluded URL depends on the order of pages, and its row may stand in several buckets.
URLS = "SELECT url, state, reason_code, CASE WHEN state <> 'excluded' THEN depth END FROM urls"
#: What the dataset and the store of a plain crawl have alike.
SAME = (
    URLS,
    "SELECT url, status, body_sha256, title, noindex FROM pages",
    "SELECT source, target, anchor, rel FROM links",
    "SELECT url, purpose, status FROM requests",
)


def linked_web(seed: int, web: LoopbackWeb, hosts: int = HOSTS, pages: int = 8) -> list[str]:
    """Serve sites with a domain each; links, redirects and canonical links lead to all of them. Returns the seed."""
    chance = random.Random(seed)
    paths = [f"/{'closed/' * (page % 5 == 3)}p{page}" for page in range(pages)]
    own = [[web.url(f"www.h{host}.test", path) for path in paths] for host in range(hosts)]
    everywhere = [url for urls in own for url in urls]
    for host, urls in enumerate(own):
        site: dict[str, Page] = {"/robots.txt": plain("User-agent: *\nDisallow: /closed/\n")}
        for url in urls:
            targets = [chance.choice(everywhere if chance.random() < 0.5 else urls) for _ in range(4)]
            links = "".join(f"<a href='{target}'>{n} {target}</a>" for n, target in enumerate(targets))
            page = Page(f"<title>{url}</title>{links}")
            if not url.endswith("/p0") and (kind := chance.random()) < 0.2:
                named = chance.choice(everywhere)
                page = redirect(named, 301) if kind < 0.1 else Page(f"<link rel=canonical href='{named}'>{links}")
            site[url[url.index("/", 8) :]] = replace(page, delay_s=0.005)
        web.sites[f"www.h{host}.test"] = site
    return [own[0][0]]


def dataset_rows(dataset: Path, query: str) -> Counter[tuple[Any, ...]]:
    from crawler.rounds.reading import Views

    with Views(str(dataset)) as views:
        return Counter(views.fetch(query))


def differences(dataset: Path, db: Path) -> list[str]:
    """What a dataset and the store of a plain crawl of the same web do not have alike."""
    found = []
    for query in SAME:
        plain_rows = Counter(map(tuple, kill.rows(db, query)))
        rounds_rows = dataset_rows(dataset, query)
        for sign, rows in (("-", plain_rows - rounds_rows), ("+", rounds_rows - plain_rows)):
            found += [f"{sign} {row}" for row in rows]
    return found


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "c.toml"
    path.write_text(CONFIG)
    return path


def test_rounds_equal_a_plain_crawl(loopback: LoopbackWeb, tmp_path: Path, config: Path) -> None:
    seeds = linked_web(1, loopback)
    assert here("run", "--config", config, *seeds, "--db", tmp_path / "plain.db").code == 0
    sent = len(loopback.log)
    ended = here("rounds", tmp_path / "data", "--config", config, *seeds, "--json")
    assert ended.code == 0, ended
    assert differences(tmp_path / "data", tmp_path / "plain.db") == []
    assert len(loopback.log) == 2 * sent
    result = json.loads(ended.out)
    assert result["ended_code"] == "done"
    assert result["rounds"] > 1
    assert judge.violations(loopback.log[sent:], judge.Manners(delay_s=0.05)) == []
