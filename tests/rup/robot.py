"""A crawl of one old site, and the robot that subscribes to its reports: for the tests of ``crawler rup``."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.command import HASTY, LOOPBACK, Ended, here
from tests.rup.old_server import OldServer, deliver, maildir, serving
from tests.rup.stored import Stored

ME = "robot@crawler.test"
#: Behind the start page.
PAGES = tuple(f"/p{n}.html" for n in range(1, 9))


class Robot(Stored):
    """The store and the Maildir of a crawl, and the one server that it knows."""

    def __init__(self, server: OldServer, folder: Path) -> None:
        self.server = server
        self.db = folder / "c.db"
        self.mail = maildir(folder / "mail")
        self.config = folder / "c.toml"
        self.told = 0.0  # the end of the last report

    # --- commands -----------------------------------------------------------------------------

    def crawl(self, *options: str, toml: str = "") -> list[str]:
        """Crawl; return the paths that the crawl has requested."""
        self.config.write_text(HASTY + toml)
        before = len(self.server.asked)
        ended = here("run", f"{self.server.base}/", "--config", self.config, *LOOPBACK, "--db", self.db, *options)
        assert ended.code == 0, ended
        return sorted(line.split()[1] for line in self.server.asked[before:])

    def rup(self, command: str, *arguments: str | Path) -> Ended:
        ended = here("rup", command, *arguments, "--db", self.db)
        assert "Traceback" not in ended.err, ended.err
        return ended

    def register(self) -> None:
        ended = self.rup("register", self.server.base, "--email", ME, "--latency", "1-minute")
        assert ended.code == 0, ended
        self.told = time.time()

    def sync(self) -> Ended:
        ended = self.rup("sync", "--maildir", self.mail)
        assert ended.code == 0, ended
        return ended

    def audit_finds_nothing(self) -> bool:
        return here("audit", "--db", self.db).code == 0

    # --- mail ---------------------------------------------------------------------------------

    def report(self) -> bytes:
        """The server's next report, which nobody has delivered yet."""
        mail = self.server.report(ME, self.told)
        self.told = time.time()
        return mail

    def receive(self, *mails: bytes) -> Ended:
        """Deliver mails, and have the robot read them."""
        for mail in mails:
            deliver(self.mail, mail)
        return self.sync()

    # --- what is known ------------------------------------------------------------------------

    def all_due(self) -> None:
        """Make every page due for a revisit. A run with revisits adds those that no hint has named, due later."""
        assert self.crawl("--revisit") == []
        connection = sqlite3.connect(self.db)
        with connection:
            connection.execute("UPDATE revisit SET due_at = 0, not_before = 0")
        connection.close()

    def state(self) -> str:
        """The code of the registration's state."""
        ((code,),) = self.query("SELECT state_code FROM rup_servers")
        return str(code)

    def pages(self) -> dict[str, str]:
        """The pages in the store that are not gone: path -> title."""
        rows = self.query("SELECT url, title FROM pages WHERE gone_at IS NULL")
        return {url.removeprefix(self.server.base): title for url, title in rows}


def page(title: str, *links: str) -> str:
    return f"<title>{title}</title>" + "".join(f"<a href='{link}'>{link}</a>" for link in links)


@contextmanager
def old_site() -> Iterator[OldServer]:
    """A site of yesterday: a start page, the pages behind it, and a link to one that does not exist yet."""
    server = OldServer()
    with serving(server):
        server.put("/", page("start", *PAGES, "/later.html"))
        for path in PAGES:
            server.put(path, page(f"old {path}"))
        server.log = [(at - 86400, kind, path) for at, kind, path in server.log]
        yield server


def registered(server: OldServer, folder: Path) -> Robot:
    """A robot that has crawled the site once, and has registered."""
    robot = Robot(server, folder)
    robot.crawl()
    robot.register()
    return robot


def change(server: OldServer) -> list[str]:
    """Create a file, change one, delete one; return their paths."""
    server.put("/later.html", page("made"))  # a page that was linked to, and not there
    server.put("/p1.html", page(f"changed at {time.time()}"))
    server.delete("/p2.html")
    return ["/later.html", "/p1.html", "/p2.html"]


def forged(base: str, number: int | str, *paths: str, kind: str = "Delete") -> bytes:
    """A report that the server has not written."""
    report = f"SequenceNumber: {number}\r\nURLBase: {base}\r\n\r\n{kind}: {', '.join(paths)}\r\n"
    return f"From: evil@evil.test\r\nContent-Type: text/plain\r\n\r\n{report}".encode()
