"""Measure the load of a site whose copy is kept up to date by reports (RUP), by conditional polling, or by new crawls.

The site is a tree of pages behind a web server on loopback, with ``crawler rup serve`` and a real mail server. Each
round changes a few files, adds one and deletes one. Then each method brings its own store up to date. The server counts
the requests and the octets of the bodies in its answers. For mail, the octets that the mail server received count.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.table import Row
from tests.rup.old_server import maildir
from tests.rup.post import post_office
from tests.rup.site import TreeSite, serving
from tests.rup.tour import Round

CONFIG = "[politeness]\ndelay = 0\nslow_factor = 0\n"
POLL = CONFIG + '[revisit]\nfirst = "1 ms"\nmin_interval = "1 ms"\nmax_interval = "1 ms"\n'
TOLD = CONFIG


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pages", type=int, default=500, help="pages of the site [%(default)s]")
    parser.add_argument("--rounds", type=int, default=10, help="of changes [%(default)s]")
    parser.add_argument("--changes", type=int, default=5, help="pages changed in each round [%(default)s]")


@dataclass(slots=True)
class Way:
    """One method to keep a copy up to date, and the load of the site since the first crawl."""

    name: str
    round: Round
    step: Callable[[Round], None]
    requests: int = 0
    octets: int = 0
    out_of_step: int = field(default=0)

    def go(self) -> None:
        site = self.round.site
        requests, octets = len(site.asked), site.octets
        self.step(self.round)
        self.requests += len(site.asked) - requests
        self.octets += site.octets - octets
        self.out_of_step += not self.round.is_in_step()


def run(options: argparse.Namespace) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tree").mkdir()
        with (
            post_office(maildir(folder / "mail")) as post,
            serving(TreeSite(folder / "tree", folder / "rup.db", post)) as site,
        ):
            return _rows(options, _measure(site, folder, options), site)


def _measure(site: TreeSite, folder: Path, options: argparse.Namespace) -> list[Way]:
    chance = random.Random(7)
    names = [f"p{n}.html" for n in range(options.pages)]
    ways = [
        Way("reports (RUP)", _round(site, folder / "told", TOLD), _told),
        Way("conditional polling", _round(site, folder / "polled", POLL), lambda round: void(round.crawl("--revisit"))),
        Way("crawled anew", _round(site, folder / "anew", CONFIG), _anew),
    ]
    told = ways[0].round
    for name in names:
        _write(told, name, f"old {name}", chance)
    _index(site, names)
    site.open_rup()
    for way in ways:
        way.round.crawl()
    before = len(site.asked)
    told.register()
    ways[0].requests += len(site.asked) - before
    for turn in range(options.rounds):
        for name in chance.sample(names, options.changes):
            _write(told, name, f"changed {turn} {name}", chance)
        gone = names.pop(chance.randrange(len(names)))
        told.delete(gone)
        names.append(f"new{turn}.html")
        _write(told, names[-1], f"new {turn}", chance)
        _index(site, names)
        told.posted(site.smtp.count + 1)
        for way in ways:
            way.go()
    return ways


def _round(site: TreeSite, folder: Path, config: str) -> Round:
    folder.mkdir()
    made = Round(site, folder)
    made.config.write_text(config)
    return made


def _write(round: Round, name: str, title: str, chance: random.Random) -> None:
    text = " ".join(f"{chance.randrange(10**6)}" for _ in range(1500))
    (round.site.root / name).write_text(f"<title>{title}</title><p>{text}")


def _index(site: TreeSite, names: list[str]) -> None:
    links = "".join(f"<a href={name}>{name}</a>" for name in names)
    (site.root / "index.html").write_text(f"<title>start</title>{links}")


def _told(round: Round) -> None:
    """Process reports until none comes. A report may be sent before all changes were found; the next has the rest."""
    round.sync()
    round.crawl()
    while not round.is_in_step():
        round.posted(round.post.count + 1)
        round.sync()
        round.crawl()


def _anew(round: Round) -> None:
    for path in round.db.parent.glob("c.db*"):
        path.unlink()
    round.crawl()


def void(_: object) -> None:
    """Discard the result of a step."""


def _rows(options: argparse.Namespace, ways: list[Way], site: TreeSite) -> list[Row]:
    least = options.rounds * (options.changes + 3)
    what = f"{options.pages} pages, {options.rounds} rounds of {options.changes + 3} files"
    rows = [Row(f"{way.name}: requests", way.requests, "", floor=least, ratio=way.requests / least) for way in ways]
    rows += [
        Row(f"{way.name}: bodies", way.octets / 1024, "kB", note=f"{what}; {way.out_of_step} rounds out of step")
        for way in ways
    ]
    rows.append(Row("reports (RUP): mail", site.smtp.octets / 1024, "kB", note=f"{site.smtp.count} mails"))
    return rows
