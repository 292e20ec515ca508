"""The rules of robots.txt files in memory: their size, and the reading of large files."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from hashlib import sha256
from typing import Any

import pytest

from crawler.clock import SystemClock
from crawler.engine import rules_cache
from crawler.engine.crawl_policy import RobotsPolicy
from crawler.engine.main_sites import MainSites
from crawler.engine.messages import Question, T
from crawler.engine.parser_pool import PageReader
from crawler.engine.robots_messages import RobotsQuestion
from crawler.engine.rules_cache import RulesCache
from crawler.model import RobotsAction, RobotsCopy
from crawler.robots.response import RobotsSettings
from crawler.robots.text import SMALL_BYTES
from tests.reading import ReaderInProcess
from tests.records import replace


def cache_of(reader: PageReader | None = None, store: Any = None) -> RulesCache:
    """An empty cache."""
    policy, clock = RobotsPolicy(RobotsSettings(), "fig"), SystemClock()
    return RulesCache(policy, None, store, MainSites(store, clock, None), reader or ReaderInProcess())


def copy_of(body: bytes) -> RobotsCopy:
    return RobotsCopy(RobotsAction.PARSE, "200", 0.0, 1.0, body, sha256(body).digest())


def file_of(line: str, lines: int) -> bytes:
    return b"User-agent: *\n" + b"".join((line % n).encode() + b"\n" for n in range(lines))


async def memory_held(files: list[bytes]) -> tuple[int, int]:
    """The bytes that a cache holds after reading ``files``, each of its own site, and the number of sites it has."""
    cache = cache_of()
    copies = [copy_of(body) for body in files]
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for n, copy in enumerate(copies):
        await cache.rules(f"http://a{n}.test", copy)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return after - before, len(cache._rules)


@pytest.mark.parametrize(
    "line",
    ["disallow:/%x", "allow:/*%x*a$", "mobile-agent-server:/%x none", "sitemap:/%x", "disallow:/" + 900 * "a" + "%x"],
)
async def test_the_memory_of_cached_rules_is_bounded(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules_cache, "_RULES_KEPT_BYTES", 1 << 18)
    held, known = await memory_held([file_of(line, 4_250 // (len(line) + 3))] * 12)
    assert held < 1.3 * (1 << 18)
    assert 1 <= known < 12


async def test_many_small_files_are_cached() -> None:
    held, known = await memory_held([file_of("Disallow: /some/path/%d", 20)] * 500)
    assert known == 500
    assert held < rules_cache._RULES_KEPT_BYTES


class Busy(ReaderInProcess):
    """A reader that takes a moment, and notes the sites whose files it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.at_once = self.most_at_once = 0

    async def ask(self, question: Question[T], *, is_alone: bool = False) -> T:
        assert isinstance(question, RobotsQuestion)
        self.asked.append(question.site)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return await super().ask(question)


LARGE = file_of("disallow:/%x", 5_000)


async def test_a_large_file_is_read_by_the_reader_once() -> None:
    reader = Busy()
    cache = cache_of(reader)
    assert len(LARGE) > SMALL_BYTES
    for body in (file_of("disallow:/%x", 10), LARGE):
        for _ in range(2):  # the second time it is known
            rules = await cache.rules("http://a.test", copy_of(body))
            assert rules is not None
            assert not rules.verdict("/1").allowed
            assert rules.verdict("/x").allowed
    assert reader.asked == ["http://a.test"]


async def test_two_large_files_are_read_at_once() -> None:
    reader = Busy()
    cache = cache_of(reader)
    await asyncio.gather(*(cache.rules(f"http://a{n}.test", copy_of(LARGE)) for n in range(9)))
    assert sorted(reader.asked) == [f"http://a{n}.test" for n in range(9)]
    assert reader.most_at_once == 2


async def test_a_large_text_comes_from_the_store_if_the_copy_has_none() -> None:
    class Store:
        async def robots_text(self, sha256: bytes) -> bytes:
            assert sha256 == copy_of(LARGE).sha256
            return LARGE

    cache = cache_of(Busy(), Store())
    rules = await cache.rules("http://a.test", replace(copy_of(LARGE), body=None))
    assert rules is not None
    assert not rules.verdict("/1").allowed
