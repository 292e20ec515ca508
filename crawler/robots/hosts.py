"""The ``Host`` line: which of several mirrors is the main one.

Sources: the Host proposal of 2003 ("Formal action"); ``docs/protocols.md``, section 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from crawler import url
from crawler.robots.text import HOST, Line

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_NAME_AND_PORT = re.compile(rf"({_LABEL}(?:\.{_LABEL})*)(?::([0-9]{{1,5}}))?")
_SCHEME = re.compile(r"^https?://", re.IGNORECASE)
_MAX_NAME_CHARS = 253
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class HostClaim:
    """What the ``Host`` lines that count say of a site, and the line that says it."""

    main_site: str | None = None  # None: this site is the main one, or no correct line names another
    line: Line | None = None  # the line that equals the site, else the first correct one


def host_claim(lines: Iterable[Line], site: str, knows_host: Callable[[str], bool], *, prefixed: bool) -> HostClaim:
    """Read the ``Host`` lines among ``lines`` with ``site`` in mind; incorrect ones are passed over.

    ``prefixed`` takes off an ``http://`` or ``https://`` before the name, as Yandex later documented it.
    """
    first = HostClaim()
    for line in lines:
        if line.field != HOST:
            continue
        value = _SCHEME.sub("", line.value, count=1) if prefixed else line.value
        named = _site_named(value, site.partition("://")[0], knows_host)
        if named == site:
            return HostClaim(None, line)
        if named is not None and first.line is None and _is_canonical(named):
            first = HostClaim(named, line)
    return first


def _site_named(value: str, scheme: str, knows_host: Callable[[str], bool]) -> str | None:
    """The site that a ``Host`` value names, where its syntax is correct; the scheme's default port is left out."""
    match = _NAME_AND_PORT.fullmatch(value) if len(value) <= _MAX_NAME_CHARS + 6 else None
    if match is None or len(match[1]) > _MAX_NAME_CHARS:
        return None
    name, port = match[1].lower(), int(match[2] or _DEFAULT_PORTS[scheme])
    if not 1 <= port <= 65535 or name.rpartition(".")[2].isdigit():  # a last label of digits makes it an address
        return None
    if "." not in name and not knows_host(name):
        return None
    return f"{scheme}://{name}" if port == _DEFAULT_PORTS[scheme] else f"{scheme}://{name}:{port}"


def _is_canonical(named: str) -> bool:
    """Whether a URL parser takes it as it stands (0x7f.0x1 becomes an address, and some ``xn--`` are no names).

    Of two sites that are equal, both are canonical; so this needs asking only of a site that is not the current one.
    """
    try:
        return url.canonicalise(named) == f"{named}/"
    except url.NotCrawlable:
        return False
