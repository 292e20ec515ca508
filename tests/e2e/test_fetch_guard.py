"""The address guard at the moment of connecting, on both event loops: literals, names, mapped addresses."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
import uvloop

from crawler.clock import SystemClock
from crawler.fetch import client
from crawler.fetch.client import FetchSettings, HttpFetcher
from crawler.fetch.name_servers import HostAddresses, NameServers
from crawler.fetch.resolver import Resolver
from crawler.model import Failed, Fetched, FetchResult, Purpose, Request
from crawler.reasons import ErrorKind

Run = Callable[[Coroutine[Any, Any, Any]], Any]
CLOSED = FetchSettings(
    "TestBot/1 (+https://example.org/)", None, connect_timeout_s=2, resolve=(("*.test", "127.0.0.1"),)
)
OPEN = replace(CLOSED, allow_private=True)
LOOPBACK = replace(OPEN, loopback_only=True)


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    runner: Run = request.param
    return runner


async def visit(host: str, settings: FetchSettings) -> tuple[FetchResult, int]:
    """The outcome of a fetch from a server on 127.0.0.1 under the name ``host``, and how many connections it saw."""
    seen = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener, HttpFetcher(settings, SystemClock()) as fetcher:
        url = f"http://{host}:{listener.sockets[0].getsockname()[1]}/"
        return await fetcher.fetch(Request(url, Purpose.PAGE, 1000)), seen


@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:7f00:1]", "[::1]", "a.test", "localhost"])
def test_loopback_is_refused_however_it_is_written(host: str, run: Run) -> None:
    result, seen = run(visit(host, CLOSED))
    assert isinstance(result, Failed)
    assert result.kind is ErrorKind.ADDRESS
    assert result.detail.endswith(" is a loopback address; fetch.allow_private permits it")
    assert seen == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "a.test", "localhost"])
@pytest.mark.parametrize("settings", [OPEN, LOOPBACK], ids=["allow-private", "loopback-only"])
def test_loopback_is_reached_where_it_is_permitted(host: str, settings: FetchSettings, run: Run) -> None:
    result, seen = run(visit(host, settings))
    assert isinstance(result, Fetched)
    assert (result.body, seen) == (b"ok", 1)


@pytest.mark.parametrize("host", ["10.0.0.1", "169.254.169.254", "[64:ff9b::7f00:1]", "[2002:7f00:1::1]"])
def test_private_literals_are_refused(host: str, run: Run) -> None:
    result, _ = run(visit(host, CLOSED))
    assert isinstance(result, Failed)
    assert result.kind is ErrorKind.ADDRESS
    assert result.detail.startswith(host.strip("[]"))


@pytest.mark.parametrize("host", ["8.8.8.8", "10.0.0.1", "[2a00:1450:4001::1]"])
def test_without_a_contact_nothing_leaves_loopback(host: str, run: Run) -> None:
    result, _ = run(visit(host, LOOPBACK))
    assert isinstance(result, Failed)
    assert result.kind is ErrorKind.ADDRESS
    assert (
        result.detail == f"{host.strip('[]')} is not loopback, and a crawl without identity.contact stays on loopback"
    )


def resolving_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    async def resolve(_: Resolver, host: str, port: int, family: int) -> list[dict[str, object]]:
        answers = [(a, socket.AF_INET6 if ":" in a else socket.AF_INET) for a in addresses]
        return [
            {"hostname": host, "host": a, "port": port, "family": family, "proto": 0, "flags": 0}
            for a, family in answers
        ]

    monkeypatch.setattr(Resolver, "resolve", resolve)


@pytest.mark.parametrize("addresses", [("10.0.0.1", "127.0.0.1"), ("127.0.0.1", "10.0.0.1"), ("fd00::1", "127.0.0.1")])
def test_a_permitted_address_is_found_among_others(
    addresses: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving_to(monkeypatch, *addresses)
    result, seen = run(visit("many.example", LOOPBACK))
    assert isinstance(result, Fetched)
    assert seen == 1


def test_the_reason_survives_where_all_addresses_are_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    resolving_to(monkeypatch, "10.0.0.1", "fd00::1", "127.0.0.1")
    result, seen = run(visit("many.example", CLOSED))
    assert isinstance(result, Failed)
    assert (result.kind, seen) == (ErrorKind.ADDRESS, 0)
    assert result.detail.endswith("address; fetch.allow_private permits it")


@pytest.mark.parametrize("addresses", [("10.0.0.1", "127.0.0.2"), ("127.0.0.2", "10.0.0.1")])
def test_the_reason_is_told_beside_a_refused_connection(
    addresses: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving_to(monkeypatch, *addresses)  # the server is not on 127.0.0.2
    result, _ = run(visit("many.example", LOOPBACK))
    assert isinstance(result, Failed)
    assert result.kind is ErrorKind.CONNECT
    assert result.detail.startswith("no connection to many.example: ")
    assert result.detail.endswith("; 10.0.0.1 is not loopback, and a crawl without identity.contact stays on loopback")


def test_an_address_of_this_machine_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "is_own", lambda address: str(address) == "8.8.8.8")
    for host in ("own.example", "8.8.8.8"):
        resolving_to(monkeypatch, "8.8.8.8")
        result, _ = run(visit(host, CLOSED))
        assert isinstance(result, Failed)
        assert (result.kind, result.detail) == (
            ErrorKind.ADDRESS,
            "8.8.8.8 is this machine's own address; fetch.allow_private permits it",
        )


def test_an_address_of_the_networks_nat64_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def addresses(_: object, host: str, family: int) -> HostAddresses:
        asked.append(host)
        return HostAddresses(("2a00:64::c000:aa",), 300.0)

    monkeypatch.setattr(NameServers, "addresses", addresses)
    resolving_to(monkeypatch, "2a00:64::a00:1")
    for host in ("translated.example", "[2a00:64::a00:1]"):
        result, _ = run(visit(host, CLOSED))
        assert isinstance(result, Failed)
        assert (result.kind, result.detail) == (
            ErrorKind.ADDRESS,
            "2a00:64::a00:1 is a NAT64 address; fetch.allow_private permits it",
        )
    assert asked == ["ipv4only.arpa"] * 2


def test_a_name_that_moves_to_a_private_address_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: each new connection is judged by its own address, whatever the name answered before."""

    async def scenario() -> list[FetchResult]:
        results = []
        for address in ("127.0.0.1", "10.0.0.1"):
            resolving_to(monkeypatch, address)
            results.append((await visit("moves.example", LOOPBACK))[0])
        return results

    first, second = run(scenario())
    assert isinstance(first, Fetched)
    assert isinstance(second, Failed)
    assert second.kind is ErrorKind.ADDRESS
