"""Lines that clearly mean to close something, although neither document obeys them. Only ``strict`` does.

The result can only close: ``strict`` allows a path only if these rules allow it too. Source: ``docs/protocols.md``,
section 1, "What an owner clearly meant".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile

from crawler import url
from crawler.robots.fields import MEMBERS, RULES, USER_AGENT
from crawler.robots.text import Line, RobotsFile

_FULL_URL = re.compile(r"https?://([^/?#\s*]+)(.*)", re.IGNORECASE | re.DOTALL)
_NAMED = re.compile(r"([^/?#\s*]+)(.*)", re.DOTALL)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?://|$)", re.IGNORECASE)
_SUFFIX = re.compile(r"\.[A-Za-z0-9*]+\$?")
_WORD = re.compile(r"\w")
_BETWEEN_PATHS = re.compile(r",[ \t]*(?=/)|;[ \t]+(?=/)")
_EVERY_ROBOT = re.compile(r"\*[*./]*")
_AROUND_NAMES = str.maketrans(dict.fromkeys("\"',;", " "))


def meanings(file: RobotsFile, site: str) -> list[list[Line]]:
    """The displayed lines of ``file`` with its fields and paths mended; then also its line breaks, lists and names.

    The second is left out if it is the same. ``strict`` obeys both: a mended ``Allow``, or a robot that a mended line
    leaves to another record, opens nothing that the first closes.
    """
    spelt = file.meant or file.seen or file.lines
    first = [_meant(line, meant_path(line.value, site)) if line.field in RULES else line for line in spelt]
    second = [new for line in file.split or spelt for new in _meant_lines(line, site)]
    return [first] if first == second else [first, second]


def unheaded(lines: Iterable[Line]) -> list[Line]:
    """The rules and other members above the first ``User-agent`` line. Their author meant every robot."""
    return [line for line in takewhile(lambda line: line.field != USER_AGENT, lines) if line.field in MEMBERS]


def _meant_lines(line: Line, site: str) -> list[Line]:
    if line.field == USER_AGENT:
        return [_meant(line, value) for value in _meant_agents(line.value)]
    return [_meant(line, meant_path(_meant_list(line.value), site)) if line.field in RULES else line]


def _meant(line: Line, value: str | None) -> Line:
    if value is None or value == line.value:
        return line
    return Line(line.number, line.field, value, f"{line.shown} (read as {line.field.capitalize()}: {value})")


def _meant_agents(value: str) -> list[str]:
    """The value of a ``User-agent`` line, and ``*`` if it means every robot: ``"*"``, ``**``, ``*, figtree``."""
    if "*" not in value or "*" in value.split():
        return [value]
    every = [_EVERY_ROBOT.fullmatch(name) is not None for name in value.translate(_AROUND_NAMES).split()]
    return ["*"] if all(every) else [value, "*"] if any(every) else [value]


def _meant_list(value: str) -> str:
    """The paths of a rule without quotation marks, without a comment behind ``//``, and with blanks for commas."""
    if len(value) > 2 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    path, _, comment = value.partition(" // ")
    return _BETWEEN_PATHS.sub(" ", value if comment.startswith("/") else path)


def meant_path(value: str, site: str) -> str | None:
    """The path that a value means at ``site``; None if it is of another site, or unclear."""
    if not value or value[0] in "/*":
        return value
    full = _FULL_URL.fullmatch(value)
    if full is not None:
        return (full[2] if full[2].startswith("/") else f"/{full[2]}") if _is_here(full[1], site) else None
    if _SCHEME.match(value) or _WORD.search(value) is None:
        return None
    named = _NAMED.fullmatch(value)
    if named is not None and "." in named[1][1:-1] and named[2][:1] in ("", "/") and _is_here(named[1], site):
        return named[2] or "/"
    if value.startswith("./"):
        return value[1:]
    if value[0] in "?&" or _SUFFIX.fullmatch(value):  # a query or a file type, anywhere
        return f"/*{value}"
    return f"/{value}"


def _is_here(named: str, site: str) -> bool:
    """Whether ``named``, a host with or without port, is that of ``site``: of either scheme, with or without "www."."""
    try:
        return _bare(url.canonicalise(f"http://{named}/")) == _bare(f"{site}/")
    except url.NotCrawlable:
        return False


def _bare(canonical: str) -> str:
    host = canonical.partition("://")[2].partition("/")[0]
    return host.removesuffix(":443").removesuffix(":80").removeprefix("www.")
