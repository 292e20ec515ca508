"""Mail that the server has not written: it changes nothing but counters, or costs a look at known pages at most."""

from __future__ import annotations

import pytest

from tests.rup.old_server import OldServer
from tests.rup.robot import Robot, change, forged, page

#: By what is wrong with them. BASE stands for the site.
WORTHLESS = {
    "nothing": b"",
    "octets": b"\x00\xff" * 5000,
    "3,000 nested parts": b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n" * 3000,
    "another site": forged("http://other.test/", 1, "/"),
    "a name before another host": forged("BASE@evil.test/", 1, "/"),
    "a script": forged("javascript:alert(1)", 1, "/"),
    "a number of 40 digits": forged("BASE", "9" * 40, "/"),
    "a number below zero": forged("BASE", -1, "/p1.html"),
    "13 MB": b"Content-Type: text/plain\r\n\r\n" + b"A" * (13 * 2**20),
}
ELSEWHERE = ("http://other.test/x", "//other.test/y", "ftp://old.test/z", "mailto:a@b")


def test_hostile_mail_changes_nothing_but_counters(robot: Robot, server: OldServer) -> None:
    urls = robot.query("SELECT url, state FROM urls ORDER BY 1")
    (robot.mail / "new" / "a-folder").mkdir()
    (robot.mail / "new" / "a-link").symlink_to(robot.config)
    mails = [mail.replace(b"BASE", server.base.encode()) for mail in WORTHLESS.values()]
    said = robot.receive(*mails, forged(server.base, 1, *ELSEWHERE))
    assert "1 report of 0 changes; 9 other mails, 5 paths refused" in said.out
    assert robot.query("SELECT url, state FROM urls ORDER BY 1") == urls
    assert robot.crawl() == []
    assert robot.query("SELECT site, ignored, refused FROM rup_servers") == [(server.base, 0, 4)]
    assert (robot.mail / "new" / "a-link").is_symlink()


def test_a_forged_report_costs_a_look_and_no_more(robot: Robot, server: OldServer) -> None:
    robot.receive(forged(server.base, 1, "/p1.html", "/p2.html"))
    assert robot.crawl() == ["/p1.html", "/p2.html"]
    assert robot.pages() == server.titles(), "what is there is not removed on anybody's word"
    changed = change(server)
    robot.receive(robot.report())  # the real report 1
    assert robot.crawl() == changed


def test_true_reports_are_heeded_beside_forged_ones(robot: Robot, server: OldServer) -> None:
    robot.receive(*(forged(server.base, number, "/p8.html") for number in range(1, 6)))
    robot.crawl()
    assert robot.query("SELECT sequence_number FROM rup_server") == [(0,)], "the server has sent none"
    for n in (3, 4, 5):
        server.put(f"/p{n}.html", page(f"true {n}"))
        robot.receive(robot.report())
        robot.receive(forged(server.base, n - 1, f"/p{n - 2}.html"))
        assert f"/p{n}.html" in robot.crawl()
    assert robot.pages() == server.titles()
    asked = server.actions().count("GetSequenceNumber")
    for number in range(50, 60):
        robot.receive(forged(server.base, number, "/p8.html"))
    assert server.actions().count("GetSequenceNumber") <= asked + 1


def test_mail_cannot_flood_the_frontier_and_the_index_tells_the_rest(robot: Robot, server: OldServer) -> None:
    said = robot.receive(forged(server.base, 1, *(f"/flood{n}.html" for n in range(5000)), kind="New"))
    assert "0 known pages and 100 others to be visited, 4,900 beyond the limit of mail" in said.out
    assert "; 100 visits to be made by `crawler run" in said.out
    assert robot.query("SELECT count(*) FROM urls WHERE url LIKE '%flood%'") == [(100,)]
    for n in range(150):
        server.put(f"/true{n}.html", page(f"true {n}"))
    true = robot.report()
    robot.later(60)
    robot.receive(true)
    assert server.actions()[-1] == "GetIndex"
    assert robot.query("SELECT count(*) FROM urls WHERE url LIKE '%/true%'") == [(150,)]


def test_the_index_replaces_a_report_that_is_too_long(
    robot: Robot, server: OldServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.rup.protocol.report.MAX_CHANGES", 9)
    changed = change(server)
    robot.report()
    long = forged(server.base, 1, *(f"/flood{n}.html" for n in range(10)))
    assert "reads the site's index instead" in robot.receive(long).err
    assert server.actions()[1:] == ["GetSequenceNumber", "GetIndex"]
    assert robot.crawl() == changed
