"""Canonical URLs and their parts: site, path, host, registered domain.

The canonical form of an http(s) URL is the output of the WHATWG URL Standard's parser and serialiser without the
fragment (https://url.spec.whatwg.org/): the host is in lower case, the default port is dropped, dot segments are
resolved. Two URLs name the same page if and only if their canonical forms are equal.
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

#: The longest canonical URL accepted, in characters. Servers commonly refuse longer ones (RFC 9110, 4.1).
MAX_URL_CHARS = 8000
#: The path of the robots.txt of every site.
ROBOTS_PATH = "/robots.txt"

# A site, its root or steps up, then segments of unreserved characters (RFC 3986, 2.3) that are not "." or "..".
_PLAIN = re.compile(
    r"((?:https?://[^/?#\\\s]++)?/|(?:\.\./)++)?"
    r"([A-Za-z0-9_~-][A-Za-z0-9_.~-]*+(?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*+)*+/?)",
    re.ASCII,
)
_STEPS_UP = 8
_PLAIN_CHARS = MAX_URL_CHARS // 4  # base and link together; an internationalised host grows when written in ASCII
#: A URL up to the "@" behind its user name and password, as the WHATWG parser reads it (without tabs and newlines), or
#: a text that begins with both and has no scheme.
_USERINFO = re.compile(
    r"([\x00-\x20]*(?:(?:https?|ftp|wss?):[/\\]*|(?:[a-z][a-z0-9+.-]*:)?[/\\]{2,})|^(?!mailto:)(?=[^/\\?#@]*:))[^/\\?#]*@",
    re.IGNORECASE,
)
#: A canonical URL whose host is no DNS name: a label has 1 to 63 octets, and a name at most 253 (RFC 1035, 2.3.4).
_NO_NAME = re.compile(r"https?://(?:(?:[^/:]*?\.)?\.|[^/]*?[^/.:]{64}|[^/:]{254})")
_TABS_AND_NEWLINES = str.maketrans("", "", "\t\r\n")
_SCHEME = re.compile(r"^[\x00-\x20]*([a-zA-Z][a-zA-Z0-9+.-]*):")


@cache
def _suffixes() -> PublicSuffixList:
    """The Public Suffix List, loaded at the first call: many commands and the parser processes never need it.

    The library would encode each rule by Python's slow codec for IDNA, although one in twenty needs it.
    """
    from publicsuffixlist import PSLFILE, PublicSuffixList

    with open(PSLFILE, encoding="utf-8") as file:
        rules = [line for line in file if not line.startswith("//") and not line.isspace()]
    rules += [ada_url.idna_to_ascii(rule.split()[0]).decode() for rule in rules if not rule.isascii()]
    return PublicSuffixList(rules, accept_encoded_idn=False)


class NotCrawlable(ValueError):
    """The text is no URL for this crawler. ``str()`` is the reason, for display."""


#: Ports of other services, to which no request is sent: a link could make the crawler talk to a mail server, a database
#: or a cache. Source: "bad port" of the Fetch standard (https://fetch.spec.whatwg.org/#port-blocking).
FOREIGN_PORTS = frozenset(
    {
        *(0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104),
        *(109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515),
        *(526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049),
        *(3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
        *(3306, 5432, 6379, 11211, 27017),  # MySQL, PostgreSQL, Redis, memcached and MongoDB: not in that list
    }
)


class SiteAndPath(NamedTuple):
    """``site`` is scheme, host and port (``http://a.example:8080``); ``path`` includes the query."""

    site: str
    path: str


def canonicalise(text: str, base: str | None = None, *, max_chars: int = MAX_URL_CHARS) -> str:
    """The canonical form of an http(s) URL, resolved against ``base`` unless it is None.

    Raises :class:`NotCrawlable` for text that is no URL, for other schemes, for hosts that can have no address, for
    URLs with a user name or password, and for URLs longer than ``max_chars`` characters.
    """
    try:
        href = ada_url.join_url(base, text) if base is not None else ada_url.normalize_url(text)
    except (ValueError, UnicodeError):
        raise NotCrawlable(f"not a URL: {shown(without_userinfo(text))}") from None
    if not href.startswith(("http://", "https://")):
        raise NotCrawlable(f"not an http or https URL: {shown(without_userinfo(text))}")
    href = href.partition("#")[0]
    if len(href) > max_chars:
        raise NotCrawlable(f"longer than {max_chars} characters: {shown(without_userinfo(href))}")
    if "@" in href and "@" in href[: href.index("/", 8)]:
        raise NotCrawlable(f"carries a user name or password: {shown(without_userinfo(text))}")
    if _NO_NAME.match(href):
        raise NotCrawlable(f"the host can be no name: it or a part of it is empty or too long: {shown(href)}")
    return href


def without_userinfo(text: str, in_its_place: str = "***@") -> str:
    """A URL reference, or a line of several, without user names and passwords: no message and no log keeps a secret."""
    return _USERINFO.sub(rf"\1{in_its_place}", text.translate(_TABS_AND_NEWLINES)) if "@" in text else text


#: Pages name the same sites, and the same pages of others, again and again.
_absolute = lru_cache(maxsize=4096)(canonicalise)


class Joiner:
    """Resolve the links of one page against its canonical base URL, with the results of :func:`canonicalise`.

    Most links are plain paths: their canonical form is a concatenation. Other links go through
    :func:`canonicalise`, which parses the base again each time. Call it with a link as written, but without its
    fragment. Raises :class:`NotCrawlable`.
    """

    __slots__ = ("_base", "_most", "_starts")

    def __init__(self, base: str) -> None:
        self._base = base
        self._most = _PLAIN_CHARS - len(base)
        root = base[: base.index("/", 8) + 1]
        folder = base.partition("?")[0].rpartition("/")[0] + "/"
        #: The page's folder, the root, and the folders above the page, by the start of a link to them.
        self._starts: dict[str | None, str] = {None: folder, "/": root}
        for steps in range(1, _STEPS_UP):
            if folder == root:
                break
            folder = folder[: folder.rindex("/", 0, -1) + 1]
            self._starts["../" * steps] = folder

    def __call__(self, href: str) -> str:
        plain = None if len(href) > self._most else _PLAIN.fullmatch(href)
        start, path = (href, "") if plain is None else plain.groups()
        if start in self._starts:
            return self._starts[start] + path
        if len(href) <= self._most and start.startswith(("http://", "https://")):
            return _absolute(start) + path
        return canonicalise(href, self._base)


def scheme_of(text: str) -> str | None:
    """The scheme of ``text`` in lower case; None if ``text`` is relative."""
    match = _SCHEME.match(text)
    return match[1].lower() if match else None


def split(canonical: str) -> SiteAndPath:
    """Split a canonical URL into its site and its path with query."""
    slash = canonical.index("/", 8)
    return SiteAndPath(canonical[:slash], canonical[slash:])


def path_of(canonical: str) -> str:
    """The path of a canonical URL with its query."""
    return canonical[canonical.index("/", 8) :]


def host_of(site: str) -> str:
    """The host of a site or canonical URL, without its port; IPv6 without brackets."""
    netloc = site.partition("://")[2].partition("/")[0]
    if netloc[:1] == "[":
        return netloc[1:].partition("]")[0]
    return netloc.partition(":")[0]


def foreign_port(site: str) -> int | None:
    """The port of a site or canonical URL if another service than the web has it (:data:`FOREIGN_PORTS`), else None."""
    netloc = site.partition("://")[2].partition("/")[0]
    if ":" not in netloc:
        return None
    port = netloc.rpartition("]")[2].partition(":")[2]
    return int(port) if port and int(port) in FOREIGN_PORTS else None


def host_matches(pattern: str, host: str) -> bool:
    """Whether ``host`` fits a pattern: a host name, ``*.`` and a name for all names below it, or ``*``."""
    return host.endswith(pattern[1:]) if pattern.startswith("*") else host == pattern


@lru_cache(maxsize=4096)
def address_for(host: str, overrides: tuple[tuple[str, str], ...]) -> str | None:
    """The address in the first (pattern, address) pair that matches a name; ``None`` if no pair does."""
    name = host.lower().rstrip(".")
    for pattern, address in overrides:
        if host_matches(pattern, name):
            return address
    return None


def literal_address(host: str) -> IPv4Address | IPv6Address | None:
    """The IP address that ``host`` is; None if ``host`` is a name."""
    if ":" not in host and not host[-1:].isdigit():
        return None  # a fast path: most hosts are names
    return _address(host)


def is_loopback(host: str) -> bool:
    """Whether ``host`` is a loopback address or a name for one (RFC 6761, 6.3)."""
    address = literal_address(host)
    return host == "localhost" or host.endswith(".localhost") or (address is not None and address.is_loopback)


@lru_cache(maxsize=4096)
def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


@lru_cache(maxsize=16384)  # more than the hosts that are worked on at once
def registered_domain(host: str) -> str:
    """The registered domain (``b.co.uk`` for ``a.b.co.uk``) by the Public Suffix List.

    A host without one (an IP address, a bare name, a public suffix) is returned unchanged.
    """
    if literal_address(host) is not None:
        return host
    return _suffixes().privatesuffix(host) or host


def registered_domains(hosts: Iterable[str]) -> set[str]:
    """The registered domains of many hosts, without the cache of :func:`registered_domain`: they would overrun it."""
    return set(map(registered_domain.__wrapped__, hosts))
