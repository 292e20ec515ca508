"""The mailer of ``crawler rup serve`` and ``--notify`` with mail servers that require TLS, a login, or neither."""

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

from crawler.rup.mail.smtp import Later, Outcome, Sent, SmtpMailer
from tests.command import here
from tests.ports import reserved_port

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")

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

    async def sends(self, *login: str, smtps: bool = False) -> Outcome:
        """The outcome for one mail."""
        pair = (login[0], login[1]) if login else None
        mailer = SmtpMailer("localhost", self.port, login=pair, begins_with_tls=smtps)
        with self.open(smtps=smtps):
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


@pytest.mark.parametrize("smtps", [False, True])
async def test_a_login_requires_tls_and_a_valid_certificate(
    smtps: bool, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(certificate, "me")
    refused = await office.sends("me", "secret", smtps=smtps)
    assert isinstance(refused, Later), "nobody vouches for the certificate"
    assert "certificate" in refused.why.lower()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    assert await office.sends("me", "secret", smtps=smtps) == Sent()
    assert office.taken == [(not smtps, True)], "the server notes STARTTLS alone"
    wrong = await office.sends("me", "guess", smtps=smtps)
    assert isinstance(wrong, Later)
    assert "535" in wrong.why
    assert "guess" not in wrong.why
    nobody = await office.sends(smtps=smtps)
    assert isinstance(nobody, Later), "a mail is kept where the server wants a login"
    assert "530" in nobody.why
    assert len(office.taken) == 1


async def test_no_login_is_shown_to_a_server_without_tls() -> None:
    office = Office()
    outcome = await office.sends("me", "secret")
    assert isinstance(outcome, Later)
    assert office.taken == []


async def test_without_a_login_tls_is_used_if_the_server_offers_it(certificate: tuple[Path, Path]) -> None:
    with_tls, without, from_the_beginning = Office(certificate), Office(), Office(certificate)
    assert [await with_tls.sends(), await without.sends()] == [Sent(), Sent()]
    assert with_tls.taken == [(True, False)]
    assert without.taken == [(False, False)]
    assert isinstance(await from_the_beginning.sends(smtps=True), Later), "nobody vouches for the certificate"


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
