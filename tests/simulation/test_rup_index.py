"""Answers to GetIndex: the cost of robots is bounded, and no other request waits."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from crawler.rup.mail.smtp import SmtpMailer
from crawler.rup.protocol.forms import GetIndex
from crawler.rup.protocol.report import Change, ChangeKind
from crawler.rup.protocol.server import Client, FormAnswer, ServerOffer, answer_index
from crawler.rup.protocol.units import Span
from crawler.rup.server import responder as rup_responder
from crawler.rup.server.own_robots import OwnRobots
from crawler.rup.server.publish import Publisher
from crawler.rup.server.responder import RateLimiter, Responder
from crawler.rup.server.store import RupStore
from crawler.rup.server.tree import Scanned, Tree
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import EPOCH_S, VirtualClock, run_virtual

DAY = GetIndex(Span(1, "day"))


class Made:
    """Counts the answers, and records their threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[threading.Thread] = []
        original = answer_index

        def counted(asked: GetIndex, offer: ServerOffer, changes: Iterable[Change]) -> FormAnswer:
            self.threads.append(threading.current_thread())
            return original(asked, offer, changes)

        monkeypatch.setattr(rup_responder, "answer_index", counted)


async def log(store: RupStore, *paths: str) -> None:
    async with store.transaction():
        await store.keep_scan(Scanned(changes=[Change(ChangeKind.NEW, EPOCH_S, path) for path in paths]), EPOCH_S)


def responder(store: RupStore, folder: Path, clock: VirtualClock, burst: float = 120) -> Responder:
    robots = OwnRobots("http://a.example", folder / "robots.txt", SimulatedWeb(clock, {}), clock)
    offer, mailer = ServerOffer("http://a.example/rup", "http://a.example/"), SmtpMailer("127.0.0.1", 1)
    made = Publisher(store, Tree(folder, "/"), offer, robots, mailer, clock, print, "rup@a.example", 60)
    return Responder(made, RateLimiter(burst=burst))


def test_an_index_is_made_in_a_thread_from_what_the_robot_may_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(monkeypatch)

    async def main(clock: VirtualClock) -> None:
        store = await RupStore.open(tmp_path / "rup.db")
        indexes = responder(store, tmp_path, clock)

        async def told(asked: GetIndex = DAY, agent: str = "indie") -> tuple[set[str], int]:
            answer = await indexes.answer(asked, Client("192.0.2.1", agent))
            return {path for path in ("/a", "/b", "/c") if f" {path}" in answer.html}, len(made.threads)

        (tmp_path / "robots.txt").write_text("User-agent: closed\nDisallow: /b\n")
        await log(store, "/a", "/b")
        assert await told() == ({"/a", "/b"}, 1)
        assert await told(agent="closed") == ({"/a"}, 2)
        await log(store, "/c")
        assert await told() == ({"/a", "/b", "/c"}, 3)
        (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /c\n")
        assert await told() == ({"/a", "/b"}, 4)
        assert await told(GetIndex(Span(31, "day"))) == (set(), 4), "refused before it is made"
        assert threading.main_thread() not in made.threads
        await store.close()

    run_virtual(main)


def test_an_index_of_many_changes_costs_as_many_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch)

    async def main(clock: VirtualClock) -> None:
        store = await RupStore.open(tmp_path / "rup.db")
        indexes = responder(store, tmp_path, clock, burst=10)
        await log(store, *(f"/{number}" for number in range(7000)))
        client = Client("192.0.2.1", "indie")
        assert (await indexes.answer(DAY, client)).status == 200
        refused = await indexes.answer(DAY, client)
        assert (refused.status, refused.retry_after_s) == (429, 3)
        assert len(made.threads) == 1
        assert (await indexes.answer(DAY, Client("192.0.2.2", "indie"))).status == 200
        await clock.sleep(3)
        assert (await indexes.answer(DAY, client)).status == 200
        monkeypatch.setattr(rup_responder, "MAX_INDEX_CHANGES", 6999)
        assert (await indexes.answer(DAY, client)).status == 400
        await store.close()

    run_virtual(main)
