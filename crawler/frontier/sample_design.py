"""Which URLs are drawn, and with what probability (pure).

Each URL has a key, a keyed hash of its text; drawn are those with the smallest keys of each stratum. So the same seed
and the same URLs give the same sample, whatever the order in which they were found, and a sample of a larger size
holds that of a smaller one. Over seeds it is a simple random sample without replacement within each stratum:
every URL of a stratum is in it with the same probability, the number drawn by the number there is.

Reference: M. Thorup, Bottom-k and priority sampling, set similarity and subset sums with minimal independence (2013).
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from heapq import heappush, heappushpop
from typing import NamedTuple

from crawler.url import NotCrawlable, canonicalise

_RANKS = (1_000, 10_000, 100_000, 1_000_000)  # the last of each stratum of a list of ranks


class Method(StrEnum):
    """How a sample is drawn; ``docs/samples.md`` has the formulas."""

    UNIFORM = "uniform"  # every URL as likely as the other
    RANDOM_WALK = "random-walk"  # as often as walks on the links, in both directions, come to it
    STRATIFIED = "stratified"  # of a list of seeds, of each stratum as many


class Per(StrEnum):
    """Of what ``size`` URLs are drawn."""

    CRAWL = "crawl"
    SITE = "site"


@dataclass(frozen=True, slots=True)
class SampleSettings:
    """The sample to draw; none where ``size`` is ``None``."""

    size: int | None = None
    per: Per = Per.CRAWL
    method: Method = Method.UNIFORM
    seed: int = 1


class Drawn(NamedTuple):
    """A URL of the sample. ``probability`` is that with which it came into it, above 0 and at most 1."""

    url: str
    stratum: str
    probability: float


class Listed(NamedTuple):
    """A row of a list of seeds."""

    url: str
    stratum: str


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is no seed, and why. ``line`` counts from 1."""

    line: int
    reason: str


def key(url: str, seed: int) -> int:
    """The number by which a URL is drawn, of 64 bits: as good as random, the same on every machine.

    Who does not know the seed cannot make URLs that are drawn for certain.
    """
    secret = seed.to_bytes(16, "little", signed=True)
    return int.from_bytes(blake2b(url.encode(errors="surrogatepass"), key=secret, digest_size=8).digest(), "big")


class Sampler:
    """Draws ``size`` URLs of each stratum: the same number of all, or of each its own (0 of one that is not named).

    One stratum gives a sample of the whole crawl, the sites as strata one of each site. Memory: the sample itself.
    """

    def __init__(self, size: int | Mapping[str, int], seed: int) -> None:
        self._size, self._seed = size, seed
        self._kept: dict[str, list[tuple[int, str]]] = defaultdict(list)  # heaps, the largest key first
        self._offered: Counter[str] = Counter()

    def offer(self, url: str, stratum: str = "") -> None:
        """Take in a URL that may be drawn. Offer each once: one that comes twice counts twice in its stratum."""
        self._offered[stratum] += 1
        kept, entry = self._kept[stratum], (-key(url, self._seed), url)
        size = self._size if isinstance(self._size, int) else self._size.get(stratum, 0)
        if len(kept) < size:
            heappush(kept, entry)
        elif size:
            heappushpop(kept, entry)

    def drawn(self) -> Iterator[Drawn]:
        """The sample of what was offered so far, by stratum and key."""
        for stratum in sorted(self._kept):
            kept = sorted(self._kept[stratum], reverse=True)
            for _, url in kept:
                yield Drawn(url, stratum, len(kept) / self._offered[stratum])


def allocate(size: int, strata: Mapping[str, int]) -> dict[str, int]:
    """How many to draw of each stratum, ``size`` in all: of each as many, or all that it has where that is fewer.

    ``strata`` gives the number of URLs in each. What cannot be shared out evenly goes to the first by name.
    """
    shares: dict[str, int] = {}
    left = size
    for n, stratum in enumerate(sorted(strata, key=lambda name: (strata[name], name))):
        shares[stratum] = min(strata[stratum], left // (len(strata) - n))
        left -= shares[stratum]
    for stratum in sorted(strata):
        if left and shares[stratum] < strata[stratum]:
            shares[stratum] += 1
            left -= 1
    return shares


def draw_stratified(rows: Iterable[Listed], size: int, seed: int) -> list[Drawn]:
    """Draw a stratified sample of ``size`` seeds from a list (see :func:`allocate`).

    A URL counts once, in the stratum of its first row.
    """
    strata: dict[str, str] = {}
    for url, stratum in rows:
        strata.setdefault(url, stratum)
    sampler = Sampler(allocate(size, Counter(strata.values())), seed)
    for url, stratum in strata.items():
        sampler.offer(url, stratum)
    return list(sampler.drawn())


def read_list(lines: Iterable[str]) -> tuple[list[Listed], list[BadRow]]:
    """The seeds of a CSV file with their strata, in order, and the rows that are none.

    Either the first row names the columns, among them ``url`` and ``stratum``; or each row, but for a first one that
    may say ``rank,domain``, is a rank and a domain, as in the Tranco list (https://tranco-list.eu/): then the seed is
    ``https://domain/``, and the strata are the ranks up to 1,000, 10,000, 100,000, 1,000,000, and beyond.
    """
    reader = csv.reader(lines, strict=True)
    listed: list[Listed] = []
    bad: list[BadRow] = []
    columns: tuple[int, int] | None = None
    try:
        for n, row in enumerate(reader):
            cells = [cell.strip().removeprefix("\ufeff") for cell in row]
            if n == 0 and "stratum" in cells:
                if "url" not in cells:
                    return [], [BadRow(1, "names a column stratum but none url; call the column of the seeds url")]
                columns = cells.index("url"), cells.index("stratum")
            elif n == 0 and [cell.lower() for cell in cells] == ["rank", "domain"]:
                continue
            elif any(cells):
                try:
                    listed.append(_ranked(cells) if columns is None else _named(cells, *columns))
                except NotCrawlable as error:
                    bad.append(BadRow(reader.line_num, str(error)))
    except csv.Error as error:
        bad.append(BadRow(reader.line_num, f"not CSV: {error}"))
    return listed, bad


def _named(cells: list[str], url: int, stratum: int) -> Listed:
    if len(cells) <= max(url, stratum):
        raise NotCrawlable("fewer columns than the first row names")
    return Listed(canonicalise(cells[url]), cells[stratum])


def _ranked(cells: list[str]) -> Listed:
    if len(cells) != 2 or not (cells[0].isascii() and cells[0].isdigit() and len(cells[0]) < 12):
        raise NotCrawlable("no rank,domain; else name the columns in a first row: url,stratum")
    url = canonicalise(f"https://{cells[1]}/")
    if url.count("/") != 3 or "?" in url:
        raise NotCrawlable(f"not a domain: {cells[1][:200]!r}")
    return Listed(url, _stratum_of(int(cells[0])))


def _stratum_of(rank: int) -> str:
    first = 1
    for last in _RANKS:
        if rank <= last:
            return f"{first}-{last}"
        first = last + 1
    return f"{first}-"
