"""Judge a robots.txt without network: one case in, one answer out, in the format of ``robots check --jsonl``."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from crawler import url
from crawler.model import Failed, Fetched, FetchResult, Headers, NotModified, Preference, Reading, Redirected, header
from crawler.model import RobotsAction as Action
from crawler.reasons import ErrorKind
from crawler.robots.http_dates import http_date
from crawler.robots.readings import SiteRules, read
from crawler.robots.records import product_token
from crawler.robots.response import Follow, RobotsSettings, interpret
from crawler.robots.rsl import licensed_by
from crawler.robots.tdmrep import TDMREP_PATH, filed_for
from crawler.robots.text import octets_read, parse

_T = TypeVar("_T")
_Read = Callable[[bytes, str, Reading, str], SiteRules]

_SETTINGS = {reading: RobotsSettings(reading) for reading in Reading}
_DAY_S = 86_400.0
_MAX_URL_CHARS = 1_000_000  # longer than any URL that a crawl admits: the check refuses no URL for its length
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_ALLOWED = {Action.FREE: True, Action.RESTRICTED: False}


@lru_cache(maxsize=64)
def _rules_here(body: bytes, token: str, reading: Reading, site: str) -> SiteRules:
    """The rules of one file, read in this process. Cached, because consecutive cases are often about the same file."""
    file, tokens = parse(body, max_bytes=octets_read(reading)), _SETTINGS[reading].policy_tokens
    return read(file, token=token, reading=reading, site=site, policy_tokens=tokens)


def check_case(
    case: Mapping[str, object], *, now: float | None = None, rules: _Read = _rules_here
) -> dict[str, object]:
    """Answer one case of ``crawler robots check --jsonl``.

    The case has the keys ``robots`` or ``robots_b64``, ``agent`` (a token or a whole ``User-Agent``), ``url``,
    ``reading``, ``status`` (0: no answer), ``headers``, ``tdmrep`` with the text of the site's tdmrep.json, and
    ``license`` with that of the licence that robots.txt names. In the answer, ``allowed`` is None if the site is
    deferred or a redirect decides; ``expires_after`` is in seconds.
    ``preferences`` are present if there are some.

    ``now`` is the time of the answer in seconds since the epoch. It matters only if the headers contain dates. If
    ``now`` is None, or the headers' ``Date`` is more than a day from ``now``, the headers are judged as of their
    ``Date``: a recorded answer gives the same result on any day.

    ``rules`` reads a file for a product token, in a reading, at a site; by default in this process, without limits on
    time. Raises :class:`ValueError` with the name of the missing or wrong key.
    """
    agent = product_token(_value(case, "agent", str))
    site, path = _url(case)
    reading = _reading(case)
    headers = _headers(case)
    now = _as_of(headers, now)
    if _status(case) in _REDIRECTS and header(headers, "location") is None:
        return _result("follow", None, None)  # the target is unknown, but the crawler would follow it
    answer = _answer(case, site, headers, now)
    copy = interpret(answer, settings=_SETTINGS[reading], previous=None, hops=0, seen=(), now=now)
    if isinstance(copy, Follow):
        return _result("follow", None, None)
    expires_after = round(copy.expires_at - now, 3)
    if copy.action is not Action.PARSE:
        allowed = _ALLOWED.get(copy.action)
        if path == "/robots.txt":
            allowed = True
        result = _result(copy.action.value, allowed, expires_after)
        return _with_preferences(result, _filed(case, site, path) if copy.action is Action.FREE else ())
    assert copy.body is not None, "only a store keeps a copy without its text"
    found = rules(copy.body, agent, reading, site)
    is_asked = found.verdict(path).allowed and found.verdict(TDMREP_PATH).allowed
    filed = _filed(case, site, path) if is_asked else ()
    stated = found.stated_for(path)
    licence = _value(case, "license", str, "").encode("utf-8", "surrogatepass")
    licensed = licensed_by(licence, stated, site, path) if licence else ()
    return _with_preferences(_parsed(found, path, expires_after), (*stated, *filed, *licensed))


def _filed(case: Mapping[str, object], site: str, path: str) -> tuple[Preference, ...]:
    """What the site's tdmrep.json states for a path."""
    text = _value(case, "tdmrep", str, "")
    return filed_for(text, site, path) if text else ()


def _with_preferences(answer: dict[str, object], stated: tuple[Preference, ...]) -> dict[str, object]:
    return answer | {"preferences": [one._asdict() for one in stated]} if stated else answer


def _result(action: str, allowed: bool | None, expires_after: float | None) -> dict[str, object]:
    return {
        "allowed": allowed,
        "action": action,
        "line": None,
        "expires_after": expires_after,
        "crawl_delay": None,
        "main_site": None,
        "agent_server": None,
        "sitemaps": [],
    }


def _parsed(rules: SiteRules, path: str, expires_after: float) -> dict[str, object]:
    verdict = rules.verdict(path)
    return {
        "allowed": verdict.allowed,
        "action": Action.PARSE.value,
        "line": verdict.line,
        "expires_after": expires_after,
        "crawl_delay": rules.crawl_delay_s,
        "main_site": rules.main_site,
        "agent_server": rules.agent_server(path).url,
        "sitemaps": list(rules.sitemaps),
    }


def _status(case: Mapping[str, object]) -> int:
    status = _value(case, "status", int, 200)
    if status and not 100 <= status <= 999:
        raise ValueError(f'"status" must be 0 (no answer) or an HTTP status, not {status}')
    return status


def _answer(case: Mapping[str, object], site: str, headers: Headers, now: float) -> FetchResult:
    """The answer that the case describes, in the form in which the fetcher reports it."""
    status = _status(case)
    asked = f"{site}/robots.txt"
    if 200 <= status <= 299:
        return Fetched(asked, now, now, headers, status=status, plain=_body(case))
    if status == 304:
        return NotModified(asked, now, now, headers)
    location = header(headers, "location")
    if 300 <= status <= 399 and location is not None:
        return Redirected(asked, now, now, headers, status=status, location=location)
    if status == 0:
        return Failed(asked, now, now, kind=ErrorKind.TIMEOUT)
    return Failed(asked, now, now, headers, status=status)


def _body(case: Mapping[str, object]) -> bytes:
    if case.get("robots") is not None:
        return _value(case, "robots", str).encode("utf-8", "surrogatepass")
    if case.get("robots_b64") is None:
        if case.get("status") == 204:
            return b""
        raise ValueError('"robots" (or "robots_b64") is missing')
    try:
        return base64.b64decode(_value(case, "robots_b64", str), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f'"robots_b64" is not base64: {error}') from None


def _url(case: Mapping[str, object]) -> url.SiteAndPath:
    try:
        return url.split(url.canonicalise(_value(case, "url", str), max_chars=_MAX_URL_CHARS))
    except url.NotCrawlable as error:
        raise ValueError(f'"url": {error}') from None


def _reading(case: Mapping[str, object]) -> Reading:
    name = _value(case, "reading", str, Reading.STRICT.value)
    try:
        return Reading(name)
    except ValueError:
        raise ValueError(f'"reading" must be one of {", ".join(Reading)}, not {name!r}') from None


def _headers(case: Mapping[str, object]) -> Headers:
    headers: Any = case.get("headers") or {}
    pairs = headers.items() if isinstance(headers, dict) else headers
    try:
        given = [(name, value) for name, value in pairs]
    except (TypeError, ValueError):
        raise ValueError('"headers" must map names to texts, or list pairs of them') from None
    for name, value in given:
        if not isinstance(name, str) or not isinstance(value, str | int | float):
            raise ValueError(f'"headers" must map names to texts; {name!r} has {type(value).__name__}')
    return tuple((name, str(value)) for name, value in given)


def _as_of(headers: Headers, now: float | None) -> float:
    date = http_date(header(headers, "date") or "") if headers else None
    if now is None or (date is not None and abs(date - now) > _DAY_S):
        return date or 0.0
    return now


def _value(case: Mapping[str, object], key: str, kind: type[_T], default: _T | None = None) -> _T:
    value = default if case.get(key) is None else case[key]
    if value is None:
        raise ValueError(f'"{key}" is missing')
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f'"{key}" must be {kind.__name__}, not {type(value).__name__}')
    return value
