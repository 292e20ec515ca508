"""Find the lines of a robots.txt whose effect may differ from their author's intention.

No verdict depends on this module: the readings alone decide. The site's owner learns which lines to mend, the
operator which lines only ``strict`` obeys, or no reading.

Sources: the 1996 draft, 3.2 and 3.3; RFC 9309, 2.2; ``docs/protocols.md``, section 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from crawler.robots.fields import (
    ALLOW,
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    CRAWL_DELAY,
    HOST,
    KNOWN_FIELDS,
    MEMBERS,
    REQUEST_RATE,
    RULES,
    USER_AGENT,
    Names,
    is_clear_value,
    without_colon,
)
from crawler.robots.meant import meant_path
from crawler.robots.preferences import says_nothing
from crawler.robots.readings import asked_delay_s
from crawler.robots.text import (
    STRICT_MAX_BYTES,
    Line,
    as_seen,
    contents,
    decoded,
    is_html,
    line_of,
    meant_line,
    whole_lines,
)
from crawler.terminal_text import shown

#: How many doubts about one file are shown; the rest are only counted.
MAX_DOUBTS = 20

_SHOWN_CHARS = 80
_SECOND_FIELD = re.compile(r"(?:^|[\s*>]|\\[nr])(?:user-agent|allow|disallow)[ \t]*:", re.IGNORECASE)
_COMMA = re.compile(r",[ \t]*/")
_COMMENT = re.compile(r"[ \t](?://|/\*|;|<!--|--)")
_NAMING = re.compile(r"[A-Za-z0-9_-]")
_EVERYBODY = frozenset({"all", "any"})
_URL = re.compile("https?://", re.IGNORECASE)
_SHOWN_PATH_CHARS = 40


_UNLIKE_ITS_DISPLAY = (
    "it contains invisible characters or characters that look like blanks; only strict obeys the displayed text"
)


class Doubt(NamedTuple):
    """One line in doubt. ``text`` is printable and bounded; ``means`` is a clause that states the line's effect."""

    line: int
    text: str
    means: str

    def __str__(self) -> str:
        return f"line {self.line} ({self.text}): {self.means}"


@dataclass(frozen=True, slots=True)
class Doubts:
    """The first :data:`MAX_DOUBTS` lines in doubt, in file order, and the number of all lines in doubt."""

    first: tuple[Doubt, ...] = ()
    count: int = 0

    def as_json(self) -> dict[str, object]:
        return {"doubts": [doubt._asdict() for doubt in self.first], "doubts_count": self.count}

    def sentences(self) -> list[str]:
        """One sentence for each of ``first``, and one sentence for the rest."""
        left = self.count - len(self.first)
        return [*map(str, self.first), *([f"{left:,} more such lines, not shown"] if left else [])]


def doubts_about(body: bytes) -> Doubts:
    """Find the lines in doubt in the octets of a file. Never raises; time and memory are linear in the octets read.

    An HTML page has no lines in doubt; :func:`crawler.robots.text.notes` reports such a page as a whole.
    """
    whole = whole_lines(body, STRICT_MAX_BYTES)
    if is_html(whole):
        return Doubts()
    first: list[Doubt] = []
    count = 0
    for line, means in _doubtful(whole):
        if count < MAX_DOUBTS:
            first.append(Doubt(line.number, shown(line.shown, _SHOWN_CHARS), means))
        count += 1
    return Doubts(tuple(first), count)


def _doubtful(body: bytes) -> Iterator[tuple[Line, str]]:
    names = Names()
    headed = meant_headed = False  # by a User-agent line, as the documents read it; as strict reads it
    for number, content, _ in contents(decoded(body)):
        if not content:
            continue
        line, shown = line_of(number, content), as_seen(content)
        seen = None if shown == content else line_of(number, shown.strip())
        meant = meant_line(number, shown.strip(), names)
        if seen is not None and seen.field in KNOWN_FIELDS:
            headed = headed or seen.field == USER_AGENT
            meant_headed = meant_headed or headed
            yield line or Line(number, "", "", content), _UNLIKE_ITS_DISPLAY
            continue
        meant_headed = meant_headed or (meant is not None and meant.field == USER_AGENT)
        if line is None:
            means = _about_colon(content)
            line = Line(number, "", "", content)
        elif line.field == USER_AGENT:
            headed = meant_headed = True
            means = _about_agent(line.value)
        elif line.field in MEMBERS:
            means = "" if headed else _unheaded(line, meant_headed)
            means = means or _about_member(line)
        elif line.field in (CONTENT_USAGE, CONTENT_SIGNAL):
            means = says_nothing(line)
        else:
            means = "" if line.field in KNOWN_FIELDS else _about_colon(line.field, content) or _about_name(line, names)
        if means:
            yield line, means


def _unheaded(line: Line, meant_headed: bool) -> str:
    if line.field == HOST:
        return "it stands above every User-agent line, so it applies to no robot"
    if meant_headed:
        return "it stands above every correct User-agent line; only strict obeys it, for the robots of the misspelt one"
    return "it stands above every User-agent line; only strict obeys it, for every robot"


def _about_agent(value: str) -> str:
    if _SECOND_FIELD.search(value):
        return "the second field on the line is read as a part of the name"
    if "*" in value:
        alone = "*" in value.split()
        return "" if alone else "* means all robots only if it stands alone; here it is a part of a name"
    if not _NAMING.search(value):
        return "it names no robot, so the rules below it apply to no robot"
    return "it names a robot of this name; * names all robots" if value.lower() in _EVERYBODY else ""


def _about_member(line: Line) -> str:
    value = line.value
    if not value:
        return ""
    if line.field in RULES:
        return _about_path(value, "opens" if line.field == ALLOW else "closes")
    if line.field == CRAWL_DELAY and asked_delay_s(line) is None:
        return "the value is not a number of seconds such as 2 or 1.5, so it sets no pause"
    if line.field == REQUEST_RATE and asked_delay_s(line) is None:
        return "the value is not a rate such as 1/10s, so it sets no pause"
    return ""


def _about_path(value: str, does: str) -> str:
    if _SECOND_FIELD.search(value):
        return "the second field on the line is read as a part of the path"
    if value[0] not in "/*":
        return _about_start(value, does)
    if _COMMA.search(value):
        return "commas do not separate paths; they are read as a part of the path"
    if _COMMENT.search(value) and not all(part.startswith("/") for part in value.split()):
        return "only # begins a comment; the text is read as a part of the path"
    return ""


def _about_start(value: str, does: str) -> str:
    """The effect of a path that does not begin with a slash. ``strict`` closes what it means, and opens nothing."""
    if does == "opens":
        return "the path does not begin with /, so the line opens nothing"
    if _URL.match(value):
        return "it is a URL and no path; only strict obeys it, and only if it is of this site"
    path = meant_path(value, "")
    if path is None:
        return "the path does not begin with /, so the line closes nothing"
    return f"the path does not begin with /; only strict obeys the line, as {shown(path, _SHOWN_PATH_CHARS)}"


def _about_colon(text: str, whole: str = "") -> str:
    """The doubt about ``text`` if it begins with a field name that is followed by a value but no colon, else ``""``.

    ``whole`` is the line if ``text`` is only its field.
    """
    if without_colon(text) is None:
        return ""
    found = without_colon(whole or text)
    if found is None:
        return ""
    effect = "only strict obeys the line" if is_clear_value(*found) else "the line is ignored"
    return f"{found[0].capitalize()} has no colon; {effect}"


def _about_name(line: Line, names: Names) -> str:
    """The doubt about a field name that nearly equals a known one; ``""`` if the name is commented out."""
    alike = names.like(line.field)
    if alike is None:
        return ""
    effect = "only strict obeys the line, as" if names.meant(line.field) else "the line is ignored; a known field is"
    return f"the field is unknown; {effect} {alike.capitalize()}"
