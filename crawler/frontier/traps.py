"""Rules that recognise traps: URLs of an endless web that a program generates on request.

Each rule has a name and examines one URL alone. In doubt, a rule admits the URL: the limits on depth and pages bound
the traps that are missed, while a page that is refused is never seen. A refusal has the code
:attr:`~crawler.reasons.ReasonCode.TRAP`. The thresholds are constants: a crawl whose real pages break a rule turns the
rules off (``traps.enabled``) and sets a limit on pages.

===================  ================================================================================
``url-length``       longer than servers and sitemaps accept (2,048 characters, sitemaps.org)
``path-depth``       more than 20 path segments (as in Heritrix)
``path-repetition``  a segment, or a run of segments, three times in a row (as in Heritrix for one
                     segment); segments of digits do not count: ``/1/1/1.png`` is part of a map
``query-growth``     a query longer than 1,024 characters, with more than 30 parameters, with more
                     than 12 parameters of one name, or with the same parameter three times
``session-id``       a parameter with the name of a session and a value that looks like a token
``calendar``         a date before 1990 or more than 3 years ahead, if the URL names a calendar
===================  ================================================================================
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter

from crawler.fields.declaration import setting
from crawler.fields.kinds import FLAG
from crawler.reasons import Reason, ReasonCode
from crawler.terminal_text import shown

_YEAR_S = 31_556_952  # a mean Gregorian year
_SHOWN_CHARS = 60

_MAX_URL_CHARS = 2048
_MAX_PATH_SEGMENTS = 20
_MAX_REPETITIONS = 2  # in a row, of a segment or a run of segments
_MAX_PERIOD = 8  # segments of the longest run that is recognised
_MAX_QUERY_CHARS = 1024
_MAX_PARAMETERS = 30
_MAX_SAME_NAME = 12  # parameters of one name: ?f=1&f=2 …
_MAX_SAME_PARAMETER = 2  # name and value alike
_FIRST_YEAR = 1990
_MAX_YEARS_AHEAD = 3

_SESSION = re.compile(
    # Names with no other use: any value that may be a token counts.
    r"[?&;](?P<name>jsessionid|phpsessid|aspsessionid[a-z]{8}|cftoken|oscsid|zenid|sessid)=[a-z0-9_.!-]{8}"
    # Names with other uses: the value must be long and mix letters and digits, without hyphens as in a UUID.
    r"|[?&;](?P<other>sid|s|session|session_?id|sess)="
    r"(?:[0-9a-f]{32,}|(?=[a-z]*[0-9])(?=[0-9]*[a-z])[0-9a-z]{26,})(?:%3d|=)*(?=[&;#/?]|$)"
)
# ASP.NET without cookies: /(S(token))/, in version 1 /(token)/.
_ASP_SESSION = re.compile(r"/\((?:[a-z]\([a-z0-9_-]{16,200}\)){1,4}\)(?:/|$)|/\([a-z0-9]{24}\)(?:/|$)")

# Searched first, because most URLs contain none of them.
_CALENDAR_HINTS = ("calend", "kalend", "event", "agenda", "year=", "/cal")
_CALENDAR = re.compile(r"[/?&=_.-](?:calend[a-z]{1,6}|kalend[a-z]{1,6}|events?|agenda)(?=[/?&=_.-]|$)|/cal(?=[/?_.-])")
# 2031-05, 2031-5-1, /2031/05/ or 20310501. A longer text, such as 2031-05-01-concert, is the title of a page.
_DATE = re.compile(
    r"[/=_-]((?:19|20|21)[0-9]{2})"
    r"(?:-(?:0?[1-9]|1[0-2])(?:-[0-3]?[0-9])?|/(?:0?[1-9]|1[0-2])(?:/[0-3]?[0-9])?|(?:0[1-9]|1[0-2])[0-3][0-9])"
    r"(?=[/?&;t]|$)"
)
_YEAR = re.compile(r"[?&;][a-z_.-]{0,20}year=([0-9]{1,6})(?=[&;]|$)")
_MONTH = re.compile(r"[?&;][a-z_.-]{0,20}month=")


@dataclass(frozen=True, slots=True)
class TrapSettings:
    """Whether the rules are on."""

    enabled: bool = setting(
        "enabled",
        True,
        FLAG,
        "Leave out URLs that look like traps.",
        "Traps are: a URL of more than 2,048 characters; a path of more than 20 segments, or with the same "
        "segments three times in a row; a session id; a calendar before 1990 or more than 3 years ahead. So is a "
        "query of more than 1,024 characters or 30 parameters, with more than 12 of one name, or with the same "
        "parameter three times. Turn this off for sites whose real pages look like traps. `crawler why URL` names the "
        "rule that left a URL out.",
    )


def refusal(url: str, now: float) -> Reason | None:
    """The first rule that recognises the canonical ``url`` as a trap, as in ``trap: path-repetition (/a/b 3 times)``.

    ``None`` if no rule does. ``now`` is in epoch seconds. Never raises; takes time linear in the length of ``url``.
    """
    if len(url) > _MAX_URL_CHARS:
        return Reason(ReasonCode.TRAP, f"url-length ({len(url)} characters)")
    # Most URLs are short and plain. For them, nothing is more expensive than a search for a character.
    found = None
    if url.count("/") > 2 + _MAX_REPETITIONS:
        found = _path(url.partition("?")[0].split("/")[3:])
    lower = url.lower()
    if not found and "?" in lower:
        found = _query(url.partition("?")[2])
    if not found and ("=" in lower or "/(" in lower):
        found = _session(lower)
    if not found:
        for hint in _CALENDAR_HINTS:
            if hint in lower:
                found = _calendar(lower, now)
                break
    return Reason(ReasonCode.TRAP, found) if found else None


def _path(segments: list[str]) -> str | None:
    count = len(segments) - (segments[-1:] == [""])  # the slash at the end of a directory begins no segment
    if count > _MAX_PATH_SEGMENTS:
        return f"path-depth ({count} segments)"
    # A repetition needs segments that occur more than once.
    if len(set(segments)) > len(segments) - _MAX_REPETITIONS:
        return None
    for period in range(1, min(_MAX_PERIOD, count // (_MAX_REPETITIONS + 1)) + 1):
        run = _repeated_run(segments, period, _MAX_REPETITIONS)
        if run:
            return f"path-repetition ({shown(run, _SHOWN_CHARS)} {_MAX_REPETITIONS + 1} times)"
    return None


def _repeated_run(segments: list[str], period: int, repetitions: int) -> str | None:
    """The first run of ``period`` segments, not all of them numbers, that is repeated ``repetitions`` times."""
    same = 0
    for position in range(period, len(segments)):
        same = same + 1 if segments[position] == segments[position - period] else 0
        if same >= period * repetitions:
            run = segments[position - period + 1 : position + 1]
            if not all(segment.isdigit() for segment in run):
                return "/" + "/".join(run)
    return None


def _query(query: str) -> str | None:
    if len(query) > _MAX_QUERY_CHARS:
        return f"query-growth ({len(query)} characters)"
    parameters = query.split("&")
    if len(parameters) > _MAX_PARAMETERS:
        return f"query-growth ({len(parameters)} parameters)"
    if len(parameters) > _MAX_SAME_PARAMETER:
        parameter, times = _commonest(filter(None, parameters))
        if times > _MAX_SAME_PARAMETER:
            return f"query-growth ({shown(parameter, _SHOWN_CHARS)} {times} times)"
    if len(parameters) > _MAX_SAME_NAME:
        name, times = _commonest(parameter.partition("=")[0] for parameter in parameters)
        if times > _MAX_SAME_NAME:
            return f"query-growth (parameter {shown(name, _SHOWN_CHARS)} {times} times)"
    return None


def _commonest(texts: Iterable[str]) -> tuple[str, int]:
    """The text that occurs most often, and how often."""
    return max(Counter(texts).items(), key=itemgetter(1), default=("", 0))


def _session(lower: str) -> str | None:
    if match := _SESSION.search(lower):
        return f"session-id ({match['name'] or match['other']})"
    if match := _ASP_SESSION.search(lower):
        return f"session-id ({shown(match[0], _SHOWN_CHARS)})"
    return None


def _calendar(lower: str, now: float) -> str | None:
    last_year = int(1970 + now / _YEAR_S) + _MAX_YEARS_AHEAD
    is_calendar = _CALENDAR.search(lower) is not None
    dates = list(_DATE.finditer(lower)) if is_calendar else []
    if (year := _YEAR.search(lower)) and (is_calendar or _MONTH.search(lower)):
        dates.append(year)
    for date in dates:
        # An archive of old papers has years and months too, so an early year counts in a calendar only.
        if int(date[1]) > last_year or (is_calendar and int(date[1]) < _FIRST_YEAR):
            return f"calendar ({shown(date[0][1:], _SHOWN_CHARS)})"
    return None
