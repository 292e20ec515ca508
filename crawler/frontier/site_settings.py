"""Settings of single hosts or domains: the tables ``[site."shop.example"]`` of the configuration file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from crawler.fields.kinds import SECONDS, Form, ValueKind, WrongPart, read_text, whole
from crawler.frontier.hours import window

_NAME = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
_WORDS = ("delay", "hours", "depth", "max_pages")
_LISTED = ", ".join(_WORDS)


class SiteRule(NamedTuple):
    """The settings of a host or domain, and of all hosts below it; ``None`` and "" leave those of the crawl.

    ``delay_s`` is the least pause. A longer one that the site asks for still applies. ``max_pages`` bounds the pages of
    each site that the rule is for; 0 is no limit.
    """

    name: str
    delay_s: float | None = None
    hours: str = ""
    max_depth: int | None = None
    max_pages: int | None = None

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
        yield SiteRule(name, read.get("delay"), read.get("hours", ""), read.get("depth"), read.get("max_pages"))


def _hours(value: object) -> str:
    hours = read_text(value)
    if hours and (window(hours).pattern != "*" or "=" in hours):
        raise ValueError("hours are for this site already: write HH-HH ZONE")
    return hours


_READ: Mapping[str, Callable[[object], Any]] = {
    "delay": SECONDS.read,
    "hours": _hours,
    "depth": whole(0).read,
    "max_pages": whole(0).read,
}


SITES = ValueKind(
    f"tables with {_LISTED} by host or domain",
    Form.TEXT,
    _sites,
    lambda rules: {rule.name: rule.stated for rule in rules},
)
