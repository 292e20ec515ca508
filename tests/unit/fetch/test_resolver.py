"""``--resolve`` and the resolver that obeys it."""

import asyncio
import errno
import json
import os
import socket
from collections.abc import Mapping

import pytest

from crawler.fetch.name_servers import HostAddresses, LookUpFailed, NameServers
from crawler.fetch.resolver import FAILURE_S, LEAST_TTL_S, MOST_TTL_S, Resolver
from crawler.reasons import ErrorKind
from tests.virtual_time import EPOCH_S, VirtualClock, run_virtual


async def test_an_override_answers_without_the_system() -> None:
    resolver = Resolver((("v6.example", "::1"),))
    try:
        (found,) = await resolver.resolve("v6.example", 8080)
        assert (found["hostname"], found["host"], found["port"]) == ("v6.example", "::1", 8080)
        assert found["family"] == socket.AF_INET6
    finally:
        await resolver.close()


class System(NameServers):
    """Answers at once with ``answers``; other names do not exist. Notes the names that it was asked for."""

    def __init__(self, answers: Mapping[str, HostAddresses], takes_s: float = 0.0) -> None:
        super().__init__()
        self.asked: list[str] = []
        self._answers = answers
        self._takes_s = takes_s

    async def addresses(self, host: str, family: socket.AddressFamily = socket.AF_UNSPEC) -> HostAddresses:
        self.asked.append(host)
        await asyncio.sleep(self._takes_s)
        if host in self._answers:
            return self._answers[host]
        raise LookUpFailed(ErrorKind.DNS_NO_NAME, f"the name {host} does not exist")


async def test_the_system_knows_localhost() -> None:
    resolver = Resolver(())
    try:
        assert "127.0.0.1" in {found["host"] for found in await resolver.resolve("localhost", 80)}
    finally:
        await resolver.close()


async def test_what_the_system_found_is_kept_and_the_first_address_is_the_one_asked() -> None:
    system = System({"a.example": HostAddresses(("192.0.2.1", "2001:db8::1"), 300.0)})
    resolver = Resolver((("*.test", "127.0.0.1"),), system=system)
    assert resolver.cached("a.example") is None
    assert await asyncio.gather(*(resolver.look_up("a.example") for _ in range(3))) == ["192.0.2.1"] * 3
    assert resolver.cached("a.example") == "192.0.2.1"
    assert [(found["host"], found["port"]) for found in await resolver.resolve("a.example", 81)] == [
        ("192.0.2.1", 81),
        ("2001:db8::1", 81),
    ]
    assert resolver.refused("a.example", "192.0.2.1")
    assert resolver.cached("a.example") == "2001:db8::1"
    assert not resolver.refused("a.example", "2001:db8::1"), "there is no other"
    assert resolver.refused("a.example", "2001:db8::1"), "all may be tried again"
    assert resolver.cached("a.example") == "192.0.2.1"
    assert not resolver.refused("new.example", "")
    assert await resolver.look_up("dead.example") == ""
    with pytest.raises(LookUpFailed, match="does not exist") as failed:
        await resolver.resolve("dead.example", 80)
    assert failed.value.kind is ErrorKind.DNS_NO_NAME
    assert system.asked == ["a.example", "dead.example"], "one look-up each"
    assert resolver.cached("192.0.2.9") == "192.0.2.9"
    names = ("a.example", "dead.example", "b.test", "192.0.2.9", "new.example")
    assert [resolver.is_limited(name) for name in names] == [True, True, False, True, True]
    counts = {outcome: n for outcome, (n, _) in json.loads(resolver.look_ups()).items()}
    assert counts == {"found": 1, "dns_no_name": 1, "cached": 3}
    await resolver.close()


@pytest.mark.parametrize(
    ("ttl_s", "kept_s"), [(0.0, LEAST_TTL_S), (300.0, 300.0), (86_400.0, MOST_TTL_S), (None, FAILURE_S)]
)
def test_an_answer_is_kept_for_its_ttl_within_bounds(ttl_s: float | None, kept_s: float) -> None:
    async def main(clock: VirtualClock) -> None:
        system = System({} if ttl_s is None else {"a.example": HostAddresses(("192.0.2.1",), ttl_s)})
        resolver = Resolver((), system=system)
        await resolver.look_up("a.example")
        await clock.sleep(kept_s - 0.5)
        assert resolver.cached("a.example") is not None
        await clock.sleep(1.0)
        assert resolver.cached("a.example") is None
        await resolver.look_up("a.example")
        assert system.asked == ["a.example"] * 2
        await resolver.close()

    run_virtual(main)


async def test_the_names_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.fetch.resolver.CACHE_NAMES", 3)
    resolver = Resolver((), system=System({}))
    for n in range(5):
        await resolver.look_up(f"n{n}.example")
    assert [resolver.cached(f"n{n}.example") is not None for n in range(5)] == [False, False, True, True, True]
    await resolver.close()


def test_a_look_up_without_an_answer_fails_in_time() -> None:
    async def main(clock: VirtualClock) -> None:
        resolver = Resolver((), timeout_s=120.0, system=System({}, takes_s=1000.0))
        assert await resolver.look_up("silent.example") == ""
        assert clock.now() - EPOCH_S == 120.0
        with pytest.raises(LookUpFailed, match=r"no name server answered for silent\.example within 120 s") as failed:
            await resolver.resolve("silent.example", 80)
        assert failed.value.kind is ErrorKind.DNS_TIMEOUT
        assert json.loads(resolver.look_ups()) == {"dns_timeout": [1, 120.0]}
        await resolver.close()

    run_virtual(main)


def test_a_look_up_goes_on_if_the_task_that_waits_is_cancelled() -> None:
    async def main(clock: VirtualClock) -> None:
        system = System({"slow.example": HostAddresses(("192.0.2.1",), 300.0)}, takes_s=8.0)
        resolver = Resolver((), system=system)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2.0):
                await resolver.look_up("slow.example")
        assert await resolver.look_up("slow.example") == "192.0.2.1"
        assert clock.now() - EPOCH_S == 8.0
        assert system.asked == ["slow.example"]
        await resolver.close()

    run_virtual(main)


class WithoutFiles(System):
    """As c-ares, which finds no name server if it may open no socket: as long as there are ``refusals``."""

    def __init__(self, refusals: list[int]) -> None:
        super().__init__({"a.example": HostAddresses(("192.0.2.1",), 300.0)})
        self._refusals = refusals

    async def addresses(self, host: str, family: socket.AddressFamily = socket.AF_UNSPEC) -> HostAddresses:
        if self._refusals:
            raise LookUpFailed(ErrorKind.DNS_FAILED, f"no name server can be reached to look {host} up")
        return await super().addresses(host, family)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_a_look_up_without_a_file_waits_for_one(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object) -> int:
        if refusals:
            raise OSError(number, os.strerror(number))
        return os.dup(0)

    refusals, closed = [number] * 200, 0
    monkeypatch.setattr(os, "open", opened)

    def make_room() -> None:
        nonlocal closed
        closed += 1
        refusals.pop()

    async def main(_: VirtualClock) -> None:
        resolver = Resolver((), timeout_s=1.0, system=WithoutFiles(refusals), make_room=make_room)
        (found,) = await resolver.resolve("a.example", 80)  # after 20 s, which no limit counts
        assert found["host"] == "192.0.2.1"
        assert closed == 200

    run_virtual(main)


async def test_name_servers_that_cannot_be_reached_are_no_shortage_of_files() -> None:
    resolver = Resolver((), system=WithoutFiles([0]))
    with pytest.raises(LookUpFailed, match="no name server can be reached"):
        await resolver.resolve("a.example", 80)
