"""``crawler rounds``: equal to a plain crawl, and to itself when processes are killed or frozen."""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crawler.clock import boot_s
from crawler.demo.pages import Page, plain, redirect
from tests import judge, kill
from tests.command import HASTY, finish, here, start, until
from tests.s3 import s3_server
from tests.web import LoopbackWeb

HOSTS = 12
CONFIG = f"""{HASTY}total_timeout = 3
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


def linked_web(seed: int, web: LoopbackWeb, hosts: int = HOSTS, pages: int = 8, delay_s: float = 0.005) -> list[str]:
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
            site[url[url.index("/", 8) :]] = replace(page, delay_s=delay_s)
        web.sites[f"www.h{host}.test"] = site
    return [own[0][0]]


def dataset_rows(dataset: Path | str, query: str) -> Counter[tuple[Any, ...]]:
    from crawler.dataset.views import Views

    with Views(str(dataset)) as views:
        return Counter(views.fetch(query))


def differences(dataset: Path | str, db: Path) -> list[str]:
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
    seeds = linked_web(1, loopback, hosts=5, pages=5)
    config.write_text(f"{CONFIG}[sample]\nsize = 12\nseed = 3\n")
    assert here("run", "--config", config, *seeds, "--db", tmp_path / "plain.db").code == 0
    sent = len(loopback.log)
    ended = here("rounds", tmp_path / "data", "--config", config, *seeds, "--json")
    assert ended.code == 0, ended
    assert differences(tmp_path / "data", tmp_path / "plain.db") == []
    assert len(loopback.log) == 2 * sent
    ranked = [json.loads(here("rank", "--db", db, "--json").out) for db in (tmp_path / "plain.db", tmp_path / "data")]
    in_plain, in_rounds = ([(row["url"], f"{row['pagerank']:.9f}") for row in each["top"]] for each in ranked)
    assert sorted(in_plain) == sorted(in_rounds)
    in_views = dataset_rows(tmp_path / "data", "SELECT url FROM ranks ORDER BY pagerank DESC, url LIMIT 20")
    assert in_views == Counter((url,) for url, _ in in_rounds)
    samples = [
        json.loads(here("sample", "--db", db, "--json").out) for db in (tmp_path / "plain.db", tmp_path / "data")
    ]
    assert samples[0] == samples[1] | {"drawn_at": samples[0]["drawn_at"]}
    result = json.loads(ended.out)
    assert result["ended_code"] == "done"
    assert result["rounds"] > 1
    assert judge.violations(loopback.log[sent:], judge.Manners(delay_s=0.05)) == []


@pytest.fixture
def crawled(loopback: LoopbackWeb, tmp_path: Path, config: Path) -> Callable[..., list[str]]:
    """Crawl the web of :func:`linked_web` plainly; returns the arguments of a crawl in rounds of ``length`` seconds."""

    def crawl(length: int = 2) -> list[str]:
        config.write_text(CONFIG.replace("length = 60", f"length = {length}"))
        seeds = linked_web(2, loopback)
        assert here("run", "--config", config, *seeds, "--db", tmp_path / "plain.db").code == 0
        loopback.web.log.clear()
        return ["rounds", str(tmp_path / "data"), "--config", str(config), *seeds]

    return crawl


def of_content(differing: list[str]) -> list[str]:
    """The differences but for the requests: a lost task has sent some that are sent again."""
    return [line for line in differing if "'robots'," not in line and "'page'," not in line]


def workers_of(driver: int) -> list[int]:
    """The worker processes that a driver has started."""
    found = Path(f"/proc/{driver}/task/{driver}/children").read_text().split()
    return [int(pid) for pid in found if b"crawler.rounds.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def polite(loopback: LoopbackWeb) -> list[judge.Violation]:
    return judge.violations(loopback.log, judge.Manners(delay_s=0.05))


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc").exists(), reason="finds processes in /proc")
def test_another_driver_goes_on_while_the_workers_of_a_killed_one_still_work(
    crawled: Callable[..., list[str]], loopback: LoopbackWeb, tmp_path: Path
) -> None:
    driver = start(*crawled(), fresh=True)
    until(lambda: len(loopback.log) > 8, "requests")
    driver.kill()
    driver.communicate()
    ended = here("rounds", tmp_path / "data")
    assert ended.code == 0, ended
    assert differences(tmp_path / "data", tmp_path / "plain.db") == [], "nothing was lost, and nothing asked twice"
    assert polite(loopback) == []


def test_a_dataset_is_read_like_a_store(loopback: LoopbackWeb, tmp_path: Path, config: Path) -> None:
    seeds, data = linked_web(3, loopback, hosts=4), tmp_path / "data"
    for site in loopback.sites.values():
        for path, page in site.items():
            if path != "/robots.txt":
                site[path] = replace(page, body=page.octets + b"<a href='http://out.test/'>out</a>")
    config.write_text(config.read_text().replace("[scope]", '[scope]\nexclude = ["^http://out"]'))
    crawled = here("rounds", data, "--config", config, *seeds, "--json")
    assert crawled.code == 0, crawled
    status = json.loads(here("status", "--db", data, "--json").out)
    assert (status["states"].get("queued"), status["buckets_with_work"], status["next_at"]) == (None, 0, None)
    assert json.loads(crawled.out)["states"] | {"excluded": status["states"]["excluded"]} == status["states"]
    assert "excluded" not in json.loads(crawled.out)["states"], "several buckets may exclude the same URL"
    assert status["requests"] == len(loopback.log)
    assert (status["sites"], status["asked_sites"]) == (5, 4), "a site that is left out was never asked"
    assert f"{status['pages']:,}, with" in here("status", "--db", data).out
    known = json.loads(here("why", seeds[0], "--db", data, "--json").out)
    assert (known["state"], known["seed"], known["robots"]["allowed"]) == ("fetched", True, True)
    links = dataset_rows(data, f"SELECT source FROM links WHERE target = '{seeds[0]}'")
    assert known["linked_from"]["count"] == links.total() > 0
    assert here("export", "jsonl", tmp_path / "pages.jsonl", "--db", data, "--where", "depth < 2").code == 0
    rows = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    assert {row["depth"] for row in rows} == {0, 1}
    assert all(isinstance(row["fetched_at"], float) and row["noindex"] is False for row in rows)
    reads_files = "url IN (SELECT * FROM read_csv('/etc/passwd'))"
    refused = here("export", "csv", tmp_path / "x.csv", "--db", data, "--where", reads_files)
    assert refused.code == 2, "a condition reads the views and nothing else"
    out = str(tmp_path / "out.html")
    audited = here("audit", "--db", data, "--json")
    assert (audited.code, json.loads(audited.out)["requests"]) == (0, len(loopback.log)), audited
    reported = here("report", out, "--db", data)
    assert f"{status['pages']} pages of 4 sites, no violation" in reported.out, reported
    for command in (["run"], ["export", "warc", out]):
        refused = here(*command, "--db", data)
        assert (refused.code, "is a dataset" in refused.err) == (2, True), refused
    assert "with other seeds" in here("rounds", data, "--config", config, loopback.url("www.h1.test")).err


@pytest.mark.long
def test_a_crawl_that_is_told_to_stop_ends_in_order_and_goes_on(
    crawled: Callable[..., list[str]], loopback: LoopbackWeb, tmp_path: Path
) -> None:
    driver = start(*crawled(length=60), fresh=True)
    until(lambda: len(loopback.log) > 8, "requests")
    driver.send_signal(signal.SIGINT)
    stopped = finish(driver)
    assert stopped.code == 3, stopped
    assert "stopped by SIGINT" in stopped.out
    driver = start("rounds", str(tmp_path / "data"), fresh=True)
    sent, pages = len(loopback.log), {host: dict(site) for host, site in loopback.sites.items()}
    for host, site in pages.items():
        loopback.sites[host] = {path: replace(page, delay_s=8.0) for path, page in site.items()}
    until(lambda: bool(workers_of(driver.pid)), "a worker")
    driver.send_signal(signal.SIGINT)
    sent_s = boot_s()
    until(lambda: boot_s() - sent_s > 1.0, "the time after which a signal is a second one")
    driver.send_signal(signal.SIGINT)
    assert finish(driver).code == 3
    loopback.sites.update(pages)
    assert here("rounds", tmp_path / "data").code == 0
    assert of_content(differences(tmp_path / "data", tmp_path / "plain.db")) == []
    assert len(loopback.log) > sent
    assert polite(loopback) == []


@pytest.mark.long
def test_a_dataset_in_s3(loopback: LoopbackWeb, tmp_path: Path, config: Path) -> None:
    seeds = linked_web(4, loopback, hosts=4, pages=4)
    assert here("run", "--config", config, *seeds, "--db", tmp_path / "plain.db").code == 0
    with s3_server() as server:
        data = f"s3://{server.bucket}/data"
        ended = here("rounds", data, "--config", config, *seeds)
        assert ended.code == 0, ended
        assert differences(data, tmp_path / "plain.db") == []
        assert json.loads(here("why", seeds[0], "--db", data, "--json").out)["state"] == "fetched"
