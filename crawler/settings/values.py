"""The kinds of values that settings have: how each is read, and how it is written in TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from ipaddress import ip_network
from typing import Any
from urllib.parse import unquote, urlsplit

from crawler.frontier.hours import window
from crawler.preferences.purposes import UsePurpose
from crawler.store.location import absolute, require_bodies, require_store
from crawler.url import NotCrawlable, canonicalise, host_of, is_loopback, literal_address, split

_UNITS_S = {"ms": 0.001, "s": 1, "second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_LONG_UNITS = ("day", "hour", "minute")  # a default is written in the first of these that it is a multiple of
_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(?:(ms|s)|(second|minute|hour|day|week)s?)\s*")
_MAX_SECONDS = 100 * 366 * 86400.0  # a century: a later time cannot be shown as a date
_MAX_COUNT = 10**15
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kMGT]?B)?", re.IGNORECASE)
_SIZE_UNITS = {"TB": 10**12, "GB": 10**9, "MB": 10**6, "KB": 10**3, "B": 1}
_AUTO = "auto"
#: Short names of content types.
TYPE_NAMES = {
    "html": ("text/html", "application/xhtml+xml"),
    "pdf": ("application/pdf",),
    "text": ("text/plain",),
}
_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_HEADER = re.compile(r"\*|[a-z0-9!#$%&'*+.^_`|~-]+")
_TOKEN = re.compile(r"[A-Za-z_-]+")
_HOSTS = re.compile(r"\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
_BETWEEN = re.compile(r",?\s+")
_CONTACT = re.compile(r"https?://[^\s/]+\S*|(?:mailto:)?[^\s@]+@[^\s@]+\.[^\s@]+")


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
        """``value`` as TOML writes it. JSON has the same syntax for texts, numbers, booleans and lists of texts."""
        return json.dumps(self.written(value), ensure_ascii=False)


_A_DURATION = 'a number of seconds, 0 or more, or a text such as "500 ms", "2 minutes", "30 days"'
_MORE_THAN_0 = "a duration of more than 0 seconds"


def _seconds(value: object) -> float:
    if isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        value = float(match[1]) * _UNITS_S[match[2] or match[3]]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAX_SECONDS:
        raise ValueError(f"must be {_A_DURATION}")
    return float(value)


def _more_than_0_seconds(value: object) -> float:
    """A request without a time limit might never end, and a retry without a pause burdens the site."""
    seconds = _seconds(value)
    if seconds == 0:
        raise ValueError("must be more than 0 seconds")
    return seconds


def _written_seconds(seconds: float | None) -> float | str:
    """The shortest form: ``2``, ``"5 minutes"``, ``"90 days"``; 0 for no limit."""
    for unit in _LONG_UNITS:
        if seconds and seconds % _UNITS_S[unit] == 0:
            count = int(seconds // _UNITS_S[unit])
            return f"{count} {unit}{'s' * (count != 1)}"
    return int(seconds or 0) if (seconds or 0) % 1 == 0 else float(seconds or 0)


def _size(value: object) -> int | None:
    if value == _AUTO:
        return None
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        value = round(float(match[1]) * _SIZE_UNITS[(match[2] or "B").upper()])
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_COUNT:
        raise ValueError(f'must be "{_AUTO}", a number of bytes, or a text such as "500 MB", "1 GB"')
    return value


def _written_size(octets: int | None) -> int | str:
    if octets is None:
        return _AUTO
    unit, factor = next(((unit, n) for unit, n in _SIZE_UNITS.items() if octets and octets % n == 0), ("B", 1))
    return octets if factor == 1 else f"{octets // factor} {unit}".replace("KB", "kB")


def _size_or_no_limit(value: object) -> int | None:
    try:
        octets = None if value == _AUTO else _size(value)
    except ValueError:
        octets = None
    if octets is None:
        raise ValueError('must be a number of bytes, or a text such as "500 MB", "50 GB"; 0 is no limit')
    return octets or None


def _notify(value: object) -> str:
    """The address of a webhook, or of a mailbox behind a mail server; "" for none."""
    text = _text(value)
    parts = urlsplit(text)
    mailbox = unquote(parts.path)
    is_mail = parts.scheme in ("smtp", "smtps") and "@" in mailbox and mailbox.isprintable() and not parts.query
    if text and not (parts.hostname and (is_mail or parts.scheme in ("http", "https"))):
        raise ValueError("must be https://HOST/… (a webhook) or smtp[s]://HOST[:PORT]/you@example.org")
    try:
        _ = parts.port
    except ValueError:
        raise ValueError("has a port that is no number from 0 to 65535") from None
    return text


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError("must be a number above 0, at most 1")
    return float(value)


def _factor(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1000:
        raise ValueError("must be a number from 0 to 1000")
    return float(value)


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


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError("must be a text on one line, in quotes")
    return value


def _token(value: object) -> str:
    text = _text(value)
    if not _TOKEN.fullmatch(text):
        raise ValueError("must be a product token: letters, '-' and '_' only (RFC 9309, 2.2.1)")
    return text


def _contact(value: object) -> str:
    """The URL, the e-mail address, or both, in this order with a blank between."""
    if isinstance(value, list | tuple):
        value = " ".join(_texts(value))
    parts = [part.removeprefix("mailto:") for part in _BETWEEN.split(_text(value)) if part]
    if not all(part.isascii() and _CONTACT.fullmatch(part) for part in parts):
        raise ValueError("must be an http(s) URL or an e-mail address of the person who runs the crawl, or both")
    parts.sort(key=_is_email)
    if len({_is_email(part) for part in parts}) < len(parts):
        raise ValueError("must be one URL, one e-mail address, or one of each")
    return " ".join(parts)


def _is_email(contact: str) -> bool:
    return "://" not in contact


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError('must be a list of texts: ["…", "…"]')
    return tuple(value)


def _types(value: object) -> tuple[str, ...]:
    texts = _texts(value) if isinstance(value, list | tuple) else ()
    words = [word.strip().lower() for text in texts for word in text.split(",")]
    types = tuple(dict.fromkeys(kind for word in words for kind in TYPE_NAMES.get(word, (word,))))
    unknown = [kind for kind in types if not _TYPE.fullmatch(kind)]
    if unknown or not types:
        names = ", ".join(TYPE_NAMES)
        given = f"{unknown[0]!r} is no content type; it " if unknown else ""
        raise ValueError(f'{given}must be a list of content types or {names}: ["html", "pdf", "text/markdown"]')
    return types


def _headers(value: object) -> tuple[str, ...]:
    names = tuple(text.lower() for text in _texts(value)) if isinstance(value, list | tuple) else ()
    if not all(_HEADER.fullmatch(text) for text in names):
        raise ValueError('must be a list of names of headers: ["server", "x-frame-options"], or ["*"] for all')
    return names


def _purposes(value: object) -> tuple[UsePurpose, ...]:
    """Each purpose once, in the order of the enumeration. A text may name several, with commas between them."""
    given = {name.strip() for text in _texts(value) for name in text.split(",")}
    if unknown := given - {purpose.value for purpose in UsePurpose}:
        raise ValueError(f"{min(unknown)!r} is none of {', '.join(UsePurpose)}")
    return tuple(purpose for purpose in UsePurpose if purpose in given)


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
    return tuple(address_override(item) for item in _texts(value))


def _networks(value: object) -> tuple[str, ...]:
    texts = tuple(text.strip() for text in _texts(value))
    for text in texts:
        try:
            ip_network(text)
        except ValueError:
            raise ValueError(f"{text!r} is no IP address, and no network such as 192.0.2.0/24") from None
    return texts


def address_override(text: str) -> tuple[str, str]:
    """The (pattern, address) pair that ``PATTERN=ADDRESS`` says. Raises :class:`ValueError` if it says none.

    A pattern is a host name, ``*.`` and a name (every name below that name, without the name itself), or ``*``. The
    port does not matter. The address is IPv4 or IPv6, with or without brackets.
    """
    pattern, equals, address = (part.strip() for part in text.partition("="))
    pattern = pattern.lower().rstrip(".")
    address = address.removeprefix("[").removesuffix("]")
    if not equals or not _HOSTS.fullmatch(pattern):
        raise ValueError(f"{text!r}: write PATTERN=ADDRESS, for example '*.test=127.0.0.1'")
    if literal_address(address) is None:
        raise ValueError(f"{text!r}: {address!r} is not an IP address, and a name cannot stand for a name")
    return pattern, address


def _verify(value: object) -> tuple[str, ...]:
    return tuple(_unverified_host(text) for text in _texts(value))


def _unverified_host(text: str) -> str:
    pattern, _, switch = (part.strip().lower() for part in text.partition("="))
    pattern = pattern.rstrip(".")
    if switch != "off" or not _HOSTS.fullmatch(pattern):
        raise ValueError(f"{text!r}: write HOST=off, for example 'intranet.example=off' or '*.test=off'")
    return pattern


def _canonical(text: str, wanted: str) -> str:
    """The canonical form of a URL that is to be ``wanted``, such as "an https URL"."""
    try:
        return canonicalise(text)
    except NotCrawlable as error:
        raise ValueError(f"must be {wanted}: {error}") from None


def _proxy(value: object) -> str:
    text = _text(value)
    if not text:
        return ""
    canonical = _canonical(text, "the URL of an HTTP proxy")
    if not canonical.startswith("http://") or split(canonical).path != "/":
        raise ValueError("must be the URL of an HTTP proxy: http://HOST:PORT")
    return canonical


def _agent_url(value: object) -> str:
    """The URL as ``Signature-Agent`` has it: an origin without a slash, as the drafts write it."""
    text = _text(value)
    if not text:
        return ""
    canonical = _canonical(text, "an https URL")
    if not canonical.startswith("https://") and not is_loopback(host_of(canonical)):
        raise ValueError("must be an https URL: verifiers fetch the keys from it")
    if "?" in canonical:
        raise ValueError("must be a URL without a query: it names the crawler")
    return canonical.removesuffix("/") if split(canonical).path == "/" else canonical


def _signature_lifetime(value: object) -> float:
    seconds = _seconds(value)
    if not 1 <= seconds <= _UNITS_S["day"]:
        raise ValueError("must be from 1 second to 24 hours (draft-ietf-webbotauth-httpsig-protocol)")
    return seconds


def _hours(value: object) -> tuple[str, ...]:
    texts = tuple(text.strip() for text in _texts(value))
    for text in texts:
        window(text)
    return texts


def _stores(value: object) -> tuple[str, ...]:
    """Several stores, each once, in order: the order in which they were given does not matter."""
    stores = sorted({absolute(require_store(text)) for text in _texts(value)})
    if len(stores) == 1:
        raise ValueError("must name the stores of all parts: two at least")
    return tuple(stores)


def whole(least: int) -> ValueKind:
    """A whole number of ``least`` or more."""
    return ValueKind(f"a whole number, {least} or more", Form.WHOLE, lambda value: _whole(value, least), metavar="N")


def one_of(kind: type[StrEnum]) -> ValueKind:
    """One of the members of an enumeration, by its value."""
    choices = tuple(member.value for member in kind)

    def read(value: object) -> StrEnum:
        try:
            return kind(str(value))
        except ValueError:
            raise ValueError("must be one of " + ", ".join(choices)) from None

    return ValueKind("one of " + ", ".join(f'"{choice}"' for choice in choices), Form.CHOICE, read, choices=choices)


SECONDS = ValueKind(_A_DURATION, Form.DURATION, _seconds, _written_seconds, "S")
MORE_THAN_0_SECONDS = ValueKind(_MORE_THAN_0, Form.DURATION, _more_than_0_seconds, _written_seconds, "S")
#: ``None`` is no limit, which TOML writes as 0.
SECONDS_OR_NO_LIMIT = ValueKind(
    "a duration; 0 is no limit", Form.DURATION, lambda value: _seconds(value) or None, _written_seconds, "S"
)
COUNT_OR_NO_LIMIT = ValueKind(
    "a whole number; 0 is no limit", Form.WHOLE, lambda value: _whole(value, 0) or None, lambda value: value or 0, "N"
)
#: ``None`` is no sample, which TOML writes as 0.
SAMPLE_SIZE = replace(COUNT_OR_NO_LIMIT, wanted="a whole number; 0 draws none")
#: ``None`` is all sites, which TOML writes as 0.
SITES = replace(COUNT_OR_NO_LIMIT, wanted="a whole number; 0 is all sites")
SHARE = ValueKind(
    "a number above 0, at most 1", Form.NUMBER, _share, lambda value: int(value) if value % 1 == 0 else value, "X"
)
#: ``None`` is no limit, which TOML writes as -1: 0 takes the seeds alone.
DEPTH = ValueKind(
    "a whole number; -1 is no limit",
    Form.WHOLE,
    _depth,
    lambda value: -1 if value is None else value,
    "N",
)
FACTOR = ValueKind(
    "a number from 0 to 1000", Form.NUMBER, _factor, lambda value: int(value) if value % 1 == 0 else value, "X"
)
#: ``None`` is "auto": the crawler chooses.
SIZE_OR_AUTO = ValueKind(
    f'"{_AUTO}", or a size such as "500 MB"; 0 is none', Form.TEXT, _size, _written_size, metavar="SIZE"
)
SIZE_OR_NO_LIMIT = ValueKind(
    'a size such as "50 GB"; 0 is no limit',
    Form.TEXT,
    _size_or_no_limit,
    lambda octets: 0 if octets is None else _written_size(octets),
    "SIZE",
)
NOTIFY = ValueKind("the address of a webhook or mailbox", Form.TEXT, _notify, metavar="URL")
FLAG = ValueKind("true or false", Form.FLAG, _flag)
TEXT = ValueKind("a text", Form.TEXT, _text, metavar="TEXT")
TOKEN = ValueKind("a product token", Form.TEXT, _token, metavar="TOKEN")
CONTACT = ValueKind("a URL, an e-mail address, or both", Form.WORDS, _contact, metavar="URL|E-MAIL")
AGENT_URL = ValueKind("an https URL", Form.TEXT, _agent_url, metavar="URL")
SIGNATURE_LIFETIME = ValueKind(
    "a duration from 1 second to 24 hours", Form.DURATION, _signature_lifetime, _written_seconds, "S"
)
HOURS = ValueKind("a list of hours with time zones", Form.LIST, _hours, metavar="[HOST=]HH-HH ZONE")
STORE = ValueKind(
    "a path or a database's URL", Form.TEXT, lambda value: require_store(_text(value)), metavar="PATH|URL"
)
BODIES = ValueKind(
    "a folder or s3://bucket/prefix", Form.TEXT, lambda value: require_bodies(_text(value)), metavar="DIR|URL"
)
STORES = ValueKind("a list of paths or databases' URLs", Form.LIST, _stores, list, metavar="PATH|URL")
REGEXES = ValueKind("a list of regular expressions", Form.LIST, _regexes, metavar="REGEX")
PURPOSES = ValueKind(
    "a list of " + ", ".join(f'"{purpose}"' for purpose in UsePurpose), Form.LIST, _purposes, list, metavar="PURPOSE"
)
PROXY = ValueKind("the URL of an HTTP proxy", Form.TEXT, _proxy, metavar="http://HOST:PORT")
HEADERS = ValueKind("a list of names of headers", Form.LIST, _headers, metavar="HEADER")
TYPES = ValueKind("a list of content types", Form.LIST, _types, metavar="TYPE")
NETWORKS = ValueKind("a list of IP addresses and networks", Form.LIST, _networks, metavar="ADDRESS")
RESOLVE = ValueKind(
    "a list of PATTERN=ADDRESS",
    Form.LIST,
    _resolve,
    lambda pairs: [f"{pattern}={address}" for pattern, address in pairs],
    "PATTERN=ADDRESS",
)
VERIFY = ValueKind(
    "a list of HOST=off", Form.LIST, _verify, lambda patterns: [f"{pattern}=off" for pattern in patterns], "HOST=off"
)
