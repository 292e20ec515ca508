"""The memory for large bodies, by its invariants."""

from __future__ import annotations

import asyncio

import pytest

from crawler.engine import body_memory
from crawler.engine.body_memory import BodyMemory
from crawler.model import Purpose, Request

MOST = 100


class Memory(BodyMemory):
    """A memory for which the domains that begin with ``p`` are proven."""

    def __init__(self) -> None:
        super().__init__(lambda domain: domain.startswith("p"), MOST)
        self.admitted: list[str] = []
        self.waits: list[str] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def ask(self, group: str, octets: int, domain: str = "") -> None:
        async def hold() -> None:
            url = f"http://{domain or group}.example/"
            await self.hold(Request(url, Purpose.PAGE, MOST, group=group, body_waits=self.waits.append), octets)
            self.admitted.append(group)

        self._tasks[group] = asyncio.create_task(hold())

    def cancel(self, group: str) -> None:
        self._tasks[group].cancel()

    async def now(self) -> str:
        """The groups whose bodies were admitted since the last call."""
        for _ in range(3):
            await asyncio.sleep(0)
        admitted, self.admitted = " ".join(self.admitted), []
        return admitted


async def test_bodies_that_do_not_fit_wait_in_their_order_until_others_have_been_read() -> None:
    memory = Memory()
    for group in ("u1", "u2", "u3", "u4", "u5"):
        memory.ask(group, 40)
    assert await memory.now() == "u1 u2"
    memory.release("u1")
    assert await memory.now() == "u3"
    memory.shrink("u2", 5)
    assert await memory.now() == "u4"
    memory.release("u2")
    memory.release("u2")
    assert await memory.now() == ""


async def test_proven_domains_have_as_much_as_all_others() -> None:
    memory = Memory()
    for group in ("u1", "u2", "p1", "p2", "p3"):
        memory.ask(group, 60)
    assert await memory.now() == "u1 p1"
    memory.release("u1")
    assert await memory.now() == "u2"


async def test_a_domain_holds_a_quarter_and_the_next_domain_does_not_wait_for_it() -> None:
    memory = Memory()
    for group in ("a1", "a2", "a3"):
        memory.ask(group, 12, "a")
    memory.ask("b", 60)
    assert await memory.now() == "a1 a2 b"
    memory.release("a1")
    assert await memory.now() == "a3"


async def test_one_body_larger_than_all_is_admitted_alone() -> None:
    memory = Memory()
    memory.ask("u1", 10)
    memory.ask("u2", 500)
    memory.ask("u3", 10)
    assert await memory.now() == "u1"
    memory.release("u1")
    assert await memory.now() == "u2"
    memory.release("u2")
    assert await memory.now() == "u3"


async def test_a_body_that_is_not_wanted_any_more_makes_room() -> None:
    memory = Memory()
    for group in ("u1", "u2", "u3"):
        memory.ask(group, 80)
    assert await memory.now() == "u1"
    memory.cancel("u2")
    memory.cancel("u1")  # it was admitted: its caller releases it
    memory.release("u1")
    assert await memory.now() == "u3"


async def test_an_event_costs_few_additions_for_each_body() -> None:
    class Octets(int):
        additions = 0

        def __radd__(self, other: int) -> Octets:
            Octets.additions += 1
            return Octets(int(self) + int(other))

        __add__ = __radd__

    memory = Memory()
    memory.ask("large", MOST)
    for number in range(80):
        memory.ask(f"u{number}", Octets(1))
    assert await memory.now() == "large"
    Octets.additions = 0
    memory.release("large")
    assert len((await memory.now()).split()) == 80
    assert Octets.additions <= 3 * 80


async def test_a_body_that_must_wait_is_told_and_too_many_leave_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_memory, "MOST_WAITING", 2)
    memory = Memory()
    for group in ("u1", "u2"):
        memory.ask(group, 80)
    assert await memory.now() == "u1"
    assert memory.waits == ["u2"]
    assert memory.has_room("other.example")
    memory.ask("u3", 80)
    await memory.now()
    assert not memory.has_room("other.example")
    assert memory.has_room("p.example"), "the other kind has a number of its own"
    memory.release("u1")
    assert await memory.now() == "u2"
    assert not memory.has_room("other.example"), "it has waited, and was not read"
    memory.release("u2")
    assert memory.has_room("other.example")
    memory.release("u3")
    assert memory.has_room("other.example")
