"""TDM Reservation Protocol (W3C Community Group, 2024), "TDM File on the Origin Server" and "Processing priority"."""

from __future__ import annotations

import json

import pytest

from crawler.model import Failed, Fetched, FetchResult, Preference, Redirected
from crawler.reasons import ErrorKind
from crawler.robots.tdmrep import MAX_RULES, SOURCE, interpret_tdmrep, supplemented, tdm_rules

SITE = "https://provider.com"
#: The example of the specification with three groups of files.
GROUPS = """[
  {
    "location": "/directory-a/",
    "tdm-reservation": 1
  },
  {
    "location": "/directory-b/html/",
    "tdm-reservation": 1,
    "tdm-policy": "https://provider.com/policies/policy.json"
  },
  {
    "location": "/directory-b/images/*.jpg",
    "tdm-reservation": 0
  }
]
"""


def said(text: str, path: str) -> list[tuple[str, str]]:
    return [(one.category, one.value) for one in tdm_rules(text.encode(), SITE).of(path)]


def rule(location: str, reservation: object) -> dict[str, object]:
    return {"location": location, "tdm-reservation": reservation}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/directory-a/x.pdf", [("tdm", "n")]),
        (
            "/directory-b/html/a?b",
            [("tdm", "n"), ("tdm-policy", "https://provider.com/policies/policy.json")],
        ),
        ("/directory-b/images/big/a.jpg", [("tdm", "y")]),
        ("/directory-b/images/a.png", []),
        ("/", []),
        ("/Directory-A/", []),
    ],
)
def test_the_example_of_the_specification(path: str, expected: list[tuple[str, str]]) -> None:
    assert said(GROUPS, path) == expected


@pytest.mark.parametrize(
    ("location", "path", "matches"),
    [
        ("/", "/anything?x", True),
        ("/this/path/exactly$", "/this/path/exactly", True),
        ("/this/path/exactly$", "/this/path/exactly/not", False),
        ("/this/*/then", "/this/a/b/then/more", True),
        ("/path/foo-%24", "/path/foo-$", True),
        ("/%61", "/a", True),
    ],
)
def test_use_of_regular_expressions(location: str, path: str, matches: bool) -> None:
    assert bool(said(json.dumps([rule(location, 1)]), path)) is matches


def test_the_most_specific_match_is_the_first_in_sequence() -> None:
    text = json.dumps([rule("/a", 0), rule("/a/b", 1), rule("/", 1)])
    assert said(text, "/a/b") == [("tdm", "y")]
    assert said(text, "/c") == [("tdm", "n")]


@pytest.mark.parametrize("reservation", [2, -1, 1.5, True, None, "yes", [1]])
def test_a_rule_without_a_valid_reservation_says_nothing(reservation: object) -> None:
    assert said(json.dumps([rule("/a", reservation), rule("/", 0)]), "/a") == [("tdm", "y")]
    assert said(json.dumps([{"tdm-reservation": 1}, {"location": "/a"}]), "/a") == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"<!doctype html>",
        b'[{"location": "/", "tdm-reservation": 1}',
        b'[{"location": "/", "tdm-reservation": 1}] x',
        b'[{"location": "/", "tdm-reservation": 1} {}]',
        b"[1]",
        b'[{"location": "/\xff"}]',
        b"[" * 60_000,
        b"[" + b"{}," * MAX_RULES + b"{}]",
    ],
)
def test_a_malformed_file_states_nothing_and_says_why(body: bytes) -> None:
    file, rules = interpret_tdmrep(Fetched(f"{SITE}/.well-known/tdmrep.json", 1.0, 2.0, plain=body), SITE)
    assert rules.of("/") == ()
    assert file.note.startswith("malformed: ")
    assert (file.fetched_at, file.status, file.body) == (2.0, "200", body)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Failed(SITE, 1.0, 2.0, status=404), "404"),
        (Failed(SITE, 1.0, 2.0, kind=ErrorKind.TIMEOUT), "no answer"),
        (Redirected(SITE, 1.0, 2.0, status=301, location="/x"), "301"),
    ],
)
def test_without_a_file_nothing_is_stated(answer: FetchResult, status: str) -> None:
    file, rules = interpret_tdmrep(answer, SITE)
    assert (file.status, file.body, rules.of("/")) == (status, b"", ())
    assert file.note


def test_processing_priority() -> None:
    """What a header or tag says supersedes the file; the absence of a value there resets nothing."""
    filed = tdm_rules(GROUPS.encode(), SITE).of("/directory-b/html/")
    free = Preference("tdmrep", "tdm", "y", "META", None, "tdm-reservation: 0")
    other = Preference("content-usage", "train-ai", "y", "header", None, "train-ai=y")
    assert supplemented((), filed) == filed
    assert supplemented((other,), filed) == (other, *filed)
    assert supplemented((free,), filed) == (free, filed[1])
    assert {one.source for one in filed} == {SOURCE}
