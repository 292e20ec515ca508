"""``crawler run --part``: a crawl on two SQLite files, its merged store, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from shlex import split

from crawler.demo.pages import Page, plain
from crawler.frontier.parts import Parts
from crawler.frontier.revisit import RevisitSettings
from crawler.run.session import parts_of
from crawler.settings.settings import Settings, StoreSettings
from tests import kill
from tests.command import HASTY, LOOPBACK, finish, here, start
from tests.web import LoopbackWeb

#: a.test belongs to the first part, b.test and c.test to the second.
HOSTS = ("a.test", "b.test", "c.test")


def test_two_parts_crawl_together_and_merge(loopback: LoopbackWeb, tmp_path: Path) -> None:
    front = "".join(f"<a href={loopback.url(host)}>{host}</a>" for host in HOSTS)
    for host in HOSTS:
        loopback.sites[host] = {"/robots.txt": plain(""), "/": Page(f"<a href=/{host}>1</a>{front}")}
        loopback.sites[host][f"/{host}"] = Page(host)  # type: ignore[index]
    (tmp_path / "c.toml").write_text(HASTY + "[scope]\nmode = 'any'\n[workers]\npatience = 20\n")
    dbs = [str(tmp_path / name) for name in ("first.db", "second.db")]
    options = ["run", "--config", str(tmp_path / "c.toml"), *LOOPBACK, "--part", dbs[0], "--part", dbs[1]]
    seed = loopback.url("a.test")
    running = [start(*options, seed, "--db", db) for db in dbs]
    ended = [finish(process) for process in running]
    assert [each.code for each in ended] == [0, 0], ended
    merge = f"`crawler store merge {dbs[0]} whole.db` makes one store of all"
    assert f"1 of 2 of the crawl; {merge}" in " ".join(ended[0].out.split())
    assert len(kill.rows(Path(dbs[0]), "SELECT 1 FROM page")) == 2
    assert here("store", "merge", dbs[0], tmp_path / "merged.db").code == 0
    assert len(kill.rows(tmp_path / "merged.db", "SELECT url FROM pages")) == 6
    longest = "SELECT max(delay_s) FROM sites"
    assert kill.rows(tmp_path / "merged.db", longest) == [max(kill.rows(Path(db), longest)[0] for db in dbs)]
    assert len(loopback.log) == 9
    assert here("audit", "--db", tmp_path / "merged.db").code == 0
    for command in (
        ["status"], ["index"], ["search", "b.test"], ["rank"], ["duplicates"], ["report", tmp_path / "report.html"],
        ["why", loopback.url("c.test")], ["export", "jsonl", tmp_path / "pages.jsonl"],
        ["export", "warc", tmp_path / "pages.warc.gz"],
    ):  # fmt: skip
        read = here(*command, "--db", tmp_path / "merged.db")
        assert read.code == 0, (command, read)
    assert len((tmp_path / "pages.jsonl").read_text().splitlines()) == 6
    why = here("why", loopback.url("b.test"), "--db", dbs[0])
    assert "requested by another part of the crawl" in why.out
    there = f"`crawler why {loopback.url('b.test')} --db {dbs[1]}` asks there"
    assert f"2 of 2 requests its domain: {dbs[1]}; {there}" in " ".join(why.out.split())
    asked = here("why", loopback.url("b.test"), "--db", dbs[1], "--json")
    assert json.loads(asked.out)["part"] is None
    status = json.loads(here("status", "--db", dbs[0], "--json").out)["part"]
    other = {"part": 2, "db": dbs[1], "waiting": 0, "received": status["others"][0]["received"]}
    assert status == {"part": 1, "of": 2, "waits_for_others": False, "others": [other]}
    assert merge in " ".join(here("status", "--db", dbs[0]).out.split())
    for order in (
        "control block b.test --because 'asked by mail'", "control unblock https://b.test", "store forget b.test",
        f"store forget {loopback.url('b.test')} --dry-run", "store forget never.b.test --redact",
    ):  # fmt: skip
        refused = here(*split(order), "--db", dbs[0])
        assert (refused.code, refused.out) == (2, "")
        assert f"give the order there, `crawler {order} --db {dbs[1]}`" in refused.err
    assert kill.rows(Path(dbs[0]), "SELECT 1 FROM control") == []
    there = here("store", "forget", "--regex", "^nothing$", "--db", dbs[0])
    assert f"others: `crawler store forget --regex '^nothing$' --db {dbs[1]}`" in there.err
    assert (there := here("store", "forget", "c.test", "--db", dbs[1])).code == 0, there
    assert len(kill.rows(Path(dbs[1]), "SELECT 1 FROM page")) == 2
    assert here("report", tmp_path / "part.html", "--db", dbs[0]).code == 0
    assert "This is part 1 of 2 of the crawl." in (tmp_path / "part.html").read_text()
    assert "This is part" not in (tmp_path / "report.html").read_text()
    assert (again := here(*options, "--db", dbs[0])).code == 0, again
    third = here(*options, "--part", tmp_path / "third.db", "--db", dbs[0])
    assert third.code == 2
    assert "was begun on" in third.err


def test_what_needs_the_whole_crawl_is_refused(tmp_path: Path) -> None:
    parts = ["run", "http://a.test/", *LOOPBACK, "--part", str(tmp_path / "1.db"), "--part", str(tmp_path / "2.db")]
    refused = here(*parts, "--db", tmp_path / "1.db", "--sample", "3")
    assert refused.code == 2
    assert refused.err == "crawler: --sample: a sample needs a crawl on one database; leave out --part\n"
    dbs = str(tmp_path / "1.db"), str(tmp_path / "2.db")
    revisiting = Settings(store=StoreSettings(db=dbs[1], parts=dbs), revisit=RevisitSettings(enabled=True))
    assert parts_of(revisiting) == Parts(dbs, 1)
    other = here(*parts, "--db", tmp_path / "3.db")
    assert (other.code, "is not among the parts" in other.err) == (2, True), other
    alone = here("run", "http://a.test/", "--part", tmp_path / "1.db")
    assert (alone.code, "two at least" in alone.err) == (2, True), alone
    assert not list(tmp_path.iterdir())


def test_a_part_that_has_not_begun_is_named_and_its_refused_start_leaves_no_store(tmp_path: Path) -> None:
    dbs = [str(tmp_path / name) for name in ("1.db", "2.db")]
    (tmp_path / "c.toml").write_text(HASTY + "[workers]\npatience = 0.1\n")
    run = ["run", "--config", tmp_path / "c.toml", *LOOPBACK, "--part", dbs[0], "--part", dbs[1]]
    nothing = here(*run, "--db", dbs[1])
    assert (nothing.code, "no seeds" in nothing.err) == (2, True), nothing
    begun = here(*run, "http://b.test:8009/", "--db", dbs[0])  # a URL of the second part
    assert begun.code == 4, begun
    other = here(*run, "--part", tmp_path / "3.db", "http://b.test:8009/", "--db", dbs[1])
    assert (other.code, "has a crawl on" in other.err) == (2, True), other
    assert not Path(dbs[1]).exists()
    assert "2.db: not begun, 1 offer to it not received yet" in " ".join(here("status", "--db", dbs[0]).out.split())
    merged = here("store", "merge", dbs[0], tmp_path / "early.db")
    assert (merged.code, merged.err) == (0, ""), merged
    assert f"the crawl is not over: {dbs[1]} has not begun; the same command merges again later" in merged.out
