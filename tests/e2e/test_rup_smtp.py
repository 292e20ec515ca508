"""``crawler rup serve`` and ``--notify`` with mail servers that require TLS, a login, or neither."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from crawler.run.notify import notify
from crawler.rup.mail.smtp import Later, Outcome, Sent, SmtpMailer
from tests.command import here
from tests.ports import reserved_port

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")

SUMMARY = {"db": "crawl.db", "ended_by": "nothing is left"}
MAIL = b"Subject: a report\r\n\r\nSequenceNumber: 1\r\n"


@dataclass
class Office:
    """A mail server on loopback that accepts mail of ``user`` over TLS; without ``user``, mail of everybody."""

    certificate: tuple[Path, Path] | None = None
    user: str = ""
    port: int = field(default_factory=reserved_port)
    taken: list[tuple[bool, bool]] = field(default_factory=list)  # over TLS, and after a login

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - the name that aiosmtpd calls
        self.taken.append((session.ssl is not None, bool(session.authenticated)))
        return "250 OK"

    def check(self, server: Any, session: Any, envelope: Any, mechanism: str, login: Any) -> AuthResult:
        good = isinstance(login, LoginPassword) and (login.login, login.password) == (self.user.encode(), b"secret")
        return AuthResult(success=good, handled=good)

    @contextmanager
    def open(self, *, smtps: bool = False) -> Iterator[None]:
        """Take mails inside the context; ``smtps``: with TLS from the beginning instead of STARTTLS."""
        options: dict[str, Any] = {}
        if self.certificate is not None:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(*self.certificate)
            options["ssl_context" if smtps else "tls_context"] = tls
        if self.user:
            options |= {"authenticator": self.check, "auth_required": True, "auth_require_tls": not smtps}
        controller = Controller(self, hostname="localhost", port=self.port, **options)
        controller.start()
        try:
            yield
        finally:
            controller.stop()

    async def sends(self, *login: str) -> Outcome:
        """The outcome for one mail."""
        mailer = SmtpMailer("localhost", self.port, login=(login[0], login[1]) if login else None)
        with self.open():
            try:
                return await mailer.send("rup@a.example", "r@b.example", MAIL)
            finally:
                await mailer.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of localhost, signed by itself."""
    folder = tmp_path_factory.mktemp("certificate")
    pair = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", pair[1], "-out", pair[0]],
        check=True, capture_output=True,
    )  # fmt: skip
    return pair


async def test_a_login_requires_tls_and_a_valid_certificate(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(certificate, "me")
    refused = await office.sends("me", "secret")
    assert isinstance(refused, Later), "nobody vouches for the certificate"
    assert "certificate" in refused.why.lower()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    assert await office.sends("me", "secret") == Sent()
    assert office.taken == [(True, True)]
    wrong = await office.sends("me", "guess")
    assert isinstance(wrong, Later)
    assert "535" in wrong.why
    assert "guess" not in wrong.why
    nobody = await office.sends()
    assert isinstance(nobody, Later), "a mail is kept where the server wants a login"
    assert "530" in nobody.why
    assert len(office.taken) == 1


async def test_no_login_is_shown_to_a_server_without_tls() -> None:
    office = Office()
    outcome = await office.sends("me", "secret")
    assert isinstance(outcome, Later)
    assert office.taken == []


async def test_without_a_login_tls_is_used_if_the_server_offers_it(certificate: tuple[Path, Path]) -> None:
    with_tls, without = Office(certificate), Office()
    assert [await with_tls.sends(), await without.sends()] == [Sent(), Sent()]
    assert with_tls.taken == [(True, False)]
    assert without.taken == [(False, False)]


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("CRAWLER_SMTP_USER", "run http://127.0.0.1:9/ --notify smtp://localhost/me@a.example"),
        (
            "CRAWLER_SMTP_PASSWORD",
            "rup serve --root . --base-url http://a.example/ --listen 127.0.0.1:0 --smtp 127.0.0.1:25 --db rup.db",
        ),
    ],
)
def test_half_a_login_is_an_error_before_anything_is_made(
    name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "secret")
    monkeypatch.chdir(tmp_path)
    ended = here(*command.split())
    assert (ended.code, list(tmp_path.iterdir())) == (2, []), ended
    assert "set both CRAWLER_SMTP_USER and CRAWLER_SMTP_PASSWORD, or neither" in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
async def test_a_summary_is_mailed_with_a_login_over_tls(
    scheme: str, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    office, told = Office(certificate, "me"), list[str]()
    target = f"{scheme}://localhost:{office.port}/me@a.example"
    monkeypatch.setenv("CRAWLER_SMTP_USER", "me")
    monkeypatch.setenv("CRAWLER_SMTP_PASSWORD", "secret")
    with office.open(smtps=scheme == "smtps"):
        await notify(target, SUMMARY, "", told.append)
        assert (len(told), office.taken) == (1, []), "nobody vouches for the certificate"
        assert "certificate" in told[0].lower()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        await notify(target, SUMMARY, "", told.append)
        assert (len(told), len(office.taken)) == (1, 1)
        assert office.taken[0][1], "after a login"
        monkeypatch.setenv("CRAWLER_SMTP_PASSWORD", "guess")
        await notify(target, SUMMARY, "", told.append)
    assert "535" in told[1]
    assert "guess" not in told[1]


async def test_a_summary_needs_tls_for_a_login_and_takes_what_is_offered_without_one(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    with_tls, without = Office(certificate), Office()
    for office in (with_tls, without):
        with office.open():
            await notify(f"smtp://localhost:{office.port}/me@a.example", SUMMARY, "", told.append)
    assert (told, with_tls.taken, without.taken) == ([], [(True, False)], [(False, False)])
    monkeypatch.setenv("CRAWLER_SMTP_USER", "me")
    monkeypatch.setenv("CRAWLER_SMTP_PASSWORD", "secret")
    with without.open():
        await notify(f"smtp://localhost:{without.port}/me@a.example", SUMMARY, "", told.append)
    assert told == ["--notify: localhost did not accept the summary: it offers no TLS, which a login requires"]
