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


def meant_lines(file: RobotsFile, site: str) -> list[Line]:
    """The lines of ``file`` with misspelt fields and paths mended; empty if no line needs it."""
    lines = file.meant or file.seen or file.lines
    found = [_meant(line, site) for line in lines]
    return found if file.meant or any(new is not old for new, old in zip(found, lines, strict=True)) else []


def unheaded(lines: Iterable[Line]) -> list[Line]:
    """The rules and other members above the first ``User-agent`` line. Their author meant every robot."""
    return [line for line in takewhile(lambda line: line.field != USER_AGENT, lines) if line.field in MEMBERS]


def _meant(line: Line, site: str) -> Line:
    value: str | None = line.value
    if line.field == USER_AGENT:
        value = _meant_agents(line.value)
    elif line.field in RULES:
        value = meant_path(_meant_list(line.value), site)
    if value is None or value == line.value:
        return line
    return Line(line.number, line.field, value, f"{line.shown} (read as {line.field.capitalize()}: {value})")


def _meant_agents(value: str) -> str:
    """``*`` if that is what the value of a ``User-agent`` line means, such as ``"*"``, ``**`` and ``*,``."""
    if "*" not in value or "*" in value.split():
        return value
    return "*" if any(map(_EVERY_ROBOT.fullmatch, value.translate(_AROUND_NAMES).split())) else value


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
