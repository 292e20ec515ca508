"""Requests through an HTTP proxy by option only, on both event loops."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvloop

from crawler.clock import SystemClock
from crawler.fetch.client import FetchSettings, HttpFetcher
from crawler.fetch.resolver import Resolver
from crawler.model import Exchange, Failed, Fetched, FetchResult, Purpose, Request
from crawler.reasons import ErrorKind
from tests.e2e.test_fetch_broken import CERTIFICATE

Run = Callable[[Coroutine[Any, Any, Any]], Any]
SETTINGS = FetchSettings("TestBot/1 (+https://example.org/)", None)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    runner: Run = request.param
    return runner


class Proxy:
    """A proxy that answers plain requests itself, and connects every tunnel to ``tls_port`` (0: refuses it)."""

    def __init__(self, tls_port: int = 0) -> None:
        self.heads: list[bytes] = []
        self._tls_port = tls_port

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                if not head.startswith(b"CONNECT"):
                    writer.write(ANSWER)
                elif self._tls_port:
                    writer.write(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
                    there = await asyncio.open_connection("127.0.0.1", self._tls_port)
                    await asyncio.gather(_pass_on(reader, there[1]), _pass_on(there[0], writer))
                    return
                else:
                    writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(1 << 16):
        writer.write(piece)
    writer.close()


@asynccontextmanager
async def listening(proxy: Proxy) -> AsyncIterator[str]:
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    try:
        yield f"http://localhost:{listener.sockets[0].getsockname()[1]}/"
    finally:
        listener.close()


async def get(url: str, settings: FetchSettings) -> FetchResult:
    async with HttpFetcher(settings, SystemClock()) as fetcher:
        return await fetcher.fetch(Request(url, Purpose.PAGE, 1000))


async def get_through(proxy: Proxy, url: str, **settings: Any) -> FetchResult:
    async with listening(proxy) as proxy_url:
        return await get(url, replace(SETTINGS, proxy=proxy_url, **settings))


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that are looked up; every one has the address 127.0.0.1."""
    names: list[str] = []

    async def resolve(_: Resolver, host: str, port: int, family: int) -> list[dict[str, object]]:
        names.append(host)
        address = {"hostname": host, "host": "127.0.0.1", "port": port}
        return [{**address, "family": socket.AF_INET, "proto": 0, "flags": 0}]

    monkeypatch.setattr(Resolver, "resolve", resolve)
    return names


def test_the_proxy_gets_the_whole_url_and_looks_the_name_up(run: Run, looked_up: list[str]) -> None:
    proxy = Proxy()
    result = run(get_through(proxy, "http://a.example/path?q", keep_exchanges=True))
    assert isinstance(result, Fetched)
    assert (result.body, result.wire_bytes) == (b"ok", len(ANSWER))
    assert proxy.heads[0].startswith(b"GET http://a.example/path?q HTTP/1.1\r\nHost: a.example\r\n")
    assert looked_up == ["localhost"]
    assert result.exchange == Exchange(proxy.heads[0], ANSWER, "", complete=True)


def test_tls_goes_through_a_tunnel(run: Run, tmp_path: Path, looked_up: list[str]) -> None:
    (tmp_path / "tls.pem").write_text(CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.pem")
    ca_file = str(tmp_path / "tls.pem")
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    async def scenario() -> tuple[FetchResult, list[bytes]]:
        listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        async with listener:
            proxy = Proxy(listener.sockets[0].getsockname()[1])
            return await get_through(proxy, "https://tls.test/x", keep_exchanges=True, ca_file=ca_file), proxy.heads

    result, seen = run(scenario())
    assert isinstance(result, Fetched), result
    assert (result.body, result.wire_bytes) == (b"ok", len(ANSWER))
    assert seen[0].startswith(b"CONNECT tls.test:443 HTTP/1.1\r\n")
    assert heads[0].startswith(b"GET /x HTTP/1.1\r\n")
    assert result.exchange == Exchange(heads[0], ANSWER, "", complete=True)
    assert looked_up == ["localhost"]


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "[::1]", "169.254.169.254", "localhost", "x.localhost"])
def test_private_hosts_in_a_url_are_refused_behind_a_proxy(host: str, run: Run) -> None:
    proxy = Proxy()
    for scheme in ("http", "https"):
        result = run(get_through(proxy, f"{scheme}://{host}/"))
        assert isinstance(result, Failed)
        assert result.kind is ErrorKind.ADDRESS
        assert result.detail.startswith(f"{host.strip('[]')} is a ")
    assert not proxy.heads


def test_a_crawl_without_a_contact_uses_no_proxy(run: Run) -> None:
    proxy = Proxy()
    result = run(get_through(proxy, "http://a.example/", loopback_only=True))
    assert isinstance(result, Failed)
    assert (result.kind, result.detail) == (
        ErrorKind.ADDRESS,
        "a.example is behind a proxy, and a crawl without identity.contact stays on loopback",
    )
    assert not proxy.heads


def test_the_failures_of_a_proxy_are_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = run(get_through(Proxy(), "https://a.example/"))
    assert isinstance(refused, Failed)
    assert (refused.kind, refused.detail) == (
        ErrorKind.CONNECT,
        "the proxy made no connection to a.example: status 403",
    )

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        proxy = f"http://127.0.0.1:{free.getsockname()[1]}/"
        for url in ("http://a.example/", "https://a.example/"):
            absent = run(get(url, replace(SETTINGS, proxy=proxy)))
            assert isinstance(absent, Failed)
            assert (absent.kind, absent.detail) == (
                ErrorKind.CONNECT,
                "no connection to the proxy: connection refused",
            )

    async def resolve(*_: object, **__: object) -> list[object]:
        raise OSError(None, "Domain name not found")

    monkeypatch.setattr(Resolver, "resolve", resolve)
    unknown = run(get("http://a.example/", replace(SETTINGS, proxy="http://proxy.example:3128/")))
    assert isinstance(unknown, Failed)
    assert (unknown.kind, unknown.detail) == (
        ErrorKind.CONNECT,
        "no address of the proxy: domain name not found",
    )


def test_the_environment_names_no_proxy(run: Run, looked_up: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> tuple[FetchResult, FetchResult]:
        async with listening(proxy) as proxy_url, listening(site) as site_url:
            for name in ("http_proxy", "https_proxy", "all_proxy", "ws_proxy"):
                monkeypatch.setenv(name, proxy_url)
                monkeypatch.setenv(name.upper(), proxy_url)
            monkeypatch.delenv("no_proxy", raising=False)
            url = site_url.replace("localhost", "a.example")
            settings = replace(SETTINGS, allow_private=True, connect_timeout_s=0.5)  # the site understands no TLS
            return await get(url, settings), await get(url.replace("http:", "https:"), settings)

    proxy, site = Proxy(), Proxy()
    plain, tls = run(scenario())
    assert isinstance(plain, Fetched)
    assert isinstance(tls, Failed)
    assert not proxy.heads
    assert looked_up == ["a.example"] * 2
