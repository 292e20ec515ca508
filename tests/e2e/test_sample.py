"""``crawler run --sample``: what is drawn, what is asked for, and what the estimates say, seen from the server too."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import crawler as package
from crawler.demo.pages import Asked, Fault, Handler, Page, Site, plain, redirect
from crawler.errors import UsageError
from crawler.sampling import load
from tests import kill
from tests.command import HASTY, LOOPBACK, Ended, crawler, finish, here, start, until
from tests.web import LoopbackWeb

PAGES = 30
SITES = ("a.test", "b.test", "c.test")


@pytest.fixture
def web(loopback: LoopbackWeb) -> LoopbackWeb:
    """Three sites.

    Each start page links to three pages, and each of these to thirty. Every fifth of the thirty is missing, and every
    sixth is forbidden.
    """
    for n, host in enumerate(SITES):
        loopback.sites[host] = site(loopback, n)
    return loopback


def site(web: LoopbackWeb, n: int) -> Site:
    elsewhere = web.url(SITES[(n + 1) % 3], "/far")
    made: dict[str, Page] = {
        "/robots.txt": plain("User-agent: *\nDisallow: /closed/\n"),
        "/": Page("<html lang=en><a href=/h0>0<a href=/h1>1<a href=/h2>2</a>"),
        "/far": Page(f"<html lang=de><title>far</title><a href='{web.url(SITES[n], '/')}'>home</a>"),
    }
    for hub in range(3):
        leaves = "".join(f"<a href='{leaf(n)}'>{n}</a>" for n in range(PAGES) if n % 3 == hub or n % 7 == 0)
        made[f"/h{hub}"] = Page(f"<html lang=en>{leaves}<a href='{elsewhere}'>far</a>", delay_s=0.01)
    for number in range(PAGES):
        if number % 5:
            made[leaf(number)] = Page(f"<html lang=fr>{'x' * 100 * number}<a href=/deep>deep</a>")
    return made


def leaf(number: int) -> str:
    return f"/closed/{number}" if number % 6 == 0 else f"/{number}"


def run(web: LoopbackWeb, db: Path, *options: str | Path, seeds: bool = True) -> Ended:
    return here("run", *arguments(web, db, *options, seeds=seeds))


def arguments(web: LoopbackWeb, db: Path, *options: str | Path, seeds: bool = True) -> list[str | Path]:
    config = db.parent / "c.toml"
    config.write_text(HASTY.replace("0.05", "0.01"))
    named = [web.url(host) for host in SITES] if seeds else []
    return [*named, "--config", config, *LOOPBACK, "--db", db, *options]


def samples(db: Path, columns: str = "url, stratum, walk, probability, state") -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(db)
    try:
        return connection.execute(f"SELECT {columns} FROM samples ORDER BY draw").fetchall()
    finally:
        connection.close()


def is_drawn(db: Path) -> bool:
    try:
        return samples(db) != []
    except sqlite3.OperationalError:  # the run is making the store
        return False


def figures(ended: Ended) -> dict[str, dict[str, Any]]:
    return {figure["what"]: figure for figure in json.loads(ended.out)["sample"]["estimates"]}


def test_the_deepest_pages_are_asked_for_only_if_drawn(web: LoopbackWeb, tmp_path: Path) -> None:
    ended = run(web, tmp_path / "s.db", "--sample", "5", "--per", "site", "--max-depth", "2", "--json")
    assert ended.code == 0, ended
    said = json.loads(ended.out)["sample"]
    drawn = samples(tmp_path / "s.db", "url, site, probability, state, reason")
    # start page, three hubs, thirty leaves, /far
    assert (said["frame"], said["urls"], said["waiting"]) == (3 * 35, 15, 0)
    assert {row[2] for row in drawn} == {5 / 35}
    assert {state for *_, state, _ in drawn} <= {"fetched", "failed", "excluded"}
    asked = {web.url(hit.host.partition(":")[0], hit.path) for hit in web.log if hit.path not in ("/robots.txt",)}
    nearer = {web.url(host, path) for host in SITES for path in ("/", "/h0", "/h1", "/h2")}
    allowed = {row[0] for row in drawn if "/closed/" not in row[0]}
    assert asked == nearer | allowed
    assert {row[4].partition(":")[0] for row in drawn if "/closed/" in row[0]} <= {"robots"}
    why = here("why", web.url("a.test", next(leaf(n) for n in range(1, 30) if web.url("a.test", leaf(n)) not in asked
                                             and n % 6)), "--db", tmp_path / "s.db")  # fmt: skip
    assert "sample: not drawn" in why.out


def test_the_whole_frame_is_estimated_as_it_is(web: LoopbackWeb, tmp_path: Path) -> None:
    """A sample of everything is exact: each figure is that of the sites."""
    ended = run(web, tmp_path / "s.db", "--sample", "1000", "--max-depth", "2", "--json")
    said = figures(ended)
    assert json.loads(ended.out)["sample"]["urls"] == 105
    closed, missing = 5, 5  # of each site: 0, 6 … 24 are closed; 5, 10, 15, 20, 25 are missing (0 is closed too)
    asked = 35 - closed
    for what, truth in {
        "disallowed by robots.txt": closed / 35,
        "answer 404": missing / asked,
        "answer 200": (asked - missing) / asked,
        "language en": 4 / 25,
        "language de": 1 / 25,
        "language fr": 20 / 25,
    }.items():
        assert (said[what]["low"], said[what]["high"]) == pytest.approx((truth, truth)), what
    size, octets = (
        sqlite3.connect(tmp_path / "s.db").execute("SELECT avg(body_bytes), sum(body_bytes) FROM pages").fetchone()
    )
    assert said["size"]["value"] == pytest.approx(size)
    for what, truth in {
        "disallowed by robots.txt": 3 * closed,
        "answer 404": 3 * missing,
        "language fr": 3 * 20,
        "size": octets,
    }.items():
        total = said[what]["total"]
        assert (total["low"], total["value"], total["high"]) == pytest.approx((truth, truth, truth)), what
    assert said["links per page"]["units"] == 75


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--sample", "7"), id="of all that is there"),
        pytest.param(("--sample", "4", "--per", "site", "--max-depth", "2"), id="of each site, leaves held back"),
        pytest.param(("--sample", "40", "--method", "random-walk", "--max-depth", "2"), id="random walk"),
        pytest.param(("--sample", "9", "--method", "random-walk", "--per", "site"), id="random walk in each site"),
    ],
)
def test_the_same_web_and_seed_give_the_same_sample(web: LoopbackWeb, tmp_path: Path, options: tuple[str, ...]) -> None:
    first = run(web, tmp_path / "1.db", *options)
    assert first.code == 0, first
    for host in SITES:  # answers come in another order
        web.sites[host] = {
            path: Page(page.body, delay_s=random.random() / 50)
            if isinstance(page, Page) and not path.startswith("/robots") else page
            for path, page in web.sites[host].items()
        }  # fmt: skip
    turned = arguments(web, tmp_path / "2.db", *options)
    assert here("run", *turned[2::-1], *turned[3:]).code == 0
    assert samples(tmp_path / "2.db") == samples(tmp_path / "1.db")
    assert run(web, tmp_path / "3.db", *options, "--seed", "2").code == 0
    assert samples(tmp_path / "3.db") != samples(tmp_path / "1.db")
    before = len(web.log)
    again = run(web, tmp_path / "1.db", *options)
    assert again.out.partition("Sample:")[2] == first.out.partition("Sample:")[2]
    assert len(web.log) == before, "nothing is asked for twice"


class Rationed:
    """Sites of which each answers a few requests, and then none until it gets the next ration."""

    def __init__(self) -> None:
        self._left = dict.fromkeys(SITES, 0)

    def give(self, answers: int) -> None:
        """Let each site answer so many requests from now on."""
        self._left = dict.fromkeys(SITES, answers)

    def site(self, pages: Site) -> Site:
        """The site with the same answers. A request beyond the ration waits until the client leaves."""
        answers = {path: self._rationed(page) for path, page in pages.items() if isinstance(page, Page)}
        return {"*": self._rationed(Page("missing", status=404)), **answers}

    def _rationed(self, page: Page) -> Handler:
        def answer(asked: Asked) -> Page:
            self._left[asked.host] -= 1
            return page if self._left[asked.host] >= 0 else Page(fault=Fault.HANG)

        return answer


def answered(db: Path) -> Counter[str]:
    """How many pages of each site have their answer in the store."""
    try:
        with closing(sqlite3.connect(db)) as connection:
            return Counter(dict(connection.execute("SELECT site, count(*) FROM pages GROUP BY site").fetchall()))
    except sqlite3.OperationalError:  # the run is making the store
        return Counter()


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_crawl_killed_again_and_again_gives_the_same_sample(web: LoopbackWeb, tmp_path: Path, seed: str) -> None:
    options = ("--sample", "6", "--per", "site", "--max-depth", "2", "--seed", seed)
    assert run(web, tmp_path / "whole.db", *options).code == 0
    whole, rationed = dict(web.sites), Rationed()
    web.sites.update({host: rationed.site(pages) for host, pages in whole.items()})
    for _ in range(3):
        rationed.give(answers=3)  # robots.txt, the start page and a hub; three hubs; three of the drawn pages
        before = answered(tmp_path / "killed.db")
        command = ["run", *map(str, arguments(web, tmp_path / "killed.db", *options))]
        process = kill.start(command, tmp_path / "said")
        # The third death of a worker in the same URL would fail that URL, so each run stores a page of each site.
        until(lambda old=before: len(answered(tmp_path / "killed.db") - old) == len(SITES), "a page of each site")
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    web.sites.update(whole)
    assert run(web, tmp_path / "killed.db", *options).code == 0
    assert samples(tmp_path / "killed.db") == samples(tmp_path / "whole.db")
    stores = [sqlite3.connect(tmp_path / name) for name in ("killed.db", "whole.db")]
    urls = "SELECT url, state, reason, depth FROM urls ORDER BY url"
    assert stores[0].execute(urls).fetchall() == stores[1].execute(urls).fetchall()


def test_another_size_holds_the_smaller_sample(web: LoopbackWeb, tmp_path: Path) -> None:
    drawn = []
    for size in ("3", "8"):
        assert run(web, tmp_path / "s.db", "--sample", size, "--per", "site", "--max-depth", "2").code == 0
        drawn.append({row[0] for row in samples(tmp_path / "s.db")})
    assert [len(urls) for urls in drawn] == [9, 24]
    assert drawn[0] < drawn[1]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--max-depth", "2"), id="no sample"),
        pytest.param((), id="seeds alone"),
        pytest.param(("--sample", "3", "--per", "site"), id="no depth"),
        pytest.param(("--sample", "3", "--per", "site", "--max-depth", "3"), id="a greater depth"),
    ],
)
def test_a_run_that_would_drop_the_sample_is_refused(
    web: LoopbackWeb, tmp_path: Path, options: tuple[str, ...]
) -> None:
    db, drawn = tmp_path / "s.db", ("--sample", "3", "--per", "site", "--max-depth", "2")
    assert run(web, db, *drawn).code == 0
    before = len(web.log)
    refused = run(web, db, *options)
    assert refused.code == 2
    assert "--sample 3 --per site --max-depth 2), or name another store with --db" in refused.err
    for remembered in (("--sample", "0"), ("--sample", "0", "--refresh"), ("--max-depth", "3")):
        assert here("run", *remembered, "--no-progress", "--db", db).code == 2
    assert (run(web, db, *drawn).code, here("run", "--no-progress", "--db", db).code) == (0, 0)
    assert len(web.log) == before, "nothing else is asked for"
    _judged(db, violations=0)


def test_the_audit_judges_requests_of_a_run_that_had_dropped_the_sample(web: LoopbackWeb, tmp_path: Path) -> None:
    db = tmp_path / "s.db"
    with mock.patch("crawler.run.session.require_draw_kept"):  # as before such runs were refused
        assert run(web, db, "--sample", "3", "--per", "site", "--max-depth", "2").code == 0
        before = len(web.log)
        drawn = {row[0] for row in samples(db)}
        leaf_seed = next(url for n in (1, 2, 3, 4) if (url := web.url("a.test", leaf(n))) not in drawn)
        assert here("run", leaf_seed, *arguments(web, db)).code == 0
    asked = {web.url(hit.host.partition(":")[0], hit.path) for hit in web.log[before:]}
    dropped = asked - {web.url("a.test", "/deep")}  # near to the new seed, and not known to the draw
    assert leaf_seed in dropped
    _judged(db, violations=len(dropped))
    folder = tmp_path / "appendix"
    assert here("export", "appendix", folder, "--db", db).code == 0
    assert f"The audit found {len(dropped)} violations" in (folder / "README.md").read_text()
    assert here("audit", "--appendix", folder).code == 1


def _judged(db: Path, *, violations: int) -> None:
    audit = json.loads(here("audit", "--db", db, "--json").out)
    (check,) = (each for each in audit["checks"] if each["check"] == "sample")
    assert check["violations"] == violations
    assert check["judged"] >= max(violations, 1)


def test_a_revisit_asks_for_nothing_that_was_not_drawn(web: LoopbackWeb, tmp_path: Path) -> None:
    links = "".join(f"<a href=/{n}>{n}</a>" for n in range(40))
    web.sites["many.test"] = {"/robots.txt": plain(""), "/": Page(links)} | {f"/{n}": Page(f"{n}") for n in range(40)}
    (tmp_path / "c.toml").write_text(
        HASTY.replace("0.05", "0.01") + '[revisit]\nfirst = 1\nmin_interval = 0.1\nmax_interval = "2 s"\n'
    )
    db = tmp_path / "s.db"
    arguments = [web.url("many.test"), "--config", tmp_path / "c.toml", *LOOPBACK, "--db", db]
    options = ["--max-depth", "1", "--sample", "5", "--per", "site"]
    assert here("run", *arguments, *options).code == 0
    asked = {hit.path for hit in web.log}
    web.sites["many.test"] = {**web.sites["many.test"], "/": Page(f"changed {links}<a href=/new>new</a>")}
    time.sleep(1.1)  # the first revisit is due after a second
    before = len(web.log)
    assert here("run", *arguments, *options, "--revisit").code == 0
    assert "/" in {hit.path for hit in web.log[before:]}
    assert {hit.path for hit in web.log} == asked
    rows = sqlite3.connect(db).execute("SELECT count(*) FROM urls WHERE reason_code = 'sample'").fetchone()
    drawn = {row[0] for row in samples(db)}
    assert rows == (42 - len({web.url("many.test"), *drawn}),)
    assert here("audit", "--db", db).code == 0
    with sqlite3.connect(db) as connection:  # as if the first run had drawn another page
        connection.execute("DELETE FROM sample WHERE url_id NOT IN (SELECT url_id FROM urls WHERE depth = 0)")
        connection.execute("UPDATE sample_draw SET drawn_at = 0")
    audit = json.loads(here("audit", "--db", db, "--json").out)
    (check,) = (each for each in audit["checks"] if each["check"] == "sample")
    assert check["violations"] >= len(drawn - {web.url("many.test")})
    found = next(each for each in audit["violations"] if each["check"] == "sample")
    assert found["done"] == "asked for, though not drawn"


def test_a_site_that_fails_does_not_keep_the_sample_from_being_drawn(web: LoopbackWeb, tmp_path: Path) -> None:
    web.sites["b.test"] = {"/robots.txt": Page("", status=503)}
    db, options = tmp_path / "s.db", ("--sample", "2", "--per", "site", "--max-depth", "2")
    first = run(web, db, *options, "--max-time", "3")
    assert "1 d after the last answer at the latest" in first.err
    status = here("status", "--db", db)
    dead = web.url("b.test").rstrip("/")
    assert f"the sample waits for 1 site ({dead}), and is drawn" in " ".join(status.out.split())
    assert "at its limit" not in status.out
    assert json.loads(here("status", "--db", db, "--json").out)["sampling_frame"]["sites"] == [dead]
    why = " ".join(here("why", web.url("a.test", "/1"), "--db", db).out.split())
    assert "it is requested only if it is drawn" in why
    assert dead in why
    assert "--max-pages-per-site" not in why
    asked = here("sample", "--db", db)
    assert (asked.code, dead in asked.err) == (2, True)

    hasty = tmp_path / "hasty" / "s.db"
    hasty.parent.mkdir()
    given = arguments(web, hasty, *options)
    config = hasty.parent / "c.toml"
    config.write_text(config.read_text() + "[sample]\nframe_patience = 1\n")
    process = start("run", *given)
    until(lambda: hasty.exists() and is_drawn(hasty), "a sample without the site that fails")
    web.sites["b.test"] = site(web, 1)  # it comes back too late
    ended = finish(process)
    assert ended.code == 0, ended
    assert "Frame error: 1 URL of 1 site not reached" in " ".join(ended.out.split())
    (row,) = sqlite3.connect(hasty).execute("SELECT missed, missed_sites, stands FROM sample_draws").fetchall()
    assert row == (1, 1, 1)
    (state,) = sqlite3.connect(hasty).execute("SELECT reason_code FROM urls WHERE url = ?", (web.url("b.test"),))
    assert state == ("frame",)
    assert {row[1] for row in samples(hasty)} >= {web.url(host).rstrip("/") for host in ("a.test", "c.test")}


def test_what_has_not_answered_is_counted_and_bounded(web: LoopbackWeb, tmp_path: Path) -> None:
    hosts = [f"s{n}.test" for n in range(10)]
    for n, host in enumerate(hosts):
        web.sites[host] = {"/robots.txt": plain("") if n > 1 else Page("", status=503), "/": Page(f"<html>{n}")}
    (tmp_path / "c.toml").write_text(HASTY.replace("0.05", "0.01"))
    given = [*map(web.url, hosts), "--config", tmp_path / "c.toml", *LOOPBACK, "--db", tmp_path / "s.db"]
    ended = here("run", *given, "--sample", "10", "--max-depth", "0", "--max-time", "4")
    assert "Response: 8 of 10 URLs (8 answered, 2 not answered yet)" in " ".join(ended.out.split())
    said = json.loads(here("sample", "--db", tmp_path / "s.db", "--json").out)
    assert said["outcomes"]["answered"] == 8
    assert said["outcomes"]["not answered yet"] == 2
    share = next(figure for figure in said["estimates"] if figure["what"] == "answer 200")
    assert (share["value"], share["missing"], share["lowest"], share["highest"]) == (1, 2, pytest.approx(0.8), 1)
    assert (share["low"], share["high"]) == (pytest.approx(0.8), 1), "the whole frame was drawn: at least 8 of 10"
    number = share["total"]
    assert (number["missing"], number["lowest"], number["highest"]) == (2, pytest.approx(8), 10)
    assert number["may_be_too_narrow"]
    told = here("sample", "--db", tmp_path / "s.db").out
    assert "Totals over the 10 URLs of the frame" in told
    assert "8 to 10" in told
    closed = next(figure for figure in said["estimates"] if figure["what"] == "disallowed by robots.txt")
    assert closed["low"] == 0 < closed["high"]
    assert closed["highest"] == pytest.approx(0.2)


def test_sitemaps_make_a_frame(web: LoopbackWeb, tmp_path: Path) -> None:
    listed = "".join(f"<url><loc>{web.url('a.test', f'/{n}')}</loc></url>" for n in (1, 2, 3, 4, 7, 8, 9))
    web.sites["a.test"] = {**web.sites["a.test"], "/sitemap.xml": Page(
        f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{listed}</urlset>", content_type="text/xml"
    )}  # fmt: skip
    (tmp_path / "map.toml").write_text(f"[discovery]\nsitemaps = true\n{HASTY}")
    seed, db = web.url("a.test"), tmp_path / "s.db"
    ended = here(
        "run", seed, "--config", tmp_path / "map.toml", *LOOPBACK, "--db", db, "--sample", "2", "--max-depth", "1"
    )
    assert ended.code == 0, ended
    assert "2 URLs of 11\n" in ended.out
    assert len(web.hits("a.test")) <= 5, "robots.txt, the sitemap, the start page, two drawn"


@pytest.mark.parametrize("moved", [redirect("/there"), Page("<meta http-equiv=refresh content='0; url=/there'>")])
def test_a_stratified_sample_of_a_list(web: LoopbackWeb, tmp_path: Path, moved: Page) -> None:
    web.sites["moved.test"] = {"/robots.txt": plain(""), "/": moved, "/there": Page("<html lang=it>")}
    rows = [f"{web.url('moved.test')},small", *(f"{web.url('a.test', f'/{n}')},large" for n in (1, 2, 3, 4, 7, 8, 9))]
    (tmp_path / "list.csv").write_text("\n".join(["url,stratum", *rows]))
    options = ("--sample", "3", "--method", "stratified", "--seeds", tmp_path / "list.csv", "--json")
    ended = run(web, tmp_path / "s.db", *options, seeds=False)
    assert ended.code == 0, ended
    drawn = samples(tmp_path / "s.db", "url, stratum, probability")
    assert [row[1:] for row in drawn] == [("large", 2 / 7)] * 2 + [("small", 1.0)]
    said = figures(ended)
    assert said["answer 200"]["value"] == 1, "what a seed redirects to counts as its own"
    assert said["language it"]["value"] == pytest.approx(1 / 8)
    asked = {hit.path for hit in web.log if hit.path != "/robots.txt"}
    assert asked == {"/", "/there", *("/" + row[0].rpartition("/")[2] for row in drawn[:2])}
    assert len(samples(tmp_path / "s.db")) == 3
    again = run(web, tmp_path / "s.db", *options, seeds=False)
    assert figures(again) == said
    alone = here("run", "--json", "--no-progress", "--db", tmp_path / "s.db")
    assert figures(alone) == said, "the store remembers the sample"


def test_a_list_of_ranks_is_read_as_it_is(web: LoopbackWeb, tmp_path: Path) -> None:
    listed = b"1,a.test\n2,b.test\n1001,c.test\n"
    given = ["run", *arguments(web, tmp_path / "s.db", "--sample", "2", "--method", "stratified", seeds=False)]
    (tmp_path / "c.toml").write_text(HASTY + "retries = 0\n".replace("retries", "max_redirects"))
    ended = here(*given, "--seeds", "-", "--max-time", "5", stdin=listed)
    assert ended.code == 5, ended  # no server answers
    assert {row[1] for row in samples(tmp_path / "s.db")} == {"1-1000", "1001-10000"}
    assert all(row[0].startswith("https://") for row in samples(tmp_path / "s.db"))
    named = here(
        *given, "--seeds", "-", "--max-time", "5", "--db", tmp_path / "n.db", stdin=b"rank,domain\r\n" + listed
    )
    assert named.code == 5, named
    assert samples(tmp_path / "n.db") == samples(tmp_path / "s.db")
    few = here(*given, "--sample", "1", "--seeds", "-", "--db", tmp_path / "f.db", stdin=listed)
    assert few.code == 2
    assert "2 strata" in few.err
    bad = here(*given, "--seeds", "-", stdin=b"1,a.test\n2;b.test\n3,b test\n")
    assert bad.code == 2
    assert "line 2: not rank,domain" in bad.err
    assert "line 3: " in bad.err


def test_a_listed_domain_counts_once_whatever_address_answered(web: LoopbackWeb, tmp_path: Path) -> None:
    """The servers speak no TLS, so each domain is asked by http. A closed robots.txt is the answer of the domain."""
    web.sites["closed.test"] = {"/robots.txt": Page("", 403), "/": Page("x")}
    listed = "".join(f"{n},{web.url(host).split('/')[2]}\n" for n, host in enumerate(("a.test", "closed.test"), 1))
    (tmp_path / "list.csv").write_text(listed)
    options = ("--sample", "2", "--method", "stratified", "--seeds", tmp_path / "list.csv", "--json")
    ended = run(web, tmp_path / "s.db", *options, seeds=False)
    assert ended.code == 0, ended
    said = json.loads(ended.out)["sample"]
    assert said["outcomes"] | {"answered": 1, "disallowed by robots.txt": 1} == said["outcomes"]
    assert figures(ended)["answer 200"]["value"] == 1
    assert [row[4] for row in samples(tmp_path / "s.db")] == ["excluded"] * 2, "the drawn address, given up"
    with sqlite3.connect(tmp_path / "s.db") as connection:
        joined = "SELECT p.url FROM samples s LEFT JOIN pages p ON p.url_id = s.page_id ORDER BY s.url"
        assert connection.execute(joined).fetchall() == [(web.url("a.test"),), (None,)]
    assert sorted((hit.host.partition(":")[0], hit.path) for hit in web.log) == [
        ("a.test", "/"),
        ("a.test", "/robots.txt"),
        ("closed.test", "/robots.txt"),
    ]
    why = here("why", web.url("a.test").replace("http:", "https:"), "--db", tmp_path / "s.db").out
    assert f"{web.url('a.test')} is tried instead" in why
    assert here("audit", "--db", tmp_path / "s.db", "--report", tmp_path / "audit.md").code == 0
    assert "The crawl began at 2 seeds" in (tmp_path / "audit.md").read_text(), "not at each address"
    again = run(web, tmp_path / "s.db", *options, seeds=False)
    assert figures(again) == figures(ended)
    assert len(web.log) == 3, "the same list begins nothing anew"
    assert here("audit", "--db", tmp_path / "s.db").code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--sample", "5", "--max-pages", "9"), "--max-depth"),
        (("--sample", "5", "--method", "stratified"), "in --seeds"),
        (("--sample", "5", "--method", "stratified", "--per", "site"), "leave out --per site"),
        (("--sample", "5", "--method", "stratified", "--seeds", "-"), "has no stratum"),
        (("--sample", "-1"), "whole number"),
        (
            ("--sample", "5", "--per", "site", "--max-pages-per-site", "4"),
            "raise --max-pages-per-site or lower --sample",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(web: LoopbackWeb, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    ended = here("run", *arguments(web, tmp_path / "s.db", *options), stdin=b"1,a.test\n")
    assert ended.code == 2
    assert said in ended.err
    assert web.log == []
    assert not (tmp_path / "s.db").exists()


def test_a_run_cut_short_has_no_sample_yet(web: LoopbackWeb, tmp_path: Path) -> None:
    web.sites["a.test"] = {"/robots.txt": Page("", status=503)}
    ended = run(web, tmp_path / "s.db", "--sample", "5", "--max-time", "1")
    assert "No sample yet" in ended.out
    assert samples(tmp_path / "s.db") == []
    asked = here("sample", "--db", tmp_path / "s.db")
    assert (asked.code, asked.out) == (2, "")
    assert "holds no sample" in asked.err


def test_a_budget_is_told(web: LoopbackWeb, tmp_path: Path) -> None:
    ended = run(web, tmp_path / "s.db", "--sample", "5", "--max-pages-per-site", "3")
    assert "3 sites reached --max-pages-per-site" in ended.out
    hosts = [hit.host for hit in web.log if hit.status == 200 and hit.path != "/robots.txt"]
    assert max(hosts.count(host) for host in hosts) == 3


def test_a_budget_that_is_spent_is_not_waited_for(web: LoopbackWeb, tmp_path: Path) -> None:
    """Four pages of each site are nearer than the sample, and the budget is one more."""
    options = ("--sample", "30", "--max-depth", "2", "--max-pages-per-site", "5")
    ended = run(web, tmp_path / "s.db", *options, "--json")
    said = json.loads(ended.out)["sample"]
    queued = sum(state == "queued" for *_, state in samples(tmp_path / "s.db"))
    assert (said["waiting"], said["over_budget"]) == (0, queued)
    assert queued > 0
    ended = run(web, tmp_path / "s.db", *options)
    assert f"{queued} URLs of it not requested: the site has reached --max-pages-per-site" in ended.out
    assert "the same `crawler run` goes on" not in ended.out.partition("Sample:")[2]


def test_a_blocked_site_is_told_of_and_drawn_anew_once_it_is_unblocked(web: LoopbackWeb, tmp_path: Path) -> None:
    options = ("--sample", "3", "--per", "site", "--max-depth", "2", "--json")
    assert run(web, tmp_path / "whole.db", *options).code == 0
    db = tmp_path / "s.db"
    assert run(web, db, "--max-depth", "2", "--max-time", "0.001").code == 5
    assert here("control", "block", "b.test", "--db", db).code == 0
    before = len(web.log)
    first = json.loads(run(web, db, *options).out)["sample"]
    assert {hit.host.partition(":")[0] for hit in web.log[before:]} == {"a.test", "c.test"}
    assert (first["urls"], first["left_out"]) == (6, 2)  # the start page, and /far as c.test links to it
    assert "Not in it: 2 URLs of blocked sites" in here("sample", "--db", db).out
    assert here("control", "unblock", "b.test", "--db", db).code == 0
    again = json.loads(run(web, db, *options).out)["sample"]
    assert (again["urls"], again["left_out"]) == (9, 0)
    assert samples(db) == samples(tmp_path / "whole.db")
    asked = [hit.path for hit in web.hits("b.test") if hit.path != "/robots.txt"]
    nearer, drawn = {"/", "/h0", "/h1", "/h2"}, {row[0].partition("b.test")[2].partition("/")[2] for row in samples(db)}
    assert set(asked) <= nearer | {f"/{path}" for path in drawn}


def test_what_is_blocked_after_the_draw_counts_in_no_estimate(web: LoopbackWeb, tmp_path: Path) -> None:
    db, options = tmp_path / "s.db", ("--sample", "1000", "--max-depth", "2")
    run(web, db, *options)
    with sqlite3.connect(db) as connection:
        connection.execute(
            "UPDATE url SET state = 'excluded', reason_code = 'blocked', reason = 'blocked by the operator' "
            "WHERE id IN (SELECT url_id FROM samples WHERE site LIKE '%b.test%' AND state = 'failed')"
        )
    ended = here("sample", "--db", db)
    assert "5 URLs of it blocked by the operator" in ended.out
    said = json.loads(here("sample", "--db", db, "--json").out)
    shares = {each["what"]: each for each in said["estimates"]}
    assert said["blocked"] == 5
    assert shares["answer 404"]["units"] == shares["answer 200"]["units"] == 3 * 30 - 5
    assert shares["disallowed by robots.txt"]["units"] == 3 * 35 - 5
    assert "answer none" not in shares


def test_what_is_forgotten_after_the_draw_is_nonresponse(web: LoopbackWeb, tmp_path: Path) -> None:
    db = tmp_path / "s.db"
    answered = figures(run(web, db, "--sample", "9", "--per", "site", "--max-depth", "2", "--json"))
    assert here("store", "forget", "b.test", "--because", "an opt-out", "--db", db).code == 0
    ended = here("sample", "--db", db, "--json")
    said = json.loads(ended.out)
    shares = {each["what"]: each for each in said["estimates"]}
    assert (said["outcomes"]["forgotten by the operator"], said["outcomes"]["gave no answer"]) == (9, 0)
    assert "answer none" not in shares
    for what, share in shares.items():
        if share["unit"] == "share" and not what.startswith("language"):
            assert share["missing"] == 9, what
            assert share["lowest"] < share["low"] or share["highest"] > share["high"], what
            assert share["units"] <= answered[what]["units"], what
    assert shares["answer 200"]["value"] > 0.5
    assert "9 URLs of it forgotten by the operator: no estimate includes them" in here("sample", "--db", db).out
    changes = here("sample", "--db", db, "--since", db, "--json").out
    assert {each["missing"] for each in json.loads(changes)["estimates"] if each["what"].startswith("change")} == {9}


def test_a_listed_domain_whose_answering_address_was_forgotten_is_nonresponse(web: LoopbackWeb, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(f"1,{web.url('a.test').split('/')[2]}\n2,{web.url('b.test').split('/')[2]}\n")
    options = ("--sample", "2", "--method", "stratified", "--seeds", tmp_path / "list.csv", "--json")
    assert run(web, tmp_path / "s.db", *options, seeds=False).code == 0
    assert here("store", "forget", web.url("a.test"), "--db", tmp_path / "s.db").code == 0
    said = json.loads(here("sample", "--db", tmp_path / "s.db", "--json").out)["outcomes"]
    assert (said["answered"], said["forgotten by the operator"], said["gave no answer"]) == (1, 1, 0)


def test_a_stratified_sample_goes_on_without_its_list(web: LoopbackWeb, tmp_path: Path) -> None:
    db = tmp_path / "s.db"
    web.sites["late.test"] = {"/robots.txt": Page("", 503), "/": Page("late")}
    (tmp_path / "list.csv").write_text(f"url,stratum\n{web.url('late.test')},x\n{web.url('a.test')},y\n")
    listed = ("--sample", "2", "--method", "stratified", "--seeds", tmp_path / "list.csv")
    begun = run(web, db, *listed, "--max-time", "0.5", seeds=False)
    assert "1 URL of it not requested yet" in begun.out, begun

    def stored() -> list[tuple[Any, ...]]:
        with sqlite3.connect(db) as connection:
            state = connection.execute("SELECT url, state, reason, s.stands FROM urls, sample_draw s ORDER BY url")
            return state.fetchall() + connection.execute("SELECT settings FROM runs").fetchall()

    before = stored()
    refused = here("run", "--db", db, "--sample", "3", "--give-up-after", "3600")
    assert (refused.code, "a stratified sample needs seeds with strata" in refused.err) == (2, True)
    assert stored() == before, "a refused command changes nothing"
    ended = here("run", "--db", db, "--give-up-after", "0.1", "--max-time", "9")
    assert "changes the crawl: --give-up-after 0.1" in ended.err, ended
    assert "Response: 2 of 2 URLs (1 answered, 1 gave no answer)" in ended.out
    assert "Seeds or settings have changed" not in ended.out
    assert f"`crawler why {web.url('late.test')} --db {db}` explains it" in ended.err, "not the seed that was fetched"
    again = run(web, db, *listed, "--give-up-after", "0.2", seeds=False)
    assert "changes the crawl: --give-up-after 0.2" in again.err
    assert "--max-depth" not in again.err


def test_says_what_to_install(web: LoopbackWeb, tmp_path: Path) -> None:
    load("survey")  # numpy cannot be loaded a second time
    loaded = [
        name for name in sys.modules if name.startswith(("scipy", "crawler.sampling.", "crawler.sampling.estimators"))
    ]
    with mock.patch.dict(sys.modules):
        for name in loaded:
            del sys.modules[name]
        sys.modules["scipy"] = None  # as if it were not installed
        ended = run(web, tmp_path / "s.db", "--sample", "5")
    assert ended.code == 2
    assert (
        ended.err == "crawler: samples need scipy; install the extra 'sample' from the clone: pip install '.[sample]'\n"
    )
    assert web.log == []


async def test_from_python(web: LoopbackWeb, tmp_path: Path) -> None:
    settings = {
        "fetch.resolve": ["*.test=127.0.0.1"], "fetch.allow_private": True, "politeness.delay": 0.01,
        "sample.size": 2, "sample.method": "stratified",
    }  # fmt: skip
    seeds = {web.url("a.test"): "one", web.url("b.test"): "two", web.url("b.test", "/1"): "two"}
    async with package.open(tmp_path / "s.db", settings) as crawl:
        with pytest.raises(UsageError, match="no such store"):
            await crawl.sample()
        pages = [page.url async for page in crawl.run(seeds)]
        survey = await crawl.sample()
    assert len(pages) == 2
    assert (survey.urls, survey.draw.frame) == (2, 3)
    assert next(figure.estimate.value for figure in survey.figures if figure.what == "answer 200") == 1


def test_the_report_tells_of_it(web: LoopbackWeb, tmp_path: Path) -> None:
    assert run(web, tmp_path / "s.db", "--sample", "20").code == 0
    assert crawler("report", tmp_path / "r.html", "--db", tmp_path / "s.db").code == 0
    html = (tmp_path / "r.html").read_text()
    assert 'id="sample"' in html
    assert "disallowed by robots.txt" in html
    assert "95 % interval" in html


def test_sites_are_drawn_and_then_pages_of_these(web: LoopbackWeb, tmp_path: Path) -> None:
    db, folder = tmp_path / "s.db", tmp_path / "appendix"
    stages = ("--sample", "5", "--per", "site", "--sample-sites", "2", "--sample-sites-by", "size")
    ended = run(web, db, *stages, "--max-depth", "2", "--json")
    assert ended.code == 0, ended
    said = json.loads(ended.out)["sample"]
    assert (said["frame"], said["urls"], said["sites"], said["sites_by"]) == (3 * 35, 10, 2, "size")
    drawn = samples(db, "url, site, stratum, probability, site_probability")
    sites = {site for _, site, *_ in drawn}
    assert len(sites) == 2
    assert {row[1:] for row in drawn} == {(site, site, 2 / 3 * (5 / 35), 2 / 3) for site in sites}
    asked = {web.url(hit.host.partition(":")[0], hit.path) for hit in web.log if hit.path != "/robots.txt"}
    nearer = {web.url(host, path) for host in SITES for path in ("/", "/h0", "/h1", "/h2")}
    assert asked == nearer | {row[0] for row in drawn if "/closed/" not in row[0]}
    assert here("audit", "--db", db).code == 0
    told = here("sample", "--db", db)
    assert "uniform, 5 of each of 2 sites drawn in proportion to their size, seed 1: 10 URLs of 105" in told.out
    by_site = here("sample", "--db", db, "--variable", "large=body_bytes > 1000", "--by", "site", "--json")
    everything = json.loads(by_site.out)["estimates"]
    estimates = {each["among"]: each for each in everything if each["what"] == "large"}
    assert estimates.keys() == {"pages"} | {f"pages on site {site}" for site in sites}
    assert all(estimates[f"pages on site {site}"]["standard_error"] is not None for site in sites)
    for site in sites:
        own = [each for each in everything if each["among"] == f"URLs that may be asked for on site {site}"]
        assert sum(each["value"] for each in own) == pytest.approx(1), "the shares of the answers of the site"
        closed = next(each for each in everything if each["among"] == f"URLs on site {site}")
        asked = 35 - closed["total"]["value"]
        assert sum(each["total"]["value"] for each in own) == pytest.approx(asked), "of the 35 URLs of each site"
    assert here("export", "appendix", folder, "--db", db).code == 0
    assert here("audit", "--appendix", folder).code == 0
    design = folder / "tables" / "design.csv"
    design.write_text(design.read_text().replace(",2,size", ",1,size"))
    again = here("audit", "--appendix", folder)
    assert (again.code, "the frame does not give it" in again.out) == (1, True), again
