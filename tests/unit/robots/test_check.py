"""The contract of ``crawler robots check --jsonl``, one case at a time."""

import base64

import pytest

from crawler.dates import http_date
from crawler.robots.check import check_case

KEYS = ["allowed", "action", "line", "expires_after", "crawl_delay", "main_site", "agent_server", "sitemaps"]
CASE = {"robots": "User-agent: *\nDisallow: /a\n", "agent": "FigTree/0.1 Robot/1.0", "url": "http://x.example/a"}


def answer(**changes: object) -> dict[str, object]:
    return check_case({**CASE, **changes})


def test_a_file_is_parsed() -> None:
    text = (
        "User-agent: figtree\nDisallow: /a\nCrawl-delay: 3\nHost: main.example\n"
        "Sitemap: /s.xml\nMobile-agent-server: / atp://h:1\n"
    )
    assert answer(robots=text) == {
        "allowed": False,
        "action": "parse",
        "line": 2,
        "expires_after": 7 * 86400,
        "crawl_delay": 3.0,
        "main_site": "http://main.example",
        "agent_server": "atp://h:1",
        "sitemaps": ["http://x.example/s.xml"],
    }


def test_strict_is_the_default_reading() -> None:
    text = "User-agent: *\nDisallow: /*a\n"
    assert answer(robots=text)["allowed"] is False
    assert answer(robots=text, reading="draft1996")["allowed"] is True


def test_base64() -> None:
    body = base64.b64encode(b"\xef\xbb\xbfUser-agent: *\nDisallow: /\xff\n").decode()
    case = {"robots_b64": body, "agent": "x", "url": "http://x.example/%FF"}
    assert check_case(case)["line"] == 2


@pytest.mark.parametrize(
    ("status", "headers", "action", "allowed", "expires_after"),
    [
        (404, {}, "free", True, 7 * 86400),
        (403, {}, "restricted", False, 7 * 86400),
        (503, {"Retry-After": "3600"}, "defer", None, 3600),
        (503, {}, "defer", None, 60),
        (0, {}, "defer", None, 60),
        (304, {}, "defer", None, 60),
        (301, {}, "follow", None, None),
        (301, {"location": "https://y.example/r"}, "follow", None, None),
        (302, {"Location": "ftp://y.example/r"}, "defer", None, 60),
        (204, {"Cache-Control": "max-age=600", "Age": 60}, "parse", False, 540),
    ],
)
def test_statuses(
    status: int, headers: dict[str, object], action: str, allowed: bool | None, expires_after: float | None
) -> None:
    found = answer(status=status, headers=headers)
    assert list(found) == KEYS
    assert (found["action"], found["allowed"], found["expires_after"]) == (action, allowed, expires_after)


def test_no_file_is_needed_if_none_is_read() -> None:
    assert check_case({"agent": "x", "url": "http://x.example/", "status": 404})["allowed"] is True


def test_robots_txt_is_allowed_even_if_the_site_is_restricted() -> None:
    assert answer(status=403, url="http://x.example/robots.txt")["allowed"] is True


def test_a_recorded_answer_is_judged_as_of_its_date_and_a_live_one_as_of_now() -> None:
    date, expires = "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 10:49:37 GMT"
    case = {**CASE, "headers": {"Date": date, "Expires": expires}}
    then = http_date(date)
    assert then is not None
    assert check_case(case)["expires_after"] == 7200
    assert check_case(case, now=2e9)["expires_after"] == 7200
    assert check_case(case, now=then + 3600)["expires_after"] == 3600
    assert check_case({**CASE, "headers": {"Expires": expires}}, now=then)["expires_after"] == 7200


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"agent": None}, "agent"),
        ({"agent": 5}, "agent"),
        ({"url": "ftp://x.example/"}, "url"),
        ({"url": 5}, "url"),
        ({"reading": "rfc1234"}, "reading"),
        ({"status": []}, "status"),
        ({"status": "200"}, "status"),
        ({"status": True}, "status"),
        ({"status": 7}, "status"),
        ({"headers": [5]}, "headers"),
        ({"headers": {"Age": None}}, "headers"),
        ({"robots": 5}, "robots"),
    ],
)
def test_a_wrong_key_is_named(changes: dict[str, object], key: str) -> None:
    with pytest.raises(ValueError, match=f"`{key}`|[$][.]{key}"):
        answer(**changes)


def test_null_is_the_default_and_headers_may_be_pairs() -> None:
    plain = answer()
    assert answer(reading=None, status=None, headers=None) == plain
    assert answer(headers=[["Cache-Control", "max-age=600"]])["expires_after"] == 600
    assert check_case({**CASE, "robots": None, "robots_b64": ""})["allowed"] is True


def test_a_path_longer_than_a_crawl_would_take_is_judged() -> None:
    long = {"robots": "User-agent: *\nDisallow: /*a*a*a*a*a*a*b\n", "url": "http://x.example/" + "a" * 10_000}
    assert answer(**long)["allowed"] is True
    assert answer(**{**long, "url": long["url"] + "b"})["allowed"] is False


@pytest.mark.parametrize("reading", ["strict", "rfc9309"])
def test_a_name_with_digits_opens_nothing_in_strict(reading: str) -> None:
    robots = "User-agent: fig2\nDisallow:\n\nUser-agent: *\nDisallow: /\n"
    said = answer(robots=robots, agent="fig", url="http://x.example/a", reading=reading)
    assert said["allowed"] is (reading == "rfc9309")


@pytest.mark.parametrize("missing", list(CASE))
def test_a_missing_key_is_named(missing: str) -> None:
    with pytest.raises(ValueError, match=f"missing.*`{missing}`|`{missing}`.*missing"):
        check_case({key: value for key, value in CASE.items() if key != missing})


def test_bad_base64_is_named() -> None:
    with pytest.raises(ValueError, match=r"base64.*[$][.]robots_b64"):
        check_case({"robots_b64": "?", "agent": "x", "url": "http://x.example/"})


TDMREP = '[{"location": "/b*", "tdm-reservation": 1}]'


@pytest.mark.parametrize(
    ("changes", "stated"),
    [
        ({"url": "http://x.example/b"}, ["tdmrep.json"]),
        ({"url": "http://x.example/c"}, []),
        ({"url": "http://x.example/b", "status": 404}, ["tdmrep.json"]),
        ({"url": "http://x.example/b", "status": 403}, []),
        ({"url": "http://x.example/b", "robots": "User-agent: *\nDisallow: /.well-known/"}, []),
        ({"url": "http://x.example/b", "robots": "User-agent: *\nDisallow: /b"}, []),
    ],
)
def test_the_tdmrep_file_counts_where_a_crawl_requests_it(changes: dict[str, object], stated: list[str]) -> None:
    answer = check_case({**CASE, "tdmrep": TDMREP, **changes})
    assert [one["source"] for one in answer.get("preferences", [])] == stated  # type: ignore[attr-defined]


def test_the_licence_that_robots_txt_names_counts() -> None:
    licence = '<rsl><content url="/"><license><prohibits type="usage">search</prohibits></license></content></rsl>'
    named = {"robots": "License: http://x.example/l.xml", "agent": "bot", "url": "http://x.example/a"}
    answers = [check_case({**named, "license": text}) for text in (licence, "<html>")]
    answers.append(check_case({**named, "robots": "", "license": licence}))
    stated = [[(one["category"], one["value"]) for one in answer.get("preferences", [])] for answer in answers]
    assert stated[0] == [("license", "http://x.example/l.xml"), ("search", "n")]
    assert ("other-use", "n") in stated[1]
    assert stated[2] == []
