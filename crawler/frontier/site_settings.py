"""Settings of single hosts or domains: the tables ``[site."shop.example"]`` of the configuration file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from crawler.fields.kinds import SECONDS, Form, ValueKind, WrongPart, read_text, whole
from crawler.frontier.hours import window

_NAME = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
_WORDS = ("delay", "hours", "depth", "max_pages", "headers")
#: The name of a header field (RFC 9110, 5.6.2).
FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: Headers that the crawler sets itself: who it is, what it reads, how the connection works, and what it has seen.
OWN_HEADERS = frozenset(
    {"accept", "accept-encoding", "connection", "date", "expect", "from", "host", "keep-alive", "max-forwards", "range"}
    | {"content-encoding", "content-length", "content-type", "te", "trailer", "transfer-encoding", "upgrade", "via"}
    | {"if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "user-agent"}
    | {"proxy-authorization", "proxy-connection", "signature", "signature-agent", "signature-input"}
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LISTED = ", ".join(_WORDS)


class SiteRule(NamedTuple):
    """The settings of a host or domain, and of all hosts below it; ``None`` and "" leave those of the crawl.

    ``delay_s`` is the least pause. A longer one that the site asks for still applies. ``max_pages`` bounds the pages of
    each site that the rule is for; 0 is no limit. ``headers`` are pairs of the name of a header field and of the
    environment variable with its value, for the host of that name alone.
    """

    name: str
    delay_s: float | None = None
    hours: str = ""
    max_depth: int | None = None
    max_pages: int | None = None
    headers: tuple[tuple[str, str], ...] = ()

    def covers(self, host: str) -> bool:
        """Whether the rule is for ``host``."""
        return host == self.name or host.endswith(f".{self.name}")

    @property
    def stated(self) -> dict[str, object]:
        """The settings that the rule changes, as TOML has them."""
        found = {
            "delay": None if self.delay_s is None else SECONDS.written(self.delay_s),
            "hours": self.hours or None,
            "depth": self.max_depth,
            "max_pages": self.max_pages,
            "headers": dict(self.headers) or None,
        }
        return {word: value for word, value in found.items() if value is not None}


def pages_allowed(host: str, rules: Sequence[SiteRule], general: int | None) -> int | None:
    """The limit on the pages of each site of ``host``: that of its rule, or ``general``; ``None`` is no limit."""
    rule = rule_for(host, rules) if rules else None
    return general if rule is None or rule.max_pages is None else rule.max_pages or None


def rule_for(host: str, rules: Sequence[SiteRule]) -> SiteRule | None:
    """The rule of ``host``: of several, the one with the longest name."""
    host = host.removesuffix(".")
    return max((rule for rule in rules if rule.covers(host)), key=lambda rule: len(rule.name), default=None)


def _sites(value: object) -> tuple[SiteRule, ...]:
    if not isinstance(value, Mapping):
        raise ValueError(f'must be tables such as [site."shop.example"] with {_LISTED}')
    return tuple(sorted(_read(value)))


def _read(sites: Mapping[object, object]) -> Iterator[SiteRule]:
    for name, stated in sites.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            reason = f'{name!r} is no host or domain; write its name in quotes: [site."shop.example"]'
            raise WrongPart(f"site.{name}", reason)
        if not isinstance(stated, Mapping) or not stated:
            raise WrongPart(f'site."{name}"', f'[site."{name}"] needs one of {_LISTED}')
        if unknown := set(stated).difference(_WORDS):
            wrong = min(map(str, unknown))
            reason = f'[site."{name}"]: unknown key {wrong!r}; the keys are {_LISTED}'
            raise WrongPart(f'site."{name}".{wrong}', reason)
        read: dict[str, Any] = {}
        for word, value in stated.items():
            try:
                read[word] = _READ[word](value)
            except ValueError as error:
                raise WrongPart(f'site."{name}".{word}', f'[site."{name}"]: {error}') from None
        values = (read.get("delay"), read.get("hours", ""), read.get("depth"), read.get("max_pages"))
        yield SiteRule(name, *values, read.get("headers", ()))


def _hours(value: object) -> str:
    hours = read_text(value)
    if hours and (window(hours).pattern != "*" or "=" in hours):
        raise ValueError("hours are for this site already: write HH-HH ZONE")
    return hours


def _headers(value: object) -> tuple[tuple[str, str], ...]:
    """Pairs of a field and of the variable with its value: the value itself never stands in a file of settings."""
    if not isinstance(value, Mapping) or not value:
        raise ValueError('headers are pairs of a field and an environment variable: { "X-Key" = "SHOP_KEY" }')
    for field, variable in value.items():
        if not isinstance(field, str) or not FIELD_NAME.fullmatch(field):
            raise ValueError(f"{field!r} is no name of a header field")
        if field.lower() in OWN_HEADERS or field.lower() == "cookie":
            raise ValueError(f"the crawler sets {field} itself, or never sends it")
        if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
            raise ValueError(f"the value of {field} must be the name of an environment variable, such as SHOP_KEY")
    return tuple(value.items())


_READ: Mapping[str, Callable[[object], Any]] = {
    "delay": SECONDS.read,
    "hours": _hours,
    "depth": whole(0).read,
    "max_pages": whole(0).read,
    "headers": _headers,
}


SITES = ValueKind(
    f"tables with {_LISTED} by host or domain",
    Form.TEXT,
    _sites,
    lambda rules: {rule.name: rule.stated for rule in rules},
)
