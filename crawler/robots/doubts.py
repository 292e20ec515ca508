"""Find the lines of a robots.txt whose effect may differ from their author's intention.

No verdict depends on this module: the readings alone decide. The site's owner learns which lines to mend, the
operator which lines only ``strict`` obeys, or no reading. All of it is read off the parsed file.

Sources: the 1996 draft, 3.2 and 3.3; RFC 9309, 2.2; ``docs/protocols.md``, section 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from crawler.robots.fields import ALLOW, CRAWL_DELAY, HOST, REQUEST_RATE, RULES, USER_AGENT, Names
from crawler.robots.meant import meanings, unheaded
from crawler.robots.preferences import says_nothing
from crawler.robots.readings import asked_delay_s
from crawler.robots.text import STRICT_MAX_BYTES, Line, RobotsFile, parse
from crawler.terminal_text import shown

#: How many doubts about one file are shown; the rest are only counted.
MAX_DOUBTS = 20

_SHOWN_CHARS = 80
_URL = re.compile("https?://", re.IGNORECASE)


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
    file = parse(body, max_bytes=STRICT_MAX_BYTES)
    found = {} if file.html else dict(_doubtful(file))
    lines = sorted(found, key=lambda line: line.number)
    return Doubts(
        tuple(Doubt(line.number, shown(line.shown, _SHOWN_CHARS), found[line]) for line in lines[:MAX_DOUBTS]),
        len(lines),
    )


def _doubtful(file: RobotsFile) -> Iterator[tuple[Line, str]]:
    """The lines in doubt, each with its effect; of several effects of a line, the last counts."""
    names = Names()
    written = {line.number: line for line in file.lines if line.text}
    for line in written.values():
        if means := _about(line):
            yield line, means
    for line in file.extensions:
        if alike := names.like(line.field):
            yield line, f"the field is unknown and the line is ignored; a known field is {alike.capitalize()}"
    for line in unheaded(file.lines):
        effect = "it applies to no robot" if line.field == HOST else "only strict obeys it"
        yield line, f"it stands above every User-agent line, so {effect}"
    for number, parts in groupby(meanings(file, "")[-1], key=attrgetter("number")):
        first, *more = parts
        line = written.get(number, first)
        if first.text and (more or number not in written or first[:3] != line[:3]):
            read = "; ".join(f"{each.field.capitalize()}: {each.value}" for each in (first, *more))
            opens = first.field == line.field == ALLOW and not more
            means = f"only strict obeys it, as {shown(read, _SHOWN_CHARS)}"
            yield line, "it opens no more than as it is written" if opens else means


def _about(line: Line) -> str:
    """The doubt about a line as every reading takes it."""
    value = line.value
    if line.field in RULES and _URL.match(value):
        return "it is a URL and no path; only strict obeys it, and only if it is of this site"
    if line.field in (CRAWL_DELAY, REQUEST_RATE) and value and asked_delay_s(line) is None:
        return "the value is no number of seconds such as 1.5, and no rate such as 1/10s, so it sets no pause"
    if line.field == USER_AGENT and "*" in value and "*" not in value.split():
        return "* means all robots only if it stands alone; here it is a part of a name"
    return says_nothing(line)
