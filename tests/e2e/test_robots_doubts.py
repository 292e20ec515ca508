"""Doubtful lines of a robots.txt are reported to the owner and to the operator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from crawler.demo.pages import Page, plain
from tests.command import HASTY, LOOPBACK, here
from tests.web import LoopbackWeb

DOUBTFUL = (
    "Disallow: /above\nUser-agent: *\nDisallow: private\nDissallow: /typo\nDisallow: /closed\nCrawl-delay: soon\n"
)
TOLD = [
    "line 1 (Disallow: /above): it stands above every User-agent line, so only strict obeys it",
    "line 3 (Disallow: private): only strict obeys it, as Disallow: /private",
    "line 4 (Dissallow: /typo): only strict obeys it, as Disallow: /typo",
    "line 6 (Crawl-delay: soon): the value is no number of seconds such as 1.5, and no rate such as 1/10s, so it sets"
    " no pause",
]


@pytest.fixture
def db(loopback: LoopbackWeb, tmp_path: Path) -> Path:
    """A crawl of a site with doubtful lines, and of one without."""
    pages = {path: Page(path) for path in ("/private", "/typo", "/closed")}
    links = "".join(f"<a href={path}>{path}</a>" for path in pages)
    clean = "User-agent: *\nDisallow: /closed\nNoindex: /x\n"
    loopback.sites["one.test"] = {"/robots.txt": plain(DOUBTFUL), "/": Page(links), **pages}
    loopback.sites["two.test"] = {"/robots.txt": plain(clean), "/": Page("two")}
    (tmp_path / "c.toml").write_text(HASTY)
    seeds = [loopback.url("one.test"), loopback.url("two.test")]
    ended = here("run", *seeds, "--config", tmp_path / "c.toml", *LOOPBACK, "--db", tmp_path / "c.db")
    assert ended.code == 0, ended
    return tmp_path / "c.db"


def test_lines_of_unknown_fields_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("robots.txt").write_text("User-agent: *\nClean-param: ref /a\x1b\nDisallow: /a\n: nothing\n")
    ended = here("robots", "check", "--file", "robots.txt", "--json", "http://one.test/")
    assert json.loads(ended.out)["unknown"] == [
        {"line": 2, "text": "Clean-param: ref /a\ufffd"},
        {"line": 4, "text": ": nothing"},
    ]


def test_robots_check_lists_doubts_without_changing_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("robots.txt").write_text(DOUBTFUL)
    urls = ["http://one.test/private", "http://one.test/closed"]
    ended = here("robots", "check", "--file", "robots.txt", *urls)
    assert ended.code == 0
    assert ended.err.splitlines() == [f"crawler: robots.txt: {line}" for line in TOLD]
    assert ended.out.splitlines() == [
        "forbidden  http://one.test/private  line 3: Disallow: private (read as Disallow: /private)  (strict)",
        "forbidden  http://one.test/closed  line 5: Disallow: /closed  (draft1996)",
    ]
    told = [
        json.loads(line) for line in here("robots", "check", "--file", "robots.txt", "--json", *urls).out.splitlines()
    ]
    assert [(answer["allowed"], answer["line"], answer["doubts_count"]) for answer in told] == [
        (False, 3, 4),
        (False, 5, 4),
    ]
    assert [f"line {doubt['line']} ({doubt['text']}): {doubt['means']}" for doubt in told[0]["doubts"]] == TOLD


def test_why_shows_the_first_doubt_and_a_remedy(db: Path, loopback: LoopbackWeb) -> None:
    words = " ".join(here("why", loopback.url("one.test", "/private"), "--db", db).out.split())
    said = f"in doubt {' '.join(TOLD[:3])} and 1 more such line; --json lists them all"
    said += " its owner may have meant to forbid more:"
    site = loopback.url("one.test").rstrip("/")
    exclude, block = "crawler run --exclude /private", f"crawler control block {site}"
    assert f"{said} `{exclude} --db {db}` leaves out such paths, `{block} --db {db}` the site" in words
    known = json.loads(here("why", loopback.url("one.test", "/private"), "--db", db, "--json").out)
    assert (known["state"], known["robots"]["allowed"], known["robots"]["doubts_count"]) == ("excluded", False, 4)
    assert [doubt["line"] for doubt in known["robots"]["doubts"]] == [1, 3, 4, 6]
    assert "in doubt" not in here("why", loopback.url("two.test"), "--db", db).out


def test_the_report_lists_sites_with_doubts(db: Path, tmp_path: Path, loopback: LoopbackWeb) -> None:
    assert here("report", tmp_path / "r.html", "--db", db).code == 0
    page = LexborHTMLParser((tmp_path / "r.html").read_text())
    (card,) = [card for card in page.css(".card") if [h.text() for h in card.css("h3")] == ["Lines in doubt"]]
    note, rows = card.css(".note")[0].text(), card.css("tbody tr")
    assert "The robots.txt of 1 site has lines" in note
    assert "`crawler run --exclude REGEX --db c.db`" in note
    assert "`crawler control block SITE --db c.db`" in note
    ((said, lines, pages),) = [[cell.text() for cell in row.css("td")] for row in rows]
    assert said == loopback.url("one.test").rstrip("/") + "".join(TOLD[:3]) + "… and 1 more"
    assert (lines, pages) == ("4", "1")


def test_a_token_within_the_names_of_other_robots_is_told_at_the_start(loopback: LoopbackWeb, tmp_path: Path) -> None:
    loopback.sites["one.test"] = {"/robots.txt": plain("User-agent: AhrefsBot\nDisallow: /\n"), "/": Page("one")}
    (tmp_path / "c.toml").write_text(HASTY)
    run = ("run", loopback.url("one.test"), "--config", tmp_path / "c.toml", *LOOPBACK, "--db")
    said = 'the product token "bot" is a part of the names of other robots (adidxbot, adsbot-google, ahrefsbot and '
    ended = here(*run, tmp_path / "a.db", "--agent", "bot")
    assert said in ended.err
    assert "choose a name of your own (--agent)" in ended.err
    assert said not in here(*run, tmp_path / "b.db", "--agent", "bot", "--reading", "rfc9309").err
    assert "product token" not in here(*run, tmp_path / "c.db").err


def test_the_end_of_a_run_tells_what_only_the_order_of_lines_closes(loopback: LoopbackWeb, tmp_path: Path) -> None:
    """A seed and a front page below Disallow: / of the draft's first match, with the remedy."""
    loopback.sites["shut.test"] = {"/robots.txt": plain("User-agent: *\nDisallow: /\nAllow: /$\n"), "/": Page("front")}
    loopback.sites["deep.test"] = {"/robots.txt": plain("User-agent: *\nDisallow: /\nAllow: /a\n"), "/a": Page("a")}
    loopback.sites["meant.test"] = {"/robots.txt": plain("User-agent: *\nDisallow: /\n"), "/": Page("closed")}
    comments = "# a comment that says nothing\n" * 40_000  # more than is read at the end of a run
    huge = plain(f"User-agent: *\nDisallow: /\nAllow: /$\n{comments}")
    loopback.sites["huge.test"] = {"/robots.txt": huge, "/": Page("front")}
    (tmp_path / "c.toml").write_text(HASTY)
    hosts = ("shut.test", "/"), ("deep.test", "/a"), ("meant.test", "/"), ("huge.test", "/")
    seeds = [loopback.url(*host) for host in hosts]
    ended = here("run", *seeds, "--config", tmp_path / "c.toml", *LOOPBACK, "--db", tmp_path / "c.db")
    order = "and by the 1996 draft the first match decides; its owner can put the Allow line first"
    told = [line for line in ended.err.splitlines() if "stay" in line or "--reading" in line]
    assert sorted(told[:-1]) + told[-1:] == [
        f"crawler: {seeds[1]} stays closed: in its robots.txt line 2 (Disallow: /) stands above line 3 (Allow: /a), "
        f"{order}",
        f"crawler: {seeds[0]} stays closed: in its robots.txt line 2 (Disallow: /) stands above line 3 (Allow: /$), "
        f"{order}",
        "crawler: `--reading rfc9309` lets the longest match decide instead, as the search engines do",
    ]
    words = " ".join(here("why", seeds[0], "--db", tmp_path / "c.db").out.split())
    assert f"stands above line 3 (Allow: /$), {order}" in words
    again = here(
        *("run", "--reading", "rfc9309", "--config", tmp_path / "c.toml", *LOOPBACK, "--db", tmp_path / "c.db")
    )
    assert "stays closed" not in again.err


def test_a_robots_txt_beyond_the_limits_closes_its_site_in_the_check_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.engine.robots_reading.MAX_RULES", 2_500)
    file = tmp_path / "robots.txt"
    file.write_text("User-agent: *\n" + "".join(f"Disallow: /{n:0100}\n" for n in range(1_300)))
    checked = here("robots", "check", "--file", file, "http://a.test/open")
    assert checked.out.startswith("forbidden  http://a.test/open  line 1: ")
    assert "more than 2,500 rules (Disallow: / is implied)" in checked.out
