"""Interprets META ROBOTS and X-Robots-Tag: may a page be indexed, may its links be followed.

Sources: ``docs/protocols.md``, section 3; "Robots META tag" in the robots FAQ of 1998 (the six terms); for the header
and the terms with values, Google's "Robots meta tag, data-nosnippet, and X-Robots-Tag specifications".
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from crawler.model import Headers, Reading, header_values
from crawler.preferences.robots_tag import KNOWN_TERMS, VALUED_TERMS, robots_tag
from crawler.preferences.schemes import content_signal
from crawler.preferences.use import IMMEDIATE, use_terms

#: The meaning of each of the six terms.
_MEANING = {
    "all": frozenset({"all", "index", "follow"}),
    "none": frozenset({"noindex", "nofollow"}),
    "index": frozenset({"index"}),
    "noindex": frozenset({"noindex"}),
    "follow": frozenset({"follow"}),
    "nofollow": frozenset({"nofollow"}),
    "noarchive": frozenset({"noarchive"}),
    "nosnippet": frozenset({"nosnippet"}),
}

#: A date of RFC 822 or RFC 850 without a time, or one that begins with its month.
_DAY = re.compile(
    r"(?:[a-z]+,?\s+)?[0-9]{1,2}[ -][a-z]{3,9}[ -][0-9]{2,4}|[a-z]{3,9}\s+[0-9]{1,2},\s*[0-9]{4}", re.IGNORECASE
)
#: A date, and what stands before a comma in it: a weekday, or the month and the day before a year.
_AFTER = re.compile(
    r"unavailable_after\s*:\s*((?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\s+[0-9]{1,2},(?=\s*[0-9]{4}))?([^,]*)",
    re.IGNORECASE,
)
#: A directive with a value, other than a date. Its value is no term: ``max-image-preview: none`` is not NONE.
_VALUE = re.compile(r"\bmax-(?:snippet|image-preview|video-preview)\s*:\s*[^\s,;]*", re.IGNORECASE)
_SNIPPET = re.compile(r"\bmax-snippet\s*:\s*([0-9]{1,9})(?![0-9.])", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s,;]+")
_PREFIX = re.compile(r"\s*([^\s:,;]+)\s*:(.*)", re.DOTALL)
_WORD = re.compile(r"\s*([a-z_-]+)", re.IGNORECASE)
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")

_FIRST, _LAST = (datetime(*day, tzinfo=UTC).timestamp() for day in ((1, 1, 1), (9999, 12, 31)))

#: The name under which the rules of Robots-Tag lines in robots.txt are added to the headers of a page. No header can
#: have it.
SITE_TAG = ":robots-tag"

#: Why a stored page is left out, as the end of "pages …".
EXPIRED = "past the date until which they may be shown"
NO_COPY = "forbidding copies"

MAX_EVIDENCE = 20
MAX_EVIDENCE_CHARS = 200


class Directives(msgspec.Struct, frozen=True):
    """The verdict, and its evidence: ``source: content`` of each tag that was read."""

    index: bool
    follow: bool
    archive: bool
    until: float  # epoch seconds from which the page may not be shown; infinite without a date
    snippet_chars: float  # the longest excerpt that may be shown; infinite without a limit
    evidence: tuple[str, ...]


#: The verdict on a page without tags.
_ALL_ALLOWED = Directives(True, True, True, math.inf, math.inf, ())


class Asked(NamedTuple):
    """The terms of tags, the epoch seconds until which the page may be shown (infinite without a date), and a limit."""

    terms: frozenset[str]
    until: float
    max_snippet: float = math.inf  # characters, of ``max-snippet: N``

    @property
    def snippet_chars(self) -> float:
        """The longest excerpt of the page's text that may be shown, in characters; infinite without a limit."""
        return 0 if "nosnippet" in self.terms else self.max_snippet

    @property
    def archive(self) -> bool:
        """Whether a copy of the page may be handed out."""
        return "noarchive" not in self.terms

    def not_shown(self, now: float) -> str | None:
        """Why the page may not be shown at ``now`` (``unavailable_after``), if so."""
        return EXPIRED if self.until <= now else None

    def not_copied(self, now: float) -> str | None:
        """Why no copy of the page may be handed out at ``now`` (``unavailable_after``, ``noarchive``), if so."""
        return self.not_shown(now) or (None if self.archive else NO_COPY)


def directives(tags: Iterable[tuple[str, str]], *, reading: Reading, now: float) -> Directives:
    """Interpret all tags of a page together; ``tags`` are pairs of source (for the evidence) and content.

    Several tags add up. If they contradict each other, the most restrictive term wins; in ``draft1996`` ALL overrides
    the rest, INDEX wins over NOINDEX and FOLLOW over NOFOLLOW. ``unavailable_after`` in the past means NOINDEX, which
    no INDEX overrides. Nothing overrides ``use=immediate`` either, which is no tag of the page. Commas separate terms.
    Semicolons and blanks are read as commas in every reading: no term has one. ``now`` is in epoch seconds.
    """
    heard: list[Asked] = []
    evidence: list[str] = []
    is_immediate = False
    for source, content in tags:
        heard.append(_asked(content))
        is_immediate = is_immediate or IMMEDIATE in content
        if len(evidence) < MAX_EVIDENCE:
            evidence.append(f"{source}: {_one_line(content)}")
    if not heard:
        return _ALL_ALLOWED
    asked = _together(heard)
    kept = _heard(evidence)
    if (kept.archive, kept.until, kept.snippet_chars) != (asked.archive, asked.until, asked.snippet_chars):
        evidence[MAX_EVIDENCE - 1 :] = [f"in all: {_written(asked)}"]  # what binds later is never cut off
    said = asked.terms
    if reading is Reading.DRAFT1996:
        index = "index" in said or "noindex" not in said
        follow = "follow" in said or "nofollow" not in said
    else:
        index, follow = "noindex" not in said, "nofollow" not in said
    shown = index and asked.until > now and not is_immediate
    return Directives(
        shown, follow and not is_immediate, asked.archive, asked.until, asked.snippet_chars, tuple(evidence)
    )


def asked_of(stored: str | None) -> Asked:
    """The terms of a page when it was fetched; ``stored`` are its directives as the store has them, in JSON."""
    return _heard(json.loads(stored)) if stored else _NOTHING


def header_tags(headers: Headers, token: str) -> Iterator[tuple[str, str]]:
    """The terms of X-Robots-Tag, Robots-Tag and Content-Signal headers for ``token``, as tags for :func:`directives`.

    :data:`SITE_TAG` is no header: the crawl puts the rules of the site's robots.txt there.
    """
    yield from x_robots_tag(header_values(headers, "x-robots-tag"), token)
    for value in header_values(headers, "robots-tag"):
        if rules := robots_tag(value, token):
            yield "Robots-Tag", rules
    signal = ", ".join(header_values(headers, "content-signal"))  # repeated fields are one value
    if signal and (terms := use_terms(content_signal(signal, "header"))):
        yield "Content-Signal", terms
    for value in header_values(headers, SITE_TAG):
        yield "robots.txt", value


def x_robots_tag(values: Iterable[str], token: str) -> Iterator[tuple[str, str]]:
    """The parts of X-Robots-Tag headers that address the agent ``token``, as tags for :func:`directives`.

    An ``agent:`` prefix is valid to the end of its header, or until the next prefix. ``*`` and ``robots`` address all
    agents.
    """
    for value in values:
        heard = ", ".join(_for_us(value, token.lower()))
        if heard:
            yield "X-Robots-Tag", heard


def _for_us(value: str, token: str) -> Iterator[str]:
    ours = True
    for part in value.split(","):
        directive, prefix = part, _PREFIX.match(part)
        if prefix and _is_agent(prefix[1], prefix[2]):
            name = _TOKEN.match(prefix[1])
            agent = name[0].lower() if name else prefix[1]
            ours = agent in (token, "*", "robots")
            directive = prefix[2]
        if ours and directive.strip():
            yield directive.strip()


def _is_agent(name: str, rest: str) -> bool:
    word = _WORD.match(rest)
    return name.lower() not in VALUED_TERMS and word is not None and word[1].lower() in KNOWN_TERMS


def _asked(content: str) -> Asked:
    dates = (_date(weekday + date) for weekday, date in _AFTER.findall(content))
    terms = _SEPARATORS.split(_VALUE.sub(",", _AFTER.sub(",", content)).lower())
    said = frozenset[str]().union(*(_MEANING.get(term, frozenset()) for term in terms))
    snippet = min(map(int, _SNIPPET.findall(content)), default=math.inf)
    return Asked(said, min((at for at in dates if at is not None), default=math.inf), snippet)


_NOTHING = _asked("")


def _together(heard: Iterable[Asked]) -> Asked:
    asked = [_NOTHING, *heard]
    return Asked(
        frozenset[str]().union(*(each.terms for each in asked)),
        min(each.until for each in asked),
        min(each.max_snippet for each in asked),
    )


def _heard(evidence: Iterable[str]) -> Asked:
    return _together(_asked(said.partition(": ")[2]) for said in evidence)


def _written(asked: Asked) -> str:
    """``asked`` written as the content of a tag."""
    terms = sorted(asked.terms)
    if asked.until < math.inf:
        terms.append(f"unavailable_after: {datetime.fromtimestamp(asked.until, UTC).isoformat()}")
    if asked.max_snippet < math.inf:
        terms.append(f"max-snippet: {asked.max_snippet:.0f}")
    return ", ".join(terms)


def _date(text: str) -> float | None:
    """The epoch seconds of an RFC 822, RFC 850 or ISO 8601 date; UTC if it has no zone."""
    text = text.strip()[:64]
    if ":" not in text and _DAY.fullmatch(text):
        text = text.replace("-", " ") + " 00:00:00"  # the beginning of the day, as for a date of ISO 8601
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        from email.utils import parsedate_to_datetime  # rarely needed, and large

        try:
            at = parsedate_to_datetime(text)
        except (ValueError, IndexError, OverflowError):
            return None
    try:
        return min(max((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp(), _FIRST), _LAST)
    except (ValueError, OverflowError):
        return None


def _one_line(content: str) -> str:
    """``content`` on one line of bounded length, cut between terms, because half a date could be another date."""
    line = " ".join(content[: 2 * MAX_EVIDENCE_CHARS].split())
    if len(content) <= 2 * MAX_EVIDENCE_CHARS and len(line) <= MAX_EVIDENCE_CHARS:
        return line
    line = line[:MAX_EVIDENCE_CHARS]
    return line.rpartition(",")[0] or _AFTER.sub("", line)
