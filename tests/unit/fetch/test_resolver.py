"""``--resolve`` and the resolver that obeys it."""

import asyncio
import socket

import aiohttp
import pytest
from aiohttp.abc import ResolveResult

from crawler.fetch.resolver import Resolver, address_for
from tests.virtual_time import EPOCH_S, VirtualClock, run_virtual


def test_the_first_matching_override_counts() -> None:
    overrides = (("a.test", "127.0.0.1"), ("*.test", "127.0.0.2"))
    assert address_for("a.test", overrides) == "127.0.0.1"
    assert address_for("B.A.test.", overrides) == "127.0.0.2"
    assert address_for("test", overrides) is None
    assert address_for("atest", overrides) is None
    assert address_for("anything.at.all", (("*", "::1"),)) == "::1"


async def test_an_override_answers_without_the_system() -> None:
    resolver = Resolver((("v6.example", "::1"),))
    try:
        (found,) = await resolver.resolve("v6.example", 8080)
        assert (found["hostname"], found["host"], found["port"]) == ("v6.example", "::1", 8080)
        assert found["family"] == socket.AF_INET6
    finally:
        await resolver.close()


async def test_other_names_go_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class System:
        async def resolve(self, host: str, port: int, family: int) -> list[object]:
            asked.append((host, port))
            if host == "long.example":
                raise UnicodeError("label too long")
            return []

        async def close(self) -> None:
            asked.append(("closed", 0))

    monkeypatch.setattr(aiohttp, "DefaultResolver", System)
    resolver = Resolver((("*.test", "127.0.0.1"),))
    await resolver.resolve("other.example", 80)
    with pytest.raises(OSError, match="not a name"):
        await resolver.resolve("long.example", 80)
    await resolver.close()
    assert asked == [("other.example", 0), ("long.example", 0), ("closed", 0)]


async def test_the_system_knows_localhost() -> None:
    resolver = Resolver(())
    try:
        assert "127.0.0.1" in {found["host"] for found in await resolver.resolve("localhost", 80)}
    finally:
        await resolver.close()


async def test_what_the_system_found_is_kept_and_the_first_address_is_the_one_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    class System:
        async def resolve(self, host: str, port: int, family: int) -> list[ResolveResult]:
            asked.append(host)
            await asyncio.sleep(0)
            if host == "dead.example":
                raise OSError(None, "Domain name not found")
            return [result(host, address) for address in ("192.0.2.1", "2001:db8::1")]

        async def close(self) -> None:
            """Nothing to close."""

    monkeypatch.setattr(aiohttp, "DefaultResolver", System)
    resolver = Resolver((("*.test", "127.0.0.1"),))
    assert resolver.cached("a.example") is None
    assert await asyncio.gather(*(resolver.look_up("a.example") for _ in range(3))) == ["192.0.2.1"] * 3
    assert resolver.cached("a.example") == "192.0.2.1"
    assert [(found["host"], found["port"]) for found in await resolver.resolve("a.example", 81)] == [
        ("192.0.2.1", 81),
        ("2001:db8::1", 81),
    ]
    resolver.prefer("a.example", "2001:db8::1")
    assert resolver.cached("a.example") == "2001:db8::1"
    assert await resolver.look_up("dead.example") == ""
    with pytest.raises(OSError, match="not found"):
        await resolver.resolve("dead.example", 80)
    assert asked == ["a.example", "dead.example"], "one look-up each"
    assert (resolver.cached("b.test"), resolver.cached("192.0.2.9")) == ("", "192.0.2.9")
    names = ("a.example", "dead.example", "b.test", "192.0.2.9")
    assert [resolver.is_limited(name) for name in names] == [True, True, False, True]
    await resolver.close()


def test_a_look_up_without_an_answer_fails_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        async def resolve(self, host: str, port: int, family: int) -> list[ResolveResult]:
            await asyncio.sleep(1000.0)
            return [result(host, "192.0.2.1")]

        async def close(self) -> None:
            """Nothing to close."""

    async def main(clock: VirtualClock) -> None:
        resolver = Resolver((), timeout_s=120.0)
        assert await resolver.look_up("silent.example") == ""
        assert clock.now() - EPOCH_S == 120.0
        with pytest.raises(OSError, match="no answer to the look-up within 120 s"):
            await resolver.resolve("silent.example", 80)
        await resolver.close()

    monkeypatch.setattr(aiohttp, "DefaultResolver", Silent)
    run_virtual(main)


def result(host: str, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=0, family=family, proto=0, flags=socket.AI_NUMERICHOST)
