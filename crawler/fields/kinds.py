"""The kinds of values that settings have: how each is read, and how it is written in TOML.

A kind that only one section needs stands beside that section.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from ipaddress import ip_network
from typing import Any

from crawler.formatting import read_duration, read_size, written_duration, written_size

_MAX_SECONDS = 100 * 366 * 86400.0  # a century: a later time cannot be shown as a date
_MAX_COUNT = 10**15
_AUTO = "auto"


class Form(Enum):
    """The form of a value on the command line."""

    FLAG = auto()
    WHOLE = auto()
    NUMBER = auto()
    DURATION = auto()
    TEXT = auto()
    CHOICE = auto()
    LIST = auto()
    WORDS = auto()  # a text without blanks in its parts; the option may be repeated


@dataclass(frozen=True, slots=True)
class ValueKind:
    """One kind of value.

    ``wanted`` completes "must be …". ``read`` takes a TOML value and returns the value of the setting; it raises
    :class:`ValueError` with a sentence for a wrong one. ``written`` is the inverse of ``read``. ``metavar`` stands for
    the value in the help of the command line.
    """

    wanted: str
    form: Form
    read: Callable[[object], Any]
    written: Callable[[Any], object] = lambda value: value
    metavar: str = ""
    choices: tuple[str, ...] = ()

    def toml(self, value: Any) -> str:
        """``value`` as TOML writes it."""
        return _toml(self.written(value))


def _toml(written: object) -> str:
    """JSON has the same syntax for texts, numbers, booleans and lists of texts. A mapping is an inline table."""
    if isinstance(written, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(value)}" for key, value in written.items()) + "}"
    return json.dumps(written, ensure_ascii=False)


_A_DURATION = 'a number of seconds, 0 or more, or a text such as "500 ms", "3 min", "30 days"'


def read_seconds(value: object) -> float:
    """The seconds of a duration. Raises :class:`ValueError` with a sentence, as all readers of values do."""
    if isinstance(value, str):
        value = read_duration(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAX_SECONDS:
        raise ValueError(f"must be {_A_DURATION}")
    return float(value)


def _more_than_0_seconds(value: object) -> float:
    """A request without a time limit might never end, and a retry without a pause burdens the site."""
    span_s = read_seconds(value)
    if span_s == 0:
        raise ValueError("must be more than 0 seconds")
    return span_s


def _durations(value: object) -> tuple[float, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError('must be a list of durations, such as ["1 hour", "1 day"]')
    return tuple(_more_than_0_seconds(span) for span in value)


def _written_seconds(span_s: float | None) -> float | str:
    """The shortest form: ``2``, ``"5 minutes"``, ``"90 days"``; 0 for no limit."""
    return written_duration(span_s or 0)


def _octets(value: object, or_else: str) -> int:
    if isinstance(value, str):
        value = read_size(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_COUNT:
        raise ValueError(f'must be a number of bytes, or a text such as "500 MB", "1 GB", "2 GiB"; {or_else}')
    return value


def _depth(value: object) -> int | None:
    if value == -1:
        return None
    try:
        return _whole(value, 0)
    except ValueError as error:
        raise ValueError(f"{error}; -1 is no limit") from None


def _whole(value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MAX_COUNT:
        raise ValueError(f"must be a whole number, {least} or more")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def read_text(value: object) -> str:
    """A text on one line."""
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError("must be a text on one line, in quotes")
    return value


def read_texts(value: object) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError('must be a list of texts: ["…", "…"]')
    return tuple(value)


def _regexes(value: object) -> tuple[str, ...]:
    for pattern in read_texts(value):
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    return read_texts(value)


def _networks(value: object) -> tuple[str, ...]:
    networks = tuple(item.strip() for item in read_texts(value))
    for network in networks:
        try:
            ip_network(network)
        except ValueError:
            raise ValueError(f"{network!r} is no IP address, and no network such as 192.0.2.0/24") from None
    return networks


def whole(least: int) -> ValueKind:
    """A whole number of ``least`` or more."""
    return ValueKind(f"a whole number, {least} or more", Form.WHOLE, lambda value: _whole(value, least), metavar="N")


def _number(wanted: str, fits: Callable[[float], bool], metavar: str = "") -> ValueKind:
    """A number for which ``fits`` is true; whole ones are written without a point."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not fits(value):
            raise ValueError(f"must be {wanted}")
        return float(value)

    return ValueKind(wanted, Form.NUMBER, read, lambda value: int(value) if value % 1 == 0 else value, metavar)


def one_of(kind: type[StrEnum]) -> ValueKind:
    """One of the members of an enumeration, by its value."""
    choices = tuple(member.value for member in kind)

    def read(value: object) -> StrEnum:
        try:
            return kind(str(value))
        except ValueError:
            raise ValueError("must be one of " + ", ".join(choices)) from None

    return ValueKind("one of " + ", ".join(f'"{choice}"' for choice in choices), Form.CHOICE, read, choices=choices)


class WrongPart(ValueError):
    """A part of a value is wrong. ``part`` is its dotted key in TOML, by which a message finds the line."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(reason)
        self.part = part


SECONDS = ValueKind("a duration", Form.DURATION, read_seconds, _written_seconds, "TIME")
MORE_THAN_0_SECONDS = ValueKind(
    "a duration of more than 0 seconds", Form.DURATION, _more_than_0_seconds, _written_seconds, "TIME"
)
#: ``None`` is no limit, which TOML writes as 0.
SECONDS_OR_NO_LIMIT = ValueKind(
    "a duration; 0 is no limit", Form.DURATION, lambda value: read_seconds(value) or None, _written_seconds, "TIME"
)
COUNT_OR_NO_LIMIT = ValueKind(
    "a whole number; 0 is no limit", Form.WHOLE, lambda value: _whole(value, 0) or None, lambda value: value or 0, "N"
)
SHARE = _number("a number above 0, at most 1", lambda value: 0 < value <= 1, "X")
#: ``None`` is no limit, which TOML writes as -1: 0 takes the seeds alone.
DEPTH = ValueKind(
    "a whole number; -1 is no limit",
    Form.WHOLE,
    _depth,
    lambda value: -1 if value is None else value,
    "N",
)
FACTOR = _number("a number from 0 to 1000", lambda value: 0 <= value <= 1000)
#: ``None`` is "auto": the crawler chooses.
SIZE_OR_AUTO = ValueKind(
    f'"{_AUTO}", or a size such as "500 MB"; 0 is none',
    Form.TEXT,
    lambda value: None if value == _AUTO else _octets(value, f'"{_AUTO}" leaves it to the crawler'),
    lambda octets: _AUTO if octets is None else written_size(octets),
)
SIZE_OR_NO_LIMIT = ValueKind(
    'a size such as "50 GB"; 0 is no limit',
    Form.TEXT,
    lambda value: _octets(value, "0 is no limit") or None,
    lambda octets: written_size(octets or 0),
    "SIZE",
)
DURATIONS = ValueKind(
    'a list of durations, such as ["1 hour", "1 day"]',
    Form.LIST,
    _durations,
    lambda spans: [_written_seconds(span_s) for span_s in spans],
    "TIME",
)
FLAG = ValueKind("true or false", Form.FLAG, _flag)
TEXT = ValueKind("a text", Form.TEXT, read_text, metavar="TEXT")
REGEXES = ValueKind("a list of regular expressions", Form.LIST, _regexes, metavar="REGEX")
NETWORKS = ValueKind("a list of IP addresses and networks", Form.LIST, _networks)
