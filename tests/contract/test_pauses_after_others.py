"""Pauses that another process has learned, and that the store did not know."""

from __future__ import annotations

from tests.contract.visits import Harness


async def test_every_group_has_its_longest_pause_after_a_request_that_may_have_ended_then(harness: Harness) -> None:
    store = harness.store
    await store.pause_after(1_000.0, {"a.test": 70.0, "new.test": 50.0})
    assert (await store.group_pace("new.test")).next_at == 1_050.0
    await store.pause_after(2_000.0, {"a.test": 30.0})
    assert [(await store.group_pace(name)).next_at for name in ("a.test", "new.test")] == [2_070.0, 2_050.0]
    await store.pause_after(1_000.0, {})
    assert (await store.group_pace("a.test")).next_at == 2_070.0
