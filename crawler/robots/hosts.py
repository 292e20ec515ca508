"""The ``Host`` line, which names the main site of a group of mirrors.

Sources: the Host proposal of 2003 ("Formal action"); ``docs/protocols.md``, section 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from crawler import url
from crawler.robots.fields import HOST
from crawler.robots.text import Line

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_NAME_AND_PORT = re.compile(rf"({_LABEL}(?:\.{_LABEL})*)(?::([0-9]{{1,5}}))?")
_SCHEME = re.compile(r"^https?://", re.IGNORECASE)
_MAX_NAME_CHARS = 253
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class HostClaim:
    """The main site that the applicable ``Host`` lines name, and the line that decided."""

    main_site: str | None = None  # None: this site is the main one, or no correct line names another site
    line: Line | None = None  # the line that equals the site, else the first correct line
    refuted: bool = False  # the line names a site that has turned out to be no main site: it is ignored


def host_claim(lines: Iterable[Line], site: str, knows_host: Callable[[str], bool], *, prefixed: bool) -> HostClaim:
    """Interpret the ``Host`` lines among ``lines`` for ``site``. Incorrect lines are ignored.

    ``prefixed``: also accept a name with the prefix ``http://`` or ``https://``, as Yandex later documented.
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
    """The site that a ``Host`` value names, without the scheme's default port; None if the syntax is incorrect."""
    match = _NAME_AND_PORT.fullmatch(value) if len(value) <= _MAX_NAME_CHARS + 6 else None
    if match is None or len(match[1]) > _MAX_NAME_CHARS:
        return None
    name, port = match[1].lower(), int(match[2] or _DEFAULT_PORTS[scheme])
    if port in _DEFAULT_PORTS.values() and port != _DEFAULT_PORTS[scheme]:  # https on port 80 cannot be meant
        return None
    if not 1 <= port <= 65535 or name.rpartition(".")[2].isdigit():  # a last label of digits makes it an address
        return None
    if "." not in name and not knows_host(name):
        return None
    return f"{scheme}://{name}" if port == _DEFAULT_PORTS[scheme] else f"{scheme}://{name}:{port}"


def _is_canonical(named: str) -> bool:
    """Whether a URL parser leaves the site unchanged (0x7f.0x1 becomes an address; some ``xn--`` names are invalid).

    The current site is canonical already, so the caller asks only about a site that differs from it.
    """
    try:
        return url.canonicalise(named) == f"{named}/"
    except url.NotCrawlable:
        return False
