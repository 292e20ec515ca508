"""Look-ups at a DNS server on loopback: addresses with their TTL, failures by kind, and what is asked again."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from crawler.fetch import name_servers
from crawler.fetch.name_servers import HostAddresses, LookUpFailed, NameServers
from crawler.reasons import DNS_KINDS, ErrorKind
from tests.name_server import NXDOMAIN, SERVFAIL, NameServer, Reply, name_server

REPLIES = {
    "short.test": Reply(("192.0.2.1", "192.0.2.2"), ttl_s=7),
    "gone.test": Reply(code=NXDOMAIN, ttl_s=60),
    "empty.test": Reply(ttl_s=60),
    "broken.test": Reply(code=SERVFAIL),
    "refused.test": Reply(code=5),
    "silent.test": None,
}


def reply_for(name: str) -> Reply | None:
    return REPLIES.get(name, Reply(("192.0.2.9",)))


@pytest.fixture
async def server() -> AsyncIterator[NameServer]:
    async with name_server(reply_for) as served:
        yield served


def asking(server: NameServer) -> NameServers:
    """The system's resolver, which asks this server and reads /etc/hosts."""
    return NameServers({"nameservers": [server.address], "timeout": 0.05, "tries": 2})


async def test_addresses_have_the_ttl_of_the_answer(server: NameServer) -> None:
    system = asking(server)
    found = await system.addresses("short.test")
    assert (sorted(found.texts), found.ttl_s) == (["192.0.2.1", "192.0.2.2"], 7)
    await system.close()


@pytest.mark.parametrize(
    ("name", "kind", "sentence"),
    [
        ("gone.test", ErrorKind.DNS_NO_NAME, "the name gone.test does not exist"),
        ("empty.test", ErrorKind.DNS, "the name empty.test has no address"),
        ("broken.test", ErrorKind.DNS_FAILED, "the look-up of broken.test failed (SERVFAIL)"),
        ("refused.test", ErrorKind.DNS_FAILED, "the name server refused to look refused.test up (REFUSED)"),
        ("silent.test", ErrorKind.DNS_TIMEOUT, "no name server answered for silent.test"),
        ("a..test", ErrorKind.DNS, "a..test is not a name that DNS can hold"),
        ("x" * 70 + ".test", ErrorKind.DNS, f"{'x' * 70}.test is not a name that DNS can hold"),
        ("\ud800.test", ErrorKind.DNS, "\ud800.test is not a name that DNS can hold"),
    ],
)
async def test_failures_are_told_apart(server: NameServer, name: str, kind: ErrorKind, sentence: str) -> None:
    system = asking(server)
    with pytest.raises(LookUpFailed) as failed:
        await system.addresses(name)
    assert (failed.value.kind, failed.value.sentence) == (kind, sentence)
    assert kind in DNS_KINDS
    await system.close()


async def test_nobody_serves() -> None:
    system = NameServers({"nameservers": ["127.0.0.1:9"], "timeout": 0.05, "tries": 1})
    with pytest.raises(LookUpFailed, match=r"no name server can be reached to look a\.test up") as failed:
        await system.addresses("a.test")
    assert failed.value.kind is ErrorKind.DNS_FAILED
    await system.close()


async def test_a_name_that_does_not_exist_is_not_asked_again_while_its_zone_says_so(server: NameServer) -> None:
    system = asking(server)
    for _ in range(3):
        with pytest.raises(LookUpFailed):
            await system.addresses("gone.test")
    once = server.asked["gone.test"]
    assert once <= 2, "IPv4 and IPv6"
    await system.close()


async def test_the_hosts_file_is_read_first(server: NameServer) -> None:
    system = asking(server)
    found = await system.addresses("localhost")
    assert "127.0.0.1" in found.texts
    assert found.ttl_s == 0
    assert not server.asked
    await system.close()


async def test_the_memory_of_the_library_is_bounded(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some names, a new channel serves. The look-ups of the old one go on."""
    monkeypatch.setattr(name_servers, "NAMES_PER_CHANNEL", 2)
    system = asking(server)
    many = await asyncio.gather(*(system.addresses(f"n{n}.test") for n in range(9)))
    assert many == [HostAddresses(("192.0.2.9",), 300)] * 9
    asked = server.asked["n0.test"]
    await system.addresses("n0.test")
    assert server.asked["n0.test"] == 2 * asked, "the new channel does not know it"
    await system.close()
