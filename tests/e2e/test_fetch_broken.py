"""The fetcher against a hostile network, on both event loops: whatever comes, one outcome with one sentence."""

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvloop

from crawler.clock import SystemClock
from crawler.fetch import connection
from crawler.fetch.client import FetchSettings, HttpFetcher
from crawler.fetch.name_servers import LookUpFailed
from crawler.fetch.resolver import Resolver
from crawler.model import Failed, Fetched, FetchResult, Purpose, Request
from crawler.reasons import DNS_KINDS, ErrorKind

Run = Callable[[Coroutine[Any, Any, Any]], Any]
Handler = Callable[[asyncio.StreamWriter], Awaitable[None]]

SETTINGS = FetchSettings(
    "TestBot/1 (+https://example.org/)",
    None,
    resolve=(("*.test", "127.0.0.1"),),
    allow_private=True,
)
#: For servers that fall silent, and for answers that do not end. For the others, a busy machine could take as long.
NO_SILENCE, NO_DRIPPING = replace(SETTINGS, read_timeout_s=0.4), replace(SETTINGS, total_timeout_s=0.5)
PATIENCE_S = 300  # for what takes milliseconds on a machine that is not busy
OK = b"HTTP/1.1 200 OK\r\n"
LINK = b"Link: " + b"x" * 2_000 + b"\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"

#: For tls.test, signed by itself, good until 2126; made for these tests and used nowhere else.
CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgvrEoG1phGInLJqul
TImCrOsTS67Le3G4vXkf2EqgZGOhRANCAARWU7c1Qwnh+LE7MvtuvmNAoEhSuWH5
Qi44/TUly6aRHFqEhHuV2FDLI418ocI8S+KGPK3H/2FQrc+X7OzkiFpB
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBkTCCATigAwIBAgIUIg2mB3TrRCywH/0+SjyTzPYJMDwwCgYIKoZIzj0EAwIw
EzERMA8GA1UEAwwIdGxzLnRlc3QwIBcNMjYxMTIxMTE0NDQ5WhgPMjEyNjEwMjgx
MTQ0NDlaMBMxETAPBgNVBAMMCHRscy50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAEVlO3NUMJ4fixOzL7br5jQKBIUrlh+UIuOP01JcumkRxahIR7ldhQyyON
fKHCPEvihjytx/9hUK3Pl+zs5IhaQaNoMGYwHQYDVR0OBBYEFCb8YdXH192UDNsK
+wHadcBpvs9QMB8GA1UdIwQYMBaAFCb8YdXH192UDNsK+wHadcBpvs9QMA8GA1Ud
EwEB/wQFMAMBAf8wEwYDVR0RBAwwCoIIdGxzLnRlc3QwCgYIKoZIzj0EAwIDRwAw
RAIgQvM8nA81nhFcvFrdwnneKzKOxCLngemwkAPAl9vh7FwCIGdqDqshrIkJzAcF
DVobr//QfZFkHOi8axM/bQrupMJx
-----END CERTIFICATE-----
"""


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    runner: Run = request.param
    return runner


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server whose ``handler`` runs after each request's head; its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await handler(writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()


async def get(url: str, settings: FetchSettings = SETTINGS) -> FetchResult:
    async with HttpFetcher(settings, SystemClock()) as fetcher:
        return await fetcher.fetch(Request(url, Purpose.PAGE, 1_000_000))


async def get_from(handler: Handler, settings: FetchSettings = SETTINGS) -> FetchResult:
    async with serving(handler) as port:
        return await get(f"http://a.test:{port}/", settings)


def sends(*parts: bytes | float, reset: bool = False) -> Handler:
    """A handler that sends bytes, waits seconds, and then closes, or resets, the connection."""

    async def handler(writer: asyncio.StreamWriter) -> None:
        for part in parts:
            if isinstance(part, bytes):
                writer.write(part)
                await writer.drain()
            else:
                await asyncio.sleep(part)
        if reset:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()

    return handler


async def drips(writer: asyncio.StreamWriter) -> None:
    while not writer.is_closing():
        writer.write(b"x")
        await asyncio.sleep(0.05)


async def drips_body(writer: asyncio.StreamWriter) -> None:
    writer.write(OK + b"\r\n")
    await drips(writer)


BROKEN = {
    "nothing": (sends(), "connect", "the server closed the connection without an answer"),
    "half a head": (sends(OK + b"Conte"), "connect", "the server closed the connection without an answer"),
    "reset": (sends(0.02, reset=True), "connect", "the connection broke before an answer: connection reset by peer"),
    "silence": (sends(1.0), "timeout", "the server sent nothing for 0.4 s"),
    "silent body": (sends(OK + b"\r\nabc", 1.0), "timeout", "the server sent nothing for 0.4 s"),
    "dripped head": (drips, "protocol", "the answer is not HTTP within limits: bad status line"),
    "dripped headers": (sends(OK, *(b"X: y\r\n", 0.05) * 60), "timeout", "the answer was not complete after 0.5 s"),
    "dripped body": (drips_body, "timeout", "the answer was not complete after 0.5 s"),
    "short body": (
        sends(OK + b"Content-Length: 10\r\n\r\nabc"),
        "truncated",
        "the connection broke before the end of the body",
    ),
    "short chunks": (sends(CHUNKED), "truncated", "the connection broke before the end of the body"),
    "reset midway": (
        sends(OK + b"Content-Length: 10\r\n\r\nabc", 0.02, reset=True),
        "truncated",
        "the connection broke before the end of the body",
    ),
    "reset where only the end delimits": (
        sends(OK + b"\r\nabc", 0.02, reset=True),
        "truncated",
        "the connection broke before the end of the body",
    ),
    "garbled chunk": (sends(CHUNKED, 0.02, b"zz\r\n", 1.0), "protocol", "the body is garbled: "),
    "another protocol": (
        sends(b"SSH-2.0-OpenSSH_9.2\r\n"),
        "protocol",
        "the answer is not HTTP within limits: bad status line",
    ),
    "300 headers": (
        sends(OK + b"".join(b"X-%d: y\r\n" % n for n in range(300)) + b"\r\n"),
        "protocol",
        "the answer is not HTTP within limits: too many headers received",
    ),
    "a long header": (
        sends(OK + b"X: " + b"y" * 40_000 + b"\r\n\r\n"),
        "protocol",
        "the answer is not HTTP within limits: got more than 32768 bytes when reading",
    ),
    "endless head": (
        sends(OK + b"X: " + b"y" * 1_000_000),
        "protocol",
        "the answer is not HTTP within limits: got more than 32768 bytes when reading",
    ),
    "endless interim answers": (
        sends(b"HTTP/1.1 102 Processing\r\n\r\n" * 10_000),
        "protocol",
        "the server sent more than 16 interim answers",
    ),
    "interim answers with many headers": (
        sends((b"HTTP/1.1 103 Early Hints\r\n" + LINK * 15 + b"\r\n") * 10),
        "protocol",
        "the answer has more than 262,144 bytes of headers",
    ),
    "endless headers": (
        sends(OK + LINK * 200),
        "protocol",
        "the answer has more than 262,144 bytes of headers",
    ),
    "empty lines without end": (
        sends(b"\r\n" * 200_000),
        "protocol",
        "the answer has more than 262,144 bytes of headers",
    ),
    "an endless chunk extension": (
        sends(CHUNKED + b"3;" + b"x" * 3_000_000),
        "protocol",
        "the body has more than 262,1",
    ),
    "chunk extensions beside a body": (
        sends(CHUNKED + (b"1;" + b"x" * 1_000 + b"\r\nx\r\n") * 3_000),
        "protocol",
        "the body has more than 262,1",
    ),
    "endless trailers": (
        sends(CHUNKED + b"0\r\n" + LINK * 400),
        "protocol",
        "the body has more than 262,144 bytes of framing",
    ),
    "two lengths": (
        sends(OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
        "protocol",
        "the answer is not HTTP within limits: duplicate content-length",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_answers(name: str, run: Run) -> None:
    handler, kind, detail = BROKEN[name]
    impatient = NO_DRIPPING if "dripped" in name else NO_SILENCE
    result = run(get_from(handler, impatient if kind == "timeout" else SETTINGS))
    assert isinstance(result, Failed), result
    assert (result.kind, result.detail[: len(detail)]) == (ErrorKind(kind), detail)
    assert result.started_at <= result.finished_at


def test_the_time_of_a_header_section_is_bounded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_HEAD_S", 0.1)
    result = run(get_from(sends(OK, *(b"X: y\r\n", 0.05) * 60)))
    assert isinstance(result, Failed)
    assert (result.kind, result.detail) == (
        ErrorKind.TIMEOUT,
        "the headers of the answer were not complete after 0.1 s",
    )


def test_the_time_between_interim_answers_is_not_that_of_a_header_section(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_HEAD_S", 0.05)
    interim = b"HTTP/1.1 102 Processing\r\n\r\n"
    result = run(get_from(sends(interim, 0.1, interim, 0.1, answer_to(b"late"))))
    assert isinstance(result, Fetched)
    assert result.body == b"late"


def test_silence_after_an_interim_answer_has_the_bound_of_any_silence(run: Run) -> None:
    result = run(get_from(sends(b"HTTP/1.1 103 Early Hints\r\n\r\n", 1.0), NO_SILENCE))
    assert isinstance(result, Failed)
    assert (result.kind, result.detail) == (ErrorKind.TIMEOUT, "the server sent nothing for 0.4 s")


def test_the_octets_of_a_failed_answer_are_counted(run: Run) -> None:
    result = run(get_from(sends(CHUNKED + b"3;" + b"x" * 3_000_000)))
    assert 262_144 < result.wire_bytes < 1_000_000


JUNK = {
    "a page": OK + b"Content-Length: 2\r\n\r\nok",
    "chunks": OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "not found": b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
}


@pytest.mark.parametrize("junk", [b"junk", b"\x00" * 500_000, OK + b"Content-Length: 5\r\n\r\nother"])
@pytest.mark.parametrize("name", JUNK)
def test_junk_behind_a_complete_answer_does_not_change_it(name: str, junk: bytes, run: Run) -> None:
    async def ask_twice() -> list[FetchResult]:
        async with serving(sends(JUNK[name] + junk)) as port, HttpFetcher(SETTINGS, SystemClock()) as fetcher:
            return [await fetcher.fetch(Request(f"http://a.test:{port}/", Purpose.PAGE, 100_000)) for _ in range(2)]

    for result in run(ask_twice()):
        if name == "no content":
            assert isinstance(result, Failed)
            assert result.detail == "204 No Content, so there is no page"
        elif name == "not found":
            assert isinstance(result, Failed)
            assert result.detail == "404 Not Found"
        else:
            assert isinstance(result, Fetched), result
            assert result.body == b"ok"


def test_what_nobody_asked_for_is_nobodys_answer(run: Run) -> None:
    """A connection on which more came than one answer to each request is not used again, wherever that waits."""
    wanted, sent = threading.Semaphore(0), threading.Semaphore(0)  # the surplus

    def answers_twice(connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rwb", buffering=0) as stream:
            while request := stream.readline():
                while stream.readline().strip():
                    pass
                path = request.split()[1]
                stream.write(answer_to(path))
                if path != b"/third" and wanted.acquire(timeout=PATIENCE_S):
                    stream.write(answer_to(b"surplus"))
                    sent.release()

    async def ask(port: int) -> list[bytes]:
        bodies = []
        async with HttpFetcher(SETTINGS, SystemClock()) as fetcher:
            for path in ("/first", "/second", "/third"):
                result = await fetcher.fetch(Request(f"http://a.test:{port}{path}", Purpose.PAGE, 1_000_000))
                assert isinstance(result, Fetched), result
                bodies.append(result.body)
                if path == "/third":
                    break
                wanted.release()
                wait_for(sent)  # meanwhile the loop does not look: the surplus waits in the system
                if path == "/first":
                    for _ in range(10):
                        await asyncio.sleep(0)  # now it looks: the surplus waits in the HTTP library
        return bodies

    with threaded(answers_twice) as port:
        assert run(ask(port)) == [b"/first", b"/second", b"/third"]


@contextmanager
def threaded(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server in threads of its own, one to a connection, which goes on where the event loop is held up; its port."""

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def wait_for(sent: threading.Semaphore) -> None:
    assert sent.acquire(timeout=PATIENCE_S)


def answer_to(path: bytes) -> bytes:
    return OK + b"Content-Length: %d\r\n\r\n%s" % (len(path), path)


def test_a_reset_after_the_announced_length_is_harmless(run: Run) -> None:
    result = run(get_from(sends(OK + b"Content-Length: 3\r\n\r\nab", 0.02, b"c", reset=True)))
    assert isinstance(result, Fetched)
    assert result.body == b"abc"


def test_nobody_listens(run: Run) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        result = run(get(f"http://a.test:{free.getsockname()[1]}/"))
    assert isinstance(result, Failed)
    assert (result.kind, result.detail) == (ErrorKind.CONNECT, "no connection to a.test: connection refused")


def test_a_name_without_an_address(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*_: object, **__: object) -> list[object]:
        raise LookUpFailed(ErrorKind.DNS_NO_NAME, "the name nowhere.example does not exist")

    monkeypatch.setattr(Resolver, "resolve", resolve)
    result = run(get("http://nowhere.example/"))
    assert isinstance(result, Failed)
    assert result.kind is ErrorKind.DNS_NO_NAME
    assert result.detail == "the name nowhere.example does not exist"


@pytest.mark.parametrize("host", ["a" * 70 + ".example", "a..example", "xn--a.example", "999999.example."])
def test_odd_names_never_raise(host: str, run: Run) -> None:
    result = run(get(f"http://{host}/"))
    assert isinstance(result, Failed)
    assert result.kind in DNS_KINDS


def test_cancelling_passes_through_and_closes_the_connection(run: Run) -> None:
    async def scenario() -> None:
        gone = asyncio.Event()

        async def handler(writer: asyncio.StreamWriter) -> None:
            writer.write(OK + b"\r\nabc")
            await writer.drain()
            fetching.cancel()
            while not writer.is_closing():
                writer.write(b"more")
                await asyncio.sleep(0.01)
            gone.set()

        async with serving(handler) as port, HttpFetcher(SETTINGS, SystemClock()) as fetcher:
            fetching = asyncio.ensure_future(fetcher.fetch(Request(f"http://a.test:{port}/", Purpose.PAGE, 1000)))
            with pytest.raises(asyncio.CancelledError):
                await fetching
            await asyncio.wait_for(gone.wait(), PATIENCE_S)

    run(scenario())


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    (tmp_path / "tls.pem").write_text(CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.pem")
    return context


def test_tls(run: Run, tls: ssl.SSLContext, tmp_path: Path) -> None:
    async def scenario(host: str) -> FetchResult:
        async with serving(sends(OK + b"Content-Length: 3\r\n\r\nabc"), tls) as port:
            return await get(f"https://{host}:{port}/", settings)

    settings = SETTINGS
    result = run(scenario("tls.test"))
    assert isinstance(result, Failed)
    assert (result.kind, result.detail) == (
        ErrorKind.CERTIFICATE,
        "the certificate of tls.test is signed by itself and by no authority; fetch.ca_file can name the certificate "
        "to trust, and fetch.verify can switch its check off for this host",
    )

    settings = replace(SETTINGS, ca_file=str(tmp_path / "tls.pem"))
    result = run(scenario("tls.test"))
    assert isinstance(result, Fetched)
    assert result.body == b"abc"
    result = run(scenario("other.test"))
    assert isinstance(result, Failed)
    assert result.kind is ErrorKind.CERTIFICATE
    assert result.detail.startswith("the certificate of other.test is for other names than this one")


def test_a_server_that_does_not_serve_the_name(run: Run, tls: ssl.SSLContext) -> None:
    tls.sni_callback = lambda *_: ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

    def refuses(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            tls.wrap_socket(connection, server_side=True)

    with threaded(refuses) as port:
        result = run(get(f"https://tls.test:{port}/"))
    assert isinstance(result, Failed)
    assert (result.kind, result.detail) == (
        ErrorKind.TLS,
        "no TLS with tls.test: the server does not serve this name (alert unrecognized_name)",
    )


def test_the_limit_on_the_whole_is_named_if_it_ends_while_the_connection_is_made(run: Run) -> None:
    async def scenario() -> FetchResult:
        async with serving(sends()) as port:  # it reads the handshake, and waits for a request
            return await get(f"https://a.test:{port}/", replace(SETTINGS, total_timeout_s=0.1))

    result = run(scenario())
    assert isinstance(result, Failed)
    assert (result.kind, result.detail) == (ErrorKind.TIMEOUT, "the answer was not complete after 0.1 s")


def test_a_server_that_closes_during_the_handshake(run: Run, tls: ssl.SSLContext) -> None:
    async def scenario() -> FetchResult:
        tls.sni_callback = lambda *_: ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME  # asyncio closes without the alert
        async with serving(sends(OK), tls) as port:
            return await get(f"https://tls.test:{port}/")

    result = run(scenario())
    assert isinstance(result, Failed)
    assert (result.kind, result.detail) == (
        ErrorKind.CONNECT,
        "no connection to tls.test: the server closed it during the TLS handshake",
    )


def test_tls_where_there_is_none(run: Run) -> None:
    async def scenario() -> FetchResult:
        async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        listener = await asyncio.start_server(plain, "127.0.0.1", 0)
        async with listener:
            return await get(f"https://a.test:{listener.sockets[0].getsockname()[1]}/")

    result = run(scenario())
    assert isinstance(result, Failed)
    assert result.kind in (ErrorKind.TLS, ErrorKind.CONNECT)  # as the close or the bytes come first
    assert "a.test" in result.detail
