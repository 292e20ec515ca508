"""What a run is told of its troubles: by kind, not by host."""

from __future__ import annotations

import os

import aiohttp
import pytest

from crawler.engine.progress import kind_of
from crawler.fetch.address_guard import refusal
from crawler.fetch.failures import Attempts, before_answer

TIMEOUTS = aiohttp.ClientTimeout(total=20, sock_connect=10)


def told(error: Exception, host: str) -> str:
    return before_answer(error, host, TIMEOUTS, Attempts(permitted=True)).detail


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (aiohttp.ConnectionTimeoutError(), "no connection to a host within 10 s"),
        (aiohttp.InvalidURL("x"), "no name that can be looked up"),
        (aiohttp.ClientPayloadError("x"), "no answer from a host"),
        (aiohttp.ServerDisconnectedError(), "the server closed the connection without an answer"),
    ],
)
def test_a_host_s_name_makes_no_kind_of_its_own(error: Exception, kind: str) -> None:
    assert {kind_of(told(error, host)) for host in ("a.test", "www.b.example", "[::1]")} == {kind}


def test_no_name_and_no_connection() -> None:
    key = aiohttp.client_reqrep.ConnectionKey("a.test", 80, False, True, None, None, None)
    reset = OSError(104, os.strerror(104))
    dns = aiohttp.ClientConnectorDNSError(key, reset)
    assert {kind_of(told(dns, host)) for host in ("a.test", "b.test")} == {"a name has no address"}
    lost = aiohttp.ClientConnectorError(key, reset)
    assert {kind_of(told(lost, host)) for host in ("a.test", "b.test")} == {"no connection to a host"}
    assert kind_of(told(TimeoutError(), "a.test")).startswith("the answer was not complete")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1"])
def test_an_address_makes_no_kind_of_its_own(address: str) -> None:
    assert kind_of(refusal(address, allow_private=False, loopback_only=False) or "") == (
        "a loopback address; --allow-private permits it"
    )
