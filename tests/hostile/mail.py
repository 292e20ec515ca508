"""Hostile mails to the RUP robot: each is read by ``crawler rup sync``, which must come to the expected verdict."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.command import LOOPBACK, here
from tests.hostile.html import EVIL
from tests.hostile.verdict import ended_well
from tests.rup.old_server import OldServer, deliver, maildir, serving
from tests.rup.stored import Stored

_ADDRESS = "robot@crawler.test"
#: Stands for the URL of the server in a mail.
_BASE = "@BASE@"
#: A server that never reported has the number 0, so a report is number 1 or later. A gap makes the robot ask for more.
_NUMBER = "@NUMBER@"


@dataclass(frozen=True, slots=True)
class HostileMail:
    """A mail, and the verdicts that the robot may come to; none if the mail needs no verdict."""

    name: str
    what: str
    octets: bytes
    verdicts: frozenset[str]


def _mail(
    body: str | bytes, kind: str = "text/plain", *headers: str, number: str = _NUMBER, base: str = _BASE
) -> bytes:
    fields = "\r\n".join([f"From: rup@old.test\r\nTo: {_ADDRESS}\r\nContent-Type: {kind}", *headers])
    report = f"SequenceNumber: {number}\r\nURLBase: {base}\r\n\r\n".encode() if base else b""
    return fields.encode() + b"\r\n\r\n" + report + (body.encode() if isinstance(body, str) else body)


def _nested(depth: int, kind: str) -> bytes:
    head = "".join(f"Content-Type: {kind}; boundary=b{n}\r\n\r\n--b{n}\r\n" for n in range(depth))
    return f"From: rup@old.test\r\n{head}Content-Type: text/plain\r\n\r\nURLBase: {_BASE}\r\n".encode()


_UNREADABLE = frozenset({"unreadable"})
_TAKEN = frozenset({"taken"})
_READ = frozenset({"taken", "unreadable", "unnumbered"})
_ODD = base64.b64encode(f"SequenceNumber: 9{'9' * 400}\r\nURLBase: {_BASE}\r\n".encode()).decode()

MAILS = (
    HostileMail("mail-empty", "is empty", b"", _UNREADABLE),
    HostileMail("mail-noise", "is noise", bytes(range(256)) * 4000, _UNREADABLE),
    HostileMail("mail-nested", "nests 5,000 multiparts", _nested(5000, "multipart/mixed"), _UNREADABLE),
    HostileMail("mail-messages", "nests 5,000 messages", b"Content-Type: message/rfc822\r\n\r\n" * 5000, _UNREADABLE),
    HostileMail("mail-parts", "has 100,000 parts", _mail(b"--b\r\n\r\nx\r\n" * 100_000, "multipart/mixed; boundary=b",
                base=""), _UNREADABLE),
    HostileMail("mail-boundary", "has a boundary of 60 kB", _mail("x", f"multipart/mixed; boundary={'b' * 60_000}",
                base=""), _UNREADABLE),
    HostileMail("mail-headers", "has 200,000 headers", b"X-A: b\r\n" * 200_000 + b"\r\nx", _UNREADABLE),
    HostileMail("mail-folded", "folds a header over 100,000 lines", b"Subject: x\r\n" + b" y\r\n" * 100_000 + b"\r\nx",
                _UNREADABLE),
    HostileMail("mail-parameters", "has a content type with 50,000 parameters",
                _mail("x", "text/plain" + "; a*0*=b''c" * 50_000, base=""), _UNREADABLE),
    HostileMail("mail-large", "has 20 MB", _mail("x\r\n" * 7_000_000), _UNREADABLE),
    HostileMail("mail-charset", "names a codec that decompresses", _mail("x", "text/plain; charset=zlib_codec"), _READ),
    HostileMail("mail-encoding", "has an unknown transfer encoding",
                _mail("x", "text/plain", "Content-Transfer-Encoding: x-evil"), _READ),
    HostileMail("mail-base64", "has a number of 400 digits in base64",
                _mail(_ODD, "text/plain", "Content-Transfer-Encoding: base64", base=""), _UNREADABLE),
    HostileMail("mail-number", "has a negative number", _mail("", number="-1"), _UNREADABLE),
    HostileMail("mail-unnumbered", "has no number", _mail(f"URLBase: {_BASE}\r\n", base=""), frozenset({"unnumbered"})),
    HostileMail("mail-stranger", "is of a site that nobody registered with", _mail("", base="http://off.invalid/"),
                frozenset({"unregistered"})),
    HostileMail("mail-healthy", "reports another site's pages",
                _mail("Change[]: http://off.invalid/a.html, //off.invalid/b, /../../c\r\n"), _TAKEN),
    HostileMail("mail-many", "reports 50,000 new pages",
                _mail("".join(f"New[]: /n{n}.html\r\n" for n in range(50_000))), _TAKEN),
    HostileMail("mail-commas", "separates a million empty paths", _mail("Change[]: " + "," * 1_000_000), _TAKEN),
    HostileMail("mail-dates", "has dates that there are not",
                _mail("Change[Foo, 99 Bar 99999 99:99:99 GMT]: /a.html\r\nDelete[1e999]: /b.html\r\n"), _TAKEN),
    HostileMail("mail-evil", "writes on the terminal by every field",
                _mail(f"Change[{EVIL}]: /{EVIL}\r\n", "text/plain", f"Subject: {EVIL[1:9]}"), _READ),
    HostileMail(
        "mail-evil-base", "writes on the terminal by its URLBase", _mail("", base=f"http://{EVIL}/"), _UNREADABLE,
    ),
    HostileMail("mail-html", "wraps a report into 100,000 tags of HTML",
                _mail("<b>" * 100_000 + f"URLBase: {_BASE}<br>", "text/html", "Message-ID: <html@a.test>",
                      base=""), _READ),
)  # fmt: skip


class _Robot(Stored):
    """A crawl of one old server, registered with it."""

    def __init__(self, server: OldServer, folder: Path) -> None:
        self.db, self.box, self.number = folder / "mail.db", maildir(folder / "mail"), 0
        self._base = server.base
        config = folder / "mail.toml"
        config.write_text("[politeness]\ndelay = 0.01\nslow_factor = 0\n")
        ended = here("run", f"{server.base}/", "--config", config, *LOOPBACK, "--db", self.db)
        ended = here("rup", "register", server.base, "--email", _ADDRESS, "--latency", "1-minute", "--db", self.db)
        assert ended.code == 0, ended

    def read(self, octets: bytes) -> tuple[list[str], list[str]]:
        """The verdicts on a mail, and what was wrong."""
        self.number += 1
        known = {_BASE: self._base, _NUMBER: str(self.number)}
        for name, value in known.items():
            octets = octets.replace(name.encode(), value.encode())
        before = len(self.verdicts())
        deliver(self.box, octets)
        ended = here("rup", "sync", "--maildir", self.box, "--db", self.db)
        return self.verdicts()[before:], list(ended_well(("rup", "sync"), ended))

    def verdicts(self) -> list[str]:
        return [code for (code,) in self.query("SELECT verdict_code FROM rup_mails ORDER BY taken_at")]


def read_mails(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Each mail with what was wrong about the robot's answer to it."""
    server = OldServer()
    server.put("/", "<title>start</title>")
    with serving(server):
        robot = _Robot(server, folder)
        for mail in MAILS:
            verdicts, wrong = robot.read(mail.octets)
            if not verdicts or not mail.verdicts.issuperset(verdicts):
                wrong.append(f"verdicts {verdicts}, expected {'|'.join(sorted(mail.verdicts))}")
            yield mail.name, wrong
        for command in (("rup", "status"), ("audit",), ("status",)):
            yield f"mail-{command[-1]}", list(ended_well(command, here(*command, "--db", robot.db)))
