"""``crawler rup`` and a server written from the draft alone: its offer, registrations and their keys, wrong usage."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import crawler
from tests.command import HASTY
from tests.rup.old_server import OldServer
from tests.rup.robot import ME, Robot, old_site


@pytest.fixture
def stranger(server: OldServer, tmp_path: Path) -> Robot:
    """It has crawled once."""
    robot = Robot(server, tmp_path)
    robot.crawl()
    return robot


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Robot]:
    """It has crawled once, and its commands change nothing."""
    with old_site() as server:
        robot = Robot(server, tmp_path_factory.mktemp("refused"))
        robot.crawl()
        yield robot


# --- the offer of a site --------------------------------------------------------------------------


def test_a_crawl_asks_once_for_the_offer_of_a_site_and_shows_it(server: OldServer, tmp_path: Path) -> None:
    robot = Robot(server, tmp_path)
    for _ in range(2):
        robot.crawl(toml="[updates]\nrup = true\n")
    assert [line for line in server.asked if "rupinfo" in line] == ["GET /rupinfo.txt", "GET /rupinfo.tex"]
    assert server.asked[0] == "GET /robots.txt"
    cgi = f"{server.base}{server.cgi}"
    assert robot.query("SELECT cgi, latencies, max_query_span FROM rup_offers") == [
        (cgi, '["minute", "hour", "day"]', "30-day")
    ]
    assert dict(robot.query("SELECT purpose, count(*) FROM requests GROUP BY 1"))["rup"] == 2
    asked = json.loads(robot.rup("info", server.base, "--json").out)
    assert (asked["cgi"], asked["max_query_span"]) == (cgi, "30-day")
    assert robot.audit_finds_nothing()


def test_a_site_without_updates_says_so_in_a_sentence(stranger: Robot, server: OldServer) -> None:
    server.info_path = "/nowhere"
    ended = stranger.rup("info", server.base)
    assert ended.code == 1
    assert ended.err == f"crawler: {server.base} offers no updates: it has neither /rupinfo.txt nor /rupinfo.tex\n"


def test_an_offer_that_cannot_be_taken_is_not_taken(stranger: Robot, server: OldServer) -> None:
    server.info_path, server.cgi_url = "/rupinfo.txt", "http://elsewhere.test/cgi"
    assert "on another site" in stranger.rup("register", server.base, "--email", ME).err
    assert server.actions() == []


def test_a_cgi_that_robots_txt_closes_is_not_asked(server: OldServer, tmp_path: Path) -> None:
    server.robots = "User-agent: *\nDisallow: /cgi-bin/\n"
    robot = Robot(server, tmp_path)
    robot.config.write_text(f'{HASTY}resolve = ["*.test=127.0.0.1"]\nallow_private = true\n')
    ended = robot.rup("register", f"{server.base}/any/page", "--email", ME, "--config", robot.config)
    assert ended.code == 1
    assert "/robots.txt forbids /cgi-bin/RUP.pl (line 2, Disallow: /cgi-bin/): it is not requested" in ended.err
    assert server.actions() == []
    assert json.loads(robot.rup("status", "--json").out) == {"servers": []}
    assert robot.audit_finds_nothing()


# --- the key of a registration --------------------------------------------------------------------


def test_a_server_without_post_gets_get_and_no_output_contains_the_key(stranger: Robot, server: OldServer) -> None:
    server.takes_post = False
    stranger.register()
    stranger.later(3600)
    said = stranger.sync()
    assert [line.partition("&")[0] for line in server.asked if line.startswith("GET /cgi-bin")] == [
        "GET /cgi-bin/RUP.pl?Action=Register",
        "GET /cgi-bin/RUP.pl?Action=GetSequenceNumber",
    ]
    key = server.robots_known[ME]["key"]
    shown = said.out + said.err + stranger.rup("status", "--json").out + stored(stranger, "view")
    shown += str(stranger.query("SELECT * FROM request"))
    assert key not in shown
    assert "RegistrationKey=-" in shown
    assert stranger.audit_finds_nothing()
    assert stranger.query("SELECT key FROM rup_server") == [(key,)]


def test_a_redirect_that_repeats_the_key_does_not_show_it(stranger: Robot, server: OldServer) -> None:
    server.takes_post = False
    stranger.register()
    key = server.robots_known[ME]["key"]
    away = f"{server.cgi}?RegistrationKey={key}&again={key[::-1]}"
    server.instead = lambda form: (301, f"text/html\r\nLocation: {away}", "moved")
    stranger.later(3600)
    said = stranger.sync()
    assert "redirects, which is not followed" in said.err
    modified = stranger.rup("modify", server.base, "--latency", "2-hour")
    shown = said.out + said.err + stranger.rup("status", "--json").out + modified.err
    shown += stored(stranger, "view") + stored(stranger, "table")
    assert key not in shown
    assert key[::-1] not in shown
    assert stranger.audit_finds_nothing()


def stored(robot: Robot, kind: str) -> str:
    """The contents of all views or tables of the store, apart from the table that has the key."""
    names = [name for (name,) in robot.query(f"SELECT name FROM sqlite_master WHERE type = '{kind}'")]
    assert f"rup_server{'s' if kind == 'view' else ''}" in names
    return str([robot.query(f"SELECT * FROM {name}") for name in names if name != "rup_server"])


# --- registrations --------------------------------------------------------------------------------


def test_a_register_that_is_not_answered_is_not_sent_again(stranger: Robot, server: OldServer) -> None:
    server.silent = True
    ended = stranger.rup("register", server.base, "--email", ME)
    assert ended.code == 1
    assert "a second request could register it twice" in ended.err
    server.silent = False
    assert "had no answer" in stranger.rup("register", server.base, "--email", ME).err
    stranger.sync()
    assert server.actions() == ["Register"]
    assert "forgot" in stranger.rup("unregister", server.base).out
    stranger.register()
    assert server.actions() == ["Register", "Register"]


def test_preferences_are_changed_at_the_server_and_in_the_store(robot: Robot, server: OldServer) -> None:
    ended = robot.rup("modify", server.base, "--latency", "2-hour", "--include-only", "^/p")
    assert ended.code == 0, ended
    known = server.robots_known[ME]
    assert (known["Latency"], known["IncludeOnly"]) == ("2-hour", "^/p")
    assert robot.query("SELECT latency, include_only FROM rup_servers") == [("2-hour", '["^/p"]')]
    assert robot.rup("modify", server.base, "--email", "new@crawler.test").code == 0
    assert list(server.robots_known) == ["new@crawler.test"]


def test_a_latency_that_the_server_does_not_offer_is_not_requested(robot: Robot, server: OldServer) -> None:
    assert "not of week" in robot.rup("modify", server.base, "--latency", "2-week").err
    assert server.actions() == ["Register"]


def test_a_registration_ends(robot: Robot, server: OldServer) -> None:
    assert "no longer registered" in robot.rup("unregister", server.base).out
    assert server.robots_known == {}
    assert "not registered with" in robot.rup("unregister", server.base).err
    assert robot.rup("modify", server.base).code == 2


def test_a_server_that_is_gone_is_forgotten(robot: Robot, server: OldServer) -> None:
    server.instead = lambda form: (410, "text/html", "gone")
    assert robot.rup("unregister", server.base).code == 0
    assert json.loads(robot.rup("status", "--json").out) == {"servers": []}
    assert server.actions() == ["Register", "Unregister"]


def test_a_server_that_fails_is_forgotten_only_on_request(robot: Robot, server: OldServer) -> None:
    server.instead = lambda form: (503, "text/html", "later")
    assert "--forget" in robot.rup("unregister", server.base).err
    ended = robot.rup("unregister", server.base, "--forget")
    assert (ended.code, "may still write to" in ended.out) == (0, True)
    assert json.loads(robot.rup("status", "--json").out) == {"servers": []}
    assert server.actions() == ["Register", "Unregister"]


# --- usage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("sync", "--span", "7-day"), "give the SITE"),
        (("sync", "http://old.test", "--span", "often"), "a number, a hyphen and a unit"),
        (("sync", "--maildir", "/nowhere"), "not a Maildir"),
        (("sync", "--imap", "imaps://me@mail.example.org"), "needs a password"),
        (("register", "http://old.test", "--email", "me"), "not an e-mail address"),
        (
            ("register", "http://old.test", "--email", ME, "--exclude", "a", "--include-only", "b"),
            "allows only one of them",
        ),
        (("register", "http://example.org", "--email", ME), "identity.contact"),
        (("register", "old.test", "--email", ME), "old.test"),
        (("sync", "--config", "OTHER"), "the crawl in this store has PoliteCrawler"),
    ],
)
def test_wrong_options_end_in_one_sentence(refused: Robot, arguments: tuple[str, ...], complaint: str) -> None:
    refused.config.write_text('[identity]\nagent = "OtherBot"\n')
    ended = refused.rup(*(refused.config if argument == "OTHER" else argument for argument in arguments))
    assert ended.code == 2
    assert complaint in ended.err
    assert ended.err.count("\n") == 1


def test_imap_without_its_library_names_the_extra(refused: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aioimaplib", None)
    monkeypatch.delitem(sys.modules, "crawler.rup.mail.imap", raising=False)
    ended = refused.rup("sync", "--imap", "imaps://me@mail.example.org")
    assert ended.code == 2
    assert "pip install '.[updates]'" in ended.err
    assert refused.rup("sync", "--maildir", refused.mail).code == 0


async def test_an_offer_from_python(server: OldServer, tmp_path: Path) -> None:
    settings = {"fetch.resolve": ["*.test=127.0.0.1"], "fetch.allow_private": True, "politeness.delay": 0}
    async with crawler.open(tmp_path / "c.db", settings) as crawl, crawl.rup(server.base) as rup:
        offered = await rup.info(server.base)
    assert offered.info.cgi == server.base + server.cgi
