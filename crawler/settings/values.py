"""The kinds of values that only the sections of :mod:`crawler.settings.settings` have."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from crawler.fields.kinds import Form, ValueKind, read_text, read_texts
from crawler.frontier.request_values import canonical
from crawler.preferences.purposes import UsePurpose
from crawler.store.location import require_bodies, require_store
from crawler.url import host_of, is_loopback, split

_HEADER = re.compile(r"\*|[a-z0-9!#$%&'*+.^_`|~-]+")
_TOKEN = re.compile(r"[A-Za-z_-]+")
_BETWEEN = re.compile(r",?\s+")
_CONTACT = re.compile(r"https?://[^\s/]+\S*|(?:mailto:)?[^\s@]+@[^\s@]+\.[^\s@]+")


def _notify(value: object) -> str:
    """The address of a webhook, or of a mailbox behind a mail server; "" for none."""
    text = read_text(value)
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


def _token(value: object) -> str:
    text = read_text(value)
    if not _TOKEN.fullmatch(text):
        raise ValueError("must be a product token: letters, '-' and '_' only (RFC 9309, 2.2.1)")
    return text


def _contact(value: object) -> str:
    """The URL, the e-mail address, or both, in this order with a blank between."""
    if isinstance(value, list | tuple):
        value = " ".join(read_texts(value))
    parts = [part.removeprefix("mailto:") for part in _BETWEEN.split(read_text(value)) if part]
    if not all(part.isascii() and _CONTACT.fullmatch(part) for part in parts):
        raise ValueError("must be an http(s) URL or an e-mail address of the person who runs the crawl, or both")
    parts.sort(key=_is_email)
    if len({_is_email(part) for part in parts}) < len(parts):
        raise ValueError("must be one URL, one e-mail address, or one of each")
    return " ".join(parts)


def _is_email(contact: str) -> bool:
    return "://" not in contact


def _headers(value: object) -> tuple[str, ...]:
    names = tuple(text.lower() for text in read_texts(value)) if isinstance(value, list | tuple) else ()
    if not all(_HEADER.fullmatch(text) for text in names):
        raise ValueError('must be a list of names of headers: ["server", "x-frame-options"], or ["*"] for all')
    return names


def _purposes(value: object) -> tuple[UsePurpose, ...]:
    """Each purpose once, in the order of the enumeration. A text may name several, with commas between them."""
    given = {name.strip() for text in read_texts(value) for name in text.split(",")}
    if unknown := given - {purpose.value for purpose in UsePurpose}:
        raise ValueError(f"{min(unknown)!r} is none of {', '.join(UsePurpose)}")
    return tuple(purpose for purpose in UsePurpose if purpose in given)


def _agent_url(value: object) -> str:
    """The URL as ``Signature-Agent`` has it: an origin without a slash, as the drafts write it."""
    text = read_text(value)
    if not text:
        return ""
    url = canonical(text, "an https URL")
    if not url.startswith("https://") and not is_loopback(host_of(url)):
        raise ValueError("must be an https URL: verifiers fetch the keys from it")
    if "?" in url:
        raise ValueError("must be a URL without a query: it names the crawler")
    return url.removesuffix("/") if split(url).path == "/" else url


def _absolute_file(value: object) -> str:
    path = read_text(value)
    if path and (not Path(path).is_absolute() or path.endswith("/")):
        raise ValueError("begin with / and name a file, because commands in any folder look there")
    return path


NOTIFY = ValueKind("the address of a webhook or mailbox", Form.TEXT, _notify)
TOKEN = ValueKind("a product token", Form.TEXT, _token, metavar="TOKEN")
CONTACT = ValueKind("a URL, an e-mail address, or both", Form.WORDS, _contact, metavar="URL|E-MAIL")
AGENT_URL = ValueKind("an https URL", Form.TEXT, _agent_url)
STORE = ValueKind(
    "a path or a database's URL", Form.TEXT, lambda value: require_store(read_text(value)), metavar="PATH|URL"
)
BODIES = ValueKind(
    "a folder or s3://bucket/prefix", Form.TEXT, lambda value: require_bodies(read_text(value)), metavar="DIR|URL"
)
ABSOLUTE_FILE = ValueKind("the path of a file from the root on", Form.TEXT, _absolute_file)
PURPOSES = ValueKind("a list of " + ", ".join(f'"{purpose}"' for purpose in UsePurpose), Form.LIST, _purposes, list)
HEADERS = ValueKind("a list of names of headers", Form.LIST, _headers)
