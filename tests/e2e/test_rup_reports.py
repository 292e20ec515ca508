"""``crawler rup sync``: it requests only reported pages, and recovers from failures (section 3.3.3 of the draft)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from crawler.rup.mail.maildir import Maildir
from crawler.store.sql.subscriptions import Subscriptions
from tests.rup.old_server import OldServer, deliver
from tests.rup.robot import ME, PAGES, Robot, change, page, registered

ALL = {"/", *PAGES}


# --- nothing goes wrong ---------------------------------------------------------------------------


def test_only_reported_pages_are_fetched_and_the_store_equals_the_tree(robot: Robot, server: OldServer) -> None:
    changed = change(server)
    assert "1 report of 3 changes" in robot.receive(robot.report()).out
    assert robot.crawl() == changed
    assert robot.pages() == server.titles()
    assert robot.crawl() == []
    ((gone, title),) = robot.query("SELECT gone_at NOTNULL, title FROM pages WHERE url LIKE '%/p2.html'")
    assert (gone, title) == (1, "old /p2.html"), "the last version is kept"
    assert robot.audit_finds_nothing()
    assert {agent.partition("/")[0] for agent in server.agents} == {"PoliteCrawler"}


def test_between_reports_nothing_is_polled(robot: Robot, server: OldServer) -> None:
    changed = change(server)
    robot.receive(robot.report())
    robot.crawl()
    robot.all_due()
    unseen = ALL - set(changed)
    assert set(robot.crawl("--revisit")) == unseen, "they may have changed between the crawl and the registration"
    robot.all_due()
    assert robot.crawl("--revisit") == []


def test_an_index_is_open_to_everybody(server: OldServer, tmp_path: Path) -> None:
    robot = Robot(server, tmp_path)
    robot.crawl()
    changed = change(server)
    assert "9 changes" not in robot.rup("sync", server.base, "--span", "1-hour").out
    assert robot.crawl() == changed
    assert robot.pages() == server.titles()
    assert server.robots_known == {}
    ended = robot.rup("sync", server.base, "--span", "2-month")
    assert "the server's index reaches back 30-day" in ended.err
    assert server.actions() == ["GetIndex"]


# --- 3.3.3, each for real -------------------------------------------------------------------------


def test_a_lost_report_is_noticed_by_the_next_and_recovered_from_the_index(robot: Robot, server: OldServer) -> None:
    changed = change(server)
    robot.report()  # dropped
    server.put("/p3.html", page("after"))
    assert "report 2 arrived after 0" in robot.receive(robot.report()).err
    assert server.actions()[1:] == ["GetSequenceNumber", "GetIndex"]
    assert robot.crawl() == sorted([*changed, "/p3.html"])
    assert robot.pages() == server.titles()
    server.put("/p4.html", page("in order again"))
    robot.receive(robot.report())
    assert server.actions()[1:] == ["GetSequenceNumber", "GetIndex"], "nothing was missing any more"
    assert robot.crawl() == ["/p4.html"]


def test_a_report_that_comes_twice_or_late_changes_nothing(robot: Robot, server: OldServer) -> None:
    changed = change(server)
    first = robot.report()
    server.put("/p3.html", page("second"))
    second = robot.report()
    robot.receive(second, first, first)  # the second overtook the first
    assert robot.crawl() == sorted([*changed, "/p3.html"])
    before = robot.query("SELECT * FROM rup_server")
    again = robot.receive(second, b"X-Copy: yes\r\n" + first)
    assert "0 reports of 0 changes; 2 other mails" in again.out
    assert robot.query("SELECT * FROM rup_server") == before
    assert robot.crawl() == []
    assert server.actions() == ["Register", "GetSequenceNumber"], "once, to show that mail arrives"
    assert sorted(robot.mail.glob("new/*")) == []
    assert len(list(robot.mail.glob("cur/*:2,S"))) == 5


def test_silence_past_the_latency_makes_the_robot_ask(robot: Robot, server: OldServer) -> None:
    changed = change(server)
    late = robot.report()  # still on its way
    robot.later(300)
    robot.sync()
    assert server.actions() == ["Register"], "within the grace nothing is asked"
    robot.later(120)
    robot.sync()
    assert server.actions()[1:] == ["GetSequenceNumber", "GetIndex"]
    assert robot.crawl() == changed
    robot.receive(late)
    assert robot.crawl() == changed, "the robot does not know who wrote it: it costs a look"
    for _ in range(3):
        robot.later(420)
        robot.sync()
    questions = server.actions()[3:]
    assert questions == ["GetSequenceNumber"] * 2, "for the late report; and the longer it is quiet, the less it asks"


def test_a_server_that_begins_its_numbers_anew_is_followed(robot: Robot, server: OldServer) -> None:
    robot.receive(robot.report(), robot.report())
    server.robots_known[ME]["n"] = "0"
    changed = change(server)
    robot.receive(robot.report())  # number 1 again: taken for an old one
    robot.later(420)
    assert "it has started again" in robot.sync().err
    assert robot.crawl() == changed
    server.put("/p3.html", page("by report 2"))
    robot.receive(robot.report())
    assert robot.crawl() == ["/p3.html"]


@pytest.mark.parametrize("span", ["1-hour", ""])
def test_the_whole_site_is_revisited_if_the_index_does_not_reach_far_enough(
    server: OldServer, tmp_path: Path, span: str
) -> None:
    server.max_query_span = span
    robot = registered(server, tmp_path)
    change(server)
    robot.report()
    robot.later(7200)
    assert "of the site are scheduled for a visit" in robot.sync().err
    assert set(robot.crawl()) == ALL, "each once, asked for what is new"
    unlinked = {path: title for path, title in server.titles().items() if path != "/later.html"}
    assert robot.pages() == unlinked
    assert robot.state() == "reports"
    assert robot.crawl() == []


def test_a_server_that_lost_its_registrations_is_registered_with_again(robot: Robot, server: OldServer) -> None:
    change(server)
    server.robots_known.clear()
    robot.later(420)
    assert "does not know our key: registering again" in robot.sync().err
    assert server.actions()[1:] == ["GetSequenceNumber", "Register"]
    assert set(robot.crawl()) == ALL, "it may have lost its log too"
    assert robot.pages()["/p1.html"] == server.titles()["/p1.html"]
    assert "1 report" in robot.receive(robot.report()).out
    assert robot.query("SELECT key FROM rup_server") == [(server.robots_known[ME]["key"],)]


def test_a_server_that_neither_knows_the_key_nor_registers_is_given_up(robot: Robot, server: OldServer) -> None:
    server.instead = lambda form: (400, "text/html", "no")
    robot.later(420)
    assert "given up: the server does not know our key and refuses a new registration" in robot.sync().err
    assert server.actions()[1:] == ["GetSequenceNumber", "Register"]
    robot.sync()
    assert server.actions()[1:] == ["GetSequenceNumber", "Register"]
    assert robot.state() == "given_up"
    assert robot.query("SELECT silent_at FROM rup_server") == [(0.0,)], "its pages are due like any others"


def test_a_server_that_is_gone_is_asked_less_and_less(robot: Robot, server: OldServer) -> None:
    changed = change(server)
    server.instead = lambda form: (404, "text/html", "gone")
    for seconds, asked in ((420, 1), (420, 1), (420, 2), (900, 2), (900, 3)):
        robot.later(seconds)
        robot.sync()
        assert len(server.actions()) == 1 + asked
    assert robot.state() == "unreached"
    assert robot.crawl() == []
    robot.all_due()
    assert set(robot.crawl("--revisit")) == ALL, "polled like any other site"
    server.instead = lambda form: None
    robot.report()
    robot.later(90000)
    robot.sync()
    assert server.actions()[-1] == "GetIndex"
    assert robot.crawl() == changed


# --- dates ----------------------------------------------------------------------------------------


def test_a_reported_page_is_visited_whatever_the_date_of_its_change(robot: Robot, server: OldServer) -> None:
    today = time.strftime("[%Y-%m-%d]", time.gmtime())
    dates = ("[Sat, 03 Jan 1998 10:00:00 GMT]", today, "", "[2020-01-01T00:00:01Z]")
    lines = "".join(f"Change{date}: {path}\r\n" for date, path in zip(dates, PAGES, strict=False))
    report = f"\r\nSequenceNumber: 1\r\nURLBase: {server.base}/\r\n\r\n{lines}".encode()
    assert "4 known pages and 0 others to be visited" in robot.receive(report).out
    assert robot.crawl() == list(PAGES[:4])
    assert "nothing to do" in robot.rup("sync").out


def test_an_index_that_dates_days_or_files_is_believed(
    server: OldServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = Robot(server, tmp_path)
    robot.crawl()
    now = time.time()
    today, earlier = (
        time.strftime(form, time.gmtime(at)) for form, at in (("%Y-%m-%d", now), ("%Y-%m-%dT%H:%M:%SZ", now - 900))
    )
    index = (
        f"URLBase: {server.base}\n\nChange[{today}]: /p1.html\nChange[{earlier}]: /p2.html\n"
        "Change[1998-01-03T10:00:00Z]: /p3.html\n"
    )
    monkeypatch.setattr(server, "text", lambda *_: index)
    robot.rup("sync", server.base, "--span", "1-hour")
    assert robot.crawl() == ["/p1.html", "/p3.html"], "/p2.html was seen since"


# --- interruptions --------------------------------------------------------------------------------


def test_a_killed_sync_finds_its_mail_again(robot: Robot, server: OldServer, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = change(server)
    deliver(robot.mail, robot.report())

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    for place, name in ((Subscriptions, "put"), (Maildir, "done")):
        with monkeypatch.context() as broken:
            broken.setattr(place, name, crash)
            robot.rup("sync", "--maildir", robot.mail)
        assert len(list(robot.mail.glob("new/*"))) == 1
    robot.sync()
    assert list(robot.mail.glob("new/*")) == []
    assert robot.query("SELECT sequence_number, state_code FROM rup_servers") == [(1, "reports")]
    assert robot.crawl() == changed
