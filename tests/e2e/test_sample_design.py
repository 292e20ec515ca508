"""``crawler sample design`` and ``crawler sample plan``: the design of a sample as a file, and a forecast of it."""

from __future__ import annotations

import json
import re
import sqlite3
import tomllib
from contextlib import closing
from math import sqrt
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

from crawler.demo.pages import Page
from crawler.sampling import forecast
from tests.command import HASTY, LOOPBACK, Ended, here
from tests.web import LoopbackWeb

SITES = ("a.test", "b.test")
PAGES = 40


@pytest.fixture(autouse=True)
def _fewer_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "_DRAWINGS", 60)


def publish(web: LoopbackWeb, tmp_path: Path, hosts: tuple[str, ...] = SITES) -> Path:
    """Sites of a start page and 40 others, a quarter of them in French; the result is the list of seeds."""
    for host in hosts:
        links = "".join(f"<a href=/{page}>x</a>" for page in range(PAGES))
        pages = {
            f"/{page}": Page(f"<html lang={'en' if page % 4 else 'fr'}><title>{page}</title>{'x' * 100 * page}")
            for page in range(PAGES)
        }
        web.sites[host] = {"/": Page(f"<html lang=en>{links}"), **pages}
    seeds = tmp_path / "sites.txt"
    seeds.write_text("".join(f"{web.url(host)}\n" for host in hosts))
    (tmp_path / "c.toml").write_text(HASTY)
    return seeds


def crawl_of(seeds: Path, *more: str | Path) -> tuple[str | Path, ...]:
    """The options of a crawl of the sites and of all that their start pages link to."""
    return ("--seeds", seeds, "--scope", "host", "--config", seeds.with_name("c.toml"), "--max-depth", "1", *more)


def drawn(db: Path) -> set[str]:
    with closing(sqlite3.connect(db)) as store:
        return {url for (url,) in store.execute("SELECT url FROM samples")}


def ok(*arguments: str | Path) -> Ended:
    ended = here(*arguments)
    assert ended.code == 0, ended
    return ended


def test_the_audit_knows_the_registered_design(loopback: LoopbackWeb, tmp_path: Path) -> None:
    options = crawl_of(publish(loopback, tmp_path), "--sample", "3", "--per", "site")
    text = ok("sample", "design", *options).out
    (digest,) = re.findall("^# Digest: ([0-9a-f]{64})$", text, re.MULTILINE)
    db = tmp_path / "s.db"
    ok("run", *options, *LOOPBACK, "--db", db)
    kept = here("audit", "--db", db, "--registered", digest)
    assert (kept.code, "was drawn by the registered design (draw 1)" in kept.out) == (0, True)
    again = ok("run", *options, *LOOPBACK, "--seed", "2", "--db", db)
    assert re.search("no longer those of draw 1 on .*, seed 1, .*discards that draw", again.err)
    broken = here("audit", "--db", db, "--registered", digest, "--json")
    audit = json.loads(broken.out)
    assert (broken.code, audit["registered"]["is_kept"]) == (1, False)
    assert [(draw["number"], draw["seed"], draw["is_discarded"]) for draw in audit["study"]["draws"]] == [
        (1, 1, True),
        (2, 2, False),
    ]
    said = json.loads(ok("sample", "--db", db, "--json").out)
    assert [draw["design_sha256"] for draw in said["discarded"]] == [digest]
    assert "Earlier draw 1 on " in ok("sample", "--db", db).out
    refused = here("audit", "--db", db, "--registered", "abc")
    assert (refused.code, "SHA-256" in refused.err) == (2, True)


def test_a_design_draws_what_its_options_draw(loopback: LoopbackWeb, tmp_path: Path) -> None:
    options = crawl_of(publish(loopback, tmp_path), "--sample", "6", "--per", "site", "--seed", "5")
    design = tmp_path / "design.toml"
    design.write_text(ok("sample", "design", *options).out)
    text = design.read_text()
    assert "# Frame: 2 seeds of " in text
    assert "what is within 1 link of them, on the hosts of its seeds" in text.replace("\n# ", " ")
    assert "# Draw: 6 URLs of each site (scheme, host, port), or all that it has, with equal probabilities" in text
    assert tomllib.loads(text)["politeness"]["delay"] == tomllib.loads(HASTY)["politeness"]["delay"]
    assert ok("sample", "design", "--config", design).out == text
    ok("run", *options, *LOOPBACK, "--db", tmp_path / "options.db")
    ok("run", "--config", design, *LOOPBACK, "--db", tmp_path / "design.db")
    assert len(drawn(tmp_path / "design.db")) == 12
    assert drawn(tmp_path / "design.db") == drawn(tmp_path / "options.db")


def test_the_design_of_a_store_draws_its_sample_again(loopback: LoopbackWeb, tmp_path: Path) -> None:
    seeds, db = publish(loopback, tmp_path), tmp_path / "first.db"
    config = ("--config", tmp_path / "c.toml", *LOOPBACK)
    ok("run", "--seeds", seeds, *config, "--max-depth", "1", "--sample", "9", "--seed", "3", "--db", db)
    text = ok("sample", "design", "--db", db).out
    assert "# Frame: the 2 seeds of the store" in text
    assert "this file does not name them" in text.replace("\n# ", " ")
    (tmp_path / "design.toml").write_text(text)
    ok("run", "--config", tmp_path / "design.toml", "--seeds", seeds, "--db", tmp_path / "again.db")
    assert drawn(tmp_path / "again.db") == drawn(db)


def test_a_design_of_two_stages_is_told(tmp_path: Path) -> None:
    options = ("--sample", "20", "--per", "site", "--sample-share", "0.05", "--sample-sites", "40")
    equal = ok("sample", "design", *options).out.replace("\n# ", " ")
    assert "Draw: first 40 sites of the frame, or all if there are fewer, with equal probabilities" in equal
    assert "20 URLs of each of these sites, or all that it has, but no more than 5 % of its URLs" in equal
    design = tmp_path / "design.toml"
    design.write_text(ok("sample", "design", *options, "--sample-sites-by", "size").out)
    assert "in proportion to the number of their URLs in the frame" in design.read_text().replace("\n# ", " ")
    assert ok("sample", "design", "--config", design).out == design.read_text()
    assert (
        tomllib.loads(design.read_text())["sample"].items() >= {"share": 0.05, "sites": 40, "sites_by": "size"}.items()
    )


def test_strata_are_told_with_their_sizes(tmp_path: Path) -> None:
    listed = tmp_path / "list.csv"
    listed.write_text(
        "url,stratum\n" + "".join(f"https://{n}.test/,{'small' if n > 3 else 'large'}\n" for n in range(9))
    )
    told = ok("sample", "design", "--seeds", listed, "--method", "stratified", "--sample", "6").out
    assert "# Strata: those of the list of seeds: large (3 of 4), small (3 of 5)." in told


def test_a_design_that_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    for options, reason in (
        ((), "give --sample N"),
        (("--sample", "3", "--method", "stratified", "--per", "site"), "leave out --per site"),
        (("--sample", "3", "--method", "stratified", "--max-depth", "1"), "leave out --max-depth"),
        (("--sample", "30", "--per", "site", "--max-pages-per-site", "10"), "only 10 may be fetched"),
        (("--sample", "30", "--db", tmp_path / "none.db"), "no such store"),
        (("--sample", "30", "--sample-sites", "3"), "give --per site"),
        (("--sample", "30", "--per", "site", "--sample-sites-by", "size"), "say how many sites to draw"),
        (("--sample", "30", "--sample-share", "0.1", "--method", "random-walk"), "is for the method uniform"),
    ):
        refused = here("sample", "design", *options)
        assert (refused.code, reason in refused.err) == (2, True), refused
    refused = here("sample", "--db", tmp_path / "x.db", "design", "--sample", "3")
    assert (refused.code, "write the options behind the command" in refused.err) == (2, True), refused


def plan(*arguments: str | Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(ok("sample", "plan", *arguments, "--json").out)
    return made


@pytest.mark.parametrize(
    "design",
    [
        ("--max-depth", "1", "--sample", "6", "--per", "site"),
        ("--max-depth", "1", "--sample", "15"),
        ("--max-depth", "1", "--sample", "6", "--per", "site", "--sample-sites", "1", "--sample-sites-by", "size"),
        ("--max-depth", "0", "--sample", "1", "--per", "site", "--sample-sites", "1"),
    ],
)
def test_a_crawl_keeps_to_the_requests_of_the_plan(
    design: tuple[str, ...], loopback: LoopbackWeb, tmp_path: Path
) -> None:
    options = ("--seeds", publish(loopback, tmp_path), "--scope", "prefix", "--config", tmp_path / "c.toml", *design)
    made = plan(*options)
    ok("run", *options, *LOOPBACK, "--db", tmp_path / "s.db")
    assert made["least_requests"] <= len(loopback.log) <= made["most_requests"]
    assert len(drawn(tmp_path / "s.db")) == made["drawn"]
    elsewhere = plan(*options, "--scope", "domain")
    assert (elsewhere["most_requests"] is None) == ("1" in design[:2]), "links may lead to sites that no seed names"


def test_a_pilot_tells_requests_frame_and_precision(loopback: LoopbackWeb, tmp_path: Path) -> None:
    options, db = crawl_of(publish(loopback, tmp_path), *LOOPBACK), tmp_path / "pilot.db"
    ok("run", *options, "--sample", "12", "--per", "site", "--db", db)
    made = plan("--pilot", db, "--sample", "30")
    before = len(loopback.log)
    ok("run", *options, "--sample", "30", "--per", "site", "--db", tmp_path / "larger.db")
    assert made["frame"] == 2 * (PAGES + 1)
    assert made["least_requests"] <= len(loopback.log) - before <= made["most_requests"]
    one = plan("--pilot", db, "--sample-sites", "1", "--sample-sites-by", "size")
    assert (one["frame"], one["drawn"], one["drawn_sites"], one["sites_by"]) == (2 * (PAGES + 1), 12, 1, "size")
    assert one["least_requests"] <= 4 + 12 <= one["most_requests"]
    assert {each["half_width"] for each in one["precision"]} == {None}, "one site shows no variance between sites"
    told = ok("sample", "plan", "--pilot", db, "--sample", "30").out
    assert "The forecast is from 24 draws" in told
    assert re.search(rf"^Pilot +{made['pilot_requests']} requests in ", told, re.MULTILINE)
    assert made["most_s"] >= made["pilot_s"] * made["most_requests"] / made["pilot_requests"] > 0


def test_a_pilot_of_all_pages_forecasts_the_precision_that_theory_gives(loopback: LoopbackWeb, tmp_path: Path) -> None:
    """Such a pilot holds the same pages at each run. Others do not: the port, a part of each URL, decides the draw."""
    options, db = crawl_of(publish(loopback, tmp_path), *LOOPBACK), tmp_path / "pilot.db"
    ok("run", *options, "--sample", "1000", "--per", "site", "--db", db)
    lengths = [len(page.body) for path, page in loopback.sites["a.test"].items() if path != "/robots.txt"]
    french = [path != "/" and int(path[1:]) % 4 == 0 for path in loopback.sites["a.test"]]
    for drawn, per in ((24, "site"), (30, "crawl")):
        made = plan("--pilot", db, "--sample", str(drawn), "--per", per, "--variable", "chars=length(title)")
        forecast = {each["what"]: each for each in made["precision"]}
        assert {"chars", "size", "language fr", "disallowed by robots.txt"} <= set(forecast)
        in_all, frame = (2 * drawn if per == "site" else drawn), 2 * (PAGES + 1)
        for what, values in (("size", lengths), ("language fr", french)):
            half_width = 2.03 * stdev(values) * sqrt((1 - in_all / frame) / in_all)  # quantile of t, 30 to 50 draws
            assert forecast[what]["half_width"] == pytest.approx(half_width, rel=0.1)
            assert forecast[what]["half_width"] <= forecast[what]["half_width_at_most"]


def test_a_pilot_forecasts_other_sites_like_its_own(loopback: LoopbackWeb, tmp_path: Path) -> None:
    design, db = (*LOOPBACK, "--sample", "8", "--per", "site"), tmp_path / "pilot.db"
    ok("run", *crawl_of(publish(loopback, tmp_path), *design), "--db", db)
    others = publish(loopback, tmp_path, ("c.test", "d.test", "e.test"))
    made = plan("--pilot", db, "--seeds", others)
    before = len(loopback.log)
    ok("run", *crawl_of(others, *design), "--db", tmp_path / "others.db")
    assert (made["frame"], made["drawn"]) == (3 * (PAGES + 1), 24)
    assert made["least_requests"] <= len(loopback.log) - before <= made["most_requests"]
    deeper = plan("--pilot", db, "--max-depth", "2")
    assert (deeper["frame"], deeper["most_requests"]) == (None, None)
    assert any("it tells the precision alone" in note for note in deeper["notes"])


def test_the_draw_from_a_list_is_planned_exactly(tmp_path: Path) -> None:
    listed = tmp_path / "list.csv"
    listed.write_text("url,stratum\n" + "".join(f"https://{n}.test/,{n % 2}\n" for n in range(9)))
    made = plan("--seeds", listed, "--method", "stratified", "--sample", "6")
    assert (made["frame"], made["drawn"], made["least_requests"], made["most_requests"]) == (9, 6, 18, 18)


def test_a_plan_that_lacks_something_is_refused(tmp_path: Path) -> None:
    for options, reason in (
        (("--sample", "3"), "no seeds to plan for"),
        (("http://a.test/",), "give --sample N"),
        (("http://a.test/", "--sample", "3", "--variable", "n=1"), "give --pilot STORE"),
        (("--sample", "3", "--pilot", tmp_path / "none.db"), "no such store"),
    ):
        refused = here("sample", "plan", *options)
        assert (refused.code, reason in refused.err) == (2, True), refused
