"""Whether robots.txt permits a request."""

from __future__ import annotations

import pytest

from crawler.engine.permission import Closed, permission
from crawler.frontier.decide import Allowed
from crawler.model import Reading, RobotsAction, RobotsCopy
from crawler.robots.readings import read
from crawler.robots.text import parse

SITE = "http://a.test"


def copy(action: RobotsAction, status: str = "200", note: str = "") -> RobotsCopy:
    return RobotsCopy(action, status, 0.0, 10.0, note=note)


def test_a_path_is_allowed_under_the_line_that_allows_it() -> None:
    file = parse(b"User-agent: *\nAllow: /rup\nDisallow: /\n")
    rules = read(file, token="PoliteCrawler", reading=Reading.STRICT, site=SITE)
    allowed = permission(SITE, copy(RobotsAction.PARSE), rules, "/rup?Action=GetIndex")
    assert isinstance(allowed, Allowed)
    assert allowed.verdict is not None
    assert allowed.verdict.line == 2
    closed = permission(SITE, copy(RobotsAction.PARSE), rules, "/cgi?RegistrationKey=secret")
    assert closed == Closed(f"{SITE}/robots.txt forbids /cgi (line 3, Disallow: /): it is not requested")
    assert permission(SITE, copy(RobotsAction.FREE), None, "/cgi") == Allowed(None)


@pytest.mark.parametrize(
    ("robots", "why"),
    [
        (copy(RobotsAction.RESTRICTED, "401"), "forbids the whole site (401)"),
        (copy(RobotsAction.DEFER, "503"), "could not be fetched (503)"),
        (copy(RobotsAction.GIVEN_UP, "timeout"), "could not be fetched (timeout)"),
        (copy(RobotsAction.UNREACHABLE, "address", "127.0.0.1 is a loopback address"), "is a loopback address"),
        (copy(RobotsAction.UNTRUSTED, "certificate", "the certificate has expired"), "the certificate has expired"),
    ],
)
def test_nothing_is_allowed_if_robots_txt_closes_the_site_or_cannot_be_fetched(robots: RobotsCopy, why: str) -> None:
    closed = permission(SITE, robots, None, "/rup")
    assert isinstance(closed, Closed)
    assert why in closed.why
