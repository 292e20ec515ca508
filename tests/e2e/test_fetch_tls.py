"""The fetcher against real TLS servers, on both event loops: which certificates it accepts, and what it resumes."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import uvloop

from crawler.clock import SystemClock
from crawler.errors import UsageError
from crawler.fetch import tls
from crawler.fetch.client import FetchSettings, HttpFetcher
from crawler.fetch.connection import Connection
from crawler.fetch.tls import ResumingContext, Tls
from crawler.model import Failed, Fetched, FetchResult, Purpose, Request, TlsFacts
from crawler.reasons import ErrorKind
from tests.e2e.test_fetch_broken import threaded
from tests.hostile import certificates

Run = Callable[[Coroutine[Any, Any, Any]], Any]
SETTINGS = FetchSettings(
    "TestBot/1 (+https://example.org/)",
    None,
    resolve=(("*", "127.0.0.1"),),
    allow_private=True,
    ca_file=str(certificates.AUTHORITY),
)
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n"


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    runner: Run = request.param
    return runner


@dataclass
class Server:
    """A TLS server; ``resumed`` says of each connection whether it resumed a session."""

    context: ssl.SSLContext
    closes: bool = False
    resumed: list[bool] = field(default_factory=list)
    port: int = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.context)
        self.port = listener.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            listener.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.resumed.append(writer.get_extra_info("ssl_object").session_reused)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(OK + (b"Connection: close\r\n\r\nok" if self.closes else b"\r\nok"))
                await writer.drain()
                if self.closes:
                    break
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def server(name: str, **how: Any) -> Server:
    certificates.context.cache_clear()  # with a key for tickets of its own
    context = certificates.context(name)
    assert context is not None
    return Server(context, **how)


async def get(server: Server, host: str, settings: FetchSettings) -> FetchResult:
    async with server.serving(), HttpFetcher(settings, SystemClock()) as fetcher:
        return await fetcher.fetch(Request(f"https://{host}:{server.port}/", Purpose.PAGE, 1000))


def test_a_closed_connection_is_freed_without_the_garbage_collector(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[object]] = []
    connection_made = Connection.connection_made

    def noted(self: Connection, transport: asyncio.BaseTransport) -> None:
        connection_made(self, transport)
        made.extend((weakref.ref(self), weakref.ref(self.tls)))

    monkeypatch.setattr(Connection, "connection_made", noted)
    its_server = server("expired", closes=True)

    async def scenario() -> None:
        settings = replace(SETTINGS, unverified=("*",))
        async with its_server.serving(), HttpFetcher(settings, SystemClock()) as fetcher:
            for _ in range(3):
                url = f"https://tls-expired.test:{its_server.port}/"
                assert isinstance(await fetcher.fetch(Request(url, Purpose.PAGE, 1000)), Fetched)
            assert len(made) == 6
            for _ in range(1000):  # the connection closes in the background
                await asyncio.sleep(0.01 if any(one() is not None for one in made) else 0)
            assert [one() for one in made] == [None] * 6

    gc.disable()
    try:
        run(scenario())
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("name", "says", "remedy"),
    [
        ("expired", "has expired: the owner of the site has to renew it", "fetch.verify"),
        ("future", "is not valid yet", "the clock of this machine"),
        ("wrong-host", "is for other names than this one", "fetch.verify"),
        ("unknown-issuer", "is from an unknown authority", "fetch.ca_file"),
        ("self-signed", "is signed by itself", "fetch.ca_file"),
        ("client-only", "is not for servers", "fetch.verify"),
    ],
)
def test_a_bad_certificate_is_named_with_its_fault_and_the_remedy(name: str, says: str, remedy: str, run: Run) -> None:
    host = f"tls-{name}.test"
    result = run(get(server(name), host, SETTINGS))
    assert isinstance(result, Failed)
    assert result.kind is ErrorKind.CERTIFICATE
    assert result.detail.startswith(f"the certificate of {host} {says}")
    assert remedy in result.detail
    unverified = replace(SETTINGS, unverified=("elsewhere.test", f"tls-{name}.test"))
    assert isinstance(run(get(server(name), host, unverified)), Fetched)
    assert isinstance(run(get(server(name), host, replace(SETTINGS, unverified=("*.elsewhere.test",)))), Failed)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_answer_names_version_cipher_and_the_end_of_the_certificate(version: ssl.TLSVersion, run: Run) -> None:
    async def scenario() -> list[TlsFacts | None]:
        found = []
        for settings in (SETTINGS, replace(SETTINGS, unverified=("*",))):
            one = server("good", closes=True)
            one.context.maximum_version = version
            async with one.serving(), HttpFetcher(settings, SystemClock()) as fetcher:
                for _ in range(2):  # the second connection is resumed
                    url = f"https://tls-trusted.test:{one.port}/"
                    found.append((await fetcher.fetch(Request(url, Purpose.PAGE, 1000))).tls)
            assert one.resumed == [False, True]
        return found

    first, resumed, unverified, _ = found = run(scenario())
    assert None not in found
    assert first == resumed
    assert first.version == unverified.version == version.name.replace("_", ".")
    assert "AES" in first.cipher or "CHACHA" in first.cipher
    assert datetime.fromtimestamp(first.certificate_until, UTC) == datetime(2126, 1, 1, tzinfo=UTC)
    assert unverified.certificate_until is None


def test_an_authority_counts_if_it_is_named(run: Run) -> None:
    assert isinstance(run(get(server("good"), "tls-trusted.test", SETTINGS)), Fetched)
    result = run(get(server("good"), "tls-trusted.test", replace(SETTINGS, ca_file="")))
    assert isinstance(result, Failed)
    assert "unknown authority" in result.detail


def test_an_old_version_is_named(run: Run) -> None:
    context = certificates.context("good+old")
    assert context is not None

    def refuses(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            context.wrap_socket(connection, server_side=True)  # asyncio would close it without an alert

    with threaded(refuses) as port:
        result = run(get_at(f"https://tls-old.test:{port}/"))
    assert isinstance(result, Failed)
    assert result.kind is ErrorKind.TLS
    assert result.detail.startswith("no TLS with tls-old.test: the server offers only versions before TLS 1.2")


def test_an_answer_without_tls_is_named(run: Run) -> None:
    def plain(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.recv(1000)

    with threaded(plain) as port:
        result = run(get_at(f"https://a.test:{port}/"))
    assert isinstance(result, Failed)
    assert "the answer is no TLS: perhaps the server speaks plain HTTP at this port" in result.detail


async def get_at(url: str) -> FetchResult:
    async with HttpFetcher(SETTINGS, SystemClock()) as fetcher:
        return await fetcher.fetch(Request(url, Purpose.PAGE, 1000))


@pytest.mark.parametrize("content", [None, "no certificate", ""])
def test_a_file_of_authorities_that_cannot_be_read_is_named(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UsageError, match=r"ca\.pem"):
        Tls(str(file))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("unverified", [(), ("*",)])
def test_the_session_of_a_server_that_closes_each_connection_is_resumed(
    version: ssl.TLSVersion, unverified: tuple[str, ...], run: Run
) -> None:
    async def scenario() -> list[bool]:
        one = server("good", closes=True)
        one.context.maximum_version = version
        async with one.serving(), HttpFetcher(replace(SETTINGS, unverified=unverified), SystemClock()) as fetcher:
            for _ in range(3):
                request = Request(f"https://tls-trusted.test:{one.port}/", Purpose.PAGE, 1000)
                assert isinstance(await fetcher.fetch(request), Fetched)
            other = Request(f"https://tls-sni.test:{one.port}/", Purpose.PAGE, 1000)
            assert isinstance(await fetcher.fetch(other), Fetched)
        return one.resumed

    assert run(scenario()) == [False, True, True, False], "no session of another host is resumed"


def test_the_session_of_a_group_that_was_given_back_is_resumed(run: Run) -> None:
    async def scenario() -> list[bool]:
        one = server("good")
        async with one.serving(), HttpFetcher(SETTINGS, SystemClock()) as fetcher:
            request = Request(f"https://tls-trusted.test:{one.port}/", Purpose.PAGE, 1000, group="tls-trusted.test")
            for _ in range(3):
                for _ in range(2):
                    assert isinstance(await fetcher.fetch(request), Fetched)
                fetcher.connections.close("tls-trusted.test")
        return one.resumed

    assert run(scenario()) == [False, True, True]


def test_a_server_that_forgets_its_sessions_gets_a_full_handshake(run: Run) -> None:
    async def scenario() -> list[bool]:
        resumed = []
        async with HttpFetcher(SETTINGS, SystemClock()) as fetcher:
            for _ in range(2):
                one = server("good", closes=True)
                async with one.serving():
                    for _ in range(2):
                        request = Request(f"https://tls-trusted.test:{one.port}/", Purpose.PAGE, 1000)
                        assert isinstance(await fetcher.fetch(request), Fetched)
                resumed += one.resumed
        return resumed

    assert run(scenario()) == [False, True, False, True]


@pytest.mark.parametrize(
    ("session_s", "resumed"), [(300.0, [False, False, False, True]), (0.0, [False, False, True, False])]
)
def test_a_bounded_number_of_sessions_is_kept(
    run: Run, monkeypatch: pytest.MonkeyPatch, session_s: float, resumed: list[bool]
) -> None:
    """The session of another host gets a place when the oldest session is too old to be accepted."""
    monkeypatch.setattr(tls, "MOST_SESSIONS", 1)
    monkeypatch.setattr(tls, "SESSION_S", session_s)

    async def scenario() -> list[bool]:
        one = server("good", closes=True)
        async with one.serving(), HttpFetcher(SETTINGS, SystemClock()) as fetcher:
            for host in ("tls-trusted", "tls-sni", "tls-sni", "tls-trusted"):
                request = Request(f"https://{host}.test:{one.port}/", Purpose.PAGE, 1000)
                assert isinstance(await fetcher.fetch(request), Fetched)
        return one.resumed

    assert run(scenario()) == resumed


def test_all_hosts_share_one_context() -> None:
    shared = Tls(unverified=("b.test",))
    assert shared.context("a.test") is shared.context("c.test") is not shared.context("b.test")
    assert isinstance(shared.context("a.test"), ResumingContext)
    assert shared.context("a.test").verify_mode is ssl.CERT_REQUIRED
    assert shared.context("b.test").verify_mode is ssl.CERT_NONE
