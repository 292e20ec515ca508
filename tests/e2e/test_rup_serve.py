"""``crawler rup serve`` with a real mail server and a robot that knows only the draft."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import sys
from collections.abc import Iterator
from email import message_from_bytes
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from aiohttp import ClientSession, web

from crawler.rup.server.web import RupServer, mount
from tests.command import finish, here, until
from tests.ports import reserved_port
from tests.rup.post import Post, post_office
from tests.rup.site import TreeSite


class Server(TreeSite):
    """A site whose every URL ``crawler rup serve`` serves, in a process of its own."""

    def __init__(self, folder: Path, post: Post) -> None:
        super().__init__(folder / "root", folder / "rup.db", post)
        self.post, self.rup_port = post, self.port

    def put(self, name: str, text: str) -> None:
        """Make or change a file of the site at once: a scan before its text is written would find two changes."""
        draft = self.root.parent / "draft"
        draft.write_text(text)
        draft.replace(self.root / name)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.communicate()
        self.process = None

    def get(self, path: str, agent: str = "indie/1.0") -> tuple[int, str]:
        return self._ask("GET", path, None, {"User-Agent": agent})

    def post_form(self, text: str | None = None, /, **fields: str) -> tuple[int, str]:
        body = urlencode(fields) if text is None else text
        headers = {"User-Agent": "indie/1.0", "Content-Type": "application/x-www-form-urlencoded"}
        return self._ask("POST", "/rup", body.encode("latin-1"), headers)

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def register(self, **preferences: str) -> dict[str, str]:
        """Register, and return the key and the address for later requests."""
        status, html = self.post_form(Action="Register", RobotEmail="r@robot.example", **preferences)
        assert status == 200, html
        [key] = re.findall(r"^RegistrationKey: (\S+)$", html, re.MULTILINE)
        return {"RegistrationKey": key, "RegisteredRobotEmail": "r@robot.example"}

    def confirm(self, signed: dict[str, str]) -> None:
        """Answer the first report when the store knows that the mail server has accepted it."""
        until(lambda: self.rows("SELECT accepted_at IS NULL FROM registration") == [(0,)], "the report's leaving")
        status, html = self.post_form(Action="GetSequenceNumber", **signed)
        assert status == 200
        assert re.search(r"^SequenceNumber=\d+$", html, re.MULTILINE)

    def rows(self, sql: str) -> list[Any]:
        db = sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)
        try:
            return db.execute(sql).fetchall()
        except sqlite3.OperationalError:
            return []
        finally:
            db.close()


@pytest.fixture
def post() -> Iterator[Post]:
    with post_office() as post:
        yield post


@pytest.fixture
def server(tmp_path: Path, post: Post) -> Iterator[Server]:
    served = Server(tmp_path, post)
    served.root.mkdir()
    served.put("index.html", "1")
    served.put("old.html", "1")
    served.put("robots.txt", "User-agent: *\nDisallow: /closed/\n")
    yield served
    if served.process is not None:
        served.kill()


DATE = r"\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\]"


def changes_of(texts: list[str]) -> set[tuple[str, str]]:
    """The content of reports, read exactly by the draft."""
    found = set()
    for line in "".join(texts).split("\n"):
        if match := re.fullmatch(rf"(New|Change|Delete){DATE}: (.*)", line):
            found |= {(match[1], path) for path in match[2].split(", ")}
    return found


def test_a_robot_that_knows_only_the_draft_receives_reports(server: Server) -> None:
    server.open_rup()
    status, info = server.get("/rupinfo.txt")
    assert (status, info) == server.get("/rupinfo.tex")
    assert info == (
        f"RUP-CGI: http://127.0.0.1:{server.port}/rup\nAuthentifier: none\nLatency: second, minute, day\n"
        "Exclude: .*\nIncludeOnly: .*\nMaxQuerySpan: 30-day\n"
    )
    signed = server.register(Latency="1-second", Exclude=r"\.gif$")
    (server.root / "closed").mkdir()
    for name in ("a.html", "b, c.html", "x.gif", "closed/secret.html", ".hidden"):
        server.put(name, "1")
    server.put("index.html", "2")
    (server.root / "old.html").unlink()
    until(lambda: bool(server.post.texts()), "a report")
    server.confirm(signed)
    told = {("New", "/a.html"), ("New", "/b%2C%20c.html"), ("Change", "/index.html"), ("Delete", "/old.html")}
    until(lambda: changes_of(server.post.texts()) == told, "all changes")
    for number, text in enumerate(server.post.texts(), 1):
        assert text.startswith(f"SequenceNumber: {number}\nURLBase: http://127.0.0.1:{server.port}/\n\n")
    assert all(mail.get_content_type() == "text/plain" for mail in server.post.mails)

    status, html = server.get("/rup?Action=GetIndex&Span=1-day")
    assert status == 200
    assert changes_of([html]) == told | {("New", "/x.gif")}
    assert server.get("/rup?Action=GetIndex&Span=31-day")[0] == 400
    assert server.post_form(Action="ModifyPreferences", **signed, IncludeOnly="^/new/")[0] == 200
    (server.root / "new").mkdir()
    server.put("z.html", "1")
    server.put("new/n.html", "1")
    until(lambda: changes_of(server.post.texts()) == told | {("New", "/new/n.html")}, "the new page")
    assert server.post_form(Action="Unregister", **signed)[0] == 200
    assert server.post_form(Action="GetSequenceNumber", **signed)[0] == 400
    assert server.process is not None
    server.process.send_signal(signal.SIGTERM)
    ended = finish(server.process)
    server.process = None
    assert ended.code == 3, ended
    assert "report 1 sent to r@robot.example" in ended.err


def test_the_link_in_a_mail_ends_the_reports(server: Server) -> None:
    server.open_rup()
    signed = server.register(Latency="1-second")
    server.put("a.html", "1")
    until(lambda: bool(server.post.texts()), "a report")
    mail = server.post.mails[0]
    assert signed["RegistrationKey"] not in mail.as_string()
    assert "List-Unsubscribe-Post" not in mail, "RFC 8058 wants https"
    link = "/rup?" + mail["List-Unsubscribe"].strip("<>").partition("?")[2]
    for path in (link, f"{link}&List-Unsubscribe=One-Click"):  # scanners follow links
        status, html = server.get(path)
        assert (status, "<button" in html) == (200, True)
    head = {"User-Agent": "indie/1.0"}
    unregister = urlencode({"Action": "Unregister", **signed})
    assert server._ask("HEAD", f"/rup?{unregister}", None, head) == (200, "")
    assert len(server.rows("SELECT 1 FROM registration")) == 1
    urlencoded = {**head, "Content-Type": "application/x-www-form-urlencoded"}
    for _ in range(2):
        status, html = server._ask("POST", link, b"List-Unsubscribe=One-Click", urlencoded)
        assert (status, "<button" in html) == (200, False)
        assert server.rows("SELECT 1 FROM registration WHERE key <> ''") == []
    again = server.register(Latency="1-second")
    server.post_form(Action="GetSequenceNumber", **again)
    assert server.rows("SELECT confirmed, reported_at IS NULL FROM registration") == [(0, 0)]
    assert server.get("/rup?" + urlencode({"Action": "Unregister", **again}))[0] == 200
    assert server.rows("SELECT 1 FROM registration WHERE key <> ''") == []


def test_forms_in_parts_are_taken(server: Server) -> None:
    server.open_rup()
    body = b'--X\r\nContent-Disposition: form-data; name="Action"\r\n\r\nGetIndex\r\n--X--\r\n'
    status, html = server._ask("POST", "/rup?Span=1-day", body, {"Content-Type": "multipart/form-data; boundary=X"})
    assert (status, "URLBase: " in html) == (200, True)


def test_killed_between_mail_queue_and_mail_server_nothing_is_lost_or_sent_anew(server: Server) -> None:
    server.open_rup()
    signed = server.register(Latency="1-second")
    server.put("first.html", "1")
    until(lambda: bool(server.post.texts()), "a report")
    server.confirm(signed)
    server.post.close()
    server.post.delivered.clear()
    sent = []
    for number in range(3):
        server.put(f"{number}.html", "1")
        until(lambda: len(server.rows("SELECT mail FROM mail_queue")) > number, "a report in the mail queue")  # noqa: B023 - called in the same round
        assert "\nSequenceNumber=1\n" in server.post_form(Action="GetSequenceNumber", **signed)[1]
        sent = [message_from_bytes(mail) for (mail,) in server.rows("SELECT mail FROM mail_queue ORDER BY id")]
        server.kill()
        server.open_rup()
    server.post.open()
    until(lambda: server.rows("SELECT count(*) FROM mail_queue") == [(0,)], "an empty mail queue")
    assert [mail["Message-ID"] for mail in server.post.mails] == [mail["Message-ID"] for mail in sent]
    assert [text.partition("\n")[0] for text in server.post.texts()] == [f"SequenceNumber: {n}" for n in (2, 3, 4)]
    assert changes_of(server.post.texts()) == {("New", f"/{number}.html") for number in range(3)}
    assert "\nSequenceNumber=4\n" in server.post_form(Action="GetSequenceNumber", **signed)[1]


def test_hostile_forms_are_answered_and_change_nothing(server: Server) -> None:
    server.open_rup()
    signed = server.register(Latency="1-day")
    before = server.rows("SELECT * FROM registration")
    wrong: list[tuple[int, str]] = [
        server.post_form("Action=Register&RobotEmail=a@b&Exclude=" + "x" * 200_000),
        server.post_form("Action=Register&RobotEmail=a@b&Exclude=" + "+".join(["(a*)*$"] * 3000)),
        server.post_form("Action=Register&RobotEmail=a@b&" + "&".join(f"x{n}=1" for n in range(5000))),
        server.post_form("\x00\xff" * 5000),
        server.post_form("Action=Register&RobotEmail=a%40b%0D%0ABcc:c%40d"),
        server.post_form("Action=Register&RobotEmail=a@b&RobotEmail=c@d"),
        server.post_form("Action=Register&RobotEmail=r@robot.example%00"),
        server.post_form("Action=GetIndex&Span=999999-year"),
        server.post_form("Action=GetIndex&Span=-1-day"),
        server.post_form(Action="Unregister", RegistrationKey="'; DROP TABLE registration; --",
                         RegisteredRobotEmail="r@robot.example"),
        server.post_form(Action="ModifyPreferences", **signed, Exclude="("),
        server._ask("POST", "/rup", b"{}", {"Content-Type": "application/json"}),
        server._ask("POST", "/rup", b"", {}),
        server.get("/rup"),
    ]  # fmt: skip
    assert [status for status, _ in wrong] == [400] * len(wrong)
    assert server.post_form(Action="Frobnicate")[0] == 501
    assert server.rows("SELECT * FROM registration") == before
    many = [server.get("/rup?Action=GetIndex&Span=1-day")[0] for _ in range(200)]
    assert set(many) == {200, 429}, "a stranger's requests are counted"


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--root", "none", "--root: none: no such folder"),
        ("--base-url", "ftp://a.example/", "--base-url: not an http or https URL"),
        ("--base-url", "http://a.example/?x", "has a query"),
        ("--listen", "8080", "--listen 8080: write HOST:PORT"),
        ("--smtp", "mail:smtp", "--smtp mail:smtp: write HOST:PORT"),
        ("--sender", "me", "--sender me: not an e-mail address"),
        ("--latencies", "day,fortnight", "--latencies: fortnight; known are second, minute"),
        ("--max-query-span", "long", "--max-query-span long: give a number, a hyphen and a unit"),
        ("--db", "none/rup.db", "the folder"),
        ("--db", "crawl.db", "not a store of `crawler rup serve`"),
        ("--listen", "192.0.2.1:80", "--listen 192.0.2.1:80: "),
    ],
)
def test_wrong_options_end_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, value: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    db = sqlite3.connect("crawl.db")
    db.execute("CREATE TABLE url (x)")
    db.close()
    options = {"--root": ".", "--base-url": "http://a.example/", "--listen": "127.0.0.1:0", "--smtp": "127.0.0.1:25"}
    ended = here("rup", "serve", *(text for pair in {**options, option: value}.items() for text in pair))
    assert ended.code == 2, ended
    assert says in ended.err
    assert ended.err.count("\n") == 1


def test_without_its_extra_the_command_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("crawler.rup.") and name != "crawler.rup.commands"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "re2", None)
    ended = here("rup", "serve", "--root", ".", "--base-url", "http://a.example/", "--listen", "127.0.0.1:0",
                 "--smtp", "127.0.0.1:25")  # fmt: skip
    assert (ended.code, ended.out) == (2, "")
    assert "pip install '.[updates]'" in ended.err
    assert ended.err.count("\n") == 1


async def test_it_can_be_mounted_in_an_application(tmp_path: Path, post: Post) -> None:
    async def home(request: web.Request) -> web.Response:
        return web.Response(text="home")

    port = reserved_port()
    app = web.Application()
    app.router.add_get("/", home)
    mount(app, RupServer(tmp_path, f"http://127.0.0.1:{port}/", ("127.0.0.1", post.port), tmp_path / "rup.db"))
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        async with ClientSession() as session:
            for path, text in [("/", "home"), ("/rupinfo.txt", "RUP-CGI: "), ("/rup?Action=GetIndex&Span=day", "URLB")]:
                async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                    assert text in await answer.text()
    finally:
        await runner.cleanup()
    assert os.path.exists(tmp_path / "rup.db")
