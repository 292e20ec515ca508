"""Whether a page may be indexed and its links followed: META ROBOTS and X-Robots-Tag.

Sources: ``docs/protocols.md``, section 3; "Robots META tag" in the robots FAQ of 1998 (the six
terms); for the header and ``unavailable_after``, Google's "Robots meta tag, data-nosnippet, and
X-Robots-Tag specifications".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from crawler.model import Reading

#: What each of the six terms says; ``unavailable_after`` in the past says NOINDEX.
_MEANING = {
    "all": frozenset({"all", "index", "follow"}),
    "none": frozenset({"noindex", "nofollow"}),
    "index": frozenset({"index"}),
    "noindex": frozenset({"noindex"}),
    "follow": frozenset({"follow"}),
    "nofollow": frozenset({"nofollow"}),
    "noarchive": frozenset({"noarchive"}),
}
#: Directives of the search engines that take a value after a colon: in the header, no agent's name.
_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
#: What may stand first behind an agent's name. Anything else there is the value of a directive unknown to us,
#: and must not hide what follows it.
_KNOWN = (
    frozenset(_MEANING)
    | _VALUED
    | {"nocache", "nosnippet", "noimageindex", "notranslate"}
    | {"indexifembedded", "nositelinkssearchbox", "noai", "noimageai", "noodp", "noydir", "data-nosnippet"}
)

_AFTER = re.compile(r"unavailable_after\s*:\s*((?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,)?([^,]*)", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s,;]+")
_PREFIX = re.compile(r"\s*([^\s:,;]+)\s*:(.*)", re.DOTALL)
_WORD = re.compile(r"\s*([a-z_-]+)", re.IGNORECASE)
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")

MAX_EVIDENCE = 20
MAX_EVIDENCE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Directives:
    """The verdict, and what it rests on: ``source: content`` of each tag that was heard."""

    index: bool
    follow: bool
    archive: bool
    evidence: tuple[str, ...]


def directives(tags: Iterable[tuple[str, str]], *, reading: Reading, now: float) -> Directives:
    """Read all tags of a page together; ``tags`` are pairs of source (for the evidence) and content.

    Several tags add up. Where they contradict each other the most restrictive term wins; in
    ``draft1996`` ALL overrides the rest, INDEX wins over NOINDEX and FOLLOW over NOFOLLOW.
    Terms are separated by commas; semicolons and blanks are taken for commas in every reading,
    since no term holds one and whoever wrote ``noindex nofollow`` meant both. ``now`` is in
    seconds since the epoch.
    """
    said: set[str] = set()
    evidence: list[str] = []
    for source, content in tags:
        said |= _said(content, now)
        if len(evidence) < MAX_EVIDENCE:
            evidence.append(f"{source}: {_one_line(content)}")
    if reading is Reading.DRAFT1996:
        index = "index" in said or "noindex" not in said
        follow = "follow" in said or "nofollow" not in said
    else:
        index, follow = "noindex" not in said, "nofollow" not in said
    return Directives(index, follow, "noarchive" not in said, tuple(evidence))


def x_robots_tag(values: Iterable[str], token: str) -> Iterator[tuple[str, str]]:
    """The parts of X-Robots-Tag headers that are meant for the agent ``token``, as tags for :func:`directives`.

    An ``agent:`` prefix holds to the end of its header, or until the next prefix. ``*`` and
    ``robots`` are everybody.
    """
    for value in values:
        heard = ", ".join(_for_us(value, token.lower()))
        if heard:
            yield "X-Robots-Tag", heard


def _for_us(value: str, token: str) -> Iterator[str]:
    ours = True
    for part in value.split(","):
        prefix = _PREFIX.match(part)
        if prefix and _is_agent(prefix[1], prefix[2]):
            name = _TOKEN.match(prefix[1])
            agent = name[0].lower() if name else prefix[1]
            ours = agent in (token, "*", "robots")
            part = prefix[2]
        if ours and part.strip():
            yield part.strip()


def _is_agent(name: str, rest: str) -> bool:
    word = _WORD.match(rest)
    return name.lower() not in _VALUED and word is not None and word[1].lower() in _KNOWN


def _said(content: str, now: float) -> set[str]:
    said: set[str] = set()
    for weekday, date in _AFTER.findall(content):
        at = _date(weekday + date)
        if at is not None and at <= now:
            said.add("noindex")
    for term in _SEPARATORS.split(_AFTER.sub(",", content).lower()):
        said |= _MEANING.get(term, frozenset())
    return said


def _date(text: str) -> float | None:
    """Seconds since the epoch of an RFC 822, RFC 850 or ISO 8601 date; UTC where no zone is given."""
    text = text.strip()[:64]
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        from email.utils import parsedate_to_datetime  # seldom asked for, and large for the process of heavy pages

        try:
            at = parsedate_to_datetime(text)
        except (ValueError, IndexError, OverflowError):
            return None
    try:
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _one_line(content: str) -> str:
    return " ".join(content[: 2 * MAX_EVIDENCE_CHARS].split())[:MAX_EVIDENCE_CHARS]
