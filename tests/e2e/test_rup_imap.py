"""Reports read over IMAP with TLS, from Debian's dovecot."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command import until
from tests.orphans import BOUND
from tests.ports import reserved_port
from tests.rup.old_server import OldServer, deliver, serving
from tests.rup.robot import Robot, forged, page

DOVECOT = shutil.which("dovecot") or shutil.which("dovecot", path="/usr/sbin:/sbin")
PASSWORD = 'pass "word" \\ 1'

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(DOVECOT is None, reason="no dovecot: apt-get install dovecot-imapd"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl"),
]

SETTINGS = """
protocols = imap
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/dovecot.log
ssl = required
ssl_cert = <{folder}/cert.pem
ssl_key = <{folder}/key.pem
listen = 127.0.0.1
default_login_user = {user}
default_internal_user = {user}
default_internal_group = {group}
mail_location = maildir:{folder}/mail
first_valid_uid = 0
passdb {{
  driver = passwd-file
  args = scheme=PLAIN {folder}/passwd
}}
userdb {{
  driver = static
  args = uid={user} gid={group} home={folder}/home
}}
service anvil {{
  chroot =
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = 0
  }}
  inet_listener imaps {{
    port = {port}
    ssl = yes
  }}
}}
"""


@dataclass
class Dovecot:
    """A mail server with one account, whose Maildir is ``box``. Its certificate is valid for localhost only."""

    port: int
    box: Path
    certificate: Path

    @property
    def url(self) -> str:
        return f"imaps://me@localhost:{self.port}/INBOX"


@pytest.fixture
def dovecot() -> Iterator[Dovecot]:
    folder = Path(tempfile.mkdtemp(prefix="dovecot"))  # pytest's own folders are closed to other users
    for name in ("run", "state", "home", "mail/new", "mail/cur", "mail/tmp"):
        (folder / name).mkdir(parents=True)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    (folder / "passwd").write_text(f"me:{{PLAIN}}{PASSWORD}::::::\n")
    port = reserved_port()
    user, group = ("nobody", "nogroup") if os.getuid() == 0 else (folder.owner(), folder.group())
    (folder / "dovecot.conf").write_text(SETTINGS.format(folder=folder, user=user, group=group, port=port))
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, user, group)
    assert DOVECOT is not None
    server = subprocess.Popen([*BOUND, DOVECOT, "-F", "-c", folder / "dovecot.conf"], stderr=subprocess.PIPE)
    try:
        until(lambda: _listens(port), f"dovecot: {(folder / 'dovecot.log')}")
        yield Dovecot(port, folder / "mail", folder / "cert.pem")
    finally:
        server.terminate()
        server.communicate(timeout=300)
        shutil.rmtree(folder)


def _listens(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def robot(tmp_path: Path) -> Iterator[Robot]:
    with serving(OldServer()) as server:
        server.put("/", page("start", "/a.html"))
        server.put("/a.html", page("old a"))
        robot = Robot(server, tmp_path)
        robot.crawl()
        robot.register()
        yield robot


def test_reports_come_over_imap_with_tls_and_are_flagged_when_done(
    robot: Robot, dovecot: Dovecot, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot.server.put("/a.html", page("new a"))
    robot.server.put("/b.html", page("b"))
    mails = [robot.report(), forged("http://other.test/", 1, "/"), b"X: huge\r\n\r\n" + b"A" * 13 * 2**20]
    for mail in mails:
        deliver(dovecot.box, mail)
    for path in dovecot.box.glob("new/*"):
        path.chmod(0o666)
    ended = robot.rup("sync", "--imap", dovecot.url)
    assert "needs a password" in ended.err
    monkeypatch.setenv("CRAWLER_IMAP_PASSWORD", "wrong")
    ended = robot.rup("sync", "--imap", dovecot.url)
    assert ended.code == 1
    assert "the certificate is not trusted" in ended.err
    monkeypatch.setenv("SSL_CERT_FILE", str(dovecot.certificate))
    ended = robot.rup("sync", "--imap", dovecot.url)
    assert "cannot log in" in ended.err
    secret = robot.db.parent / "secret"
    secret.write_text(PASSWORD + "\n")
    monkeypatch.delenv("CRAWLER_IMAP_PASSWORD")
    monkeypatch.setenv("CRAWLER_IMAP_PASSWORD_FILE", str(secret))
    ended = robot.rup("sync", "--imap", dovecot.url)
    assert ended.code == 0, ended
    assert "1 report of 2 changes; 2 other mails, 1 path refused" in ended.out
    assert robot.crawl() == ["/a.html", "/b.html"]
    again = robot.rup("sync", "--imap", dovecot.url)
    assert "0 reports of 0 changes; 0 other mails" in again.out
    assert PASSWORD not in ended.out + ended.err + robot.db.read_bytes().decode("latin-1")
    assert "cannot open the folder" in robot.rup("sync", "--imap", f"{dovecot.url}/none").err
    other = robot.rup("sync", "--imap", dovecot.url.replace("localhost", "127.0.0.1"))
    assert "the certificate is not trusted" in other.err
