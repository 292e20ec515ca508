"""The meaning and lifetime of an answer to /robots.txt: docs/protocols.md, section 1; 1996 draft, 3.1 and 3.4."""

import gzip
from hashlib import sha256

import pytest

from crawler.dates import http_date
from crawler.model import (
    Failed,
    Fetched,
    Headers,
    NotModified,
    Reading,
    Redirected,
    RobotsAction,
    RobotsCopy,
)
from crawler.reasons import ErrorKind
from crawler.robots.http_seconds import retry_after_s
from crawler.robots.response import Follow, RobotsSettings, freshness, interpret, shared
from crawler.robots.text import parse
from tests.records import replace

NOW = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110, 5.6.7
DAY = 86_400.0
ASKED = "http://a.example/robots.txt"
EVERY = pytest.mark.parametrize("reading", list(Reading))


def fetched(body: bytes = b"User-agent: *\n", headers: Headers = (), *, truncated: bool = False) -> Fetched:
    return Fetched(ASKED, NOW, NOW, headers, plain=body, truncated=truncated)


def failed(status: int | None = None, kind: ErrorKind = ErrorKind.HTTP, headers: Headers = ()) -> Failed:
    return Failed(ASKED, NOW, NOW, headers, kind=kind, status=status, detail="it failed")


def redirected(location: str) -> Redirected:
    return Redirected(ASKED, NOW, NOW, status=301, location=location)


def meaning(
    answer: Fetched | NotModified | Redirected | Failed,
    settings: RobotsSettings | None = None,
    previous: RobotsCopy | None = None,
    now: float = NOW,
) -> RobotsCopy:
    copy = interpret(answer, settings=settings or RobotsSettings(), previous=previous, hops=0, seen=(), now=now)
    assert isinstance(copy, RobotsCopy)
    return copy


# --- the status table, row by row ---


@EVERY
def test_2xx_parse_and_obey(reading: Reading) -> None:
    body = b"User-agent: *\nDisallow: /\n"
    headers = (("ETag", '"1"'), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"))
    copy = meaning(fetched(body, headers), RobotsSettings(reading))
    assert (copy.action, copy.status, copy.body, copy.sha256) == ("parse", "200", body, sha256(body).digest())
    assert (copy.etag, copy.last_modified) == ('"1"', "Sun, 06 Nov 1994 08:49:37 GMT")
    assert copy.fetched_at == NOW
    assert (copy.failures, copy.retry_at, copy.note) == (0, None, "")


@pytest.mark.parametrize("status", [200, 201, 203, 204, 205, 226])
def test_a_content_range_counts_only_in_a_206(status: int) -> None:
    part = fetched(headers=(("Content-Range", "bytes 0-13/500"),))
    assert meaning(replace(part, status=status)).action is RobotsAction.PARSE


@EVERY
@pytest.mark.parametrize(
    ("ranges", "action"),
    [
        (["bytes 0-13/14"], "parse"),
        (["Bytes  0-0/1"], "parse"),
        (["bytes 0-13/500"], "defer"),
        (["bytes 1-13/14"], "defer"),
        (["bytes 0-13/*"], "defer"),
        (["bytes */14"], "defer"),
        (["bytes 0-13/14, bytes 0-13/500"], "defer"),
        (["bytes 0-13/14", "bytes 0-13/500"], "defer"),
        ([], "defer"),  # multipart/byteranges, for one
    ],
)
def test_a_part_of_the_file_defers_the_site(ranges: list[str], action: str, reading: Reading) -> None:
    """Nobody asked for a part, and what the rest closes is not known."""
    headers = tuple(("Content-Range", value) for value in ranges)
    copy = meaning(replace(fetched(headers=headers), status=206), RobotsSettings(reading))
    assert (copy.action, copy.status) == (action, "206")
    assert (copy.body == b"") is (action == "defer")


def test_undeclared_gzip_is_decompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rules that close paths hold; its broken parts may have closed more."""
    text = b"User-agent: *\nDisallow: /\n"
    packed = gzip.compress(text)
    copy = meaning(fetched(packed))
    assert (copy.action, copy.body, copy.sha256) == ("parse", text, sha256(text).digest())
    assert copy.note == "gzip that was not declared; decompressed and read"
    for broken in (packed[:-9], packed[:2], b"\x1f\x8bDisallow: /\n"):
        assert (meaning(fetched(broken)).action, meaning(fetched(broken)).status) == ("defer", "encoding")
    long = gzip.compress(text + b"Disallow: /x\n" * 1_000_000)
    monkeypatch.setattr("crawler.robots.text.STRICT_MAX_BYTES", 1000)
    cut = meaning(fetched(long))
    assert (cut.action, cut.body[: len(text)], len(cut.body) <= 1000) == ("parse", text, True)
    assert "longer than 1000 bytes" in cut.note


@pytest.mark.parametrize("status", [401, 403])
def test_401_and_403_restrict_except_in_rfc9309(status: int) -> None:
    assert meaning(failed(status), RobotsSettings(Reading.STRICT)).action is RobotsAction.RESTRICTED
    assert meaning(failed(status), RobotsSettings(Reading.DRAFT1996)).action is RobotsAction.RESTRICTED
    assert meaning(failed(status), RobotsSettings(Reading.RFC9309)).action is RobotsAction.FREE


@EVERY
@pytest.mark.parametrize("status", [400, 402, 404, 405, 410, 418, 451, 499])
def test_other_4xx_leave_the_site_free(status: int, reading: Reading) -> None:
    copy = meaning(failed(status), RobotsSettings(reading))
    assert (copy.action, copy.status, copy.body, copy.retry_at) == ("free", str(status), b"", None)


@EVERY
@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599, 999, 300, 305, 101])
def test_temporary_statuses_defer(status: int, reading: Reading) -> None:
    copy = meaning(failed(status), RobotsSettings(reading))
    assert (copy.action, copy.status, copy.retry_at) == ("defer", str(status), NOW + 60)


@EVERY
@pytest.mark.parametrize("kind", [kind for kind in ErrorKind if kind not in ("http", "address", "certificate")])
def test_no_usable_answer_defers(kind: ErrorKind, reading: Reading) -> None:
    for status in (None, 200):
        copy = meaning(failed(status, kind), RobotsSettings(reading))
        assert (copy.action, copy.status, copy.note) == ("defer", kind.value, kind.render("it failed"))


def test_a_refused_address_makes_the_site_unreachable() -> None:
    copy = meaning(failed(kind=ErrorKind.ADDRESS))
    assert (copy.action, copy.retry_at, copy.failures) == (RobotsAction.UNREACHABLE, None, 0)
    assert copy.expires_at > NOW


@pytest.mark.parametrize("hops", [0, 1])
def test_a_bad_certificate_is_not_waited_for(hops: int) -> None:
    bad = failed(kind=ErrorKind.CERTIFICATE)
    copy = interpret(bad, settings=RobotsSettings(), previous=None, hops=hops, seen=(ASKED,), now=NOW)
    assert isinstance(copy, RobotsCopy)
    assert (copy.action, copy.status, copy.retry_at) == (RobotsAction.UNTRUSTED, "certificate", None)
    assert copy.expires_at == NOW + 86_400, "its owner may renew it"
    here = shared(copy, "https://b.test/robots.txt", settings=RobotsSettings(), previous=None, now=NOW + 60)
    assert (here.action, here.expires_at) == (RobotsAction.UNTRUSTED, copy.expires_at)
    assert here.note.startswith("https://b.test/robots.txt: ")


def test_a_refused_address_behind_a_redirect_defers() -> None:
    refused = failed(kind=ErrorKind.ADDRESS)
    copy = interpret(refused, settings=RobotsSettings(), previous=None, hops=1, seen=(ASKED,), now=NOW)
    assert isinstance(copy, RobotsCopy)
    assert copy.action is RobotsAction.DEFER


# --- redirects: 1996 draft, 3.1; RFC 9309, 2.3.1.2 ---


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/r.txt", "http://a.example/r.txt"),
        ("//b.example/robots.txt#x", "http://b.example/robots.txt"),
        ("https://a.example/robots.txt", "https://a.example/robots.txt"),
    ],
)
def test_redirects_are_followed_to_any_host(location: str, target: str) -> None:
    settings = RobotsSettings()
    found = interpret(redirected(location), settings=settings, previous=None, hops=9, seen=(ASKED,), now=NOW)
    assert found == Follow(target)


def test_more_hops_than_allowed_defer() -> None:
    found = interpret(redirected("/r"), settings=RobotsSettings(), previous=None, hops=10, seen=(ASKED,), now=NOW)
    assert isinstance(found, RobotsCopy)
    assert (found.action, found.status) == ("defer", "too many redirects")


@pytest.mark.parametrize("location", [ASKED, "/robots.txt#again", "http://b.example/"])
def test_a_redirect_loop_defers(location: str) -> None:
    seen = ("http://b.example/",)
    found = interpret(redirected(location), settings=RobotsSettings(), previous=None, hops=1, seen=seen, now=NOW)
    assert isinstance(found, RobotsCopy)
    assert (found.action, found.status) == ("defer", "redirect loop")


@pytest.mark.parametrize("location", ["ftp://a.example/robots.txt", "http://", "javascript:1", "http://u:p@a.example/"])
def test_a_redirect_to_an_invalid_url_defers(location: str) -> None:
    copy = meaning(redirected(location))
    assert (copy.action, copy.status) == ("defer", "bad redirect")


# --- 304 ---


def test_304_renews_the_copy() -> None:
    before = replace(
        meaning(fetched(headers=(("ETag", '"1"'),))), failures=3, failing_since=NOW, retry_at=NOW, note="x"
    )
    headers = (("Cache-Control", "max-age=1000"), ("ETag", '"2"'))
    later = NOW + 10 * DAY
    copy = meaning(NotModified(ASKED, later, later, headers), previous=before, now=later)
    assert (copy.action, copy.body, copy.sha256) == ("parse", before.body, before.sha256)
    assert (copy.fetched_at, copy.expires_at, copy.etag) == (later, later + 1000, '"2"')
    assert (copy.failures, copy.failing_since, copy.retry_at, copy.note) == (0, None, None, "")


def test_the_validators_that_a_304_does_not_repeat_remain() -> None:
    before = meaning(fetched(headers=(("ETag", '"1"'), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"))))
    copy = meaning(NotModified(ASKED, NOW, NOW), previous=before)
    assert (copy.etag, copy.last_modified) == (before.etag, before.last_modified)
    assert None not in (copy.etag, copy.last_modified)


def test_304_with_nothing_to_renew_defers() -> None:
    assert meaning(NotModified(ASKED, NOW, NOW)).action is RobotsAction.DEFER
    free = meaning(failed(404))
    assert meaning(NotModified(ASKED, NOW, NOW), previous=free).action is RobotsAction.DEFER


def test_a_file_found_behind_a_redirect_leaves_no_validators_and_is_not_renewed() -> None:
    settings, headers = RobotsSettings(), (("ETag", '"1"'), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"))
    copy = interpret(fetched(headers=headers), settings=settings, previous=None, hops=1, seen=(), now=NOW)
    assert isinstance(copy, RobotsCopy)
    assert (copy.action, copy.etag, copy.last_modified) == ("parse", None, None)
    again = interpret(NotModified(ASKED, NOW, NOW), settings=settings, previous=copy, hops=1, seen=(), now=NOW)
    assert isinstance(again, RobotsCopy)
    assert again.action is RobotsAction.DEFER


# --- deferral ---


def test_pauses_double_up_to_their_longest() -> None:
    settings = RobotsSettings(retry_first_s=60, retry_max_s=1000)
    pauses: list[float] = []
    copy: RobotsCopy | None = None
    now = NOW
    for failures in range(1, 8):
        copy = meaning(failed(503), settings, copy, now)
        assert copy.retry_at is not None
        assert (copy.failures, copy.failing_since) == (failures, NOW)
        pauses.append(copy.retry_at - now)
        now = copy.retry_at
    assert pauses == [60, 120, 240, 480, 960, 1000, 1000]


def test_a_longer_retry_after_is_kept_uncut() -> None:
    assert meaning(failed(503, headers=(("Retry-After", "7200000"),))).retry_at == NOW + 7_200_000
    assert meaning(failed(429, headers=(("retry-after", "5"),))).retry_at == NOW + 60
    date = (("Retry-After", "Sun, 06 Nov 1994 09:49:37 GMT"),)
    assert meaning(failed(503, headers=date)).retry_at == NOW + 3600


def test_a_site_is_given_up_after_failing_for_too_long() -> None:
    settings = RobotsSettings()
    first = meaning(failed(503), settings)
    later = meaning(failed(kind=ErrorKind.DNS), settings, first, NOW + 30 * DAY - 1)
    last = meaning(failed(503), settings, later, NOW + 30 * DAY)
    assert later.action is RobotsAction.DEFER
    assert (last.action, last.failures, last.failing_since, last.retry_at) == ("given_up", 3, NOW, None)
    assert "for 30 d;" in last.note
    assert meaning(failed(503), settings, last, NOW + 31 * DAY).action is RobotsAction.GIVEN_UP


def test_a_name_that_does_not_exist_is_given_up_after_an_hour() -> None:
    settings, gone = RobotsSettings(), failed(kind=ErrorKind.DNS_NO_NAME)
    first = meaning(gone, settings)
    later = meaning(gone, settings, first, NOW + 3599)
    assert (first.action, later.action) == ("defer", "defer")
    last = meaning(gone, settings, later, NOW + 3600)
    assert (last.action, last.status, last.note) == (
        "given_up",
        "dns_no_name",
        "no usable answer for 1 h; the last: it failed",
    )
    assert meaning(gone, RobotsSettings(give_up_after_s=60), first, NOW + 60).action is RobotsAction.GIVEN_UP


@pytest.mark.parametrize("kind", [ErrorKind.DNS, ErrorKind.DNS_FAILED, ErrorKind.DNS_TIMEOUT, ErrorKind.CONNECT])
def test_other_failures_before_one_unknown_name_give_no_site_up(kind: ErrorKind) -> None:
    settings, gone = RobotsSettings(), failed(kind=ErrorKind.DNS_NO_NAME)
    later = meaning(gone, settings, meaning(failed(kind=kind), settings), NOW + 2 * DAY)
    assert later.action is RobotsAction.DEFER
    assert meaning(failed(kind=kind), settings, later, NOW + 3 * DAY).action is RobotsAction.DEFER
    assert meaning(gone, settings, later, NOW + 3 * DAY).action is RobotsAction.GIVEN_UP


def test_a_usable_answer_resets_the_failures() -> None:
    copy = meaning(failed(404), previous=meaning(failed(503)))
    assert (copy.action, copy.failures, copy.failing_since) == ("free", 0, None)


def test_an_earlier_copy_is_not_used_while_the_site_fails() -> None:
    copy = meaning(failed(503), previous=meaning(fetched()))
    assert (copy.action, copy.body, copy.etag) == ("defer", b"", None)


def test_stale_if_error_keeps_the_earlier_copy_in_force_until_the_site_is_given_up() -> None:
    settings = RobotsSettings(stale_if_error=True)
    before = meaning(fetched(headers=(("ETag", '"1"'),)), settings)
    first = meaning(failed(503), settings, before, NOW + DAY)
    second = meaning(failed(503), settings, first, NOW + DAY + 60)
    assert (second.action, second.body, second.etag) == ("parse", before.body, '"1"')
    assert (second.failures, second.failing_since, second.retry_at) == (2, NOW + DAY, NOW + DAY + 180)
    assert second.expires_at == second.retry_at
    assert "it failed" in second.note
    assert meaning(failed(503), settings, second, NOW + 31 * DAY).action is RobotsAction.GIVEN_UP


def test_stale_if_error_makes_no_copy_of_a_deferral() -> None:
    settings = RobotsSettings(stale_if_error=True)
    assert meaning(failed(503), settings, meaning(failed(503), settings)).action is RobotsAction.DEFER


# --- bodies ---


@pytest.mark.parametrize(("reading", "limit"), [(Reading.STRICT, "STRICT_MAX_BYTES"), (Reading.RFC9309, "MAX_BYTES")])
def test_a_body_beyond_the_limit_is_read_up_to_the_limit(
    reading: Reading, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"crawler.robots.text.{limit}", 30)
    settings = RobotsSettings(reading)
    for answer in (
        fetched(b"User-agent: *\nDisallow: /a\nAllow: /a/b\n"),
        fetched(b"User-agent: *\nDisallow: /a\nAllo", truncated=True),
    ):
        copy = meaning(answer, settings)
        assert copy.body == b"User-agent: *\nDisallow: /a\n"
        assert copy.sha256 == sha256(copy.body).digest()
        told = "longer than 30 bytes; the rest is ignored, and the group that begins in line 1 (User-agent: *)"
        assert copy.note == f"{told} may be incomplete"
        assert len([line for line in parse(copy.body).lines if line.text]) == 2


def test_html_is_noted() -> None:
    copy = meaning(fetched(b"<!DOCTYPE html>\n<title>Who are you?</title>\n"))
    assert (copy.action, copy.note) == ("parse", "HTML served as robots.txt")


# --- freshness: 1996 draft, 3.4; RFC 9309, 2.4; RFC 9111, 4.2 ---

DATE = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT")
HOUR_AGO = ("Date", "Sun, 06 Nov 1994 07:49:37 GMT")
IN_TWO_HOURS = ("Expires", "Sun, 06 Nov 1994 10:49:37 GMT")


@pytest.mark.parametrize(
    ("headers", "fresh_s"),
    [
        ([("Cache-Control", "max-age=3600")], 3600),
        ([("cache-control", 'public, MAX-AGE = "3600"')], 3600),
        ([("Cache-Control", "public"), ("Cache-Control", "max-age=3600")], 3600),
        ([("Cache-Control", "max-age=3600"), ("Age", "600")], 3000),
        ([("Cache-Control", "max-age=3600, max-age=7200")], 3600),
        ([("Cache-Control", "max-age=7200"), HOUR_AGO], 3600),
        ([("Cache-Control", "max-age=7200"), HOUR_AGO, ("Age", "4000")], 3200),
        ([("Cache-Control", "max-age=3600"), IN_TWO_HOURS], 3600),  # max-age wins
        ([IN_TWO_HOURS], 7200),
        ([IN_TWO_HOURS, DATE], 7200),
        ([IN_TWO_HOURS, HOUR_AGO], 7200),
        ([IN_TWO_HOURS, DATE, ("Age", "600")], 6600),
        ([IN_TWO_HOURS, ("Date", "Sun, 06 Nov 1994 09:49:37 GMT")], 3600),  # their clock is an hour ahead of ours
        ([("Expires", "0")], 300),
        ([HOUR_AGO, ("Expires", "Sun, 06 Nov 1994 07:49:37 GMT")], 300),
        ([("Cache-Control", "no-cache")], 300),
        ([("Cache-Control", "no-store, max-age=3600")], 300),
        ([("Cache-Control", "max-age=0")], 300),
        ([("Cache-Control", "max-age=10")], 300),
        ([("Cache-Control", "max-age=soon")], 300),
        ([("Cache-Control", "max-age=60"), ("Age", "9" * 5000)], 300),
    ],
)
@EVERY
def test_http_caching(reading: Reading, headers: list[tuple[str, str]], fresh_s: float) -> None:
    assert freshness(tuple(headers), reading, RobotsSettings(reading), NOW) == NOW + fresh_s


@pytest.mark.parametrize("headers", [(), (("Cache-Control", "private"),), (("Cache-Control", ""), DATE)])
def test_without_directives_the_readings_default(headers: Headers) -> None:
    for reading, fresh_s in [(Reading.STRICT, 7 * DAY), (Reading.DRAFT1996, 7 * DAY), (Reading.RFC9309, DAY)]:
        assert freshness(headers, reading, RobotsSettings(reading), NOW) == NOW + fresh_s


def test_rfc9309_2_4_never_longer_than_a_day() -> None:
    headers = (("Cache-Control", "max-age=2592000"),)
    for reading, fresh_s in [(Reading.STRICT, 30 * DAY), (Reading.DRAFT1996, 30 * DAY), (Reading.RFC9309, DAY)]:
        assert freshness(headers, reading, RobotsSettings(reading), NOW) == NOW + fresh_s


def test_the_floor_is_configurable() -> None:
    headers = (("Cache-Control", "no-cache"),)
    assert freshness(headers, Reading.STRICT, RobotsSettings(min_fresh_s=5), NOW) == NOW + 5


@pytest.mark.parametrize("answer", [failed(404), failed(403)])
def test_answers_without_a_file_expire_too(answer: Failed) -> None:
    assert meaning(answer).expires_at == NOW + 7 * DAY
    assert meaning(replace(answer, headers=(("Cache-Control", "max-age=3600"),))).expires_at == NOW + 3600


# --- dates: RFC 9110, 5.6.7 and 10.2.3 ---


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "sun, 6 nov 1994 08:49:37 gmt",
    ],
)
def test_http_dates_in_all_three_forms(text: str) -> None:
    assert http_date(text) == NOW


@pytest.mark.parametrize("text", ["", "0", "-1", "never", "Sun, 31 Feb 1994 08:49:37 GMT"])
def test_text_that_is_no_http_date(text: str) -> None:
    assert http_date(text) is None


def test_a_leap_second_is_a_time() -> None:
    assert http_date("Sat, 31 Dec 2016 23:59:60 GMT") == http_date("Sat, 31 Dec 2016 23:59:59 GMT")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 1.5 ", 1.5),
        ("9" * 5000, 2.0**31),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60.0),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 2.0**31),
        ("-5", None),
        ("tomorrow", None),
    ],
)
def test_retry_after(value: str, seconds: float | None) -> None:
    assert retry_after_s((("Retry-After", value),), NOW) == seconds


DUE = {"Retry-After": "Sun, 06 Nov 1994 08:51:37 GMT"}


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({"Retry-After": "1", "retry-after": "5"}, 5.0),
        ({"Retry-After": "5", "retry-after": "soon"}, 5.0),
        ({"Retry-After": "Sun, 06 Nov 1994 08:31:00 GMT", "Date": "Sun, 06 Nov 1994 08:30:00 GMT"}, 60.0),
        ({"Retry-After": "Sun, 06 Nov 1994 08:50:37 GMT", "Date": "Sun, 06 Nov 1994 08:50:00 GMT"}, 60.0),
        (DUE | {"Date": "Sun, 06 Nov 1994 02:49:37 GMT", "Age": "21600"}, 120.0),
        (DUE | {"Date": "Sun, 06 Nov 1994 02:49:37 GMT", "Age": "21000"}, 720.0),
        (DUE | {"Date": "Sun, 06 Nov 1994 08:49:37 GMT", "Age": "21600"}, 120.0),
        (DUE | {"Date": "Thu, 01 Jan 1970 00:00:00 GMT"}, 120.0),
        (DUE | {"Date": "Fri, 31 Dec 9999 23:59:59 GMT", "Age": "-1"}, 120.0),
        ({"Retry-After": "Thu, 01 Jan 1970 00:02:00 GMT", "Date": "Thu, 01 Jan 1970 00:00:00 GMT"}, 120.0),
        ({"Retry-After": "Sat, 05 Nov 1994 00:00:00 GMT", "Date": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
    ],
)
def test_the_longest_wait_counts_by_the_clock_of_the_server(fields: dict[str, str], seconds: float) -> None:
    assert retry_after_s(tuple(fields.items()), NOW) == seconds


def test_no_retry_after() -> None:
    assert retry_after_s((("Content-Type", "text/plain"),), NOW) is None


@pytest.mark.parametrize("status", [200, 404, 503])
def test_a_wall_is_no_robots_txt_whatever_its_status(status: int) -> None:
    """Nothing is requested for a rest, no earlier copy is used, and after the last rest the site is closed."""
    settings = RobotsSettings(rests_s=(10.0, 20.0), stale_if_error=True)
    wall = failed(kind=ErrorKind.WALL, status=status)
    before: RobotsCopy | None = RobotsCopy(RobotsAction.PARSE, "200", NOW, NOW + 9, b"User-agent: *", b"x")
    for rest_s in (10.0, 20.0):
        before = interpret(wall, settings=settings, previous=before, hops=0, seen=(), now=NOW)
        assert isinstance(before, RobotsCopy)
        assert (before.action, before.status, before.retry_at) == (RobotsAction.DEFER, "wall", NOW + rest_s)
    last = interpret(wall, settings=settings, previous=before, hops=0, seen=(), now=NOW)
    assert isinstance(last, RobotsCopy)
    assert (last.action, last.status, last.retry_at) == (RobotsAction.GIVEN_UP, "wall", None)
    assert last.expires_at > NOW + 50 * 366 * 86_400.0


@pytest.mark.parametrize("status", [401, 403])
def test_a_wall_that_restricts_holds_as_long_as_the_restriction(status: int) -> None:
    wall = failed(kind=ErrorKind.WALL, status=status)
    copy = interpret(wall, settings=RobotsSettings(), previous=None, hops=0, seen=(), now=NOW)
    assert isinstance(copy, RobotsCopy)
    assert (copy.action, copy.retry_at) == (RobotsAction.DEFER, NOW + 7 * 86_400.0)
