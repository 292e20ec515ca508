"""The kinds of values that only the settings of requests have."""

from __future__ import annotations

import re

from crawler.fields.kinds import Form, ValueKind, read_text, read_texts
from crawler.url import NotCrawlable, canonicalise, literal_address, split

#: Short names of content types.
TYPE_NAMES = {
    "html": ("text/html", "application/xhtml+xml"),
    "pdf": ("application/pdf",),
    "text": ("text/plain",),
}
_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_HOSTS = re.compile(r"\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")


def _types(value: object) -> tuple[str, ...]:
    texts = read_texts(value) if isinstance(value, list | tuple) else ()
    words = [word.strip().lower() for text in texts for word in text.split(",")]
    types = tuple(dict.fromkeys(kind for word in words for kind in TYPE_NAMES.get(word, (word,))))
    unknown = [kind for kind in types if not _TYPE.fullmatch(kind)]
    if unknown or not types:
        names = ", ".join(TYPE_NAMES)
        given = f"{unknown[0]!r} is no content type; it " if unknown else ""
        raise ValueError(f'{given}must be a list of content types or {names}: ["html", "pdf", "text/markdown"]')
    return types


def _resolve(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list | tuple):
        raise ValueError('must be a list of texts, each PATTERN=ADDRESS: ["*.test=127.0.0.1"]')
    return tuple(address_override(item) for item in read_texts(value))


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
    return tuple(_unverified_host(text) for text in read_texts(value))


def _unverified_host(text: str) -> str:
    pattern, _, switch = (part.strip().lower() for part in text.partition("="))
    pattern = pattern.rstrip(".")
    if switch != "off" or not _HOSTS.fullmatch(pattern):
        raise ValueError(f"{text!r}: write HOST=off, for example 'intranet.example=off' or '*.test=off'")
    return pattern


def canonical(text: str, wanted: str) -> str:
    """The canonical form of a URL that is to be ``wanted``, such as "an https URL"."""
    try:
        return canonicalise(text)
    except NotCrawlable as error:
        raise ValueError(f"must be {wanted}: {error}") from None


def _proxy(value: object) -> str:
    text = read_text(value)
    if not text:
        return ""
    url = canonical(text, "the URL of an HTTP proxy")
    if not url.startswith("http://") or split(url).path != "/":
        raise ValueError("must be the URL of an HTTP proxy: http://HOST:PORT")
    return url


PROXY = ValueKind("the URL of an HTTP proxy", Form.TEXT, _proxy)
TYPES = ValueKind("a list of content types", Form.LIST, _types)
RESOLVE = ValueKind(
    "a list of PATTERN=ADDRESS",
    Form.LIST,
    _resolve,
    lambda pairs: [f"{pattern}={address}" for pattern, address in pairs],
    "PATTERN=ADDRESS",
)
VERIFY = ValueKind(
    "a list of HOST=off", Form.LIST, _verify, lambda patterns: [f"{pattern}=off" for pattern in patterns]
)
