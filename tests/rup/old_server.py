"""A server of the Remote Update Protocol, written from the draft of 1998 alone, with its quirks.

It shares no code with the crawler: what it sends is what the draft shows, in the ways in which people of the time might
have done it. Mails are dropped into a Maildir by whoever uses it, so that they can be lost, doubled and reordered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

Answer = tuple[int, str, str]  # status, type and body
_SPANS_S = {"minute": 60, "hour": 3600, "day": 86400, "week": 604800, "month": 2592000}


@dataclass
class OldServer:
    """Pages, registrations and a log. A test sets attributes to change the usual behaviour."""

    files: dict[str, tuple[str, float]] = field(default_factory=dict)  # path -> text, time of change
    robots: str = ""
    info_path: str = "/rupinfo.tex"
    cgi: str = "/cgi-bin/RUP.pl"
    max_query_span: str = "30-day"
    takes_post: bool = True
    silent: bool = False  # takes requests of the CGI, does what they ask, and never answers
    cgi_url: str = ""  # printed in place of its own
    instead: Callable[[dict[str, str]], Answer | None] = lambda form: None  # what its CGI answers to a form instead
    robots_known: dict[str, dict[str, str]] = field(default_factory=dict)  # by address
    log: list[tuple[float, str, str]] = field(default_factory=list)  # time, New / Change / Delete, path
    asked: list[str] = field(default_factory=list)  # every request: method, path, form
    agents: set[str] = field(default_factory=set)
    keys: int = 0
    port: int = 0

    @property
    def base(self) -> str:
        return f"http://old.test:{self.port}"

    def put(self, path: str, text: str) -> None:
        """Write a file, and log the change."""
        self.log.append((time.time(), "Change" if path in self.files else "New", path))
        self.files[path] = (text, time.time())

    def delete(self, path: str) -> None:
        del self.files[path]
        self.log.append((time.time(), "Delete", path))

    def actions(self) -> list[str]:
        """The actions in the requests of robots."""
        return [line.partition("Action=")[2].partition("&")[0] for line in self.asked if "Action=" in line]

    def titles(self) -> dict[str, str]:
        """The files: path -> title."""
        return {path: text.partition("<title>")[2].partition("<")[0] for path, (text, _) in self.files.items()}

    def report(self, email: str, since: float) -> bytes:
        """The next report for a robot, as a mail."""
        robot = self.robots_known[email]
        robot["n"] = str(int(robot["n"]) + 1)
        head = f"From: rup@old.test\r\nTo: {email}\r\nMIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\n"
        return (head + self.text(int(robot["n"]), since)).encode()

    def text(self, number: int, since: float) -> str:
        """A report in the format of 3.2; the draft says nothing of NL, here it is CR LF."""
        lines = [f"SEQUENCENUMBER: {number}", f"URLBase: {self.base}", ""]
        for at, kind, path in self.log:
            if at >= since:
                lines.append(f"{kind}[{time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime(at))}]: {path}")
        return "\r\n".join(lines) + "\r\n"

    # --- HTTP ---------------------------------------------------------------------------------

    def answer(self, method: str, target: str, form: str) -> Answer:
        path = urlsplit(target).path
        if path == "/robots.txt":
            return (200, "text/plain", self.robots) if self.robots else (404, "text/html", "none")
        if path == self.info_path:
            return 200, "application/x-tex", self._info()
        if path == self.cgi:
            if method == "POST" and not self.takes_post:
                return 405, "text/html", "GET it"
            fields = dict(parse_qsl(form if method == "POST" else urlsplit(target).query))
            return self.instead(fields) or self._cgi(fields)
        if path in self.files:
            return 200, "text/html", self.files[path][0]
        return 404, "text/html", "<h1>Not found</h1>"

    def _info(self) -> str:
        cgi = self.cgi_url or self.base + self.cgi
        return (
            f"rup-cgi: {cgi}\r\nAUTHENTIFIER: none\r\nX-Motd: hello\r\n"
            f"Latency: minute, hour,\r\n  day, fortnight\r\nExclude: .*\r\nIncludeOnly: .*\r\n"
            + (f"MaxQuerySpan: {self.max_query_span}\r\n" if self.max_query_span else "")
        )

    def _cgi(self, form: dict[str, str]) -> Answer:
        action, email = form.get("Action"), form.get("RegisteredRobotEmail", "")
        if action == "Register":
            email = form["RobotEmail"]
            self.keys += 1
            self.robots_known[email] = {"key": f"k{self.keys}-{'x' * 20}", "n": "0", **form}
            return self._html(f"Welcome!<br>RegistrationKey: {self.robots_known[email]['key']}<br>")
        if action == "GetIndex":
            count, _, unit = form["Span"].partition("-")
            span_s = int(count) * _SPANS_S[unit]
            most, _, most_unit = self.max_query_span.partition("-")
            if not most or span_s > int(most) * _SPANS_S[most_unit]:
                return 400, "text/html", "too far"
            return self._html("<pre>\n" + self.text(0, time.time() - span_s) + "</pre>")
        robot = self.robots_known.get(email)
        if robot is None or robot["key"] != form.get("RegistrationKey"):
            return 400, "text/html", "who are you?"
        if action == "GetSequenceNumber":
            return self._html(f"<p>SequenceNumber={robot['n']}")
        if action == "Unregister":
            del self.robots_known[email]
            return self._html("Bye")
        if action == "ModifyPreferences":
            robot |= form
            if "RobotEmail" in form:
                self.robots_known[form["RobotEmail"]] = self.robots_known.pop(email)
            return self._html("Done")
        return 501, "text/html", "no such action"

    def _html(self, text: str) -> Answer:
        return 200, "text/html", f"<HTML><BODY>\n{text}\n</BODY></HTML>"


@contextmanager
def serving(server: OldServer) -> Iterator[OldServer]:
    """Serve on loopback in a thread."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._serve("")

        def do_POST(self) -> None:
            self._serve(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _serve(self, form: str) -> None:
            server.asked.append(f"{self.command} {self.path} {form}".strip())
            server.agents.add(self.headers["User-Agent"])
            status, kind, text = server.answer(self.command, self.path, form)
            if server.silent and urlsplit(self.path).path == server.cgi:
                self.close_connection = True
                return
            octets = text.encode()
            if self.path in server.files:
                stamp = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(server.files[self.path][1]))
                tag = f'"{hash(octets)}"'
                if self.headers["If-None-Match"] == tag:
                    status, octets = 304, b""
                self.send_response(status)
                self.send_header("Last-Modified", stamp)
                self.send_header("ETag", tag)
            else:
                self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(octets)))
            self.end_headers()
            self.wfile.write(octets)

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", server.port), Handler)
    server.port = http.server_address[1]
    thread = threading.Thread(target=http.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def maildir(folder: Path) -> Path:
    """An empty Maildir."""
    for name in ("new", "cur", "tmp"):
        (folder / name).mkdir(parents=True)
    return folder


def deliver(folder: Path, mail: bytes) -> None:
    """Deliver a mail like a mail server: write it to tmp, rename it into new."""
    name = f"{time.time():.6f}.{len(list(folder.rglob('*')))}.host"
    (folder / "tmp" / name).write_bytes(mail)
    (folder / "tmp" / name).rename(folder / "new" / name)
