"""Seed lists: a URL a line, ``#`` comments; what cannot be used is named with its line number."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO, NamedTuple

from crawler.errors import SeedError, UsageError
from crawler.frontier.sample_design import read_list
from crawler.url import MAX_URL_CHARS, NotCrawlable, canonicalise

_SHOWN = 20
_LIST = re.compile(
    rb'\s*\d+\s*,|(?i:\s*"?rank"?\s*,\s*"?domain"?\s*$)|(?:[^#]*,)?\s*"?stratum"?\s*(?:,|$)'
)  # the first line of one with strata
_LINE_BYTES = 16 * MAX_URL_CHARS  # longer than any URL that is taken, whatever its escapes
_HOST_WITHOUT_SCHEME = re.compile(r"[\w-]+(?:(?:\.[\w-]+)+(?::[0-9]+)?|:[0-9]+)(?:[/?].*)?")


@dataclass(frozen=True, slots=True)
class BadSeed:
    """A line that is no seed, and why. ``line`` counts from 1."""

    line: int
    reason: str


class Seeds(NamedTuple):
    """Seeds in order, and the stratum of each where they came as a list with strata."""

    urls: list[str]
    strata: dict[str, str]


def all_seeds(texts: Iterable[str], file: str, *, source: str, skip_bad: bool, tell: Callable[[str], None]) -> Seeds:
    """The seeds that ``source`` names in ``texts``, and those of a seed file with its strata: canonical, each once.

    ``file`` is its path, "-" standard input, "" none. Raises :class:`SeedError` for bad seeds, which ``skip_bad``
    passes over and tells of instead, and :class:`UsageError` for a file that cannot be read or has no URL.
    """
    seeds, bad = read_seeds(text.encode(errors="surrogatepass") for text in texts)
    _refuse(bad, source, "seed", skip_bad, tell)
    if not file:
        return Seeds(seeds, {})
    (more, strata), bad = _read_file(file)
    _refuse(bad, f"--seeds {file}", "line", skip_bad, tell)
    if not more:
        raise UsageError(f"--seeds {file}: holds no URL")
    return Seeds(list(dict.fromkeys(seeds + more)), strata)


def _read_file(file: str) -> tuple[Seeds, list[BadSeed]]:
    try:
        if file != "-":
            with open(file, "rb") as lines:
                return read_any(seed_lines(lines))
        if sys.stdin is None:
            raise UsageError("--seeds -: standard input is closed")
        return read_any(seed_lines(sys.stdin.buffer))
    except OSError as error:
        raise UsageError(f"--seeds {file}: {error.strerror}") from None


def _refuse(bad: list[BadSeed], source: str, unit: str, skip_bad: bool, tell: Callable[[str], None]) -> None:
    if not skip_bad:
        require_good(bad, source, unit=unit)
    for seed in bad:
        tell(f"{source}, {unit} {seed.line}: passed over: {seed.reason}")


def seed_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file. What makes a line longer than any seed is dropped, so that no file fills the memory."""
    while line := file.readline(_LINE_BYTES):
        rest = line
        while len(rest) == _LINE_BYTES and not rest.endswith(b"\n"):
            rest = file.readline(_LINE_BYTES)
        yield line


def read_seeds(lines: Iterable[bytes]) -> tuple[list[str], list[BadSeed]]:
    """The canonical URLs of a seed list, in order and each once, and the lines that are none.

    A line that names a host without a scheme is not guessed at: ``http`` and ``https`` are different sites.
    """
    seeds: dict[str, None] = {}
    bad: list[BadSeed] = []
    for number, raw in enumerate(lines, 1):
        try:
            text = _text(raw)
            if text:
                seeds[_seed(text)] = None
        except NotCrawlable as error:
            bad.append(BadSeed(number, str(error)))
    return list(seeds), bad


def read_any(lines: Iterator[bytes]) -> tuple[Seeds, list[BadSeed]]:
    """As :func:`read_seeds`; or, told by its first line, a list with strata: CSV whose first row names ``stratum``, or
    ``rank,domain`` as in the Tranco list (:func:`crawler.frontier.sample_design.read_list`)."""
    first = next(lines, b"")
    if not _LIST.match(first.removeprefix(b"\xef\xbb\xbf")):
        seeds, bad = read_seeds(chain([first], lines))
        return Seeds(seeds, {}), bad
    listed, rows = read_list(raw.decode(errors="replace") for raw in chain([first], lines))
    strata: dict[str, str] = {}
    for url, stratum in listed:
        strata.setdefault(url, stratum)
    return Seeds(list(strata), strata), [BadSeed(row.line, row.reason) for row in rows]


def require_good(bad: list[BadSeed], source: str, *, unit: str = "line") -> None:
    """Raise :class:`SeedError` that lists the bad lines, where there are any; ``unit`` is what is counted."""
    if not bad:
        return
    shown = "\n".join(f"  {unit} {seed.line}: {seed.reason}" for seed in bad[:_SHOWN])
    more = f"\n  … and {len(bad) - _SHOWN:,} more" if len(bad) > _SHOWN else ""
    raise SeedError(
        f"{source}: {len(bad):,} bad {unit}{'s' if len(bad) > 1 else ''}, nothing was fetched; "
        f"mend them, or pass over them with --skip-bad-seeds\n{shown}{more}"
    )


def _text(raw: bytes) -> str:
    """A line without its comment and the white space around it."""
    try:
        text = raw.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise NotCrawlable("not text in UTF-8; save the list as UTF-8") from None
    if "\0" in text:
        raise NotCrawlable("holds NUL characters: a binary file, or UTF-16; save the list as UTF-8")
    return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].rstrip()


def _seed(text: str) -> str:
    """The canonical form of a seed. The URL Standard would drop or escape what is refused here: in a list made by
    people it is a mistake."""
    try:
        url = canonicalise(text)
    except NotCrawlable as error:
        if _HOST_WITHOUT_SCHEME.fullmatch(text):
            raise NotCrawlable(f"no http:// or https:// before it; did you mean https://{text} ?") from None
        raise NotCrawlable(str(error)) from None
    if not text.isprintable() or " " in text:
        raise NotCrawlable(f"white space within: {url[:200]}; one URL a line, and a blank in it is %20")
    return url
