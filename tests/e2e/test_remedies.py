"""The commands that other commands print as remedies work as pasted: they name the store that they are about."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from crawler.demo.pages import Page
from tests.command import HASTY, LOOPBACK, here
from tests.web import LoopbackWeb


@pytest.fixture
def db(loopback: LoopbackWeb, tmp_path: Path) -> Path:
    """The store of a small crawl, under a name that a shell must quote."""
    (tmp_path / "c.toml").write_text(HASTY)
    loopback.sites["a.test"] = {
        "/": Page("<title>start</title><a href=/private>closed</a>"),
        "/robots.txt": Page("User-agent: *\nDisallow: private\n"),
    }
    path = tmp_path / "my crawl.db"
    assert here("run", loopback.url("a.test"), "--config", tmp_path / "c.toml", *LOOPBACK, "--db", path).code == 0
    return path


def remedies(text: str) -> list[list[str]]:
    """The commands in a text, as a shell splits them, without `crawler`."""
    return [shlex.split(found)[1:] for found in re.findall(r"`(crawler [^`]+)`", " ".join(text.split()))]


def said_by(*arguments: str | Path) -> list[list[str]]:
    ended = here(*arguments)
    found = remedies(ended.out + ended.err)
    assert found, ended
    return found


def test_each_remedy_names_its_store(db: Path, loopback: LoopbackWeb, tmp_path: Path) -> None:
    there = ["--db", str(db)]
    (index,) = said_by("search", "start", *there)
    assert index == ["refresh-search", *there]
    assert said_by("export", "csv", tmp_path / "r.csv", "--table", "ranks", *there) == [index]
    assert here(*index).code == 0
    assert said_by("search", "start", "--site", "b.test", *there) == [["status", *there]]
    assert said_by("sample", *there) == [["run", "--sample", "N", *there]]


def test_the_remedies_of_why_leave_a_path_or_a_site_out(db: Path, loopback: LoopbackWeb) -> None:
    there = ["--db", str(db)]
    exclude, block = said_by("why", loopback.url("a.test", "/private"), *there)
    assert exclude == ["run", "--exclude", "/private", *there]
    site = loopback.url("a.test").rstrip("/")
    assert block == ["control", "block", site, *there], "neighbours on other ports stay"
    (unblock,) = said_by(*block)
    assert unblock == ["control", "unblock", site, *there]
    assert unblock in said_by("why", loopback.url("a.test"), *there)
    assert here(*unblock).code == 0


def test_a_paused_crawl_names_the_command_that_resumes_it(db: Path) -> None:
    there = ["--db", str(db)]
    assert said_by("control", "pause", *there) == [["control", "resume", *there]]
    assert said_by("status", *there) == [["control", "resume", *there]]


def test_the_report_names_the_file_of_the_store(db: Path, tmp_path: Path) -> None:
    assert here("report", tmp_path / "r.html", "--db", db).code == 0
    page = (tmp_path / "r.html").read_text()
    assert "crawler control block SITE --db &#39;my crawl.db&#39;" in page
    assert "crawler why URL --db &#39;my crawl.db&#39;</code>" in page
