"""``crawler seeds``: what became of each seed, at the end of a run and afterwards, and its remedy as pasted."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path

from crawler.demo.pages import Page, redirect
from tests.command import HASTY, LOOPBACK, here
from tests.web import LoopbackWeb


def test_the_ledger_of_the_seeds(loopback: LoopbackWeb, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(HASTY)
    db = tmp_path / "weeks.db"
    closed = Page("User-agent: *\nDisallow: /\n")
    sites = {
        "good.test": {"/": Page("<a href=/more>more</a>"), "/more": Page("x")},
        "moved.test": {"/": redirect(loopback.url("new.example.test"))},
        "gone.test": {},
        "closed.test": {"/robots.txt": closed},
        "file.test": {"/": Page("x", content_type="application/zip")},
    }
    loopback.sites.update({**sites, "example.test": {"/": Page("x")}, "new.example.test": {"/": Page("new")}})
    run = ("run", "--config", tmp_path / "c.toml", *LOOPBACK, "--db", db)
    ended = here(*run, *map(loopback.url, sites), "--json")
    assert ended.code == 0
    short = json.loads(ended.out)["seeds"]
    assert (short["count"], short["need_person"]) == (5, 4)
    assert short["outcomes"] == {"left_scope": 1, "not_found": 1, "other_type": 1, "closed": 1, "fetched": 1}
    target = loopback.url("new.example.test")
    assert f"crawler: seed {loopback.url('moved.test')}: leads to {target}, of another registered domain" in ended.err

    found = json.loads(here("seeds", "--json", "--db", db).out)
    assert [line["outcome"] for line in found["seeds"]] == list(short["outcomes"])
    told = here("seeds", "--db", db).out
    assert told.startswith("5 seeds, 4 need a person\n\nleft scope (1 seed): ")
    assert told.splitlines()[-1] == f"To leave a site out: crawler control block SITE --db {db}"
    assert loopback.url("good.test") in here("seeds", "--all", "--db", db).out

    remedy = found["seeds"][0]["remedy"]
    assert f"    {remedy}\n" in told
    assert here(*shlex.split(remedy)[1:]).code == 0
    assert here(*run).code == 0
    after = {line["url"]: line["outcome"] for line in json.loads(here("seeds", "--json", "--db", db).out)["seeds"]}
    assert (after[loopback.url("moved.test")], after[target]) == ("fetched", "fetched")

    assert here("export", "csv", tmp_path / "seeds.csv", "--table", "seeds", "--db", db).code == 0
    assert (tmp_path / "seeds.csv").read_text().startswith("url,site,outcome,leads_to,")


def test_lines_that_were_skipped_are_listed_until_they_are_mended(loopback: LoopbackWeb, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(HASTY)
    for host in ("a.test", "b.test", "c.test"):
        loopback.sites[host] = {"/": Page("x")}
    good, b, c = map(loopback.url, ("a.test", "b.test", "c.test"))
    seeds, db = tmp_path / "a list", tmp_path / "c.db"
    seeds.write_bytes(f"{good}\n{b} of ours\n{b.replace('http', 'htpp')}\n{c.replace('//', '/')}\n".encode())
    run = ("run", "--config", tmp_path / "c.toml", *LOOPBACK, "--db", db)
    assert here(*run, "--seeds", seeds, "--skip-bad-seeds").code == 0
    assert here(*run).code == 0, "a later run that reads no list leaves them as they are"

    found = json.loads(here("seeds", "--json", "--db", db).out)
    assert (found["count"], found["need_person"], found["outcomes"]) == (4, 3, {"skipped": 3, "fetched": 1})
    skipped = [line for line in found["seeds"] if line["outcome"] == "skipped"]
    assert [(line["source"], line["line"]) for line in skipped] == [(str(seeds), n) for n in (2, 3, 4)]
    assert skipped[0]["text"].startswith(f"{seeds}, line 2: white space within: {b}")
    assert f"    {skipped[0]['remedy']}\n" in here("seeds", "--db", db).out
    assert here("export", "csv", tmp_path / "seeds.csv", "--table", "seeds", "--db", db).code == 0
    with (tmp_path / "seeds.csv").open(newline="") as rows:
        assert sorted(row["line"] for row in csv.DictReader(rows)) == ["", "2", "3", "4"]

    for line in skipped:
        assert here(*shlex.split(line["remedy"])[1:]).code == 0
    assert here(*run).code == 0
    assert json.loads(here("seeds", "--json", "--db", db).out)["outcomes"] == {"fetched": 3}


def test_patterns_that_leave_nothing_are_told(loopback: LoopbackWeb, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(HASTY)
    loopback.sites["a.test"] = {"/": Page("<a href=/1>1</a><a href=/2>2</a>"), "/1": Page("1"), "/2": Page("2")}
    run = ("run", "--config", tmp_path / "c.toml", *LOOPBACK, "--db", tmp_path / "c.db")
    said = "--include ('/nothing/') leaves out all that the seeds link to (2 URLs); "
    ended = here(*run, loopback.url("a.test"), "--include", "/nothing/")
    assert (ended.code, said in ended.err) == (0, True)
    ended = here(*run, "--include", "/1")
    assert (ended.code, "leaves out all" in ended.err) == (0, False), "a link is taken now"


def test_a_folder_cannot_be_blocked_and_the_remedy_leaves_it_out(loopback: LoopbackWeb, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(HASTY)
    loopback.sites["a.test"] = {"/": Page("<a href=/x/1>1</a>"), "/x/1": Page("1")}
    run = ("run", "--config", tmp_path / "c.toml", *LOOPBACK, "--db", tmp_path / "c.db")
    assert here(*run, loopback.url("a.test")).code == 0
    refused = here("control", "block", loopback.url("a.test", "/x/"), "--db", tmp_path / "c.db")
    assert refused.code == 2
    assert f"a block is of a whole site: name {loopback.url('a.test')[:-1]}; " in refused.err
    (remedy,) = re.findall("`crawler ([^`]+)`", refused.err)
    assert here(*shlex.split(remedy), "--no-progress").code == 0
    known = json.loads(here("why", loopback.url("a.test", "/x/1"), "--json", "--db", tmp_path / "c.db").out)
    assert known["scope_code"] == "pattern"
