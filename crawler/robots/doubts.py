"""Find the lines of a robots.txt whose effect may differ from their author's intention.

No verdict depends on this module: the readings alone decide. The site's owner learns which lines to mend; the
operator learns what else to exclude.

Sources: the 1996 draft, 3.2 and 3.3; RFC 9309, 2.2; ``docs/protocols.md``, section 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NamedTuple

from crawler.robots.readings import asked_delay_s
from crawler.robots.records import MEMBERS, RULES
from crawler.robots.text import (
    ALLOW,
    CRAWL_DELAY,
    HOST,
    KNOWN_FIELDS,
    MAX_BYTES,
    REQUEST_RATE,
    USER_AGENT,
    Line,
    as_seen,
    contents,
    decoded,
    is_html,
    line_of,
    whole_lines,
)
from crawler.terminal_text import shown

#: How many doubts about one file are shown; the rest are only counted.
MAX_DOUBTS = 20

_SHOWN_CHARS = 80
_MAX_NAMES = 1000  # how many unknown field names of one file are compared with known ones
_MAX_NAME_CHARS = 40
_ALIKE = 0.8  # difflib's ratio: it accepts one wrong letter in "allow", two or three in longer names

# "host" is left out: many words differ from it in one letter.
_NAMES = sorted(KNOWN_FIELDS - {HOST})
_BY_LETTERS = {name.replace("-", ""): name.capitalize() for name in _NAMES}

_SPACING = re.compile("[ _-]")
_SPACED_NAMES = "|".join(name.replace("-", "[ _-]?") for name in _NAMES)
_UNCOLONED = re.compile(rf"({_SPACED_NAMES})(?![\w-])[^\w/*]*[\w/*]", re.IGNORECASE)
_SECOND_FIELD = re.compile(r"(?:^|[\s*>]|\\[nr])(?:user-agent|allow|disallow)[ \t]*:", re.IGNORECASE)
_COMMA = re.compile(r",[ \t]*/")
_COMMENT = re.compile(r"[ \t](?://|/\*|;|<!--|--)")
_COMMENTED_OUT = ("//", "/*", ";", "!", "<!--", "--", "%", "'")
_NAMING = re.compile(r"[A-Za-z0-9_-]")
_EVERYBODY = frozenset({"all", "any"})


_UNLIKE_ITS_LOOKS = (
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

    def told(self) -> list[str]:
        """One sentence for each of ``first``, and one sentence for the rest."""
        left = self.count - len(self.first)
        return [*map(str, self.first), *([f"{left:,} more such lines, not shown"] if left else [])]


def doubts_about(body: bytes) -> Doubts:
    """Find the lines in doubt in the octets of a file. Never raises; time and memory are linear in the octets read.

    An HTML page has no lines in doubt; :func:`crawler.robots.text.notes` reports such a page as a whole.
    """
    whole = whole_lines(body, MAX_BYTES)
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
    names = _Names()
    headed = False
    for number, content, _ in contents(decoded(body)):
        line, looks = line_of(number, content), as_seen(content)
        seen = None if looks == content else line_of(number, looks.strip())
        if seen is not None and seen.field in KNOWN_FIELDS:
            headed = headed or seen.field == USER_AGENT
            yield line or Line(number, "", "", content), _UNLIKE_ITS_LOOKS
            continue
        if line is None:
            means = _without_colon(content)
            line = Line(number, "", "", content)
        elif line.field == USER_AGENT:
            headed = True
            means = _about_agent(line.value)
        elif line.field in MEMBERS:
            means = "" if headed else "it stands above every User-agent line, so it applies to no robot"
            means = means or _about_member(line)
        else:
            means = "" if line.field in KNOWN_FIELDS else _without_colon(line.field) or names.about(line.field)
        if means:
            yield line, means


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
        return f"the path does not begin with /, so the line {does} nothing"
    if _COMMA.search(value):
        return "commas do not separate paths; they are read as a part of the path"
    if _COMMENT.search(value) and not all(part.startswith("/") for part in value.split()):
        return "only # begins a comment; the text is read as a part of the path"
    return ""


def _without_colon(text: str) -> str:
    """The doubt about ``text`` if it begins with a field name that is followed by a value but no colon, else ``""``."""
    name = _UNCOLONED.match(text)
    return f"{_BY_LETTERS[_SPACING.sub('', name[1].lower())]} has no colon, so the line is ignored" if name else ""


@dataclass(slots=True)
class _Names:
    """The unknown field names of one file. Each name is compared once."""

    seen: dict[str, str] = field(default_factory=dict)

    def about(self, name: str) -> str:
        if name not in self.seen:
            if len(self.seen) >= _MAX_NAMES or len(name) > _MAX_NAME_CHARS:
                return ""
            self.seen[name] = _about_name(name)
        return self.seen[name]


def _about_name(name: str) -> str:
    """The doubt about a field name that nearly equals a known one; ``""`` if the name is commented out."""
    if name.startswith(_COMMENTED_OUT):
        return ""
    letters = "".join(filter(str.isalpha, name))
    alike = get_close_matches(letters, _BY_LETTERS, n=1, cutoff=_ALIKE)
    return f"the field is unknown, so the line is ignored; a known field is {_BY_LETTERS[alike[0]]}" if alike else ""
