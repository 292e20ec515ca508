"""``crawler rup`` on the store of a crawl, against a server written from the draft alone."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import crawler
from tests.command import HASTY, LOOPBACK, Ended, here
from tests.rup.old_server import OldServer, deliver, maildir, serving
from tests.rup.stored import Stored

ME = "robot@crawler.test"
CONFIG = HASTY


class Robot(Stored):
    """The store and the Maildir of a crawl, and the one server that it knows."""

    def __init__(self, server: OldServer, folder: Path) -> None:
        self.server = server
        self.db = folder / "c.db"
        self.mail = maildir(folder / "mail")
        self.config = folder / "c.toml"
        self.config.write_text(CONFIG)
        self.told = 0.0  # the end of the last report

    def run(self, *options: str, toml: str = "") -> None:
        self.config.write_text(CONFIG + toml)
        ended = here("run", f"{self.server.base}/", "--config", self.config, *LOOPBACK, "--db", self.db, *options)
        assert ended.code == 0, ended

    def revisit(self, *options: str) -> list[str]:
        """Crawl again; return the paths of the requested pages."""
        before = len(self.server.asked)
        self.run(*options)
        return sorted(line.split()[1] for line in self.server.asked[before:])

    def rup(self, command: str, *arguments: str | Path) -> Ended:
        ended = here("rup", command, *arguments, "--db", self.db)
        assert "Traceback" not in ended.err, ended.err
        return ended

    def register(self, *options: str) -> None:
        ended = self.rup("register", self.server.base, "--email", ME, "--latency", "1-minute", *options)
        assert ended.code == 0, ended
        self.told = time.time()

    def sync(self) -> Ended:
        ended = self.rup("sync", "--maildir", self.mail)
        assert ended.code == 0, ended
        return ended

    def report(self) -> bytes:
        """The server's next report."""
        mail = self.server.report(ME, self.told)
        self.told = time.time()
        return mail

    def all_due(self) -> None:
        """Make every page due for a revisit."""
        connection = sqlite3.connect(self.db)
        with connection:
            connection.execute("UPDATE revisit SET due_at = 0, not_before = 0")
        connection.close()

    def forms(self) -> list[str]:
        """The actions in the requests to the server."""
        return [line.partition("Action=")[2].partition("&")[0] for line in self.server.asked if "Action=" in line]

    def pages(self) -> dict[str, str]:
        """The pages in the store that are not gone: path -> title."""
        rows = self.query("SELECT url, title FROM pages WHERE gone_at IS NULL")
        return {url.removeprefix(self.server.base): title for url, title in rows}

    def tree(self) -> dict[str, str]:
        return {path: text.partition("<title>")[2].partition("<")[0] for path, (text, _) in self.server.files.items()}


def page(title: str, *links: str) -> str:
    return f"<title>{title}</title>" + "".join(f"<a href='{link}'>{link}</a>" for link in links)


@pytest.fixture
def server() -> Iterator[OldServer]:
    server = OldServer()
    links = [f"/p{n}.html" for n in range(1, 9)]
    with serving(server):
        server.put("/", page("start", *links, "/later.html"))
        for link in links:
            server.put(link, page(f"old {link}"))
        server.log = [(at - 86400, kind, path) for at, kind, path in server.log]
        yield server


@pytest.fixture
def robot(server: OldServer, tmp_path: Path) -> Robot:
    """A robot that has crawled once and registered."""
    robot = Robot(server, tmp_path)
    robot.run()
    robot.register()
    return robot


def change(robot: Robot) -> list[str]:
    """Create a file, change one, delete one; return their paths."""
    robot.server.put("/later.html", page("made"))  # a page that was linked to, and not there
    robot.server.put("/p1.html", page(f"changed at {time.time()}"))
    robot.server.delete("/p2.html")
    return ["/later.html", "/p1.html", "/p2.html"]


def test_only_reported_pages_are_fetched_and_the_store_equals_the_tree(robot: Robot) -> None:
    changed = change(robot)
    deliver(robot.mail, robot.report())
    assert "1 reports of 3 changes" in robot.sync().out
    assert robot.revisit() == changed
    assert robot.pages() == robot.tree()
    assert robot.revisit() == []
    robot.all_due()
    unseen = {"/", *(f"/p{n}.html" for n in range(3, 9))}
    assert set(robot.revisit("--revisit")) == unseen, "they may have changed between the crawl and the registration"
    robot.all_due()
    assert robot.revisit("--revisit") == [], "between reports nothing is polled"
    ((gone, title),) = robot.query("SELECT gone_at NOTNULL, title FROM pages WHERE url LIKE '%/p2.html'")
    assert (gone, title) == (1, "old /p2.html"), "the last version is kept"
    assert here("audit", "--db", robot.db).code == 0
    assert {agent.partition("/")[0] for agent in robot.server.agents} == {"PoliteCrawler"}


def test_a_crawl_asks_once_for_the_offer_of_a_site_and_shows_it(server: OldServer, tmp_path: Path) -> None:
    robot = Robot(server, tmp_path)
    robot.run(toml="[updates]\nrup = true\n")
    robot.run(toml="[updates]\nrup = true\n")
    assert [line for line in server.asked if "rupinfo" in line] == ["GET /rupinfo.txt", "GET /rupinfo.tex"]
    assert server.asked[0] == "GET /robots.txt"
    cgi = f"{server.base}{server.cgi}"
    assert robot.query("SELECT cgi, latencies, max_query_span FROM rup_offers") == [
        (cgi, '["minute", "hour", "day"]', "30-day")
    ]
    assert dict(robot.query("SELECT purpose, count(*) FROM requests GROUP BY 1"))["rup"] == 2
    asked = json.loads(robot.rup("info", server.base, "--json").out)
    assert (asked["cgi"], asked["max_query_span"]) == (cgi, "30-day")
    assert here("audit", "--db", robot.db).code == 0


def test_a_site_without_updates_or_that_closes_them_says_so_in_a_sentence(server: OldServer, tmp_path: Path) -> None:
    robot = Robot(server, tmp_path)
    robot.run()
    server.info_path = "/nowhere"
    ended = robot.rup("info", server.base)
    assert ended.code == 1
    assert ended.err == f"crawler: {server.base} offers no updates: it has neither /rupinfo.txt nor /rupinfo.tex\n"
    server.info_path, server.authentifier = "/rupinfo.txt", "pgp"
    ended = robot.rup("register", server.base, "--email", ME)
    assert "the server requires an unknown authentication: pgp" in ended.err
    server.authentifier, server.cgi_url = "none", "http://elsewhere.test/cgi"
    assert "on another site" in robot.rup("register", server.base, "--email", ME).err
    assert robot.forms() == []


def test_a_cgi_that_robots_txt_closes_is_not_asked(server: OldServer, tmp_path: Path) -> None:
    server.robots = "User-agent: *\nDisallow: /cgi-bin/\n"
    robot = Robot(server, tmp_path)
    ended = robot.rup("register", f"{server.base}/any/page", "--email", ME, *LOOPBACK[:3])
    assert ended.code == 1
    assert "/robots.txt forbids /cgi-bin/RUP.pl (line 2, Disallow: /cgi-bin/): it is not requested" in ended.err
    assert robot.forms() == []
    assert json.loads(robot.rup("status", "--json").out) == {"servers": []}
    assert here("audit", "--db", robot.db).code == 0


def test_a_server_without_post_gets_get_and_no_output_contains_the_key(server: OldServer, tmp_path: Path) -> None:
    server.takes_post = False
    robot = Robot(server, tmp_path)
    robot.run()
    robot.register()
    robot.later(3600)
    said = robot.sync()
    assert [line.partition("&")[0] for line in server.asked if line.startswith("GET /cgi-bin")] == [
        "GET /cgi-bin/RUP.pl?Action=Register",
        "GET /cgi-bin/RUP.pl?Action=GetSequenceNumber",
    ]
    key = server.robots_known[ME]["key"]
    dump = said.out + said.err + robot.rup("status", "--json").out + here("audit", "--db", robot.db, "--json").out
    views = [name for (name,) in robot.query("SELECT name FROM sqlite_master WHERE type = 'view'")]
    assert "rup_servers" in views
    dump += str([robot.query(f"SELECT * FROM {view}") for view in views]) + str(robot.query("SELECT * FROM request"))
    assert key not in dump
    assert "RegistrationKey=-" in dump
    assert here("audit", "--db", robot.db).code == 0
    assert robot.query("SELECT key FROM rup_server") == [(key,)]


def test_a_redirect_that_repeats_the_key_does_not_show_it(server: OldServer, tmp_path: Path) -> None:
    server.takes_post = False
    robot = Robot(server, tmp_path)
    robot.run()
    robot.register()
    key, original = server.robots_known[ME]["key"], server.answer
    server.answer = lambda method, target, form: (  # type: ignore[method-assign]
        (301, f"text/html\r\nLocation: {target}&again={key[::-1]}", "moved")
        if "RegistrationKey" in target
        else original(method, target, form)
    )
    robot.later(3600)
    said = robot.sync()
    assert "redirects, which is not followed" in said.err
    dump = (
        said.out
        + said.err
        + robot.rup("status", "--json").out
        + robot.rup("modify", server.base, "--latency", "2-hour").err
    )
    for (name,) in robot.query("SELECT name FROM sqlite_master WHERE type IN ('view', 'table')"):
        dump += str(robot.query(f"SELECT * FROM {name}")) if name != "rup_server" else ""
    assert key not in dump
    assert key[::-1] not in dump
    assert here("audit", "--db", robot.db).code == 0


def test_a_register_that_is_not_answered_is_not_sent_again(server: OldServer, tmp_path: Path) -> None:
    robot = Robot(server, tmp_path)
    robot.run()
    server.silent = True
    ended = robot.rup("register", server.base, "--email", ME)
    assert ended.code == 1
    assert "a second request could register it twice" in ended.err
    server.silent = False
    assert "had no answer" in robot.rup("register", server.base, "--email", ME).err
    robot.sync()
    assert robot.forms() == ["Register"]
    assert "forgot" in robot.rup("unregister", server.base).out
    robot.register()
    assert robot.forms() == ["Register", "Register"]


def test_preferences_and_the_end_of_a_registration(robot: Robot) -> None:
    ended = robot.rup("modify", robot.server.base, "--latency", "2-hour", "--include-only", "^/p")
    assert ended.code == 0, ended
    known = robot.server.robots_known[ME]
    assert (known["Latency"], known["IncludeOnly"]) == ("2-hour", "^/p")
    assert robot.query("SELECT latency, include_only FROM rup_servers") == [("2-hour", '["^/p"]')]
    assert robot.rup("modify", robot.server.base, "--email", "new@crawler.test").code == 0
    assert list(robot.server.robots_known) == ["new@crawler.test"]
    assert "no longer registered" in robot.rup("unregister", robot.server.base).out
    assert robot.server.robots_known == {}
    assert "not registered with" in robot.rup("unregister", robot.server.base).err
    assert robot.rup("modify", robot.server.base).code == 2


def test_the_robot_does_not_request_a_latency_that_the_server_does_not_offer(robot: Robot) -> None:
    assert "not of week" in robot.rup("modify", robot.server.base, "--latency", "2-week").err
    assert robot.forms() == ["Register"]


@pytest.mark.parametrize("status", [404, 410, 503])
def test_a_server_that_is_gone_can_be_forgotten(robot: Robot, status: int) -> None:
    original = robot.server.answer
    robot.server.answer = lambda *asked: (  # type: ignore[method-assign]
        (status, "text/html", "gone") if "Action=" in asked[2] else original(*asked)
    )
    ended = robot.rup("unregister", robot.server.base)
    if status == 503:
        assert "--forget" in ended.err
        ended = robot.rup("unregister", robot.server.base, "--forget")
        assert "may still write to" in ended.out
    assert ended.code == 0
    assert json.loads(robot.rup("status", "--json").out) == {"servers": []}
    assert robot.forms() == ["Register", "Unregister"]


def test_an_index_is_open_to_everybody(server: OldServer, tmp_path: Path) -> None:
    robot = Robot(server, tmp_path)
    robot.run()
    changed = change(robot)
    assert "9 changes" not in robot.rup("sync", server.base, "--span", "1-hour").out
    assert robot.revisit() == changed
    assert robot.pages() == robot.tree()
    assert server.robots_known == {}
    ended = robot.rup("sync", server.base, "--span", "2-month")
    assert "the server's index reaches back 30-day" in ended.err
    assert robot.forms() == ["GetIndex"]


# --- 3.3.3, each for real ---------------------------------------------------------------------


def test_a_lost_report_is_noticed_by_the_next_and_recovered_from_the_index(robot: Robot) -> None:
    changed = change(robot)
    robot.report()  # dropped
    robot.server.put("/p3.html", page("after"))
    deliver(robot.mail, robot.report())
    assert "report 2 arrived after 0" in robot.sync().err
    assert robot.forms()[1:] == ["GetSequenceNumber", "GetIndex"]
    assert robot.revisit() == sorted([*changed, "/p3.html"])
    assert robot.pages() == robot.tree()
    robot.server.put("/p4.html", page("in order again"))
    deliver(robot.mail, robot.report())
    robot.sync()
    assert robot.forms()[1:] == ["GetSequenceNumber", "GetIndex"], "nothing was missing any more"
    assert robot.revisit() == ["/p4.html"]


def test_a_report_that_comes_twice_or_late_changes_nothing(robot: Robot) -> None:
    changed = change(robot)
    first = robot.report()
    robot.server.put("/p3.html", page("second"))
    second = robot.report()
    deliver(robot.mail, second)  # overtook the first, and both wait
    deliver(robot.mail, first)
    deliver(robot.mail, first)
    robot.sync()
    assert robot.revisit() == sorted([*changed, "/p3.html"])
    before = robot.query("SELECT * FROM rup_server")
    deliver(robot.mail, second)
    deliver(robot.mail, b"X-Copy: yes\r\n" + first)
    assert "0 reports of 0 changes; 2 other mails" in robot.sync().out
    assert robot.query("SELECT * FROM rup_server") == before
    assert robot.revisit() == []
    assert robot.forms() == ["Register", "GetSequenceNumber"], "once, to show that mail arrives"
    assert sorted(robot.mail.glob("new/*")) == []
    assert len(list(robot.mail.glob("cur/*:2,S"))) == 5


def test_silence_past_the_latency_makes_the_robot_ask(robot: Robot) -> None:
    changed = change(robot)
    late = robot.report()  # still on its way
    robot.later(300)
    robot.sync()
    assert robot.forms() == ["Register"], "within the grace nothing is asked"
    robot.later(120)
    robot.sync()
    assert robot.forms()[1:] == ["GetSequenceNumber", "GetIndex"]
    assert robot.revisit() == changed
    deliver(robot.mail, late)
    robot.sync()
    assert robot.revisit() == changed, "who wrote it is not known: it costs a look"
    for _ in range(3):
        robot.later(420)
        robot.sync()
    assert robot.forms()[3:] == ["GetSequenceNumber"] * 2, (
        "for the late report; and the longer it is quiet, the less it is asked"
    )


def test_a_server_that_begins_its_numbers_anew_is_followed(robot: Robot) -> None:
    deliver(robot.mail, robot.report())
    deliver(robot.mail, robot.report())
    robot.sync()
    robot.server.robots_known[ME]["n"] = "0"
    changed = change(robot)
    deliver(robot.mail, robot.report())  # number 1 again: taken for an old one
    robot.sync()
    robot.later(420)
    assert "it has started again" in robot.sync().err
    assert robot.revisit() == changed
    robot.server.put("/p3.html", page("by report 2"))
    deliver(robot.mail, robot.report())
    robot.sync()
    assert robot.revisit() == ["/p3.html"]


@pytest.mark.parametrize("span", ["1-hour", ""])
def test_the_whole_site_is_revisited_if_the_index_does_not_reach_far_enough(
    server: OldServer, tmp_path: Path, span: str
) -> None:
    server.max_query_span = span
    robot = Robot(server, tmp_path)
    robot.run()
    robot.register()
    changed = change(robot)
    robot.report()
    robot.later(7200)
    assert "of the site are scheduled for a visit" in robot.sync().err
    visited = robot.revisit()
    assert set(visited) == {"/", *(f"/p{n}.html" for n in range(1, 9))}, "each once, asked for what is new"
    assert "/p1.html" in changed
    assert {path: title for path, title in robot.tree().items() if path != "/later.html"} == robot.pages()
    assert robot.query("SELECT state_code FROM rup_servers") == [("reports",)]
    assert robot.revisit() == []


def test_a_server_that_lost_its_registrations_is_registered_with_again(robot: Robot) -> None:
    changed = change(robot)
    robot.server.robots_known.clear()
    robot.later(420)
    assert "does not know our key: registering again" in robot.sync().err
    assert robot.forms()[1:] == ["GetSequenceNumber", "Register"]
    assert set(robot.revisit()) == {"/", *(f"/p{n}.html" for n in range(1, 9))}, "it may have lost its log too"
    assert robot.query("SELECT title FROM pages WHERE url LIKE '%/p1.html'") == [(robot.tree()["/p1.html"],)]
    assert "/p1.html" in changed
    deliver(robot.mail, robot.report())
    assert "1 reports" in robot.sync().out
    assert robot.query("SELECT key FROM rup_server") == [(robot.server.robots_known[ME]["key"],)]


def test_a_server_that_neither_knows_the_key_nor_registers_is_given_up_and_polled_again(robot: Robot) -> None:
    robot.server.robots_known[ME]["key"] = "another"
    robot.server.cgi_url = robot.server.base + "/gone"
    robot.later(420)
    original, robot.server.answer = (
        robot.server.answer,
        lambda *asked: (400, "text/html", "no") if "Action=" in asked[2] else original(*asked),
    )
    assert "given up: the server does not know our key and refuses a new registration" in robot.sync().err
    assert robot.forms()[1:] == ["GetSequenceNumber", "Register"]
    robot.sync()
    assert robot.forms()[1:] == ["GetSequenceNumber", "Register"]
    ((state,),) = robot.query("SELECT state_code FROM rup_servers")
    assert state == "given_up"
    assert robot.query("SELECT silent_at FROM rup_server") == [(0.0,)], "its pages are due like any others"


def test_a_server_that_is_gone_is_asked_less_and_less(server: OldServer, tmp_path: Path) -> None:
    robot = Robot(server, tmp_path)
    robot.run()
    robot.register()
    changed = change(robot)
    original, server.answer = (
        server.answer,
        lambda *asked: (404, "text/html", "gone") if "Action=" in asked[2] else original(*asked),
    )
    for seconds, asked in ((420, 1), (420, 1), (420, 2), (900, 2), (900, 3)):
        robot.later(seconds)
        robot.sync()
        assert len(robot.forms()) == 1 + asked
    ((state,),) = robot.query("SELECT state_code FROM rup_servers")
    assert state == "unreached"
    assert robot.revisit() == []
    robot.all_due()
    assert robot.revisit("--revisit") == ["/", *(f"/p{n}.html" for n in range(1, 9))], "polled like any other site"
    server.answer = original
    robot.report()
    robot.later(90000)
    robot.sync()
    assert robot.forms()[-1] == "GetIndex"
    assert robot.revisit() == changed


# --- dates ------------------------------------------------------------------------------------


def test_a_reported_page_is_visited_whatever_the_date_of_its_change(robot: Robot) -> None:
    dates = (
        "[Sat, 03 Jan 1998 10:00:00 GMT]",
        time.strftime("[%Y-%m-%d]", time.gmtime()),
        "",
        "[2020-01-01T00:00:01Z]",
    )
    lines = "".join(f"Change{date}: /p{n}.html\r\n" for n, date in enumerate(dates, 1))
    deliver(robot.mail, f"\r\nSequenceNumber: 1\r\nURLBase: {robot.server.base}/\r\n\r\n{lines}".encode())
    assert "4 known pages and 0 others to be visited" in robot.sync().out
    assert robot.revisit() == [f"/p{n}.html" for n in range(1, 5)]
    assert "nothing to do" in robot.rup("sync").out


def test_an_index_that_dates_days_or_files_is_believed(server: OldServer, tmp_path: Path) -> None:
    robot = Robot(server, tmp_path)
    robot.run()
    today, seen = (
        time.strftime("%Y-%m-%d", time.gmtime()),
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 900)),
    )
    server.text = lambda *_: (  # type: ignore[method-assign]
        f"URLBase: {server.base}\n\nChange[{today}]: /p1.html\nChange[{seen}]: /p2.html\n"
        "Change[1998-01-03T10:00:00Z]: /p3.html\n"
    )
    robot.rup("sync", server.base, "--span", "1-hour")
    assert robot.revisit() == ["/p1.html", "/p3.html"], "/p2.html was seen since"


# --- hostile mail -----------------------------------------------------------------------------


def forged(base: str, number: int | str, paths: str, headers: str = "Content-Type: text/plain") -> bytes:
    report = f"SequenceNumber: {number}\r\nURLBase: {base}\r\n\r\nDelete: {paths}\r\n"
    return f"From: evil@evil.test\r\n{headers}\r\n\r\n{report}".encode()


def test_hostile_mail_changes_nothing_but_counters(robot: Robot) -> None:
    base = robot.server.base
    urls = robot.query("SELECT url, state FROM urls ORDER BY 1")
    nested = b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n" * 3000
    mails = [
        b"",
        b"\x00\xff" * 5000,
        nested,
        forged("http://other.test/", 1, "/"),
        forged(f"{base}@evil.test/", 1, "/"),
        forged("javascript:alert(1)", 1, "/"),
        forged(base, "9" * 40, "/"),
        forged(base, -1, "/p1.html"),
        b"Content-Type: text/plain\r\n\r\n" + b"A" * (13 * 2**20),
        forged(base, 1, ", ".join(["http://other.test/x", "//other.test/y", "ftp://old.test/z", "mailto:a@b"])),
    ]
    for mail in mails:
        deliver(robot.mail, mail)
    (robot.mail / "new" / "a-folder").mkdir()
    (robot.mail / "new" / "a-link").symlink_to(robot.config)
    said = robot.sync()
    assert "1 reports of 0 changes; 9 other mails, 5 paths refused" in said.out
    assert robot.query("SELECT url, state FROM urls ORDER BY 1") == urls
    assert robot.revisit() == []
    assert robot.query("SELECT site, ignored, refused FROM rup_servers") == [(base, 0, 4)]
    assert (robot.mail / "new" / "a-link").is_symlink()


def test_a_forged_report_costs_a_look_and_no_more(robot: Robot) -> None:
    deliver(robot.mail, forged(robot.server.base, 1, "/p1.html, /p2.html"))
    robot.sync()
    assert robot.revisit() == ["/p1.html", "/p2.html"]
    assert robot.pages() == robot.tree(), "what is there is not removed on anybody's word"
    changed = change(robot)
    deliver(robot.mail, robot.report())  # the real report 1
    robot.sync()
    assert robot.revisit() == changed


def test_true_reports_are_heeded_beside_forged_ones(robot: Robot) -> None:
    base = robot.server.base
    for number in range(1, 6):
        deliver(robot.mail, forged(base, number, "/p8.html"))
    robot.sync()
    robot.revisit()
    assert robot.query("SELECT sequence_number FROM rup_server") == [(0,)], "the server has sent none"
    for n in (3, 4, 5):
        robot.server.put(f"/p{n}.html", page(f"true {n}"))
        deliver(robot.mail, robot.report())
        robot.sync()
        deliver(robot.mail, forged(base, n - 1, f"/p{n - 2}.html"))
        robot.sync()
        assert f"/p{n}.html" in robot.revisit()
    assert robot.pages() == robot.tree()
    asked = robot.forms().count("GetSequenceNumber")
    for number in range(50, 60):
        deliver(robot.mail, forged(base, number, "/p8.html"))
        robot.sync()
    assert robot.forms().count("GetSequenceNumber") <= asked + 1


def test_mail_cannot_flood_the_frontier_and_the_index_tells_the_rest(robot: Robot) -> None:
    flood = ", ".join(f"/flood{n}.html" for n in range(5000))
    deliver(robot.mail, forged(robot.server.base, 1, flood).replace(b"Delete", b"New"))
    said = robot.sync()
    assert "0 known pages and 100 others to be visited, 4,900 beyond the limit of mail" in said.out
    assert "; 100 visits to be made by `crawler run" in said.out
    assert robot.query("SELECT count(*) FROM urls WHERE url LIKE '%flood%'") == [(100,)]
    for n in range(150):
        robot.server.put(f"/true{n}.html", page(f"true {n}"))
    deliver(robot.mail, robot.report())
    robot.later(60)
    robot.sync()
    assert robot.forms()[-1] == "GetIndex"
    assert robot.query("SELECT count(*) FROM urls WHERE url LIKE '%/true%'") == [(150,)]


def test_the_index_replaces_a_report_that_is_too_long(robot: Robot) -> None:
    changed = change(robot)
    robot.report()
    deliver(robot.mail, forged(robot.server.base, 1, ", ".join(f"/flood{n}.html" for n in range(100_001))))
    assert "reads the site's index instead" in robot.sync().err
    assert robot.forms()[1:] == ["GetSequenceNumber", "GetIndex"]
    assert robot.revisit() == changed


def test_a_killed_sync_finds_its_mail_again(robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = change(robot)
    deliver(robot.mail, robot.report())

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("crawler.store.sql.subscriptions.SqlSubscriptions.put", crash)
        robot.rup("sync", "--maildir", robot.mail)
    assert len(list(robot.mail.glob("new/*"))) == 1
    with monkeypatch.context() as broken:
        broken.setattr("crawler.rup.mail.maildir.Maildir.done", crash)
        robot.rup("sync", "--maildir", robot.mail)
    assert len(list(robot.mail.glob("new/*"))) == 1
    robot.sync()
    assert list(robot.mail.glob("new/*")) == []
    assert robot.query("SELECT sequence_number, state_code FROM rup_servers") == [(1, "reports")]
    assert robot.revisit() == changed


# --- how it is used ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("sync", "--span", "7-day"), "give the SITE"),
        (("sync", "http://old.test", "--span", "often"), "a number, a hyphen and a unit"),
        (("sync", "--maildir", "/nowhere"), "not a Maildir"),
        (("sync", "--imap", "imap://me@mail.example.org"), "sends the password unencrypted"),
        (("sync", "--imap", "imaps://me:secret@mail.example.org"), "must not contain a password"),
        (("sync", "--imap", "imaps://me@mail.example.org"), "needs a password"),
        (("register", "http://old.test", "--email", "me"), "not an e-mail address"),
        (
            ("register", "http://old.test", "--email", ME, "--exclude", "a", "--include-only", "b"),
            "allows only one of them",
        ),
        (("register", "http://example.org", "--email", ME), "--contact"),
        (("register", "old.test", "--email", ME), "old.test"),
        (("sync", "--agent", "OtherBot"), "the crawl in this store has PoliteCrawler"),
    ],
)
def test_wrong_options_end_in_one_sentence(
    server: OldServer, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    robot = Robot(server, tmp_path)
    robot.run()
    ended = robot.rup(*arguments)
    assert ended.code == 2
    assert complaint in ended.err
    assert ended.err.count("\n") == 1
    assert "secret" not in ended.err


def test_imap_without_its_library_names_the_extra(
    server: OldServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = Robot(server, tmp_path)
    robot.run()
    monkeypatch.setitem(sys.modules, "aioimaplib", None)
    monkeypatch.delitem(sys.modules, "crawler.rup.mail.imap", raising=False)
    ended = robot.rup("sync", "--imap", "imaps://me@mail.example.org")
    assert ended.code == 2
    assert "pip install '.[updates]'" in ended.err
    assert robot.rup("sync", "--maildir", robot.mail).code == 0


async def test_updates_from_python(server: OldServer, tmp_path: Path) -> None:
    crawl = crawler.open(tmp_path / "c.db", {"fetch.resolve": ["*.test=127.0.0.1"], "fetch.allow_private": True})
    async with crawl, crawl.rup(server.base) as rup:
        offered = await rup.info(server.base)
    assert offered.info.cgi == server.base + server.cgi
