"""The rules of robots.txt files in the cache: their memory, and the thread that reads large files."""

from __future__ import annotations

import asyncio
import gc
import threading
import tracemalloc
from hashlib import sha256

import pytest

from crawler.clock import Clock, SystemClock
from crawler.engine import robots_cache as robots
from crawler.engine.robots_cache import RobotsCache, RobotsNeeds
from crawler.frontier.politeness import GroupBy
from crawler.model import RobotsAction, RobotsCopy
from crawler.robots import RobotsSettings, SiteRules, read


class Restless(SystemClock):
    """A clock that notes how long it should sleep, and does not."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def keeper(clock: Clock | None = None) -> RobotsCache:
    """A cache that only reads files."""
    needs = RobotsNeeds(RobotsSettings(), "fig", GroupBy.HOST, lambda _: False)
    return RobotsCache(needs, None, None, clock or Restless(), None, None, None)


def copy_of(body: bytes) -> RobotsCopy:
    return RobotsCopy(RobotsAction.PARSE, "200", 0.0, 1.0, body, sha256(body).digest())


def file_of(line: str, lines: int) -> bytes:
    return b"User-agent: *\n" + b"".join((line % n).encode() + b"\n" for n in range(lines))


async def memory_held(files: list[bytes]) -> tuple[int, int]:
    """The bytes that a cache holds after reading ``files``, each of its own site, and the number of sites it has."""
    keeping = keeper()
    copies = [copy_of(body) for body in files]
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for n, copy in enumerate(copies):
        await keeping.rules(f"http://a{n}.test", copy)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return after - before, len(keeping._rules)


@pytest.mark.parametrize(
    "line",
    ["disallow:/%x", "allow:/*%x*a$", "mobile-agent-server:/%x none", "sitemap:/%x", "disallow:/" + 900 * "a" + "%x"],
)
async def test_the_memory_of_cached_rules_is_bounded(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robots, "_RULES_KEPT_BYTES", 3 << 20)
    held, known = await memory_held([file_of(line, 50_000 // (len(line) + 3))] * 12)
    assert held < 1.3 * (3 << 20)
    assert 1 <= known < 12


async def test_many_small_files_are_cached() -> None:
    held, known = await memory_held([file_of("Disallow: /some/path/%d", 20)] * 500)
    assert known == 500
    assert held < robots._RULES_KEPT_BYTES


async def test_a_large_file_is_read_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[bool] = []

    def noting(*args: object, **asked: object) -> SiteRules:
        readers.append(threading.current_thread() is threading.main_thread())
        return read(*args, **asked)  # type: ignore[arg-type]

    monkeypatch.setattr(robots, "read", noting)
    keeping = keeper()
    for body in (file_of("disallow:/%x", 10), file_of("disallow:/%x", 30_000)):
        for _ in range(2):  # the second time it is known
            rules = await keeping.rules("http://a.test", copy_of(body))
            assert rules is not None
            assert not rules.verdict("/1").allowed
    assert readers == [True, False]


async def test_large_files_are_read_in_a_tenth_of_the_time() -> None:
    clock = Restless()
    keeping, body = keeper(clock), file_of("disallow:/%x", 30_000)
    loop = asyncio.get_running_loop()
    await keeping.rules("http://a.test", copy_of(body))
    began_at, expected = loop.time(), keeping._reads_large_at
    await keeping.rules("http://b.test", copy_of(body))
    assert clock.slept[0] == 0.0
    assert 0 <= expected - began_at - clock.slept[1] < 1.0
    assert clock.slept[1] > 0, "the other file waits nine times as long as the first one took"
    keeping._reads_large_at = 0.0
    await asyncio.gather(*(keeping.rules("http://c.test", copy_of(body)) for _ in range(3)))
    assert len(clock.slept) == 3, "all three get what one has read"


def test_a_site_is_a_main_site_while_it_has_a_mirror() -> None:
    mains = robots._MainSites()
    for mirror, main_site in (("a", "x"), ("b", "x"), ("b", "y"), ("c", "y")):
        mains.put(mirror, main_site)
    assert [site for site in "abcxy" if mains.is_main(site)] == ["x", "y"]
    mains.drop("a")
    mains.drop("nobody")
    assert [site for site in "abcxy" if mains.is_main(site)] == ["y"]
    assert dict(mains.items()) == {"b": "y", "c": "y"}
