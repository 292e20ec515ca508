"""URLs as the crawler sees them: canonical text, site, path, politeness host.

Canonical is what the WHATWG URL Standard's parser and serialiser make of an http(s) URL, without
its fragment (https://url.spec.whatwg.org/): lower-case host, default port dropped, dot segments
resolved. Two URLs are the same page to the crawler exactly when these texts are equal.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

import ada_url
from publicsuffixlist import PublicSuffixList

#: Longest canonical URL taken, in characters. Servers commonly refuse longer ones (RFC 9110, 4.1).
MAX_URL_CHARS = 8000

_SCHEME = re.compile(r"^[\x00-\x20]*([a-zA-Z][a-zA-Z0-9+.-]*):")
_suffixes = PublicSuffixList()


class NotCrawlable(ValueError):
    """Why a text is no URL for this crawler; ``str()`` says it to a person."""


class SiteAndPath(NamedTuple):
    """``site`` is scheme + host + port (``http://a.example:8080``); ``path`` has the query with it."""

    site: str
    path: str


def canonicalise(text: str, base: str | None = None, *, max_chars: int = MAX_URL_CHARS) -> str:
    """The canonical form of an http(s) URL, resolved against ``base`` where one is given.

    Raises :class:`NotCrawlable` for other schemes, for URLs that carry a user name or password,
    that are too long, or that are no URLs at all.
    """
    try:
        href = ada_url.join_url(base, text) if base is not None else ada_url.normalize_url(text)
    except (ValueError, UnicodeError):
        raise NotCrawlable(f"not a URL: {_shown(text)}") from None
    if not href.startswith(("http://", "https://")):
        raise NotCrawlable(f"not an http or https URL: {_shown(text)}")
    href = href.partition("#")[0]
    if len(href) > max_chars:
        raise NotCrawlable(f"longer than {max_chars} characters: {_shown(href)}")
    if "@" in href and "@" in href[: href.index("/", 8)]:
        raise NotCrawlable(f"carries a user name or password: {_shown(text)}")
    return href


def scheme_of(text: str) -> str | None:
    """The scheme that ``text`` begins with, in lower case; ``None`` where it is relative."""
    match = _SCHEME.match(text)
    return match[1].lower() if match else None


def split(canonical: str) -> SiteAndPath:
    """Cut a canonical URL into its site and its path with query."""
    slash = canonical.index("/", 8)
    return SiteAndPath(canonical[:slash], canonical[slash:])


def host_of(site: str) -> str:
    """The host of a site or canonical URL, without port; IPv6 without brackets."""
    netloc = site.partition("://")[2].partition("/")[0]
    if netloc.startswith("["):
        return netloc[1:].partition("]")[0]
    return netloc.partition(":")[0]


def port_of(site: str) -> int:
    """The port of a site or canonical URL, the scheme's default where none is written."""
    scheme, _, rest = site.partition("://")
    _, colon, port = rest.partition("/")[0].rpartition("]")[2].rpartition(":")
    return int(port) if colon else 443 if scheme == "https" else 80


def literal_address(host: str) -> IPv4Address | IPv6Address | None:
    """The IP address that ``host`` is, or ``None`` where it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


@lru_cache(maxsize=65536)
def registrable_domain(host: str) -> str:
    """The domain somebody registered (``b.co.uk`` for ``a.b.co.uk``), by the Public Suffix List.

    A host that has none (an IP address, a bare name, a public suffix itself) stands for itself.
    """
    if literal_address(host) is not None:
        return host
    return _suffixes.privatesuffix(host) or host


def _shown(text: str) -> str:
    """A bounded, printable form of hostile text for messages."""
    cut = text if len(text) <= 200 else text[:200] + "…"
    return "".join(c if c.isprintable() else "\ufffd" for c in cut)
