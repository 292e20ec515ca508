"""A queue that divides a server among the owners of the items that wait for it.

This is self-clocked fair queueing: S. J. Golestani, "A Self-Clocked Fair Queueing Scheme for Broadband Applications",
INFOCOM 1994.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Place(NamedTuple):
    """A place in the queue, which an item keeps when it is put back."""

    tag: float
    number: int


class _Entry(NamedTuple, Generic[T]):
    place: Place
    owner: str
    item: T


class FairQueue(Generic[T]):
    """Items that wait, each with an owner and a cost.

    An item gets a tag when it is added: its cost, added to the tag of the item taken last or to that of its owner's
    last item, whichever is higher. The item with the lowest tag is taken next.

    Invariants:

    1. While an item waits that is its owner's only one, each other owner gets items of the same cost in all, and one
       item more, at most. So cheap items pass expensive ones, and no item waits without end.
    2. Items of one owner are taken in the order in which they were added.
    """

    def __init__(self) -> None:
        self._heap: list[_Entry[T]] = []
        self._numbers = count()
        self._last_tags: dict[str, float] = {}  # by owner, as long as one is higher than self._now
        self._now = 0.0  # the tag of the item taken last

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, owner: str, cost: float, item: T) -> Place:
        """Add an item. ``cost`` is positive, in any unit."""
        tag = cost + max(self._now, self._last_tags.get(owner, 0.0))
        self._last_tags[owner] = tag
        place = Place(tag, next(self._numbers))
        heappush(self._heap, _Entry(place, owner, item))
        return place

    def put_back(self, owner: str, place: Place, item: T) -> None:
        """Add an item again that was taken before, in its old place."""
        heappush(self._heap, _Entry(place, owner, item))

    def peek(self) -> T:
        """The next item. Raises :class:`IndexError` if none waits."""
        return self._heap[0].item

    def pop(self) -> T:
        """Take the next item. Raises :class:`IndexError` if none waits."""
        entry = heappop(self._heap)
        self._now = max(self._now, entry.place.tag)
        if self._last_tags.get(entry.owner, 0.0) <= self._now:
            self._last_tags.pop(entry.owner, None)
        return entry.item

    def take(self, chosen: Callable[[T], bool]) -> Iterable[T]:
        """Take all items that ``chosen`` is true for, in the order of the queue."""
        taken = sorted(entry for entry in self._heap if chosen(entry.item))
        self._heap = [entry for entry in self._heap if not chosen(entry.item)]
        heapify(self._heap)
        self._last_tags = {entry.owner: entry.place.tag for entry in sorted(self._heap)}
        return [entry.item for entry in taken]
