"""`python -m tests.bench NAME [options]`: runs a benchmark and prints its figures.

The exit code is 0 whether or not the targets are met: a measurement is not a test. Bad usage gives 2.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from tests.bench.table import Row, machine, show, write_json

BENCHES = {
    "cpu": "CPU time and memory for each page, against floors and other crawlers",
    "growth": "CPU time for each URL as the frontier grows",
    "postgres": "one PostgreSQL server with many URLs: bytes, WAL, claims and vacuum",
    "broad": "thousands of hosts behind DNS and TLS: cost, pace and memory, against other crawlers",
    "rounds": "what a round costs beside crawling, and the octets of a dataset, by the URLs that it knows",
    "fairness": "the cost of an event in the workbench as the waiting groups grow",
    "start": "how long a crawl takes to begin",
    "commands": "CPU time of commands that send nothing, and of the start of a worker and of a parser process",
    "search": "how long a search takes in a large store",
    "search-quality": "how often the search finds the right page first, against plain searches of the same texts",
    "duplicates": "what the search for near-duplicates finds in a large store, its time and its memory",
    "texts": "ways to turn pages into Markdown: what they keep of manuals, and their F1 on articles",
    "rup": "the load of a site that is kept up to date by reports, by polling or by a new crawl",
    "revisit": "the changes that a budget of revisits finds, against other policies",
    "wire": "the cost of servers that send without end",
    "coverage": "how often the intervals of samples contain the true value, for each design",
    "draws": "bias and coverage of samples that crawls of a known web draw, for each design",
    "robots": "what only `strict` refuses or opens in a folder of robots.txt files (`--files`)",
}
OTHERS = {
    "all": "all of these; each option goes to the benchmarks that have it",
    "web": "builds a web of real pages for `cpu` from Debian's documentation packages",
}


def module(name: str) -> ModuleType:
    """Import a benchmark when it runs, because each needs libraries that the others do not."""
    return importlib.import_module(f"tests.bench.{name.replace('-', '_')}")


def parser(name: str) -> ArgumentParser:
    """The options of one benchmark, with ``--json``, which all of them have."""
    made = ArgumentParser(prog=f"python -m tests.bench {name}", description=BENCHES[name], allow_abbrev=False)
    made.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE as JSON")
    module(name).add_options(made)
    return made


def usage() -> str:
    texts = BENCHES | OTHERS
    width = max(map(len, texts))
    lines = [f"  {name:{width}}  {text}" for name, text in texts.items()]
    return "\n".join(["usage: python -m tests.bench NAME [--json FILE] [options; see NAME --help]", *lines])


def options_of_all(arguments: Sequence[str]) -> dict[str, Namespace]:
    """The options of each benchmark. Raises ``ArgumentError`` for an option that none of them has."""
    parsed = {name: parser(name).parse_known_args(arguments) for name in BENCHES}
    unknown = set(arguments).intersection(*(set(rest) for _, rest in parsed.values()))
    if unknown:
        raise argparse.ArgumentError(None, f"no benchmark knows: {' '.join(sorted(unknown))}")
    return {name: options for name, (options, _) in parsed.items()}


def bench(name: str, options: Namespace) -> list[Row]:
    print(f"== {name}: {BENCHES[name]}", flush=True)
    rows: list[Row] = module(name).run(options)
    show(rows)
    return rows


def run(wanted: dict[str, Namespace]) -> None:
    """Run the benchmarks in turn. If several are to run, one that lacks something is skipped with its reason."""
    print(", ".join(f"{fact}: {value}" for fact, value in machine().items()))
    done = []
    for name, options in wanted.items():
        try:
            done.append((name, bench(name, options)))
        except argparse.ArgumentError as lack:
            if len(wanted) == 1:
                raise
            print(f"skipped: {lack}", file=sys.stderr)
    file = next(iter(wanted.values())).json
    if file:
        write_json(file, done)


def main(arguments: Sequence[str]) -> int:
    name, rest = (arguments[0], arguments[1:]) if arguments else ("", ())
    if name in ("-h", "--help"):
        print(usage())
        return 0
    try:
        if name == "web":
            module("web").main(rest)
        elif name == "all":
            run(options_of_all(rest))
        elif name in BENCHES:
            run({name: parser(name).parse_args(rest)})
        else:
            raise argparse.ArgumentError(None, usage())
    except argparse.ArgumentError as wrong:
        print(wrong, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
