"""The fair queue: how much the items of other owners may delay an item."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from crawler.engine.fair_queue import FairQueue

#: An owner and a cost to add, or ``None``: take an item.
STEPS = st.lists(st.one_of(st.none(), st.tuples(st.sampled_from("abc"), st.integers(1, 100))), max_size=60)


def drained(queue: FairQueue[str]) -> str:
    found = ""
    while queue:
        found += queue.pop()
    return found


def test_cheap_items_pass_expensive_ones_and_none_waits_without_end() -> None:
    """A server that serves an item in as many seconds as it costs, and a cheap item every second."""
    queue = FairQueue[str]()
    queue.add("large", 10, "L")
    served, now = "", 0
    while "L" not in served:
        queue.add("small", 1, "s")
        served += queue.pop()
        now += 1
        assert now < 100
    assert served == "s" * 9 + "L"


def test_owners_with_items_of_equal_cost_take_turns() -> None:
    queue = FairQueue[str]()
    for item in "aaaabbc":
        queue.add(item, 1, item)
    assert drained(queue) == "abcabaa"


def test_an_item_that_is_put_back_keeps_its_place() -> None:
    queue = FairQueue[str]()
    first = queue.add("a", 2, "1")
    queue.add("a", 2, "2")
    queue.add("b", 3, "3")
    assert queue.pop() == "1"
    queue.put_back("a", first, "1")
    assert drained(queue) == "132"


def test_items_that_are_taken_out_leave_the_others_in_order() -> None:
    queue = FairQueue[str]()
    for item in "aAbBcC":
        queue.add(item.lower(), 1, item)
    assert queue.take(str.isupper) == ["A", "B", "C"]
    queue.add("a", 1, "x")
    assert drained(queue) == "abcx"


@given(STEPS)
def test_while_an_item_waits_each_other_owner_gets_as_much_and_one_item_more(
    steps: list[tuple[str, int] | None],
) -> None:
    queue = FairQueue[tuple[str, int, int]]()
    waiting: dict[str, int] = defaultdict(int)  # items by owner
    #: By the number of an item that was its owner's only one: the costs of what other owners got since.
    since: dict[int, dict[str, list[int]]] = {}
    last: dict[str, int] = {}
    for number, step in enumerate([*steps, *[None] * len(steps)]):
        if step is not None:
            owner, cost = step
            if not waiting[owner]:
                since[number] = defaultdict(list)
            waiting[owner] += 1
            queue.add(owner, cost, (owner, cost, number))
        elif queue:
            owner, cost, taken = queue.pop()
            assert taken > last.get(owner, -1), "the items of one owner keep their order"
            last[owner] = taken
            waiting[owner] -= 1
            for got in since.pop(taken, {}).values():
                assert sum(got[1:]) <= cost
            for others in since.values():
                others[owner].append(cost)
