"""Judge a robots.txt without network: one case in, one answer out, in the format of ``robots check --jsonl``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated

from msgspec import Meta, Struct, ValidationError, convert

from crawler import url
from crawler.dates import http_date
from crawler.model import Failed, Fetched, FetchResult, Headers, NotModified, Preference, Reading, Redirected, header
from crawler.model import RobotsAction as Action
from crawler.reasons import ErrorKind
from crawler.robots.readings import SiteRules, read
from crawler.robots.records import product_token
from crawler.robots.response import Follow, RobotsSettings, interpret
from crawler.robots.rsl import licensed_by
from crawler.robots.tdmrep import TDMREP_PATH, filed_for
from crawler.robots.text import octets_read, parse

_Read = Callable[[bytes, str, Reading, str], SiteRules]

_SETTINGS = {reading: RobotsSettings(reading) for reading in Reading}
_DAY_S = 86_400.0
_MAX_URL_CHARS = 1_000_000  # longer than any URL that a crawl admits: the check refuses no URL for its length
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_ALLOWED = {Action.FREE: True, Action.RESTRICTED: False}


class _Case(Struct):
    """A case without the keys that are null."""

    agent: str
    url: str
    reading: Reading = Reading.STRICT
    status: Annotated[int, Meta(ge=0, le=999)] = 200  # 0: no answer
    headers: dict[str, str | int | float] | list[tuple[str, str | int | float]] = []
    robots: str | None = None
    robots_b64: bytes | None = None
    tdmrep: str = ""
    license: str = ""


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
    given = _read_case(case)
    site, path = _url(given)
    pairs = given.headers.items() if isinstance(given.headers, dict) else given.headers
    headers: Headers = tuple((name, str(value)) for name, value in pairs)
    now = _as_of(headers, now)
    if given.status in _REDIRECTS and header(headers, "location") is None:
        return _result("follow", None, None)  # the target is unknown, but the crawler would follow it
    answer = _answer(given, site, headers, now)
    copy = interpret(answer, settings=_SETTINGS[given.reading], previous=None, hops=0, seen=(), now=now)
    if isinstance(copy, Follow):
        return _result("follow", None, None)
    expires_after = round(copy.expires_at - now, 3)
    if copy.action is not Action.PARSE:
        allowed = True if path == "/robots.txt" else _ALLOWED.get(copy.action)
        result = _result(copy.action.value, allowed, expires_after)
        return _with_preferences(result, _filed(given, site, path) if copy.action is Action.FREE else ())
    assert copy.body is not None, "only a store keeps a copy without its text"
    found = rules(copy.body, product_token(given.agent), given.reading, site)
    is_asked = found.verdict(path).allowed and found.verdict(TDMREP_PATH).allowed
    filed = _filed(given, site, path) if is_asked else ()
    stated = found.stated_for(path)
    licence = given.license.encode("utf-8", "surrogatepass")
    licensed = licensed_by(licence, stated, site, path) if licence else ()
    return _with_preferences(_parsed(found, path, expires_after), (*stated, *filed, *licensed))


def _read_case(case: Mapping[str, object]) -> _Case:
    try:
        given = convert({key: value for key, value in case.items() if value is not None}, _Case)
    except ValidationError as error:
        raise ValueError(str(error)) from None
    if 0 < given.status < 100:
        raise ValueError(f"`status` must be 0 (no answer) or an HTTP status, not {given.status}")
    return given


def _filed(case: _Case, site: str, path: str) -> tuple[Preference, ...]:
    """What the site's tdmrep.json states for a path."""
    return filed_for(case.tdmrep, site, path) if case.tdmrep else ()


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


def _answer(case: _Case, site: str, headers: Headers, now: float) -> FetchResult:
    """The answer that the case describes, in the form in which the fetcher reports it."""
    status, asked = case.status, f"{site}/robots.txt"
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


def _body(case: _Case) -> bytes:
    if case.robots is not None:
        return case.robots.encode("utf-8", "surrogatepass")
    if case.robots_b64 is None and case.status != 204:
        raise ValueError("`robots` (or `robots_b64`) is missing")
    return case.robots_b64 or b""


def _url(case: _Case) -> url.SiteAndPath:
    try:
        return url.split(url.canonicalise(case.url, max_chars=_MAX_URL_CHARS))
    except url.NotCrawlable as error:
        raise ValueError(f"`url`: {error}") from None


def _as_of(headers: Headers, now: float | None) -> float:
    date = http_date(header(headers, "date") or "") if headers else None
    if now is None or (date is not None and abs(date - now) > _DAY_S):
        return date or 0.0
    return now
