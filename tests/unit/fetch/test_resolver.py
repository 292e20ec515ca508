"""``--resolve`` and the resolver that obeys it."""

import socket

import aiohttp
import pytest

from crawler.fetch.resolver import Resolver, address_for


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
