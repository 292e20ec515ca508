"""Which URLs are drawn, and with what probability (pure).

Each URL has a key, a keyed hash of its text. The URLs with the smallest keys of each stratum are drawn. So the same
seed and the same URLs give the same sample, in whatever order they were found, and a larger sample contains a smaller
one. Over all seeds it is a simple random sample without replacement within each stratum: every URL of a stratum is
drawn with the same probability, the number drawn divided by the number of URLs.

With two stages, sites are drawn first, by keys of their names: see :func:`draw_sites`.

Reference: M. Thorup, Bottom-k and priority sampling, set similarity and subset sums with minimal independence (2013).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import blake2b, sha256
from heapq import heappush, heappushpop
from math import ceil
from typing import NamedTuple, Protocol, Self

from crawler.fields.declaration import setting
from crawler.fields.kinds import COUNT_OR_NO_LIMIT, MORE_THAN_0_SECONDS, SHARE, one_of, whole
from crawler.url import NotCrawlable, canonicalise

_RANKS = (1_000, 10_000, 100_000, 1_000_000)  # the last rank of each stratum
_KEYS = 1 << 64  # the number of keys

#: ``None`` is no sample, which TOML writes as 0.
SAMPLE_SIZE = replace(COUNT_OR_NO_LIMIT, wanted="a whole number; 0 draws none")
#: ``None`` is all sites, which TOML writes as 0.
SITES = replace(COUNT_OR_NO_LIMIT, wanted="a whole number; 0 is all sites")


class Method(StrEnum):
    """How a sample is drawn; ``docs/samples.md`` has the formulas."""

    UNIFORM = "uniform"  # every URL with the same probability
    RANDOM_WALK = "random-walk"  # as often as random walks along the links, in both directions, visit the URL
    STRATIFIED = "stratified"  # from a list of seeds, the same number from each stratum


class Per(StrEnum):
    """The population from which ``size`` URLs are drawn: the whole crawl, or each site."""

    CRAWL = "crawl"
    SITE = "site"


class SitesBy(StrEnum):
    """The probability with which a site is drawn, if sites are drawn before their URLs."""

    EQUAL = "equal"
    SIZE = "size"  # in proportion to the number of its URLs in the frame


@dataclass(frozen=True, slots=True)
class SampleSettings:
    """The sample to draw. No sample is drawn if ``size`` is ``None``.

    Of each population, ``size`` URLs are drawn, but no more than ``share`` of it, rounded up. With ``sites``, that many
    sites are drawn first, and URLs from these alone.
    If nothing but failing sites is left, the sampling frame waits for them until ``frame_patience_s`` after the last
    answer, in seconds.
    """

    size: int | None = setting(
        "size",
        None,
        SAMPLE_SIZE,
        "Draw this many URLs as a random sample, and estimate from them what the rest is like.",
        "Bound the crawl by limits.max_depth: a page at that depth is then fetched only if it is drawn.",
        option="--sample",
        option_help="Draw this many URLs as a random sample.",
    )
    per: Per = setting(
        "per",
        Per.CRAWL,
        one_of(Per),
        "Draw that number from the whole crawl, or from each site.",
        option="--per",
    )
    share: float = setting(
        "share",
        1.0,
        SHARE,
        "Draw no more than this share of the URLs of the crawl, or of each site.",
        "A part of a URL counts as one. 0.05 is one URL of twenty.",
        option="--sample-share",
    )
    sites: int | None = setting(
        "sites",
        None,
        SITES,
        "Draw this many of the sites first, and then URLs of these sites alone.",
        'Needs sample.per = "site". All sites are in the sampling frame, so their nearer pages are requested.',
        option="--sample-sites",
    )
    sites_by: SitesBy = setting(
        "sites_by",
        SitesBy.EQUAL,
        one_of(SitesBy),
        "The probability with which each site is drawn.",
        '"equal": the same for all. "size": in proportion to the number of its URLs in the sampling frame.',
        option="--sample-sites-by",
    )
    method: Method = setting(
        "method",
        Method.UNIFORM,
        one_of(Method),
        "How the sample is drawn.",
        '"uniform": every URL is equally likely. "random-walk": the URLs that random walks along links come by. '
        '"stratified": seeds of a list, the same number from each stratum; nothing else is fetched.',
        option="--method",
    )
    seed: int = setting(
        "seed",
        1,
        whole(0),
        "The seed of the random draw; the same seed draws the same sample of the same web.",
        option="--seed",
    )
    frame_patience_s: float = setting(
        "frame_patience",
        86_400.0,
        MORE_THAN_0_SECONDS,
        "Draw the sample when no page has been answered for so long, if sites that fail hold it up.",
        "What was not reached by then is not in the sampling frame; the estimates state how much.",
    )

    @property
    def is_of_list(self) -> bool:
        """Whether seeds are drawn from a list, before anything is requested."""
        return self.size is not None and self.method is Method.STRATIFIED


class Design(NamedTuple):
    """All that decides which URLs are drawn, before the sampling frame is known.

    ``settings`` has the values of these settings by their names. ``seeds`` is the digest of the list of seeds
    (:func:`digest_of_seeds`); ``None``: the design does not name its seeds.
    """

    settings: Mapping[str, object] = {}
    seeds: str | None = None

    @property
    def text(self) -> str:
        """The design as JSON: keys in order, no white space."""
        content = {"seeds": self.seeds, "settings": dict(self.settings)}
        return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    @property
    def sha256(self) -> str:
        """The digest of the design, in hex."""
        return sha256(self.text.encode(errors="surrogatepass")).hexdigest()

    @classmethod
    def of(cls, text: str) -> Self:
        """The design that :attr:`text` stands for."""
        content = json.loads(text)
        return cls(content.get("settings", {}), content.get("seeds"))


def digest_of_seeds(strata: Mapping[str, str]) -> str:
    """The SHA-256, in hex, of seeds with their strata: ``URL<TAB>STRATUM`` a line, in the order of the URLs."""
    lines = "".join(f"{url}\t{strata[url]}\n" for url in sorted(strata))
    return sha256(lines.encode(errors="surrogatepass")).hexdigest()


class Amount(Protocol):
    """How URLs are drawn, and how many: a part of :class:`SampleSettings` and of what the store keeps of a draw."""

    @property
    def method(self) -> str: ...
    @property
    def size(self) -> int | None: ...
    @property
    def per(self) -> str: ...
    @property
    def share(self) -> float: ...
    @property
    def sites(self) -> int | None: ...
    @property
    def sites_by(self) -> str: ...


def amount_of(sample: Amount) -> str:
    """How many URLs a sample has, in words: ``5 of each site``."""
    number = f"{sample.size:,}" + (f" (at most {100 * sample.share:g} %)" if sample.share < 1 else "")
    if sample.per != Per.SITE:
        return number
    if sample.sites is None:
        return f"{number} of each site"
    by = "in proportion to their size" if sample.sites_by == SitesBy.SIZE else "with equal probabilities"
    return f"{number} of each of {sample.sites:,} sites drawn {by}"


class Drawn(NamedTuple):
    """A URL of the sample. ``probability`` is the probability with which it was drawn, above 0 and at most 1.

    ``site_probability`` is the probability with which its site was drawn; 1 if no sites were drawn first.
    """

    url: str
    stratum: str
    probability: float
    site_probability: float = 1.0
    url_id: int = 0  # in the store, if it was offered with it


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

    With a single stratum it draws from the whole crawl, with the sites as strata from each site. ``share`` bounds the
    number for each stratum, see :func:`number_of`. With ``sites``, it draws that many of the strata first, and URLs of
    these alone. It keeps only the sample, and as many URLs of the other sites, in memory.
    """

    def __init__(
        self,
        size: int | Mapping[str, int],
        seed: int,
        *,
        share: float = 1.0,
        sites: int | None = None,
        sites_by: SitesBy = SitesBy.EQUAL,
    ) -> None:
        self._size, self._seed, self._share = size, seed, share
        self._sites, self._sites_by = sites, sites_by
        self._kept: dict[str, list[tuple[int, str, int]]] = defaultdict(list)  # heaps with the largest key first
        self._offered: Counter[str] = Counter()

    def offer(self, url: str, stratum: str = "", url_id: int = 0) -> None:
        """Offer a URL that may be drawn. Offer each URL once: a second offer counts as another URL of its stratum."""
        self._offered[stratum] += 1
        kept, entry = self._kept[stratum], (-key(url, self._seed), url, url_id)
        size = self._size if isinstance(self._size, int) else self._size.get(stratum, 0)
        if len(kept) < size:
            heappush(kept, entry)
        elif size:
            heappushpop(kept, entry)

    def drawn(self) -> Iterator[Drawn]:
        """The sample of the URLs offered so far, ordered by stratum and key."""
        strata = dict.fromkeys(self._kept, 1.0)
        if self._sites is not None:
            strata = draw_sites(self._offered, self._sites, self._sites_by, self._seed)
        for stratum in sorted(strata):
            kept = sorted(self._kept[stratum], reverse=True)
            kept = kept[: number_of(self._offered[stratum], len(kept), self._share)]
            within = len(kept) / self._offered[stratum]
            for _, url, url_id in kept:
                yield Drawn(url, stratum, strata[stratum] * within, strata[stratum], url_id)


def number_of(there: int, size: int, share: float) -> int:
    """How many of ``there`` URLs are drawn: ``size``, but no more than ``share`` of them, rounded up."""
    from fractions import Fraction  # here, as csv below, because few processes draw a sample

    return min(size, ceil(Fraction(str(share)) * there))


def draw_sites(sizes: Mapping[str, int], number: int, by: SitesBy, seed: int) -> dict[str, float]:
    """Draw ``number`` sites, or all if there are fewer. Returns the probability with which each of them was drawn.

    ``sizes`` gives the number of URLs of each site, at least 1. With equal probabilities, the sites whose names have
    the smallest keys are drawn. With probabilities in proportion to size, the URLs of the sites stand in a row, site by
    site in the order of their keys; the sites at ``number`` places at equal distances are drawn, of which the key of
    the empty text determines the first (W. G. Madow, Annals of Mathematical Statistics 20, 1949; H. O. Hartley,
    J. N. K. Rao, ibid. 33, 1962). A site that is longer than the distance is certain to be drawn; the others are then
    drawn among themselves.
    """
    probability = site_probabilities(sizes, number, by)
    order = sorted(sizes, key=lambda site: (key(site, seed), site))
    if by is SitesBy.EQUAL:
        return {site: probability[site] for site in order[:number]}
    drawn = {site: 1.0 for site in order if probability[site] == 1}
    row = [site for site in order if site not in drawn]
    number, total = min(number, len(sizes)) - len(drawn), sum(sizes[site] for site in row)
    first = key("", seed)
    before = passed = 0
    for site in row:
        # Place n is at (n + first / _KEYS) * total / number. All numbers are whole, so that nothing is rounded.
        before += sizes[site]
        until = -((first * total - before * number * _KEYS) // (total * _KEYS))  # the number of places before its end
        if until > passed:
            drawn[site] = probability[site]
        passed = until
    return drawn


def site_probabilities(sizes: Mapping[str, int], number: int, by: SitesBy) -> dict[str, float]:
    """The probability with which each site is drawn by :func:`draw_sites`."""
    number = min(number, len(sizes))
    if by is SitesBy.EQUAL:
        return {site: number / len(sizes) for site in sizes}
    total, certain = sum(sizes.values()), set[str]()
    for site in sorted(sizes, key=lambda site: -sizes[site]):
        if sizes[site] * number < total or not number:
            break
        certain.add(site)
        number, total = number - 1, total - sizes[site]
    return {site: 1.0 if site in certain else size * number / total for site, size in sizes.items()}


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
    A URL that an earlier row has is no seed again, and neither is one with an empty stratum.
    """
    import csv

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
                    if not seed.stratum:
                        raise NotCrawlable(f"{seed.url} has an empty stratum; name one, or leave the row out")
                    stratum, line = first.setdefault(seed.url, (seed.stratum, reader.line_num))
                    if stratum != seed.stratum:
                        where = f"{stratum!r} (line {line}) and {seed.stratum!r}"
                        raise NotCrawlable(f"{seed.url} is in two strata: {where}")
                    if line != reader.line_num:
                        raise NotCrawlable(f"{seed.url} is there twice: it is on line {line} too")
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
