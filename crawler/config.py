"""Configuration: a TOML file and the command line become one frozen :class:`Settings`.

Every key stands once, in :data:`KEYS`; ``config/crawler.toml`` shows each with its default, and a test
holds the two together. Command-line options set the same keys and win over the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from crawler.errors import ConfigError, UsageError
from crawler.fetch.resolver import parse_resolve
from crawler.frontier.decide import RetrySettings
from crawler.frontier.politeness import GroupBy, PolitenessSettings
from crawler.frontier.scope import ScopeMode, ScopeSettings
from crawler.loops.crawl import CrawlSettings
from crawler.model import Reading
from crawler.robots.response import RobotsSettings


@dataclass(frozen=True, slots=True)
class Identity:
    """Who crawls. ``agent`` is the product token that robots.txt files are searched for."""

    agent: str = "PoliteCrawler"
    contact: str = ""  # a URL or an e-mail address


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go and what is shown."""

    db: str = "crawl.db"
    seeds: str = ""
    skip_bad_seeds: bool = False
    progress: bool = True
    json: bool = False


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Bounds on one request; see :class:`crawler.fetch.http.FetchSettings`."""

    accept_types: tuple[str, ...] = ("text/html", "application/xhtml+xml")
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 30.0
    total_timeout_s: float = 120.0
    resolve: tuple[tuple[str, str], ...] = ()
    allow_private: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a crawl."""

    identity: Identity = field(default_factory=Identity)
    output: Output = field(default_factory=Output)
    crawl: CrawlSettings = field(default_factory=CrawlSettings)
    scope: ScopeSettings = field(default_factory=ScopeSettings)
    politeness: PolitenessSettings = field(default_factory=PolitenessSettings)
    robots: RobotsSettings = field(default_factory=RobotsSettings)
    retry: RetrySettings = field(default_factory=RetrySettings)
    fetch: FetchLimits = field(default_factory=FetchLimits)


_UNITS_S = {"s": 1, "second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}


def _seconds(value: object) -> float:
    """A number of seconds, or a text such as "30 days"."""
    if (
        isinstance(value, str)
        and (match := re.fullmatch(r"\s*([\d.]+)\s*([a-z]+?)s?\s*", value))
        and match[2] in _UNITS_S
    ):
        value = float(match[1]) * _UNITS_S[match[2]]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise ValueError('must be a number of seconds, or a text such as "30 days"')
    return float(value)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("must be a whole number, 1 or more")
    return value


def _count_or_none(value: object) -> int | None:
    """0 is no limit."""
    if value == 0 and not isinstance(value, bool):
        return None
    return _count(value)


def _natural(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("must be a whole number, 0 or more")
    return value


def _depth(value: object) -> int | None:
    """-1 is no limit."""
    return None if value == -1 else _natural(value)


def _seconds_or_none(value: object) -> float | None:
    """0 is no limit."""
    return _seconds(value) or None


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    return value


def _token(value: object) -> str:
    if not re.fullmatch(r"[A-Za-z_-]+", _text(value)):
        raise ValueError("must be a product token: letters, '-' and '_' only (RFC 9309, 2.2.1)")
    return str(value)


def _contact(value: object) -> str:
    text = _text(value)
    if text and not re.fullmatch(r"https?://[^\s/]+\S*|[^\s@]+@[^\s@]+\.[^\s@]+|mailto:\S+@\S+", text):
        raise ValueError("must be an http(s) URL or an e-mail address of whoever runs the crawl")
    return text.removeprefix("mailto:")


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError("must be a list of texts")
    return tuple(value)


def _regexes(value: object) -> tuple[str, ...]:
    for pattern in _texts(value):
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    return _texts(value)


def _resolve(value: object) -> tuple[tuple[str, str], ...]:
    return tuple(parse_resolve(item) for item in _texts(value))


def _one_of(kind: type[ScopeMode] | type[Reading] | type[GroupBy]) -> Callable[[object], object]:
    def convert(value: object) -> object:
        try:
            return kind(str(value))
        except ValueError:
            raise ValueError("must be one of " + ", ".join(member.value for member in kind)) from None

    return convert


#: TOML key -> (how its value is read, the section of Settings, the field).
KEYS: Mapping[str, tuple[Callable[[Any], object], str, str]] = {
    "identity.agent": (_token, "identity", "agent"),
    "identity.contact": (_contact, "identity", "contact"),
    "store.db": (_text, "output", "db"),
    "seeds.file": (_text, "output", "seeds"),
    "seeds.skip_bad": (_flag, "output", "skip_bad_seeds"),
    "output.progress": (_flag, "output", "progress"),
    "output.json": (_flag, "output", "json"),
    "scope.mode": (_one_of(ScopeMode), "scope", "mode"),
    "scope.include": (_regexes, "scope", "include"),
    "scope.exclude": (_regexes, "scope", "exclude"),
    "limits.max_pages": (_count_or_none, "crawl", "max_pages"),
    "limits.max_pages_per_site": (_count_or_none, "crawl", "max_pages_per_site"),
    "limits.max_depth": (_depth, "scope", "max_depth"),
    "limits.max_time": (_seconds_or_none, "crawl", "max_time_s"),
    "limits.concurrency": (_count, "crawl", "concurrency"),
    "politeness.delay": (_seconds, "politeness", "delay_s"),
    "politeness.slow_factor": (_seconds, "politeness", "slow_factor"),
    "politeness.slow_cap": (_seconds, "politeness", "slow_cap_s"),
    "politeness.crawl_delay_cap": (_seconds_or_none, "politeness", "crawl_delay_cap_s"),
    "politeness.backoff_first": (_seconds, "politeness", "backoff_first_s"),
    "politeness.backoff_max": (_seconds, "politeness", "backoff_max_s"),
    "politeness.group": (_one_of(GroupBy), "politeness", "group"),
    "robots.reading": (_one_of(Reading), "robots", "reading"),
    "robots.stale_if_error": (_flag, "robots", "stale_if_error"),
    "robots.give_up_after": (_seconds, "robots", "give_up_after_s"),
    "robots.min_fresh": (_seconds, "robots", "min_fresh_s"),
    "robots.retry_first": (_seconds, "robots", "retry_first_s"),
    "robots.retry_max": (_seconds, "robots", "retry_max_s"),
    "fetch.types": (_texts, "fetch", "accept_types"),
    "fetch.max_body_bytes": (_count, "crawl", "max_body_bytes"),
    "fetch.max_redirects": (_natural, "retry", "max_redirects"),
    "fetch.retries": (_natural, "retry", "retries"),
    "fetch.retry_pause": (_seconds, "retry", "retry_pause_s"),
    "fetch.connect_timeout": (_seconds, "fetch", "connect_timeout_s"),
    "fetch.read_timeout": (_seconds, "fetch", "read_timeout_s"),
    "fetch.total_timeout": (_seconds, "fetch", "total_timeout_s"),
    "fetch.resolve": (_resolve, "fetch", "resolve"),
    "fetch.allow_private": (_flag, "fetch", "allow_private"),
}


def read_file(path: Path) -> dict[str, object]:
    """The keys of a TOML file, dotted. Raises :class:`ConfigError` where it is missing or no TOML."""
    try:
        with path.open("rb") as file:
            return dict(_dotted(tomllib.load(file)))
    except OSError as error:
        raise ConfigError(f"--config {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"--config {path}: not TOML: {error}") from None


def _dotted(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def settings_from(values: Mapping[str, object], *, source: str) -> Settings:
    """Settings with ``values`` (dotted keys) over the defaults.

    Raises :class:`ConfigError` that names every wrong key at once, each with its remedy; ``source``
    says where the values come from.
    """
    return apply(Settings(), values, source=source)


def apply(settings: Settings, values: Mapping[str, object], *, source: str) -> Settings:
    """``settings`` with ``values`` in place of theirs; raises as :func:`settings_from`."""
    wrong: list[str] = []
    sections: dict[str, dict[str, object]] = {}
    for key, value in values.items():
        if key not in KEYS:
            wrong.append(f"unknown key {key!r}{_nearest(key)}")
            continue
        convert, section, name = KEYS[key]
        try:
            sections.setdefault(section, {})[name] = convert(value)
        except (ValueError, UsageError) as error:
            wrong.append(f"{key} = {value!r}: {error}")
    if wrong:
        raise ConfigError(f"{source}: " + "; ".join(wrong))
    changed = {name: replace(getattr(settings, name), **fields) for name, fields in sections.items()}
    return replace(settings, **changed)


def _nearest(key: str) -> str:
    by_last_word = {known.rpartition(".")[2]: known for known in KEYS}
    near = get_close_matches(key, KEYS, n=1, cutoff=0.6) or [
        by_last_word[word] for word in get_close_matches(key.rpartition(".")[2], by_last_word, n=1, cutoff=0.6)
    ]
    return f", did you mean {near[0]!r}?" if near else "; config/crawler.toml lists them all"
