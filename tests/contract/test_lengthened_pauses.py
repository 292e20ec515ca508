"""Pauses that another process has learned, and that the store did not know."""

from __future__ import annotations

from tests.contract.visits import Harness


async def test_a_group_is_asked_no_sooner_than_a_time(harness: Harness) -> None:
    store = harness.store
    await store.lengthen_pauses({"a.test": 50.0, "new.test": 70.0}, None)
    await store.lengthen_pauses({"a.test": 40.0}, None)
    assert (await store.group_pace("a.test")).next_at == 50.0
    assert (await store.group_pace("new.test")).next_at == 70.0


async def test_every_group_has_its_pause_after_a_request_that_may_have_ended_then(harness: Harness) -> None:
    store = harness.store
    await store.lengthen_pauses({"a.test": 50.0}, None)
    await store.lengthen_pauses({}, 1_000.0)
    pace = await store.group_pace("a.test")
    assert pace.next_at == 1_000.0 + pace.pause_s
