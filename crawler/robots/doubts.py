"""Lines of a robots.txt that no reading, or strict alone, takes as they may have been meant, and what each means to us.

No verdict depends on them: what is fetched is settled by the readings alone. They are told to the owner, who can mend
the file, and to the operator, who can leave out more than the file closes.

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

#: Doubts that are told of one file; the others are counted.
MAX_DOUBTS = 20

_SHOWN_CHARS = 80
_MAX_NAMES = 1000  # unknown field names of one file that are compared with known ones
_MAX_NAME_CHARS = 40
_ALIKE = 0.8  # of difflib's ratio: one letter amiss in "allow", two or three in longer names

# A Host line closes a mirror, and too many words are as short as "host".
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
    "characters in it are not seen, or only look like blanks; only strict heeds what the line looks like"
)


class Doubt(NamedTuple):
    """One line in doubt. ``text`` is printable and bounded, ``means`` what the line is to us, as part of a sentence."""

    line: int
    text: str
    means: str

    def __str__(self) -> str:
        return f"line {self.line} ({self.text}): {self.means}"


@dataclass(frozen=True, slots=True)
class Doubts:
    """The first :data:`MAX_DOUBTS` lines in doubt, in the order of the file, and how many there are in all."""

    first: tuple[Doubt, ...] = ()
    count: int = 0

    def as_json(self) -> dict[str, object]:
        return {"doubts": [doubt._asdict() for doubt in self.first], "doubts_count": self.count}

    def told(self) -> list[str]:
        """A sentence for each of ``first``, and one for the others."""
        left = self.count - len(self.first)
        return [*map(str, self.first), *([f"{left:,} more such lines, told when these are mended"] if left else [])]


def doubts_about(body: bytes) -> Doubts:
    """The lines in doubt of a file, from its octets. Never raises; time and memory are linear in what is read of it.

    An HTML page has none: it is noted as a whole (:func:`crawler.robots.text.notes`), and its lines mean nothing.
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
            means = "" if headed else "it stands above every User-agent line, so it binds nobody"
            means = means or _about_member(line)
        else:
            means = "" if line.field in KNOWN_FIELDS else _without_colon(line.field) or names.about(line.field)
        if means:
            yield line, means


def _about_agent(value: str) -> str:
    if _SECOND_FIELD.search(value):
        return "a second field on a line is not read, but taken for a part of the name"
    if "*" in value:
        alone = "*" in value.split()
        return "" if alone else "* stands for all robots only by itself; here it is a part of a name"
    if not _NAMING.search(value):
        return "it names no robot, so rules under it alone bind nobody"
    return "it names robots called so; all robots are *" if value.lower() in _EVERYBODY else ""


def _about_member(line: Line) -> str:
    value = line.value
    if not value:
        return ""
    if line.field in RULES:
        return _about_path(value, "opens" if line.field == ALLOW else "closes")
    if line.field == CRAWL_DELAY and asked_delay_s(line) is None:
        return "it is no number of seconds, such as 2 or 1.5, so it asks for no pause"
    if line.field == REQUEST_RATE and asked_delay_s(line) is None:
        return "it is no rate, such as 1/10s, so it asks for no pause"
    return ""


def _about_path(value: str, does: str) -> str:
    if _SECOND_FIELD.search(value):
        return "a second field on a line is not read, but taken for a part of the path"
    if value[0] not in "/*":
        return f"a path begins with /, so it {does} nothing"
    if _COMMA.search(value):
        return "commas separate no paths: they are taken for a part of them"
    if _COMMENT.search(value) and not all(part.startswith("/") for part in value.split()):
        return "only # begins a comment; this is taken for a part of the path"
    return ""


def _without_colon(text: str) -> str:
    """Of a line, or of what stands before its first colon: whether it says something right after a field's name."""
    name = _UNCOLONED.match(text)
    return f"{_BY_LETTERS[_SPACING.sub('', name[1].lower())]} has no colon, so it is ignored" if name else ""


@dataclass(slots=True)
class _Names:
    """The unknown field names of one file, each compared once."""

    seen: dict[str, str] = field(default_factory=dict)

    def about(self, name: str) -> str:
        if name not in self.seen:
            if len(self.seen) >= _MAX_NAMES or len(name) > _MAX_NAME_CHARS:
                return ""
            self.seen[name] = _about_name(name)
        return self.seen[name]


def _about_name(name: str) -> str:
    """Of a name that is a known one but for a few letters, blanks or marks; nothing of one that is commented out."""
    if name.startswith(_COMMENTED_OUT):
        return ""
    letters = "".join(filter(str.isalpha, name))
    alike = get_close_matches(letters, _BY_LETTERS, n=1, cutoff=_ALIKE)
    return f"there is no such field, so it is ignored; there is {_BY_LETTERS[alike[0]]}" if alike else ""
