"""URLs as the crawler sees them: canonical text, site, path, politeness host.

Canonical is what the WHATWG URL Standard's parser and serialiser make of an http(s) URL, without
its fragment (https://url.spec.whatwg.org/): lower-case host, default port dropped, dot segments
resolved. Two URLs are the same page to the crawler exactly when these texts are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, NamedTuple

import ada_url

from crawler.terminal_text import shown

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

#: Longest canonical URL taken, in characters. Servers commonly refuse longer ones (RFC 9110, 4.1).
MAX_URL_CHARS = 8000

# A site or steps up, then segments of unreserved characters (RFC 3986, 2.3) that are not "." or "..".
_PLAIN = re.compile(
    r"(?:(https?://[^/?#\\\s]++)?/|((?:\.\./)++))?"
    r"((?:[A-Za-z0-9_~-][A-Za-z0-9_.~-]*+/)*+[A-Za-z0-9_~-][A-Za-z0-9_.~-]*+/?)",
    re.ASCII,
)
_STEPS_UP = 8
_PLAIN_CHARS = MAX_URL_CHARS // 4  # base and link together; a host in other letters grows when it is written in ASCII
_SCHEME = re.compile(r"^[\x00-\x20]*([a-zA-Z][a-zA-Z0-9+.-]*):")


@cache
def _suffixes() -> PublicSuffixList:
    """Read when first asked for: many a command, and the process that reads heavy pages, never does."""
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


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
        raise NotCrawlable(f"not a URL: {shown(text)}") from None
    if not href.startswith(("http://", "https://")):
        raise NotCrawlable(f"not an http or https URL: {shown(text)}")
    href = href.partition("#")[0]
    if len(href) > max_chars:
        raise NotCrawlable(f"longer than {max_chars} characters: {shown(href)}")
    if "@" in href and "@" in href[: href.index("/", 8)]:
        raise NotCrawlable(f"carries a user name or password: {shown(text)}")
    return href


@lru_cache(maxsize=4096)
def _root_of(site: str) -> str:
    """The canonical form of a site as written, with the slash that its paths begin with. Raises as :class:`Joiner`."""
    return canonicalise(site + "/")


class Joiner:
    """Resolves the links of one page against its canonical base URL, as :func:`canonicalise` would.

    Most links are plain paths, whose canonical form is put together from the text; for the others the base is parsed
    again with each. Call it with a link as written, but without its fragment. Raises what :func:`canonicalise` does.
    """

    __slots__ = ("_base", "_folders", "_root")

    def __init__(self, base: str) -> None:
        self._base = base
        self._root = base[: base.index("/", 8) + 1]
        folder = base.partition("?")[0].rpartition("/")[0] + "/"
        self._folders = [folder]  # its own, the one above, and so on
        while folder != self._root and len(self._folders) < _STEPS_UP:
            folder = folder[: folder.rindex("/", 0, -1) + 1]
            self._folders.append(folder)

    def __call__(self, href: str) -> str:
        plain = _PLAIN.fullmatch(href)
        if plain is None or len(self._base) + len(href) > _PLAIN_CHARS:
            return canonicalise(href, self._base)
        site, up, path = plain.groups()
        if site is not None:
            return _root_of(site) + path
        if up is None:
            return (self._root if href[0] == "/" else self._folders[0]) + path
        steps = len(up) // len("../")
        return canonicalise(href, self._base) if steps >= len(self._folders) else self._folders[steps] + path


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


def literal_address(host: str) -> IPv4Address | IPv6Address | None:
    """The IP address that ``host`` is, or ``None`` where it is a name."""
    if ":" not in host and not host[-1:].isdigit():
        return None  # at once: most hosts are names
    return _address(host)


def is_loopback(host: str) -> bool:
    """Whether ``host`` is this machine and no other: an address on loopback, or a name that stands for one (RFC 6761,
    6.3)."""
    address = literal_address(host)
    return host == "localhost" or host.endswith(".localhost") or (address is not None and address.is_loopback)


@lru_cache(maxsize=4096)
def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


@lru_cache(maxsize=65536)
def registrable_domain(host: str) -> str:
    """The domain somebody registered (``b.co.uk`` for ``a.b.co.uk``), by the Public Suffix List.

    A host that has none (an IP address, a bare name, a public suffix itself) stands for itself.
    """
    if literal_address(host) is not None:
        return host
    return _suffixes().privatesuffix(host) or host


def registrable_domains(hosts: Iterable[str]) -> set[str]:
    """Those of many hosts, each looked at once: in the memory of :func:`registrable_domain` they would only drive each
    other out."""
    return set(map(registrable_domain.__wrapped__, hosts))
