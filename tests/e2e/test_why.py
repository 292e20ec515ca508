"""``crawler why``: the whole chain for one URL, and the rules about traps on and off."""

from __future__ import annotations

import io
import json
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from crawler.cli.shared import STOPPED
from crawler.demo.pages import Fault, Page, plain, redirect
from crawler.inspect.why import render
from tests.command import HASTY, LOOPBACK, finish, here, start, until
from tests.web import LoopbackWeb

FICT = """User-agent: *
Disallow: /closed/
Mobile-agent-server: / atp://fict.org:820
Mobile-agent-server: /home/ none
Mobile-agent-server: /home/user1/ atp://user1.fict.org:821
Mobile-agent-server: /home/user2/ atp://user2.fict.org:831
"""


class Asked:
    """A crawled web, and what ``why`` says of it."""

    def __init__(self, web: LoopbackWeb, folder: Path) -> None:
        self.web, self._folder, self.db = web, folder, folder / "c.db"

    def crawl(self, *hosts: str, toml: str = "") -> None:
        ended = here(*self._run(*hosts, toml=HASTY + toml))
        assert ended.code == 0, ended

    def crawl_until_asked(self, *hosts: str) -> None:
        """Stop the crawl when the first request has arrived; its answer is waited for, and in force for an hour."""
        patient = HASTY.replace("retry_first = 0.2", "retry_first = 3600")
        process = start(*self._run(*hosts, toml=patient))
        until(lambda: len(self.web.log) > 0, "a request")
        process.send_signal(signal.SIGINT)
        assert finish(process).code == STOPPED

    def _run(self, *hosts: str, toml: str) -> tuple[str | Path, ...]:
        (self._folder / "c.toml").write_text(toml)
        seeds = [self.web.url(host) for host in hosts]
        return ("run", *seeds, "--config", self._folder / "c.toml", *LOOPBACK, "--db", self.db)

    def why(self, host: str, path: str = "/") -> dict[str, Any]:
        ended = here("why", self.web.url(host, path), "--db", self.db, "--json")
        assert ended.code == 0, ended
        known = json.loads(ended.out)
        assert isinstance(known, dict)
        return known

    def words(self, host: str, path: str = "/") -> str:
        """For people, at 80 columns; as one line without the port."""
        narrow = io.StringIO()
        render(self.why(host, path), str(self.db), Console(file=narrow, width=80))
        assert max(map(len, narrow.getvalue().splitlines())) <= 80
        wide = here("why", self.web.url(host, path), "--db", self.db).out
        assert "".join(wide.split()) == "".join(narrow.getvalue().split())
        return " ".join(wide.replace(f":{self.web.port}", "").split())


@pytest.fixture
def asked(loopback: LoopbackWeb, tmp_path: Path) -> Asked:
    return Asked(loopback, tmp_path)


@pytest.fixture(scope="module")
def fict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """A crawl of the draft's example of fict.org."""
    with LoopbackWeb({"fict.test": {"/robots.txt": plain(FICT), "/": Page("<a href=/home/user1/>1</a>")}}) as web:
        asked = Asked(web, tmp_path_factory.mktemp("fict"))
        asked.crawl("fict.test")
        yield asked


@pytest.mark.parametrize(
    ("path", "server", "line"),
    [
        ("/", "atp://fict.org:820", 3),
        ("/other.html", "atp://fict.org:820", 3),
        ("/home/", None, 4),
        ("/home/user1/a.html", "atp://user1.fict.org:821", 5),
        ("/home/user2/a.html", "atp://user2.fict.org:831", 6),  # the draft's table prints user1: a slip
    ],
)
def test_mobile_agents_section_4_example(path: str, server: str | None, line: int, fict: Asked) -> None:
    assert fict.why("fict.test", path)["robots"]["agent_server"] == {"url": server, "line": line}
    assert f"agents {server or 'not taken in'}, by line {line}" in fict.words("fict.test", path)


def test_a_site_whose_robots_txt_is_cut_short(asked: Asked) -> None:
    """Nothing that is said of it sounds as if the page came next."""
    asked.web.sites["cut.test"] = {"/robots.txt": replace(plain(FICT), fault=Fault.CUT), "/": Page()}
    asked.crawl_until_asked("cut.test")
    words = asked.words("cut.test")
    assert "waits for robots.txt, which could not be fetched (truncated)" in words
    assert "no usable answer: nothing is fetched until there is one" in words
    assert "its turn" not in words
    assert "after 200" not in json.dumps(asked.why("cut.test"))


def test_a_robots_txt_beyond_the_limits_closes_its_site(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    # A file with the true number of rules costs seconds: unit/engine/test_parser_pool.py reads one.
    monkeypatch.setattr("crawler.engine.robots_reading.MAX_RULES", 2_500)
    rules = "".join(f"Disallow: /{n:0100}\n" for n in range(1_300))
    asked.web.sites["big.test"] = {"/robots.txt": plain(f"User-agent: *\n{rules}"), "/": Page()}
    ended = here("run", asked.web.url("big.test"), *LOOPBACK, "--db", asked.db)
    assert ended.code == 5, ended
    robots = asked.why("big.test")["robots"]
    assert robots["note"] == "more than 2,500 rules: the whole site is closed"
    assert robots["allowed"] is False
    assert robots["rule"] == robots["note"].replace(": the whole site is closed", " (Disallow: / is implied)")


def test_a_page_limit_is_named_that_holds_a_url_back(asked: Asked) -> None:
    asked.web.sites["a.test"] = {"/": Page("<a href=/b>b</a>"), "/b": Page()}
    asked.crawl("a.test", toml="[limits]\nmax_pages = 1\n")
    assert "next waits for a higher --max-pages: the crawl has the 1 page that the last run" in asked.words(
        "a.test", "/b"
    )
    assert asked.why("a.test", "/b")["next_at"] is None


def test_preferences_about_use_and_the_purpose_that_they_refuse(asked: Asked) -> None:
    """The whole way from the option to the store, `why`, the audit and an export."""
    asked.web.sites["owner.test"] = {
        "/robots.txt": plain("User-agent: *\nContent-Signal: /no/ ai-train=no\nAllow: /\n"),
        "/": Page("<a href=/no/x>x</a><a href=/noai>y</a>", headers=(("Content-Usage", "train-ai=y"),)),
        "/noai": Page("<title>Secret</title><meta name=robots content=noai>"),
    }
    asked.crawl("owner.test", toml='[identity]\npurpose = ["train-ai", "search"]\n')
    assert "prefers train-ai: y (header Content-Usage: train-ai=y)" in asked.words("owner.test")
    refused = asked.why("owner.test", "/no/x")
    assert (refused["state"], refused["reason_code"], refused["requests"]) == ("excluded", "preference", [])
    words = asked.words("owner.test", "/no/x")
    assert "excluded: preference: line 2 of robots.txt, Content-Signal: /no/ ai-train=no" in words
    assert "prefers train-ai: n (line 2 of robots.txt, Content-Signal: /no/ ai-train=no)" in words
    words = asked.words("owner.test", "/noai")
    assert "fetched: 200, META robots: noai: body and texts not kept" in words
    assert "Secret" not in words
    judged = here("audit", "--db", asked.db, "--json")
    counts = {check["check"]: check for check in json.loads(judged.out)["checks"]}
    assert (counts["preference"]["judged"], counts["preference"]["violations"]) == (4, 0)  # 2 requests, 2 pages
    out = asked.db.with_suffix(".jsonl")
    assert here("export", "jsonl", out, "--db", asked.db, "--allowed-for", "train-ai").code == 0
    assert [json.loads(line)["url"] for line in out.read_text().splitlines()] == [asked.web.url("owner.test")]


def test_a_forbidden_url_and_the_way_to_it(asked: Asked) -> None:
    asked.web.sites["fict.test"] = {
        "/robots.txt": plain(FICT),
        "/": Page("<a href=/a>a</a>"),
        "/a": Page("<a href=/closed/b rel=ugc>the closed one</a>"),
    }
    asked.crawl("fict.test")
    known = asked.why("fict.test", "/closed/b")
    assert [url.rpartition(":")[2].partition("/")[2] for url in known["chain"]] == ["", "a", "closed/b"]
    assert (known["state"], known["robots"]["line"], known["requests"]) == ("excluded", 2, [])
    words = asked.words("fict.test", "/closed/b")
    for part in (
        "state excluded: robots: line 2, Disallow: /closed/ (draft1996)",
        "depth 2",
        "found by http://fict.test/ http://fict.test/a",
        "linked by http://fict.test/a “the closed one” rel='ugc'",
        "scope includes it",
        "robots.txt 200, a file: its rules hold, version ",
        "verdict forbidden by line 2: Disallow: /closed/ (draft1996)",
        "agents atp://fict.org:820, by line 3",
    ):
        assert part in words, words


def test_mirrors_and_circles(asked: Asked) -> None:
    port = asked.web.port
    asked.web.sites.update(
        {
            f"{host}.m.test": {"/robots.txt": plain(f"User-agent: *\nHost: {main}.m.test:{port}"), "/": Page("x")}
            for host, main in (("a", "b"), ("b", "c"), ("y", "z"), ("z", "y"))
        }
    )
    asked.web.sites["c.m.test"] = {"/": Page("main")}
    asked.crawl("a.m.test", "y.m.test")
    words = asked.words("a.m.test")
    assert "state excluded: mirror of http://c.m.test (Host, line 2)" in words
    assert "leads to http://c.m.test/" in words
    assert "mirror its site names http://b.m.test as its main site, and that leads on to http://c.m.test" in words
    assert asked.why("a.m.test")["mirror"]["evidence"] == "host"
    words = asked.words("y.m.test")
    assert "state excluded: mirror cycle: http://y.m.test → http://z.m.test → http://y.m.test" in words
    assert "but these names form a circle: none of the sites is fetched" in words
    status = " ".join(here("status", "--db", asked.db).out.replace(f":{port}", "").split())
    assert "mirror cycle" in status


def test_redirects_are_followed_to_their_end_or_round(asked: Asked) -> None:
    links = "".join(f"<a href=/{name}>{name}</a>" for name in ("into", "old", "far0"))
    far = {f"/far{n}": redirect(f"/far{n + 1}") for n in range(12)}
    asked.web.sites["s.test"] = {
        "/": Page(links),
        "/into": redirect("/a"),
        "/a": redirect("/b"),
        "/b": redirect("/a"),
        "/old": redirect("/older"),
        "/older": redirect("/gone"),
        **far,
    }
    asked.crawl("s.test")
    words = asked.words("s.test", "/into")
    assert "state failed: redirects in a circle (302 to http://s.test/a)" in words
    assert "leads to http://s.test/a http://s.test/b http://s.test/a (a circle)" in words
    assert "leads to http://s.test/older http://s.test/gone (failed: 404 Not Found)" in asked.words("s.test", "/old")
    too_far = "http://s.test/far11 (excluded: redirects: 11 in a row, at most 10 are followed)"
    assert too_far in asked.words("s.test", "/far0")
    assert [step["state"] for step in asked.why("s.test", "/old")["leads_to"]] == ["redirected", "failed"]


def test_a_trap_is_named_and_one_switch_lets_it_pass(asked: Asked) -> None:
    path = "/a/b/a/b/a/b/"
    asked.web.sites["trap.test"] = {"/": Page(f"<a href={path}>on</a>"), path: Page("deep")}
    asked.crawl("trap.test")
    reason = "trap: path-repetition (/a/b 3 times)"
    known = asked.why("trap.test", path)
    assert (known["state"], known["reason"], known["scope"]) == ("excluded", reason, reason)
    assert f"state excluded: {reason}" in asked.words("trap.test", path)
    # A URL that was never met is judged by the same rules.
    assert asked.why("trap.test", "/x/x/x/x/")["scope"] == "trap: path-repetition (/x 3 times)"
    asked.crawl(toml="[traps]\nenabled = false\n")
    assert asked.why("trap.test", path)["state"] == "fetched"
    assert [hit.path for hit in asked.web.hits("trap.test")] == ["/robots.txt", "/", path]


def test_a_seed_is_no_trap_even_where_it_was_one_as_a_link(asked: Asked) -> None:
    path = "/a/b/a/b/a/b/"
    asked.web.sites["trap.test"] = {"/": Page(f"<a href={path}>on</a>"), path: Page("deep")}
    asked.crawl("trap.test")
    ended = here("run", asked.web.url("trap.test", path), *LOOPBACK, "--delay", "0", "--db", asked.db)
    assert ended.code == 0, ended
    assert asked.why("trap.test", path)["state"] == "fetched"


def test_a_sitemap_and_what_it_says(asked: Asked) -> None:
    url = asked.web.url("s.test", "/x")
    asked.web.sites["s.test"] = {
        "/": Page("start"),
        "/x": Page("x"),
        "/sitemap.xml": Page(f"<urlset><url><loc>{url}</loc><lastmod>2026-01-02</lastmod></url></urlset>"),
    }
    asked.crawl("s.test", toml="[discovery]\nsitemaps = true\n")
    words = asked.words("s.test", "/sitemap.xml")
    assert "state fetched: 200, sitemap (urlset): 1 URLs" in words
    assert "kind a sitemap: the URLs in it are treated like links" in words
    words = asked.words("s.test", "/x")
    assert "changed 2026-01-02" in words
    assert "found by http://s.test/sitemap.xml" in words


def test_a_page_whose_time_is_over_is_nowhere_shown(asked: Asked, tmp_path: Path) -> None:
    robots = ("X-Robots-Tag", "noarchive, unavailable_after: 2126-01-01T00:00:00Z")
    asked.web.sites["brief.test"] = {"/": Page("<title>Brief</title>fleeting word", headers=(robots,))}
    asked.crawl("brief.test")
    here("index", "--db", asked.db)

    def shown() -> tuple[bool, ...]:
        here("export", "jsonl", tmp_path / "out.jsonl", "--db", asked.db)
        found = json.loads(here("search", "fleeting", "--json", "--db", asked.db).out)
        return found["total"] == 1, "Brief" in (tmp_path / "out.jsonl").read_text()

    assert shown() == (True, True)
    assert "unavailable since" not in asked.words("brief.test")
    assert "noarchive: no copy of its body is exported" in asked.words("brief.test")
    with closing(sqlite3.connect(asked.db)) as db, db:
        db.execute("UPDATE page SET directives = replace(directives, '2126', '2026')")
    assert shown() == (False, False)
    since = "unavailable since 2026-01-01T00:00:00Z, as the page states: search and export leave it out"
    assert since in asked.words("brief.test")
    assert asked.why("brief.test")["page"]["unavailable_since"] == 1_767_225_600.0
