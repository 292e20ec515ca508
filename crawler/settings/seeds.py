"""Reads seed lists: one URL a line, ``#`` starts a comment. A line that cannot be used is named by its number."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, NamedTuple

from crawler.errors import Reference, SeedError, Setting, UsageError
from crawler.formatting import many, nearest
from crawler.frontier.sample_design import read_list
from crawler.url import MAX_URL_CHARS, NotCrawlable, canonicalise, without_userinfo

_SHOWN = 20  # reasons
_LISTED = 3  # lines with one reason
_LIST = re.compile(
    rb'\s*\d+\s*,|(?i:\s*"?rank"?\s*,\s*"?domain"?\s*$)|(?:[^#]*,)?\s*"?stratum"?\s*(?:,|$)'
)  # the first line of a list with strata
_LINE_BYTES = 16 * MAX_URL_CHARS  # longer than any URL that the crawler takes, whatever its escapes
_HOST_WITHOUT_SCHEME = re.compile(r"[\w-]+(?:(?:\.[\w-]+)+(?::[0-9]+)?|:[0-9]+)(?:[/?].*)?")

_OF_HOSTS = (
    "a list of domains is read if its first line is rank,domain and each further line a number and a domain, such as "
    "1,example.org: each domain is tried by https, by http, and with www."
)
_SECOND_URL = re.compile(r"([,;|]\s*|\s+)https?:/", re.IGNORECASE)
_SCHEMES = ("https", "http")
_PORT = re.compile(r"https?://[^/?#]*?:(?=([0-9]+)(?:[/?#]|$))", re.IGNORECASE)
_MAX_PORT = 65535
#: What a line with a mistake looks like, what is wrong with it, and the line as it was perhaps meant. The mistake is
#: where the second group begins. The last one is as mail, CSV and word processors write.
_MISTAKES = [
    (re.compile(pattern, re.IGNORECASE), wrong, meant)
    for pattern, wrong, meant in (
        (r"(https?:)(?!//(?![/\\]))([/\\]*)(.*)", r"not // but '\2'", r"\1//\3"),
        (r"(https?)([;,.]?)(//.*)", "no : before //", r"\1:\3"),
        (r"(https?://)(https?:?//.*)", "http:// or https:// twice", r"\2"),
        (r"(https?://[^/?#,]+)(,)(\w.*)", "a comma in the host", r"\1.\3"),
        (
            r"""()([<("'\[“”„‘’‚«»]+)(https?:/[^<>"'“”‘’«»]*?)[>)"'\]“”‘’«»]+(?:[,;].*)?""",
            "in brackets or quotes",
            r"\3",
        ),
    )
]


class _Mistake(NotCrawlable):
    """A text that is no seed.

    ``written`` are the URLs that were perhaps meant; they are ``meant`` if all of them are seeds. One is named, also
    if it is itself a mistake of which one URL was perhaps meant.
    """

    def __init__(self, reason: str, written: Sequence[str] = (), *, is_host: bool = False) -> None:
        self.is_host = is_host  # without http:// or https:// before it
        self.named = ""
        self.meant: tuple[str, ...] = ()
        try:
            self.meant = tuple(map(_seed, written))
            self.named = written[0] if len(written) == 1 else ""
        except _Mistake as mistake:
            if len(written) == 1 and mistake.named:
                self.meant, self.named = mistake.meant, mistake.named
        except NotCrawlable:
            pass
        super().__init__(f"{reason}; did you mean {self.named[:200]} ?" if self.named else reason)


@dataclass(frozen=True, slots=True)
class BadSeed:
    """A line that is no seed, and the reason. ``line`` counts from 1; ``meant`` has URLs that were perhaps meant."""

    line: int
    reason: str
    is_host: bool = False  # without a scheme
    text: str = ""
    meant: tuple[str, ...] = ()


class Seeds(NamedTuple):
    """Seeds in order. ``strata`` has the stratum of each seed of a list with strata.

    ``domains`` are the seeds that stand for a domain of a rank list: its first addresses. ``skipped`` has the bad lines
    of each list that was read, and that the run skips.
    """

    urls: list[str]
    strata: dict[str, str]
    domains: frozenset[str] = frozenset()
    skipped: Mapping[str, Sequence[BadSeed]] = MappingProxyType({})


def all_seeds(texts: Iterable[str], file: str, *, source: str, skip_bad: bool, tell: Callable[[str], None]) -> Seeds:
    """The seeds in ``texts``, then those in the seed file ``file``: canonical, each once.

    ``source`` names the place of ``texts`` in messages. ``file`` is a path, "-" for standard input, or "" for none.
    With ``skip_bad``, the function leaves out a bad seed and passes a sentence about it to ``tell``. Otherwise it
    raises :class:`SeedError`. It raises :class:`UsageError` for a file that cannot be read or has no URL.
    """
    seeds, bad = read_seeds(text.encode(errors="surrogatepass") for text in texts)
    _refuse(bad, source, "seed", skip_bad, tell)
    skipped = {source: bad} if seeds or bad else {}
    if not file:
        return Seeds(seeds, {}, skipped=skipped)
    listed, bad = _read_file(file)
    _refuse(bad, "standard input" if file == "-" else file, "line", skip_bad, tell)
    if not listed.urls:
        raise UsageError("holds no URL", key="seeds.file", value=file)
    name = "standard input" if file == "-" else os.path.abspath(file)
    return listed._replace(urls=list(dict.fromkeys(seeds + listed.urls)), skipped={**skipped, name: bad})


def _read_file(file: str) -> tuple[Seeds, list[BadSeed]]:
    try:
        if file != "-":
            with open(file, "rb") as lines:
                return read_any(seed_lines(lines))
        if sys.stdin is None:
            raise UsageError("standard input is closed", key="seeds.file", value=file)
        return read_any(seed_lines(sys.stdin.buffer))
    except OSError as error:
        raise UsageError(f"{error.strerror}", key="seeds.file", value=file) from None


def _refuse(bad: list[BadSeed], source: str, unit: str, skip_bad: bool, tell: Callable[[str], None]) -> None:
    if not skip_bad:
        remedy = ("nothing was fetched; correct them, or skip them with ", Setting("seeds.skip_bad"))
        require_good(bad, source, *remedy, unit=unit)
    by_reason = list(_by_reason(bad, unit))
    for place, reason in by_reason[:_SHOWN]:
        tell(f"{source}, {place}: skipped: {reason}")
    if len(by_reason) > _SHOWN:
        tell(f"{source}: {many(len(by_reason) - _SHOWN, 'more kind')} of bad lines skipped; `crawler seeds` lists them")


def _by_reason(bad: Iterable[BadSeed], unit: str) -> Iterator[tuple[str, str]]:
    """Each reason with the places that have it, in the order of the first: a binary file has many."""
    lines: dict[str, list[int]] = {}
    for seed in bad:
        lines.setdefault(seed.reason, []).append(seed.line)
    for reason, found in lines.items():
        listed = ", ".join(map(str, found[:_LISTED]))
        more = f" and {len(found) - _LISTED:,} more" if len(found) > _LISTED else ""
        yield f"{unit if len(found) == 1 else f'{unit}s'} {listed}{more}", reason


def seed_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, each cut at a length that no seed has: memory stays bounded for any file."""
    while line := file.readline(_LINE_BYTES):
        rest = line
        while len(rest) == _LINE_BYTES and not rest.endswith(b"\n"):
            rest = file.readline(_LINE_BYTES)
        yield line


def read_seeds(lines: Iterable[bytes]) -> tuple[list[str], list[BadSeed]]:
    """The canonical URLs of a seed list, in order and each once, and its bad lines.

    A host without a scheme is a bad line: ``http`` and ``https`` are different sites, and the crawler does not guess.
    """
    seeds: dict[str, None] = {}
    bad: list[BadSeed] = []
    for number, raw in enumerate(lines, 1):
        try:
            text = _text(raw)
            if text:
                seeds[_seed(text)] = None
        except NotCrawlable as error:
            shown = without_userinfo(raw[:MAX_URL_CHARS].decode(errors="replace").replace("\0", "\ufffd").strip())
            is_host, meant = (error.is_host, error.meant) if isinstance(error, _Mistake) else (False, ())
            bad.append(BadSeed(number, str(error), is_host, shown, meant))
    return list(seeds), bad


def read_any(lines: Iterator[bytes]) -> tuple[Seeds, list[BadSeed]]:
    """Reads a seed list or, if its first line shows one, a list with strata.

    A list with strata is CSV whose first row names ``stratum``, or ``rank,domain`` as in the Tranco list
    (:func:`crawler.frontier.sample_design.read_list`).
    """
    first = next(lines, b"")
    head = first.decode(errors="replace").removeprefix("\ufeff").strip().lower()
    names = [cell.strip(' "') for cell in head.split(",")]
    if len(names) > 1 and "url" in names and "stratum" not in names:
        reason = f"names the columns {', '.join(names)[:100]} and no column stratum: write url,stratum"
        return Seeds([], {}), [BadSeed(1, reason)]
    if not _LIST.match(first.removeprefix(b"\xef\xbb\xbf")):
        seeds, bad = read_seeds(chain([first], lines))
        return Seeds(seeds, {}), bad
    listed, rows = read_list(raw.decode(errors="replace") for raw in chain([first], lines))
    strata: dict[str, str] = {}
    for url, stratum, _ in listed:
        strata.setdefault(url, stratum)
    domains = frozenset(each.url for each in listed if each.by_domain)
    return Seeds(list(strata), strata, domains), [BadSeed(row.line, row.reason) for row in rows]


def require_good(bad: list[BadSeed], source: str, *remedy: str | Reference, unit: str = "line") -> None:
    """Raise :class:`SeedError` that lists the bad lines, if there are any.

    ``unit`` names what is counted, and ``remedy`` says what to do.
    """
    if not bad:
        return
    by_reason = list(_by_reason(bad, unit))
    shown = "\n".join(f"  {place}: {reason}" for place, reason in by_reason[:_SHOWN])
    hosts = sum(seed.is_host for seed in bad)
    listed = f"\n  {_OF_HOSTS}" if hosts > 1 and unit == "line" else ""
    more = f"\n  … and {many(len(by_reason) - _SHOWN, 'more kind')}" if len(by_reason) > _SHOWN else ""
    raise SeedError(f"{source}: {many(len(bad), f'bad {unit}')}, ", *remedy, f"\n{shown}{more}{listed}")


def meant_by(text: str) -> tuple[str, ...]:
    """The URLs that were perhaps meant by a text that is no URL."""
    try:
        _seed(text)
    except _Mistake as mistake:
        return mistake.meant
    except NotCrawlable:
        pass
    return ()


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
    """The canonical form of a seed.

    The URL Standard would drop or escape white space within a URL. In a list made by people it is a mistake, and this
    function raises :class:`NotCrawlable`.
    """
    joined = _SECOND_URL.search(text)
    if joined and (joined[1].isspace() or "?" not in text[: joined.start()]):  # a query may hold URLs
        urls = _SECOND_URL.sub(lambda found: f"\n{found[0][len(found[1]) :]}", text).split("\n")
        raise _Mistake(f"column {joined.end(1) + 1}: a second URL begins; give one URL a line", urls)
    if (port := _PORT.match(text)) and int(port[1][:9]) > _MAX_PORT:
        raise _Mistake(f"column {port.end() + 1}: no port is higher than {_MAX_PORT}")
    for pattern, wrong, meant in _MISTAKES:
        if found := pattern.fullmatch(text):
            raise _Mistake(f"column {found.start(2) + 1}: {found.expand(wrong)}", [found.expand(meant)])
    try:
        url = canonicalise(text)
    except NotCrawlable as error:
        if _HOST_WITHOUT_SCHEME.fullmatch(text):
            reason = "no http:// or https:// before it"
            if Path(text).is_file():
                raise _Mistake(f"{reason}; give a file of seeds as --seeds {text}", is_host=True) from None
            raise _Mistake(reason, [f"https://{text}"], is_host=True) from None
        scheme, colon, rest = text.partition("://")
        is_misspelt = colon and scheme.isalpha() and scheme.lower() not in _SCHEMES
        near = nearest(scheme.lower(), _SCHEMES, alike=0.7) if is_misspelt else []
        bare = without_userinfo(text, "")
        raise _Mistake(str(error), [bare] if bare != text else [f"{scheme}://{rest}" for scheme in near]) from None
    if not text.isprintable() or " " in text:
        first = text.split(maxsplit=1)[0]  # it was meant if it is a whole site, with words about it behind it
        is_site = "//" in first and "/" not in first.partition("//")[2].rstrip("/")
        wrong = f"white space within: {url[:200]}; give one URL a line, and write a blank in it as %20"
        raise _Mistake(wrong, [first] if is_site else ())
    return url
