"""``crawler sample design``: the design of a sample as a file."""

from __future__ import annotations

import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

from crawler.demo.pages import Page
from tests.command import HASTY, LOOPBACK, Ended, here
from tests.web import LoopbackWeb

SITES = ("a.test", "b.test")
PAGES = 40


def publish(web: LoopbackWeb, tmp_path: Path) -> Path:
    """Two sites of a start page and 40 others, a quarter of them in French; the result is the list of seeds."""
    for host in SITES:
        links = "".join(f"<a href=/{page}>x</a>" for page in range(PAGES))
        pages = {
            f"/{page}": Page(f"<html lang={'en' if page % 4 else 'fr'}><title>{page}</title>{'x' * 100 * page}")
            for page in range(PAGES)
        }
        web.sites[host] = {"/": Page(f"<html lang=en>{links}"), **pages}
    seeds = tmp_path / "sites.txt"
    seeds.write_text("".join(f"{web.url(host)}\n" for host in SITES))
    (tmp_path / "c.toml").write_text(HASTY)
    return seeds


def drawn(db: Path) -> set[str]:
    with closing(sqlite3.connect(db)) as store:
        return {url for (url,) in store.execute("SELECT url FROM samples")}


def ok(*arguments: str | Path) -> Ended:
    ended = here(*arguments)
    assert ended.code == 0, ended
    return ended


def test_a_design_draws_what_its_options_draw(loopback: LoopbackWeb, tmp_path: Path) -> None:
    options = ("--seeds", publish(loopback, tmp_path), "--scope", "host", "--max-depth", "1", "--config",
               tmp_path / "c.toml", "--sample", "6", "--per", "site", "--seed", "5")  # fmt: skip
    design = tmp_path / "design.toml"
    design.write_text(ok("sample", "design", *options).out)
    text = design.read_text()
    assert "# Frame: 2 seeds of " in text
    assert "what is within 1 link of them, on the hosts of the seeds" in text.replace("\n# ", " ")
    assert "# Draw: the 6 URLs of each site with the smallest keys" in text
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
    assert "# Strata: none." in text
    (tmp_path / "design.toml").write_text(text)
    ok("run", "--config", tmp_path / "design.toml", "--seeds", seeds, "--db", tmp_path / "again.db")
    assert drawn(tmp_path / "again.db") == drawn(db)


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
        (("--sample", "30", "--per", "site", "--max-pages-per-site", "10"), "only 10 may be fetched"),
        (("--sample", "30", "--db", tmp_path / "none.db"), "no such store"),
    ):
        refused = here("sample", "design", *options)
        assert (refused.code, reason in refused.err) == (2, True), refused
    refused = here("sample", "--db", tmp_path / "x.db", "design", "--sample", "3")
    assert (refused.code, "write the options behind the command" in refused.err) == (2, True), refused
