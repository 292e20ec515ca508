"""The rules that take a URL for a trap, each with what it must and what it must not refuse."""

from datetime import UTC, datetime

import pytest

from crawler.frontier.scope import Scope, ScopeMode, ScopeSettings
from crawler.frontier.traps import refusal
from tests.reasons import said

NOW = datetime(2026, 11, 21, tzinfo=UTC).timestamp()
SITE = "https://a.example"
TOKEN = "0123456789abcdef0123456789abcdef"


def refused(path: str) -> str | None:
    return said(refusal(SITE + path, NOW))


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/index.html",
        "/2024/01/01/",
        "/2024/01/01/01/01/tiles.png",
        "/a/a/",
        "/a/b/a/b/",
        "/a/b/c/a/b/d/a/b/",
        "/tiles/5/5/5.png",
        "/0/0/0/0/0/0",
        "/".join(["", *map(str, range(20))]),
        "/".join(["", *map(str, range(20)), ""]),
        "/search?q=a&q=b&sort=up",
        "/search?a=1&a=1",
        "/search?" + "&".join(f"f={number}" for number in range(12)),
        "/search?" + "&".join(f"f{number}=1" for number in range(30)),
        "/search?&&&&&&",
        "/x?" + "q" * 1024,
        "/" + "x" * (2048 - len(SITE) - 1),
        "/wiki/X_(Y)/Z",
        "/wiki/(abc)/",
        "/talks?session_id=17",
        "/talks?sessionid=f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        "/?sid=" + "z" * 40,
        "/?s=how+to+write+a+crawler",
        "/?sid=abc123",
        "/?phpsessid=",
        "/docs?class=" + TOKEN,
        "/calendar/2026/11/",
        "/cal/2024/05/",
        "/local/2031/05/",
        "/calendar/2029/12/01",
        "/calendar/1990-01",
        "/events/1950-10-years-of-us",
        "/events/1234/5",
        "/events/2031",
        "/events/2031-05-01-concert",
        "/calendar?event=20300",
        "/archive/1887/03/04/",
        "/paper?year=1887&month=3",
        "/report?year=2050",
        "/prevention/2050-01/",
    ],
)
def test_ordinary_urls_pass(path: str) -> None:
    assert refused(path) is None


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/" + "x" * (2049 - len(SITE) - 1), "url-length (2049 characters)"),
        ("/x" * 10 + "/y" * 11, "path-depth (21 segments)"),
        ("/a/b/a/b/a/b", "path-repetition (/a/b 3 times)"),
        ("/x/a/b/a/b/a/b/?q", "path-repetition (/a/b 3 times)"),
        ("/css/css/css/style.css", "path-repetition (/css 3 times)"),
        ("/1/a/1/a/1/a", "path-repetition (/1/a 3 times)"),
        ("/a///", "path-repetition (/ 3 times)"),
        ("/x?" + "q" * 1025, "query-growth (1025 characters)"),
        ("/x?" + "&".join(f"f{number}=1" for number in range(31)), "query-growth (31 parameters)"),
        ("/x?" + "&".join(f"f={number}" for number in range(13)), "query-growth (parameter f 13 times)"),
        ("/x?lang=en&a&lang=en&b&lang=en", "query-growth (lang=en 3 times)"),
        (f"/x;jsessionid={TOKEN}.node1", "session-id (jsessionid)"),
        (f"/x.jsp;JSESSIONID={TOKEN}?a=1", "session-id (jsessionid)"),
        (f"/x?a=1&PHPSESSID={TOKEN[:26]}", "session-id (phpsessid)"),
        (f"/x?ASPSESSIONIDQQGGGNCG={TOKEN}", "session-id (aspsessionidqqgggncg)"),
        (f"/x?sid={TOKEN}&b=1", "session-id (sid)"),
        ("/x?s=" + TOKEN.replace("0", "z"), "session-id (s)"),
        ("/x?session_id=mFz0vTq8Lr2Xw5Yb7Nc9Kd1Pq3A%3D%3D", "session-id (session_id)"),
        ("/(S(kbusd155dhzflbur53vafs45))/x.aspx", "session-id (/(s(kbusd155dhzflbur53vafs45))/)"),
        ("/(kbusd155dhzflbur53vafs45)/x.aspx", "session-id (/(kbusd155dhzflbur53vafs45)/)"),
        ("/calendar/2030/01/", "calendar (2030/01)"),
        ("/cal/2031/05/", "calendar (2031/05)"),
        ("/cal/1988/12/", "calendar (1988/12)"),
        ("/cal/2031/5", "calendar (2031/5)"),
        ("/Kalender/2031-5-1", "calendar (2031-5-1)"),
        ("/events/1989-12/", "calendar (1989-12)"),
        ("/agenda?date=20310501&view=day", "calendar (20310501)"),
        ("/x?view=calendar&date=2031-05-01T00:00", "calendar (2031-05-01)"),
        ("/calendar.php?month=5&year=1950", "calendar (year=1950)"),
        ("/x?year=2031&month=5", "calendar (year=2031)"),
        ("/calendar/2026/11/?to=2031-05", "calendar (2031-05)"),
    ],
)
def test_traps_are_refused(path: str, reason: str) -> None:
    assert refused(path) == f"trap: {reason}"


@pytest.mark.parametrize("refuses", [True, False])
def test_the_switch(refuses: bool) -> None:
    scope = Scope(ScopeSettings(ScopeMode.ANY), [SITE], refuses_traps=refuses, now=NOW)
    assert (scope.refusal(f"{SITE}{'/a/b' * 50}", 1) is not None) == refuses


def test_the_year_is_that_of_now() -> None:
    url = f"{SITE}/calendar/2030/01/"
    assert refusal(url, datetime(2027, 1, 2, tzinfo=UTC).timestamp()) is None
