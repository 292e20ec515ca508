"""Checks that must hold for any robots.txt and any answer.

Each check judges one generated case. The test suite runs each check some hundred times;
``python -m tests.fuzz NAME --minutes 60`` runs one for an hour. A failing case is shrunk and printed.
``python -m tests.fuzz answers --number 1000000`` judges so many answers of :mod:`tests.fuzz_answers`.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import time
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from protego import Protego

from crawler.dates import http_date
from crawler.model import (
    Failed,
    Fetched,
    FetchResult,
    Headers,
    NotModified,
    Reading,
    Redirected,
    RobotsAction,
)
from crawler.reasons import ErrorKind
from crawler.robots.check import check_case
from crawler.robots.fields import KNOWN_FIELDS
from crawler.robots.http_seconds import MAX_SECONDS, retry_after_s
from crawler.robots.readings import SiteRules, read
from crawler.robots.response import Follow, RobotsSettings, freshness, interpret
from crawler.robots.text import parse
from tests import fuzz_answers

SITE = "http://a.ru"
NOW = 1_700_000_000.0
READINGS = st.sampled_from(list(Reading))
SLOW_S = 1.0  # of processor time, for files of a few kB


def examples(least: int) -> settings:
    """At least ``least`` examples, and more under a profile with more."""
    assert settings.default is not None
    return settings(max_examples=max(least, settings.default.max_examples))


def rules(text: str | bytes, token: str, reading: Reading) -> SiteRules:
    body = text if isinstance(text, bytes) else text.encode()
    return read(parse(body), token=token, reading=reading, site=SITE)


# --- files -------------------------------------------------------------------------------------

AGENTS = st.sampled_from(["*", "fig", "FigTree/1", "figtree2", "other", "* fig", "other fig", "my-figtree", "fig*", ""])
HOSTS = st.sampled_from(["a.ru", "b.ru", "http://a.ru", "http://b.ru", "b_b.ru", "a.ru:80", "a.ru:81"])
PATHS = st.lists(
    st.sampled_from(
        ["/", "a", "b", "ab", "*", "$", "?", "=", ";", " ", "%2F", "%2f", "%41", "%", "%20", "ü", "%C3%BC"]
    ),
    max_size=6,
).map(lambda pieces: "/" + "".join(pieces))
URL_PATHS = PATHS.map(lambda path: path.replace(" ", "%20").replace("ü", "%C3%BC"))
LINES = st.one_of(
    AGENTS.map("User-agent: {}".format),
    AGENTS.map("user-agent:{}".format),
    PATHS.map("Disallow: {}".format),
    PATHS.map("Disallow: {}".format),
    PATHS.map("Allow: {}".format),
    st.tuples(PATHS, PATHS).map(lambda paths: "Disallow: {} {}".format(*paths)),
    HOSTS.map("Host: {}".format),
    st.integers(0, 9).map("Crawl-delay: {}".format),
    st.sampled_from(["", "# comment", "Disallow:", "Unknown: x", "no colon", "Request-rate: 1/7", "Sitemap: /s"]),
)
FILES = st.lists(LINES, max_size=14).map("\n".join)
TOKENS = st.sampled_from(["fig", "figtree", "rex", "FigTree/1.0", ""])


def check_strict(case: tuple[str, str, str]) -> None:
    """Strict allows only what both readings allow, but it reads ``*`` and ``$`` of ``Allow`` lines as wildcards.

    It forbids more only if it alone can read a line: a ``Host`` line with a scheme, a rule that names no agent, a name
    with digits that may mean another robot, or paths with semicolons between them.
    """
    text, path, token = case
    draft = rules(text, token, Reading.DRAFT1996)
    rfc = rules(text, token, Reading.RFC9309)
    strict = rules(text, token, Reading.STRICT)
    both = draft.verdict(path).allowed and rfc.verdict(path).allowed
    allowed = strict.verdict(path).allowed
    opens = any(("*" in line or line.endswith("$")) for line in text.splitlines() if line.startswith("Allow"))
    assert both or not allowed or (opens and rfc.verdict(path).allowed)
    lines = [
        line for line in text.splitlines() if line.lower().startswith(("user-agent", "disallow: ", "crawl", "req"))
    ]
    headless = bool(lines) and not lines[0].lower().startswith("user-agent")
    is_list = re.search("; +/", text) is not None
    in_doubt = "figtree2" in text or headless or is_list or (strict.main_site is not None and "Host: http://" in text)
    assert allowed == both or in_doubt or opens
    asked_s = max(draft.crawl_delay_s or 0, rfc.crawl_delay_s or 0)
    assert (strict.crawl_delay_s or 0) >= asked_s
    assert (strict.crawl_delay_s or 0) == asked_s or headless
    assert draft.main_site is None or strict.main_site is not None


MEANT_AGENTS = st.sampled_from(["*", '"*"', "**", "*, fig", "fig *.*", "fig"]).map("User-agent: {}".format)
MEANT_RULES = st.tuples(
    st.sampled_from(["Allow", "Disallow", "Disalow"]),
    st.sampled_from(["/a", "a", "/b,/a", '"/a"', "a // b", "/*host:"]),
).map(": ".join)
MEANT_FILES = st.lists(
    st.tuples(MEANT_AGENTS, st.lists(MEANT_RULES, min_size=1, max_size=4), st.sampled_from(["\n", " ", r"\n"])),
    min_size=1,
    max_size=2,
).map(lambda records: "\n\n".join(end.join([agent, *rules]) for agent, rules, end in records))


def check_meant(case: tuple[str, str, str]) -> None:
    """What strict reads from lost line breaks, lists and names of all robots opens nothing that it closes without."""
    file, path, token = case
    with (
        mock.patch("crawler.robots.text._parts", return_value=[]),
        mock.patch("crawler.robots.meant._meant_agents", side_effect=lambda value: [value]),
        mock.patch("crawler.robots.meant._meant_list", side_effect=str),
    ):
        without = rules(file, token, Reading.STRICT)
    found = rules(file, token, Reading.STRICT)
    assert without.verdict(path).allowed or not found.verdict(path).allowed


# --- the same file read by Protego -----------------------------------------------------------------
# tests/differential/test_robots_protego.py explains the classes that are left out here.

COMMON = ["/", "/", "a", "b", "ab", "=", "~", ".", "-", "_", "%41", "%7E", "%2F", "%2f", "%C3%BC"]
RESERVED = [":", "@", "&", "+", "(", "!", "'", ",", ";", "%3A", "%20", "%25", "%40", "%2B"]


@st.composite
def protego_cases(draw: st.DrawFn, *, allows: bool) -> tuple[str, str]:
    """A file and a path. Its rules often begin like the path."""
    pieces = st.lists(st.sampled_from(COMMON if allows else COMMON + RESERVED), max_size=6).map(lambda p: ["/", *p])
    wanted = draw(pieces)
    like_it = st.tuples(st.integers(1, len(wanted)), st.integers(1, len(wanted))).map(
        lambda cut: "".join(wanted[: cut[0]]) + ("*" + "".join(wanted[cut[1] :]) if cut[1] > cut[0] else "")
    )
    value = st.tuples(st.one_of(like_it, pieces.map("".join)), st.sampled_from(["", "", "*", "$"])).map("".join)
    fields = st.sampled_from(["Allow", "Disallow"] if allows else ["Disallow"])
    rule = st.tuples(fields, value).map(": ".join)
    agents = st.sampled_from(["*", "figtree", "FigTree", "other"]).map("User-agent: {}".format)
    others = st.sampled_from(["", "# comment", "Disallow:", "Allow:", "Sitemap: /s.xml"])
    lines = draw(st.lists(st.one_of(rule, rule, agents, others), max_size=12))
    return "\n".join(["User-agent: figtree", *lines]), "".join(wanted)


def check_protego(case: tuple[str, str]) -> None:
    """The rfc9309 reading and Protego give the same verdict."""
    text, path = case
    ours = rules(text, "figtree", Reading.RFC9309).verdict(path)
    assert ours.allowed == Protego.parse(text).can_fetch(SITE + path, "figtree")


# --- anything at all -------------------------------------------------------------------------------


@cache
def corpus() -> tuple[bytes, ...]:
    """Files written by people, from the conformance cases."""
    cases = Path(__file__).parent / "conformance" / "robots_rfc9309.jsonl"
    found = [json.loads(line) for line in cases.read_text("utf-8").splitlines()]
    texts = {case["robots"].encode("utf-8", "surrogatepass") for case in found if "robots" in case}
    return tuple(sorted(texts | {b64decode(case["robots_b64"]) for case in found if "robots_b64" in case}))


FRAGMENTS = [
    *(field.encode() + b":" for field in sorted(KNOWN_FIELDS)),
    *(b"\n,\r,\r\n,\n\n,#,:, ,\t,\x00,\xff,\xef\xbb\xbf,\xe2\x80\xa8,\x85".split(b",")),
    *(b"* /* $ % %2F %ZZ a.ru none atp://h:1 1/5m 99999999999999999999 /a".split()),
    *(b"/a /b", b"*a" * 200),
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A real file after some edits: pieces removed, doubled, inserted, or taken from another file."""
    body, other = draw(st.sampled_from(corpus())), draw(st.sampled_from(corpus()))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(body)))
        end = min(len(body), at + draw(st.integers(0, 60)))
        as_it_was = st.sampled_from([body[at:end] * 2, other[at:end], other[: end - at]])
        new = draw(st.one_of(st.sampled_from(FRAGMENTS), st.binary(max_size=8), as_it_was))
        body = body[:at] + new + body[end:]
    return body


def check_any_bytes(case: tuple[bytes, str, Reading]) -> None:
    """Any bytes can be parsed and asked quickly; a verdict is printable and storable; a refusal has its line."""
    body, path, reading = case
    started = time.process_time()
    found = rules(body, "foobot", reading)
    verdict, server = found.verdict(path), found.agent_server(path)
    assert time.process_time() - started < SLOW_S
    assert verdict.allowed or verdict.line is not None
    assert verdict.text.isprintable()
    assert len(verdict.text) < 300
    assert found.crawl_delay_s is None or 0 <= found.crawl_delay_s <= 1e9
    for text in (found.main_site, server.url, *found.sitemaps):
        assert text is None or (text.isascii() and text.isprintable())
    assert verdict == rules(body + b"\n# the end", "foobot", reading).verdict(path)


# --- what came back --------------------------------------------------------------------------------

DATES = st.one_of(
    st.sampled_from(
        [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Fri, 31 Dec 9999 23:59:59 GMT",
            "Mon, 01 Jan 0001 00:00:00 GMT",
            "Thu, 31 Feb 2026 24:60:61 GMT",
            "0",
        ]
    ),
    st.datetimes().map(lambda at: at.strftime("%a, %d %b %Y %H:%M:%S GMT")),
)
DIRECTIVES = [
    "max-age",
    "s-maxage",
    "no-cache",
    "no-store",
    "=",
    '"',
    ",",
    " ",
    "3600",
    "-1",
    "1e9",
    ".5",
    "é",
    "9" * 40,
]
LOCATIONS = ["/r", "//b.ru/robots.txt", "ftp://x/", "http://[", "\udc80", "http://u:p@h/", "/robots.txt", "", "?"]
VALUES = st.one_of(
    DATES,
    st.tuples(DATES, st.text(max_size=3), st.integers(0, 40)).map(lambda at: at[0][: at[2]] + at[1] + at[0][at[2] :]),
    st.text(max_size=12),
    st.lists(st.sampled_from(DIRECTIVES), max_size=8).map("".join),
    st.sampled_from(LOCATIONS),
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            ["Date", "EXPIRES", "cache-control", "Cache-Control", "Age", "Retry-After", "ETag", "Last-Modified", "X"]
        ),
        VALUES,
    ),
    max_size=6,
).map(tuple)


@dataclass(frozen=True)
class Came:
    """The answer to a request, ``pause_s`` seconds after the last one."""

    pause_s: float
    kind: str
    status: int
    headers: Headers
    location: str
    body: bytes

    def at(self, now: float) -> FetchResult:
        url = f"{SITE}/robots.txt"
        match self.kind:
            case "fetched":
                return Fetched(url, now, now, self.headers, plain=self.body, truncated=self.status > 900)
            case "304":
                return NotModified(url, now, now, self.headers)
            case "redirected":
                return Redirected(url, now, now, self.headers, location=self.location)
            case "failed":
                return Failed(url, now, now, self.headers, status=self.status)
        return Failed(url, now, now, kind=ErrorKind(self.kind))


KINDS = ["fetched", "fetched", "304", "redirected", "failed", "failed", "dns", "timeout", "truncated", "address"]
STATUSES = st.one_of(st.sampled_from([401, 403, 404, 410, 429, 500, 503]), st.integers(100, 999))
BODIES = st.one_of(st.binary(max_size=40), mutated())
CAME = st.builds(Came, st.floats(0, 1e8), st.sampled_from(KINDS), STATUSES, HEADERS, VALUES, BODIES)


def check_dates(case: tuple[str, Headers, Reading]) -> None:
    """Any header gives a finite time within its bounds, quickly."""
    text, headers, reading = case
    started = time.process_time()
    date = http_date(text)
    assert date is None or (math.isfinite(date) and -7e10 < date < 3e11)
    wait_s = retry_after_s((("Retry-After", text), *headers), NOW)
    assert wait_s is None or 0 <= wait_s <= MAX_SECONDS
    fresh_s = freshness(headers, reading, RobotsSettings(reading), NOW) - NOW
    assert 300 <= fresh_s <= (86_400 if reading is Reading.RFC9309 else MAX_SECONDS)
    assert time.process_time() - started < SLOW_S


def check_response(case: tuple[Reading, bool, list[Came]]) -> None:
    """A site's copy stays consistent after any answer: a failure opens nothing, a deferral has its time."""
    reading, stale, answers = case
    config = RobotsSettings(reading, stale_if_error=stale)
    copy, now = None, NOW
    for came in answers:
        now += came.pause_s
        meaning = interpret(came.at(now), settings=config, previous=copy, hops=0, seen=(), now=now)
        if isinstance(meaning, Follow):
            assert meaning.url.startswith(("http://", "https://"))
            assert meaning.url != f"{SITE}/robots.txt"
            continue
        assert now < meaning.expires_at <= now + MAX_SECONDS + 1
        deferred = meaning.action is RobotsAction.DEFER
        assert not deferred or (meaning.retry_at == meaning.expires_at and meaning.failures > 0)
        assert meaning.action is not RobotsAction.PARSE or came.kind in ("fetched", "304") or stale
        assert meaning.action is not RobotsAction.FREE or (came.kind == "failed" and 400 <= came.status <= 499) or stale
        copy = meaning


def check_jsonl(case: dict[str, object]) -> None:
    """A case of ``robots check --jsonl`` gets a JSON answer, or an error that names the key."""
    try:
        answer = check_case(case)
    except ValueError as error:
        refused = str(error)
        assert "`" in refused or "$." in refused
    else:
        json.dumps(answer, allow_nan=False)


ODD: st.SearchStrategy[object] = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 1200), st.text(max_size=5), st.just([])
)
CASES = st.fixed_dictionaries(
    {},
    optional={
        "robots": st.one_of(FILES, st.text(max_size=40), ODD),
        "robots_b64": st.one_of(st.text("AZaz09+/=", max_size=12), ODD),
        "agent": st.one_of(TOKENS, ODD),
        "url": st.one_of(URL_PATHS.map(SITE.__add__), st.sampled_from(["http://", "ftp://a/", "http://a.ru"]), ODD),
        "reading": st.one_of(st.sampled_from([*Reading, "x"]), ODD),
        "status": st.one_of(st.sampled_from([0, 200, 204, 301, 304, 404, 503]), ODD),
        "headers": st.one_of(HEADERS.map(dict), st.just({"location": "/r"}), ODD),
    },
)

TARGETS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], None]]] = {
    "strict": (st.tuples(FILES, URL_PATHS, TOKENS), check_strict),
    "meant": (st.tuples(MEANT_FILES, st.just("/a"), st.just("fig")), check_meant),
    "protego": (protego_cases(allows=True), check_protego),
    "protego-disallow": (protego_cases(allows=False), check_protego),
    "bytes": (
        st.tuples(
            st.one_of(mutated(), st.lists(st.sampled_from(FRAGMENTS), max_size=30).map(b"".join)),
            st.one_of(URL_PATHS, st.sampled_from(["/x/page.html", "/foo/bar?qux=taz", "/" + "a" * 8000])),
            READINGS,
        ),
        check_any_bytes,
    ),
    "dates": (st.tuples(VALUES, HEADERS, READINGS), check_dates),
    "response": (st.tuples(READINGS, st.booleans(), st.lists(CAME, max_size=5)), check_response),
    "jsonl": (CASES, check_jsonl),
}


def main() -> int:
    """Run one check until its time is over, or answers by number. The exit code is 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=["answers", *sorted(TARGETS)])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--number", type=int, default=20_000, help="of answers")
    parser.add_argument("--seed", type=int, default=1, help="of answers")
    chosen = parser.parse_args()
    if chosen.name == "answers":
        return fuzz_answers.fuzz(chosen.seed, chosen.number)
    strategy, check = TARGETS[chosen.name]
    run = 0

    def counted(case: Any) -> None:
        nonlocal run
        run += 1
        check(case)

    batch = settings(
        max_examples=2000, deadline=None, database=None, derandomize=False, suppress_health_check=list(HealthCheck)
    )
    ends_at = time.monotonic() + chosen.minutes * 60
    while time.monotonic() < ends_at:
        batch(given(strategy)(counted))()
        print(f"\r{chosen.name}: {run:,} examples, nothing found", end="", flush=True)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
