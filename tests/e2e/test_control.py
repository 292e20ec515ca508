"""The messages of `crawler control` about blocks are true."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crawler.demo.pages import Page
from tests.command import LOOPBACK, Ended, here
from tests.web import LoopbackWeb


@pytest.fixture
def db(loopback: LoopbackWeb, db_path: Path) -> Path:
    loopback.sites["mini-44.test"] = {"/": Page("x")}
    assert here("run", loopback.url("mini-44.test"), *LOOPBACK, "--db", db_path).code == 0
    return db_path


def control(db: Path, command: str, name: str) -> Ended:
    return here("control", command, name, "--db", db)


def test_a_block_that_matches_no_site_says_so_and_names_what_is_near(db: Path) -> None:
    slip = control(db, "block", "mini-44.tset")
    assert slip.code == 0
    assert "no URL of mini-44.tset is in the store; is it spelled right? Near: mini-44.test" in slip.out
    assert "is in the store" not in control(db, "block", "mini-44.test").out
    assert here("status", "--db", db).out.rstrip().endswith("blocked")


def test_only_what_is_blocked_is_unblocked_and_by_its_name(db: Path, loopback: LoopbackWeb) -> None:
    site = loopback.url("mini-44.test").rstrip("/")
    never = control(db, "unblock", "nothing.test")
    assert never.code == 2
    assert "nothing.test is not blocked, there is no block to lift; nothing is blocked" in never.err
    control(db, "block", "mini-44.test")
    by_site = control(db, "unblock", site)
    assert by_site.code == 2
    assert f"{site} is not blocked by that name: unblock mini-44.test" in by_site.err
    control(db, "block", site)
    assert f"mini-44.test is no longer blocked, but {site} still is" in control(db, "unblock", "mini-44.test").out
    assert "is no longer blocked: the running crawl" in control(db, "unblock", site).out
    assert here("status", "--db", db, "--json").out.count('"blocked": {}') == 1


def test_only_a_paused_crawl_is_resumed_and_the_remedy_names_the_store(db: Path) -> None:
    never = here("control", "resume", "--db", db)
    assert never.code == 2
    assert "the crawl on this store is not paused, there is nothing to resume" in never.err
    remedy = f"`crawler control resume --db {db}`"
    assert remedy in " ".join(here("control", "pause", "--db", db).out.split())
    assert "Paused" in here("status", "--db", db).out
    assert here("control", "resume", "--db", db).code == 0


def test_a_block_that_an_owner_asked_for_lasts_and_stands_in_the_reports(
    db: Path, loopback: LoopbackWeb, tmp_path: Path
) -> None:
    """The opt-out by mail that the page about the crawler offers."""
    why = "the owner asked <by> mail | 3 May"
    assert here("control", "block", "mini-44.test", "--because", why, "--db", db).code == 0
    asked = len(loopback.log)
    loopback.sites["mini-44.test"] = {"/": Page("x"), "/new": Page("y")}
    assert here("run", loopback.url("mini-44.test", "/new"), *LOOPBACK, "--db", db).code in (0, 5)
    assert len(loopback.log) == asked
    assert here("audit", "--report", tmp_path / "audit.md", "--db", db).code == 0
    (row,) = [line for line in (tmp_path / "audit.md").read_text().splitlines() if line.startswith("| mini-44.test")]
    assert row.endswith(r" | the owner asked \<by> mail \| 3 May |")
    (told,) = json.loads(here("audit", "--json", "--db", db).out)["blocked"]
    assert (told["name"], told["because"]) == ("mini-44.test", why)
    assert f"because {why}" in " ".join(here("why", loopback.url("mini-44.test"), "--db", db).out.split())
    assert here("report", tmp_path / "r.html", "--db", db).code == 0
    assert "(the owner asked &lt;by&gt; mail | 3 May)" in (tmp_path / "r.html").read_text()
    control(db, "unblock", "mini-44.test")
    assert json.loads(here("audit", "--json", "--db", db).out)["blocked"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("unblock", "a.test", "--because", "x"),
        ("block", "a.test", "--because", " "),
        ("block", "a.test", "--because", "a\x1bb"),
    ],
)
def test_a_reason_that_cannot_stand_in_a_report_is_refused(db: Path, arguments: tuple[str, ...]) -> None:
    ended = here("control", *arguments, "--db", db)
    assert ended.code == 2
    assert "--because" in ended.err
