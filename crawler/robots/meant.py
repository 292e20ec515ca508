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


def meant_lines(file: RobotsFile, site: str) -> list[Line]:
    """The lines of ``file`` with misspelt fields and paths mended; empty if no line needs it."""
    lines = file.meant or file.seen or file.lines
    found = [_meant(line, site) for line in lines]
    return found if file.meant or any(new is not old for new, old in zip(found, lines, strict=True)) else []


def unheaded(lines: Iterable[Line]) -> list[Line]:
    """The rules and other members above the first ``User-agent`` line. Their author meant every robot."""
    return [line for line in takewhile(lambda line: line.field != USER_AGENT, lines) if line.field in MEMBERS]


def _meant(line: Line, site: str) -> Line:
    if line.field not in RULES or not line.value or line.value[0] in "/*":
        return line
    path = meant_path(line.value, site)
    if path is None:
        return line
    return Line(line.number, line.field, path, f"{line.shown} (read as {line.field.capitalize()}: {path})")


def meant_path(value: str, site: str) -> str | None:
    """The path that a value without a leading slash means at ``site``; None if it is of another site, or unclear."""
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
