"""Configuration: a TOML file and the command line become one frozen :class:`Settings`.

Every key stands once, in :data:`KEYS`; ``config/crawler.toml`` shows each with its default, and a test
holds the two together. Command-line options set the same keys and win over the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any

from crawler.engine.crawl_policy import CrawlSettings, UpdateSettings
from crawler.errors import ConfigError, UsageError
from crawler.fetch.resolver import parse_resolve
from crawler.frontier.decide import RetrySettings
from crawler.frontier.politeness import GroupBy, PolitenessSettings
from crawler.frontier.revisit import RevisitSettings
from crawler.frontier.sample_design import Method, Per, SampleSettings
from crawler.frontier.scope import ScopeMode, ScopeSettings
from crawler.frontier.traps import TrapSettings
from crawler.model import Reading
from crawler.robots.response import RobotsSettings
from crawler.store.location import require_store


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
    warc: str = ""  # a folder


@dataclass(frozen=True, slots=True)
class Team:
    """Several processes on one crawl. ``lease_margin_s`` is how long, beyond the longest request, a worker may be out
    of touch with the store before its sites pass to others."""

    workers: int = 1
    lease_margin_s: float = 30.0
    patience_s: float = 120.0  # with a database that cannot be reached


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Bounds on one request; see :class:`crawler.fetch.client.FetchSettings`."""

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
    traps: TrapSettings = field(default_factory=TrapSettings)
    fetch: FetchLimits = field(default_factory=FetchLimits)
    revisit: RevisitSettings = field(default_factory=RevisitSettings)
    updates: UpdateSettings = field(default_factory=UpdateSettings)
    sample: SampleSettings = field(default_factory=SampleSettings)
    team: Team = field(default_factory=Team)

    @property
    def lease_s(self) -> float:
        """How long a worker's lease holds, in seconds."""
        return self.fetch.total_timeout_s + self.team.lease_margin_s


_UNITS_S = {"ms": 0.001, "s": 1, "second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(?:(ms|s)|(second|minute|hour|day|week)s?)\s*")
_MAX_SECONDS = 100 * 366 * 86400.0  # a century: what is later cannot be shown as a date
_MAX_COUNT = 10**15
_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_CONTACT = re.compile(r"https?://[^\s/]+\S*|(?:mailto:)?[^\s@]+@[^\s@]+\.[^\s@]+")


def _seconds(value: object) -> float:
    """A number of seconds, or a text such as "30 days"."""
    if isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        value = float(match[1]) * _UNITS_S[match[2] or match[3]]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAX_SECONDS:
        raise ValueError('must be a number of seconds, 0 or more, or a text such as "500 ms", "2 minutes", "30 days"')
    return float(value)


def _some_seconds(value: object) -> float:
    """Not 0: a request without a time limit might never end, a retry without a pause is a hammer."""
    seconds = _seconds(value)
    if seconds == 0:
        raise ValueError("must be more than 0 seconds")
    return seconds


def _seconds_or_none(value: object) -> float | None:
    """0 is no limit."""
    return _seconds(value) or None


def _factor(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1000:
        raise ValueError("must be a number from 0 to 1000")
    return float(value)


def _whole(least: int) -> Callable[[object], int]:
    def convert(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MAX_COUNT:
            raise ValueError(f"must be a whole number, {least} or more")
        return value

    return convert


def _count_or_none(value: object) -> int | None:
    """0 is no limit."""
    return _whole(0)(value) or None


def _depth(value: object) -> int | None:
    """-1 is no limit."""
    return None if value == -1 else _whole(0)(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError("must be a text on one line, in quotes")
    return value


def _token(value: object) -> str:
    if not re.fullmatch(r"[A-Za-z_-]+", _text(value)):
        raise ValueError("must be a product token: letters, '-' and '_' only (RFC 9309, 2.2.1)")
    return str(value)


def _contact(value: object) -> str:
    text = _text(value)
    if text and not (text.isascii() and _CONTACT.fullmatch(text)):
        raise ValueError("must be an http(s) URL or an e-mail address of whoever runs the crawl")
    return text.removeprefix("mailto:")


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError('must be a list of texts: ["…", "…"]')
    return tuple(value)


def _types(value: object) -> tuple[str, ...]:
    types = tuple(text.lower() for text in _texts(value)) if isinstance(value, list | tuple) else ()
    if not types or not all(_TYPE.fullmatch(text) for text in types):
        raise ValueError('must be a list of content types: ["text/html", "text/plain"]')
    return types


def _regexes(value: object) -> tuple[str, ...]:
    for pattern in _texts(value):
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    return _texts(value)


def _resolve(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list | tuple):
        raise ValueError('must be a list of texts, each PATTERN=ADDRESS: ["*.test=127.0.0.1"]')
    try:
        return tuple(parse_resolve(item) for item in _texts(value))
    except UsageError as error:
        raise ValueError(str(error).removeprefix("--resolve ")) from None


def _one_of(
    kind: type[ScopeMode] | type[Reading] | type[GroupBy] | type[Per] | type[Method],
) -> Callable[[object], object]:
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
    "store.db": (lambda value: require_store(_text(value)), "output", "db"),
    "seeds.file": (_text, "output", "seeds"),
    "seeds.skip_bad": (_flag, "output", "skip_bad_seeds"),
    "output.progress": (_flag, "output", "progress"),
    "output.json": (_flag, "output", "json"),
    "output.warc": (_text, "output", "warc"),
    "scope.mode": (_one_of(ScopeMode), "scope", "mode"),
    "scope.include": (_regexes, "scope", "include"),
    "scope.exclude": (_regexes, "scope", "exclude"),
    "limits.max_pages": (_count_or_none, "crawl", "max_pages"),
    "limits.max_pages_per_site": (_count_or_none, "crawl", "max_pages_per_site"),
    "limits.max_depth": (_depth, "scope", "max_depth"),
    "limits.max_time": (_seconds_or_none, "crawl", "max_time_s"),
    "limits.concurrency": (_whole(1), "crawl", "concurrency"),
    "discovery.sitemaps": (_flag, "crawl", "sitemaps"),
    "revisit.enabled": (_flag, "revisit", "enabled"),
    "revisit.first": (_some_seconds, "revisit", "first_s"),
    "revisit.min_interval": (_some_seconds, "revisit", "min_interval_s"),
    "revisit.max_interval": (_some_seconds, "revisit", "max_interval_s"),
    "revisit.per_day": (_count_or_none, "revisit", "per_day"),
    "revisit.per_site": (_count_or_none, "revisit", "per_site"),
    "updates.rup": (_flag, "updates", "rup"),
    "updates.cgi_elsewhere": (_flag, "updates", "cgi_elsewhere"),
    "traps.enabled": (_flag, "traps", "enabled"),
    "traps.max_url_chars": (_whole(1), "traps", "max_url_chars"),
    "traps.max_path_segments": (_whole(1), "traps", "max_path_segments"),
    "traps.max_repetitions": (_whole(1), "traps", "max_repetitions"),
    "traps.max_query_chars": (_whole(1), "traps", "max_query_chars"),
    "traps.max_parameters": (_whole(1), "traps", "max_parameters"),
    "traps.max_same_name": (_whole(1), "traps", "max_same_name"),
    "traps.max_same_parameter": (_whole(1), "traps", "max_same_parameter"),
    "traps.first_year": (_whole(1), "traps", "first_year"),
    "traps.max_years_ahead": (_whole(1), "traps", "max_years_ahead"),
    "politeness.delay": (_seconds, "politeness", "delay_s"),
    "politeness.slow_factor": (_factor, "politeness", "slow_factor"),
    "politeness.slow_cap": (_seconds, "politeness", "slow_cap_s"),
    "politeness.crawl_delay_cap": (_seconds_or_none, "politeness", "crawl_delay_cap_s"),
    "politeness.backoff_first": (_some_seconds, "politeness", "backoff_first_s"),
    "politeness.backoff_max": (_some_seconds, "politeness", "backoff_max_s"),
    "politeness.group": (_one_of(GroupBy), "politeness", "group"),
    "robots.reading": (_one_of(Reading), "robots", "reading"),
    "robots.stale_if_error": (_flag, "robots", "stale_if_error"),
    "robots.give_up_after": (_seconds, "robots", "give_up_after_s"),
    "robots.min_fresh": (_seconds, "robots", "min_fresh_s"),
    "robots.retry_first": (_some_seconds, "robots", "retry_first_s"),
    "robots.retry_max": (_some_seconds, "robots", "retry_max_s"),
    "fetch.types": (_types, "fetch", "accept_types"),
    "fetch.max_body_bytes": (_whole(1), "crawl", "max_body_bytes"),
    "fetch.max_redirects": (_whole(0), "retry", "max_redirects"),
    "fetch.retries": (_whole(0), "retry", "retries"),
    "fetch.retry_pause": (_seconds, "retry", "retry_pause_s"),
    "fetch.connect_timeout": (_some_seconds, "fetch", "connect_timeout_s"),
    "fetch.read_timeout": (_some_seconds, "fetch", "read_timeout_s"),
    "fetch.total_timeout": (_some_seconds, "fetch", "total_timeout_s"),
    "fetch.resolve": (_resolve, "fetch", "resolve"),
    "fetch.allow_private": (_flag, "fetch", "allow_private"),
    "workers.count": (_whole(1), "team", "workers"),
    "workers.lease_margin": (_some_seconds, "team", "lease_margin_s"),
    "workers.patience": (_seconds, "team", "patience_s"),
    "sample.size": (_count_or_none, "sample", "size"),
    "sample.per": (_one_of(Per), "sample", "per"),
    "sample.method": (_one_of(Method), "sample", "method"),
    "sample.seed": (_whole(0), "sample", "seed"),
}
_SECTIONS = tuple(dict.fromkeys(key.partition(".")[0] for key in KEYS))


def read_file(path: Path) -> dict[str, object]:
    """What a TOML file says, as :func:`apply` takes it. Raises :class:`ConfigError` where it is missing or no TOML."""
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"configuration {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"configuration {path}: not text in UTF-8; save it as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"configuration {path}: not TOML: {error}") from None


def settings_from(values: Mapping[str, object], *, source: str) -> Settings:
    """Settings with ``values`` over the defaults; takes and raises what :func:`apply` does."""
    return apply(Settings(), values, source=source)


def apply(
    settings: Settings, values: Mapping[str, object], *, source: str, names: Mapping[str, str] | None = None
) -> Settings:
    """``settings`` with ``values`` in place of theirs.

    ``values`` are dotted keys (``{"politeness.delay": 5}``) or tables of them, as in TOML. ``source`` says in
    messages where they come from, ``names`` what the user calls a key there (``--delay``).
    Raises :class:`ConfigError` that names every wrong key at once, each with its remedy.
    """
    wrong: list[str] = []
    sections: dict[str, dict[str, object]] = {}
    for key, value in _dotted(values):
        if key not in KEYS or (isinstance(value, Mapping) and key != "fetch.resolve"):
            wrong.append(_unknown(key, value))
            continue
        convert, section, name = KEYS[key]
        try:
            sections.setdefault(section, {})[name] = convert(value)
        except ValueError as error:
            wrong.append(_told(key, value, names or {}) + str(error))
    if wrong:
        raise ConfigError(f"{source}: " + "; ".join(wrong))
    changed = {name: replace(getattr(settings, name), **fields) for name, fields in sections.items()}
    return replace(settings, **changed)


def recorded(run: Mapping[str, Any]) -> Settings:
    """The settings of a run, as the store has them: :func:`dataclasses.asdict`, through JSON. Unknown keys are ignored.

    What an earlier version did not have is as by default.
    """
    settings = Settings()
    sections = {section.name: getattr(settings, section.name) for section in fields(settings)}
    for name, section in sections.items():
        kept = run.get(name) or {}
        values = {
            field.name: _like(getattr(section, field.name), kept[field.name])
            for field in fields(section)
            if field.name in kept
        }
        settings = replace(settings, **{name: replace(section, **values)})
    return settings


def _like(default: object, value: Any) -> Any:
    """A value from JSON, as what ``default`` is."""
    if isinstance(value, list):
        return tuple(tuple(item) if isinstance(item, list) else item for item in value)
    return type(default)(value) if isinstance(default, StrEnum) else value


def _dotted(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Every value with its dotted key; a table that stands where a value belongs counts as one."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and name in _SECTIONS:
            yield from _dotted(value, f"{name}.")
        else:
            yield name, value


def _told(key: str, value: object, names: Mapping[str, str]) -> str:
    """How a message on a wrong value begins. Lists are not shown: the message names the item."""
    shown = "" if isinstance(value, list | tuple) else f"{str(value)[:100]}" if key in names else f"{value!r}"[:100]
    return " ".join(filter(None, [names.get(key, f"{key} =" if shown else key), shown])) + ": "


def _unknown(key: str, value: object) -> str:
    """What to do about a key that is none."""
    if key in KEYS:
        return f"{key} is a key, not a section: write {key.rpartition('.')[2]} = … in [{key.partition('.')[0]}]"
    if key in _SECTIONS:
        keys = ", ".join(known.rpartition(".")[2] for known in KEYS if known.startswith(f"{key}."))
        return f"{key} is a section: write [{key}] and below it its keys ({keys})"
    if isinstance(value, Mapping):
        near = get_close_matches(key, _SECTIONS, n=1)
        return f"unknown section [{key}], " + (f"did you mean [{near[0]}]?" if near else _all_of(_SECTIONS))
    by_last_word = {known.rpartition(".")[2]: known for known in KEYS}
    last = key.rpartition(".")[2]
    words = [last] if last in by_last_word else get_close_matches(last, by_last_word, n=1)
    near = get_close_matches(key, KEYS, n=1, cutoff=0.8) or [by_last_word[word] for word in words]
    return f"unknown key {key!r}, " + (f"did you mean {near[0]!r}?" if near else _all_of(_SECTIONS))


def _all_of(sections: Iterable[str]) -> str:
    return "the sections are " + ", ".join(sections)
