"""Which URLs are drawn, and with what probability (pure).

Each URL has a key, a keyed hash of its text. The URLs with the smallest keys of each stratum are drawn. So the same
seed and the same URLs give the same sample, in whatever order they were found, and a larger sample contains a smaller
one. Over all seeds it is a simple random sample without replacement within each stratum: every URL of a stratum is
drawn with the same probability, the number drawn divided by the number of URLs.

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

_RANKS = (1_000, 10_000, 100_000, 1_000_000)  # the last rank of each stratum


class Method(StrEnum):
    """How a sample is drawn; ``docs/samples.md`` has the formulas."""

    UNIFORM = "uniform"  # every URL with the same probability
    RANDOM_WALK = "random-walk"  # as often as random walks along the links, in both directions, visit the URL
    STRATIFIED = "stratified"  # from a list of seeds, the same number from each stratum


class Per(StrEnum):
    """The population from which ``size`` URLs are drawn: the whole crawl, or each site."""

    CRAWL = "crawl"
    SITE = "site"


@dataclass(frozen=True, slots=True)
class SampleSettings:
    """The sample to draw. No sample is drawn if ``size`` is ``None``.

    If nothing but failing sites is left, the sampling frame waits for them until ``frame_patience_s`` after the last
    answer, in seconds.
    """

    size: int | None = None
    per: Per = Per.CRAWL
    method: Method = Method.UNIFORM
    seed: int = 1
    frame_patience_s: float = 86_400.0


class Drawn(NamedTuple):
    """A URL of the sample. ``probability`` is the probability with which it was drawn, above 0 and at most 1."""

    url: str
    stratum: str
    probability: float


class Listed(NamedTuple):
    """A row of a list of seeds. ``by_domain``: the row names a domain, and ``url`` is its first address."""

    url: str
    stratum: str
    by_domain: bool = False


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is not a seed, and the reason. ``line`` counts from 1."""

    line: int
    reason: str


def key(url: str, seed: int) -> int:
    """The pseudo-random number of 64 bits by which a URL is drawn; the same on every machine.

    Without the seed, a site cannot construct URLs that are certain to be drawn.
    """
    secret = seed.to_bytes(16, "little", signed=True)
    return int.from_bytes(blake2b(url.encode(errors="surrogatepass"), key=secret, digest_size=8).digest(), "big")


class Sampler:
    """Draws ``size`` URLs of each stratum. A mapping gives the number for each stratum, 0 for one that it lacks.

    With a single stratum it draws from the whole crawl, with the sites as strata from each site. It keeps only the
    sample in memory.
    """

    def __init__(self, size: int | Mapping[str, int], seed: int) -> None:
        self._size, self._seed = size, seed
        self._kept: dict[str, list[tuple[int, str]]] = defaultdict(list)  # heaps with the largest key first
        self._offered: Counter[str] = Counter()

    def offer(self, url: str, stratum: str = "") -> None:
        """Offer a URL that may be drawn. Offer each URL once: a second offer counts as another URL of its stratum."""
        self._offered[stratum] += 1
        kept, entry = self._kept[stratum], (-key(url, self._seed), url)
        size = self._size if isinstance(self._size, int) else self._size.get(stratum, 0)
        if len(kept) < size:
            heappush(kept, entry)
        elif size:
            heappushpop(kept, entry)

    def drawn(self) -> Iterator[Drawn]:
        """The sample of the URLs offered so far, ordered by stratum and key."""
        for stratum in sorted(self._kept):
            kept = sorted(self._kept[stratum], reverse=True)
            for _, url in kept:
                yield Drawn(url, stratum, len(kept) / self._offered[stratum])


def allocate(size: int, strata: Mapping[str, int]) -> dict[str, int]:
    """How many URLs to draw from each stratum, ``size`` in total: the same number from each, or all if it has fewer.

    ``strata`` gives the number of URLs in each. A remainder goes to the first strata by name.
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
    for url, stratum, _ in rows:
        strata.setdefault(url, stratum)
    sampler = Sampler(allocate(size, Counter(strata.values())), seed)
    for url, stratum in strata.items():
        sampler.offer(url, stratum)
    return list(sampler.drawn())


def read_list(lines: Iterable[str]) -> tuple[list[Listed], list[BadRow]]:
    """The seeds of a CSV file with their strata, in order, and the rows that are not seeds.

    Either the first row names the columns, which include ``url`` and ``stratum``. Or each row is a rank and a domain,
    as in the Tranco list (https://tranco-list.eu/), after an optional first row ``rank,domain``. Then the seed is
    ``https://domain/``, the first address of the domain (:mod:`crawler.frontier.domain_addresses`), and the strata are
    the ranks up to 1,000, 10,000, 100,000, 1,000,000, and beyond.
    A URL that an earlier row puts into another stratum is no seed: it would have two probabilities.
    """
    reader = csv.reader(lines, strict=True)
    listed: list[Listed] = []
    bad: list[BadRow] = []
    first: dict[str, tuple[str, int]] = {}  # the stratum of each URL, and the line that says so
    columns: tuple[int, int] | None = None
    try:
        for n, row in enumerate(reader):
            cells = [cell.strip().removeprefix("\ufeff") for cell in row]
            if n == 0 and "stratum" in cells:
                if "url" not in cells:
                    return [], [BadRow(1, "has a column stratum but no column url; name the column of the seeds url")]
                columns = cells.index("url"), cells.index("stratum")
            elif n == 0 and [cell.lower() for cell in cells] == ["rank", "domain"]:
                continue
            elif any(cells):
                try:
                    seed = _ranked(cells) if columns is None else _named(cells, *columns)
                    stratum, line = first.setdefault(seed.url, (seed.stratum, reader.line_num))
                    if stratum != seed.stratum:
                        where = f"{stratum!r} (line {line}) and {seed.stratum!r}"
                        raise NotCrawlable(f"{seed.url} is in two strata: {where}")
                    listed.append(seed)
                except NotCrawlable as error:
                    bad.append(BadRow(reader.line_num, str(error)))
    except csv.Error as error:
        bad.append(BadRow(reader.line_num, f"not CSV: {error}"))
    return listed, bad


def _named(cells: list[str], url: int, stratum: int) -> Listed:
    if len(cells) <= max(url, stratum):
        raise NotCrawlable("fewer columns than the first row")
    return Listed(canonicalise(cells[url]), cells[stratum])


def _ranked(cells: list[str]) -> Listed:
    if len(cells) != 2 or not (cells[0].isascii() and cells[0].isdigit() and len(cells[0]) < 12):
        raise NotCrawlable("not rank,domain; for other columns, begin with a row that names them: url,stratum")
    url = canonicalise(f"https://{cells[1]}/")
    if url.count("/") != 3 or "?" in url:
        raise NotCrawlable(f"not a domain: {cells[1][:200]!r}")
    return Listed(url, _stratum_of(int(cells[0])), by_domain=True)


def _stratum_of(rank: int) -> str:
    first = 1
    for last in _RANKS:
        if rank <= last:
            return f"{first}-{last}"
        first = last + 1
    return f"{first}-"
