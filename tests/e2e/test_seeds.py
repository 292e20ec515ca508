"""``crawler seeds``: what became of each seed, at the end of a run and afterwards, and its remedy as pasted."""

from __future__ import annotations

import json
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
    assert told.endswith("  1 seed, 2 pages on their sites (--all lists them)\n")
    assert loopback.url("good.test") in here("seeds", "--all", "--db", db).out

    remedy = found["seeds"][0]["remedy"]
    assert f"    {remedy}\n" in told
    mended = here(*shlex.split(remedy)[1:], "--no-progress")
    assert mended.code == 0
    after = {line["url"]: line["outcome"] for line in json.loads(here("seeds", "--json", "--db", db).out)["seeds"]}
    assert (after[loopback.url("moved.test")], after[target]) == ("fetched", "fetched")

    assert here("export", "csv", tmp_path / "seeds.csv", "--table", "seeds", "--db", db).code == 0
    assert (tmp_path / "seeds.csv").read_text().startswith("url,site,outcome,leads_to,")
