"""Mobile-agent-server lines: the Internet-Draft of February 1997; docs/protocols.md, section 4."""

import pytest

from crawler.model import Reading
from crawler.robots.mobile_agents import AgentServer
from crawler.robots.readings import SiteRules, read
from crawler.robots.text import parse

FICT = """Mobile-agent-server: / atp://www.fict.org:8001
Mobile-agent-server: /home/ none
Mobile-agent-server: /home/user1/ atp://user1.fict.org:854
Mobile-agent-server: /home/user2/ atp://user2.fict.org:831
"""
EVERY = pytest.mark.parametrize("reading", list(Reading))


def rules(text: str, reading: Reading = Reading.STRICT) -> SiteRules:
    return read(parse(text.encode()), token="figtree", reading=reading, site="http://www.fict.org")


@EVERY
@pytest.mark.parametrize(
    ("path", "server", "line"),
    [
        ("/index.html", "atp://www.fict.org:8001", 1),
        ("/services/", "atp://www.fict.org:8001", 1),
        ("/services/index.html", "atp://www.fict.org:8001", 1),
        ("/robots.txt", "atp://www.fict.org:8001", 1),
        ("/home/", None, 2),
        ("/home/user1/", "atp://user1.fict.org:854", 3),
        ("/home/user1/index.html", "atp://user1.fict.org:854", 3),
        ("/home/user2/", "atp://user2.fict.org:831", 4),  # the document prints user1: a slip
        ("/home/user2/index.html", "atp://user2.fict.org:831", 4),
        ("/home/user3/", None, 2),
        ("/home/user3/index.html", None, 2),
    ],
)
def test_section_4_example(reading: Reading, path: str, server: str | None, line: int) -> None:
    assert rules(FICT, reading).agent_server(path) == AgentServer(server, line)


def test_section_3_1_example() -> None:
    found = rules(
        "Mobile-agent-server: / none\n"
        "Mobile-agent-server: /dir1 atp://www.fict.org:544\n"
        "Mobile-agent-server: /dir1/dir2 atp://www.fict.org:543\n"
    )
    assert found.agent_server("/").url is None
    assert found.agent_server("/dir1/x").url == "atp://www.fict.org:544"
    assert found.agent_server("/dir1/dir2/x").url == "atp://www.fict.org:543"


def test_the_last_matching_line_wins_however_short_its_path() -> None:
    found = rules("Mobile-agent-server: /a/b atp://b.org\nMobile-agent-server: / NONE\n")
    assert found.agent_server("/a/b") == AgentServer(None, 2)


def test_no_line_means_not_available() -> None:
    assert rules("User-agent: *\nDisallow: /\n").agent_server("/") == AgentServer(None, None)


def test_the_lines_are_bound_to_no_user_agent() -> None:
    found = rules("User-agent: other\nDisallow: /\nMobile-agent-server: / x+y://h:1\n")
    assert found.agent_server("/").url == "x+y://h:1"


@pytest.mark.parametrize(
    "value",
    ["/", "none", "/ www.fict.org", "/ atp://", "/ atp://h/path", "/ atp://h:65536", "/ atp://h:x", "/ a b", "x none"],
)
def test_section_3_2_bad_syntax_is_ignored(value: str) -> None:
    assert rules(f"Mobile-agent-server: {value}\n").agent_server("/").line is None


def test_paths_match_like_those_of_allow() -> None:
    text = "Mobile-agent-server: /*.pdf$ atp://h:1\n"
    assert rules(text, Reading.RFC9309).agent_server("/a.pdf").url
    assert rules(text, Reading.DRAFT1996).agent_server("/a.pdf").url is None
    assert rules("Mobile-agent-server: /%7ejoe atp://h:1\n").agent_server("/~joe/").url
