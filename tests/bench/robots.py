"""Reads a folder of robots.txt files in all readings, and counts what only ``strict`` refuses or opens.

Each file is read as that of the site that its name names. Its front page and each path that it writes (``*`` as one
letter, without ``$``) are judged in the three readings. Each judgement is one decision.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from crawler import url
from crawler.model import Reading
from crawler.robots.readings import SiteRules, read
from crawler.robots.text import RobotsFile, octets_read, parse
from tests.bench.table import Row

_SHOWN = 5
_MOST_PATHS = 2000  # judged of one file
_RULES = ("allow", "disallow")


@dataclass(slots=True)
class Tally:
    """The decisions of one kind, and the files that have one."""

    decisions: int = 0
    files: dict[str, str] = field(default_factory=dict)  # file -> its first decision, as text

    def add(self, file: str, path: str, line: str) -> None:
        self.decisions += 1
        self.files.setdefault(file, f"{file}{path} ({line})" if line else f"{file}{path}")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--files", type=Path, metavar="DIR", help="robots.txt files, named after their hosts")
    parser.add_argument("--agent", default="ExampleCrawler", help="the product token (default: %(default)s)")
    parser.add_argument("--all", action="store_true", help="name all files of each kind, not only the first")


def run(options: argparse.Namespace) -> list[Row]:
    if options.files is None or not options.files.is_dir():
        raise argparse.ArgumentError(None, "robots needs --files DIR, a folder of robots.txt files")
    refused, added, opened, front, defeated, freed = (Tally() for _ in range(6))
    files = decisions = 0
    worst_s, worst, total_s = 0.0, "", 0.0
    for path in sorted(filter(Path.is_file, options.files.rglob("*"))):
        body, site = path.read_bytes(), site_of(path.name)
        files += 1
        started = time.process_time()
        files_by_limit = {limit: parse(body, max_bytes=limit) for limit in set(map(octets_read, Reading))}
        of = {
            reading: read(files_by_limit[octets_read(reading)], token=options.agent, reading=reading, site=site)
            for reading in Reading
        }
        file = files_by_limit[octets_read(Reading.RFC9309)]
        targets = list(dict.fromkeys(["/", *paths(file)]))[:_MOST_PATHS]
        verdicts = {target: {reading: of[reading].verdict(target) for reading in Reading} for target in targets}
        spent_s = time.process_time() - started
        total_s += spent_s
        worst_s, worst = max((worst_s, worst), (spent_s, f"{path.name}, {len(body):,} bytes"))
        decisions += len(targets)
        for target, by in verdicts.items():
            strict, draft, rfc = (by[reading] for reading in (Reading.STRICT, Reading.DRAFT1996, Reading.RFC9309))
            why = f"line {strict.line}, {strict.text}"
            if rfc.allowed and not strict.allowed:
                refused.add(path.name, target, why)
                if draft.allowed:
                    added.add(path.name, target, why)
                if target == "/":
                    front.add(path.name, target, why)
            if strict.allowed and not (draft.allowed and rfc.allowed):
                opened.add(path.name, target, "")
        lost, left = defeated_allows(file, of)
        for target in lost:
            (defeated if left else freed).add(path.name, target, "")
    return [
        Row("files read", files, "", note=f"{decisions:,} decisions, as {options.agent}"),
        *_row("strict refuses, rfc9309 allows", refused, options),
        *_row("strict refuses, both others allow", added, options),
        *_row("strict allows, another refuses", opened, options),
        *_row("front pages that strict refuses and rfc9309 allows", front, options),
        *_row("Allow lines of rfc9309 that strict defeats", defeated, options),
        *_row("Allow lines with * or $ that the draft defeats and strict obeys", freed, options),
        Row("CPU time of all files", total_s, "s"),
        Row("worst CPU time of a file", 1000 * worst_s, "ms", note=worst),
    ]


def _row(measure: str, tally: Tally, options: argparse.Namespace) -> Iterator[Row]:
    shown = list(tally.files.values())
    note = "; ".join(shown if options.all else shown[:_SHOWN])
    yield Row(measure, tally.decisions, "decisions")
    yield Row(f"{measure}: files", len(tally.files), "", note=note)


def site_of(name: str) -> str:
    """The site that a file's name names; a site of no one if it names none."""
    try:
        return url.split(url.canonicalise(f"http://{name}/")).site
    except url.NotCrawlable:
        return "http://site.example"


def paths(file: RobotsFile) -> Iterator[str]:
    """A path for each rule of the file: one that the rule is about."""
    for line in file.lines:
        if line.field in _RULES and line.value:
            yield path_for(line.value)


def path_for(value: str) -> str:
    """A path that a rule with this value is about, as a URL has it."""
    value = value.removesuffix("$").replace("*", "x")
    try:
        return url.split(url.canonicalise(value if value.startswith("/") else f"/{value}", "http://site.example/")).path
    except url.NotCrawlable:
        return "/"


def defeated_allows(file: RobotsFile, of: dict[Reading, SiteRules]) -> tuple[list[str], bool]:
    """The paths of Allow lines that rfc9309 allows by an Allow line and the draft refuses; whether strict refuses any.

    A path that only this Allow line of rfc9309 opens is lost if the draft's first match refuses it.
    """
    lost = []
    left = False
    for line in file.lines:
        if line.field != "allow" or not line.value:
            continue
        target = path_for(line.value)
        rfc, draft = of[Reading.RFC9309].verdict(target), of[Reading.DRAFT1996].verdict(target)
        if rfc.allowed and rfc.line is not None and not draft.allowed:
            lost.append(target)
            left = left or not of[Reading.STRICT].verdict(target).allowed
    return lost, left
