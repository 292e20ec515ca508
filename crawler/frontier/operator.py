"""The orders of the operator to a crawl: pause, resume, stop, block a site, unblock it, queue a URL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from crawler.formatting import nearest
from crawler.reasons import Reason, ReasonCode
from crawler.terminal_text import shown
from crawler.url import NotCrawlable, canonicalise, host_of, literal_address, split

#: The reason of every URL on a blocked site. These URLs are queued again when the operator unblocks the site.
BLOCKED = Reason(ReasonCode.BLOCKED)

# Labels of letters, digits, hyphens (RFC 1123, 2.1) and underscores, which occur in practice; an optional final dot.
_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?", re.ASCII)


class Command(StrEnum):
    """The kinds of orders."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    BLOCK = "block"
    UNBLOCK = "unblock"
    QUEUE = "queue"

    def name_of(self, text: str) -> str:
        """What the order is about, as the user wrote it in ``text``: a site (:func:`blockable`), a URL, or nothing.

        Raises :class:`~crawler.url.NotCrawlable`.
        """
        match self:
            case Command.BLOCK | Command.UNBLOCK:
                return blockable(text)
            case Command.QUEUE:
                return canonicalise(text)
        return ""


@dataclass(frozen=True, slots=True)
class Order:
    """One order, given at ``asked_at``. Orders take effect in the sequence of their numbers. Times in epoch seconds.

    ``name`` is that of :meth:`Command.name_of`. ``run_id`` is the only run that an order to stop affects. A crawl
    had carried out the order at ``done_at``. ``because`` is the operator's reason.
    """

    id: int
    asked_at: float
    command: Command
    name: str = ""
    run_id: int | None = None
    done_at: float | None = None
    because: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """The effect of all orders so far."""

    paused_since: float | None = None
    blocked: Mapping[str, float] = field(default_factory=dict)  # name -> the time of the order
    because: Mapping[str, str] = field(default_factory=dict)  # name -> why it is blocked, if the operator said so
    queued: Mapping[str, float] = field(default_factory=dict)  # URL -> the time of an order that is not carried out yet

    def names_of(self, url: str) -> list[str]:
        """The names under which the site of a canonical URL is blocked."""
        return [name for name in _names_of(url) if name in self.blocked]

    def why_blocked(self, url: str) -> str:
        """Why the site of a canonical URL is blocked; empty if it is not, or if the operator has not said why."""
        return "; ".join(self.because[name] for name in _names_of(url) if name in self.because)


def standing(orders: Iterable[Order]) -> Standing:
    """The effect of ``orders`` in their sequence. A repeated order has no further effect, but may say why anew."""
    paused_since: float | None = None
    blocked: dict[str, float] = {}
    because: dict[str, str] = {}
    queued: dict[str, float] = {}
    for order in orders:
        match order.command:
            case Command.PAUSE:
                paused_since = order.asked_at if paused_since is None else paused_since
            case Command.RESUME:
                paused_since = None
            case Command.BLOCK:
                blocked.setdefault(order.name, order.asked_at)
                if order.because:
                    because[order.name] = order.because
            case Command.UNBLOCK:
                blocked.pop(order.name, None)
                because.pop(order.name, None)
            case Command.QUEUE if order.done_at is None:
                queued[order.name] = order.asked_at
            case Command.STOP | Command.QUEUE:
                pass  # affect one run, and one URL, only
    return Standing(paused_since, blocked, because, queued)


def blockable(text: str) -> str:
    """The name under which a site is blocked.

    ``example.org`` names a host with any scheme and port; ``example.org:8443`` names one port of it with any scheme;
    ``https://example.org:8443`` names one site. A URL stands for its site. Subdomains are hosts of their own. Raises
    :class:`~crawler.url.NotCrawlable`.
    """
    text = text.strip()
    remedy = "write example.org, or https://example.org:8443 for one site of it"
    if text.rpartition("://")[2].startswith(("*", ".")):
        raise NotCrawlable(f"{shown(text)!r}: a block names one host, and patterns are not supported; {remedy}")
    nothing = NotCrawlable(f"{shown(text)!r} is no host: {remedy}")
    if not text.isprintable() or " " in text:
        raise nothing
    if "://" in text:
        name = split(canonicalise(text)).site
        host = host_of(name)
    else:
        if not text or any(sign in text for sign in "/?#@\\%") or (text.endswith(":") and text != "::"):
            raise nothing
        has_port = _has_port(text)
        bare = text if has_port or ":" not in text else f"[{text.strip('[]')}]"
        site = split(canonicalise(f"{'https' if text.endswith(':443') else 'http'}://{bare}/")).site
        host = host_of(site)
        name = host.removesuffix(".")
        if has_port:  # the default port of a scheme stands in no canonical URL, so one site has it
            authority = site.partition("://")[2]
            name = authority if _has_port(authority) else site
    if literal_address(host) is None and not _HOST.fullmatch(host):
        raise nothing
    return name


def still_blocks(name: str, blocked: Iterable[str]) -> list[str]:
    """The ``blocked`` names, other than ``name`` itself, that still block sites of ``name``."""
    ranges = name_ranges(name)
    return [
        other
        for other in blocked
        if other != name
        and any(
            first <= last_of and first_of <= last for first, last in ranges for first_of, last_of in name_ranges(other)
        )
    ]


def name_ranges(name: str) -> list[tuple[str, str]]:
    """The ranges of sites, ordered by name, that ``name`` blocks: the first and the last site of each."""
    if "://" in name:
        return [(name, name)]
    if _has_port(name):
        return [(site, site) for site in (f"http://{name}", f"https://{name}")]
    host = f"[{name}]" if ":" in name else name
    sites = [f"{scheme}://{host}{dot}" for scheme in ("http", "https") for dot in ("", ".")]
    return [(site, site) for site in sites] + [(f"{site}:", f"{site}:~") for site in sites]


def _has_port(name: str) -> bool:
    """Whether a host has a port behind it. An address of IPv6 has brackets before its port, and colons in it."""
    return name.count(":") == 1 or "]:" in name


def names_page(text: str) -> bool:
    """Whether a word of the operator names one page, and not a site: it is a URL with a path, at least ``/``."""
    return "/" in text.partition("://")[2]


def covered(name: str, sites: Iterable[str]) -> list[str]:
    """Those of ``sites`` that ``name`` stands for, a name as :func:`blockable` returns it."""
    blocks = Blocks()
    blocks.replace([name])
    return [site for site in sites if blocks.covers(f"{site}/")]


def unmet(name: str, sites: Sequence[str]) -> str:
    """A sentence if ``name`` matches none of the ``sites`` of a crawl, which may be a typing error; else empty."""
    if covered(name, sites):
        return ""
    known = sites if "://" in name else [host_of(site) for site in sites]
    near = nearest(name, dict.fromkeys(known), 3, alike=0.8)
    return f"no URL of {name} is in the store" + (f"; is it spelled right? Near: {', '.join(near)}" if near else "")


class Blocks:
    """The names that are blocked now. The scope and the gate share one object, and the operator changes it."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()

    def replace(self, names: Iterable[str]) -> None:
        """Block exactly these names."""
        self.names = frozenset(names)

    def covers(self, url: str) -> bool:
        """Whether a canonical URL is on a blocked site."""
        return is_blocked(url, self.names)


def is_blocked(url: str, names: frozenset[str]) -> bool:
    """Whether a canonical URL is on a site that ``names`` block."""
    return bool(names) and not names.isdisjoint(_names_of(url))


def _names_of(url: str) -> Iterable[str]:
    """The names under which the site of a canonical URL may be blocked: the site, its host and port, its host."""
    site = url[: url.index("/", 8)]
    return dict.fromkeys((site, site.partition("://")[2], host_of(site).removesuffix(".")))
