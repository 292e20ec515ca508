"""Receives the offers of the other parts of a crawl, and finds out when all parts are done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from crawler.clock import Clock, brief_time
from crawler.errors import CrawlerError, StoreError
from crawler.formatting import duration
from crawler.frontier.parts import PartState, is_quiet
from crawler.model import RobotsCopy

if TYPE_CHECKING:
    from crawler.store.sections import Store

_ASKED_EVERY_S = 1.0
_AT_ONCE = 2_000  # offers in one transaction
_REPORTED_AFTER_S = 10.0  # the commands of all parts are begun one after the other


class OtherPart:
    """The store of another part, opened when it is needed, and opened again after an error.

    ``tell`` gets a sentence when it cannot be reached, and when it is back.
    """

    def __init__(
        self,
        number: int,
        name: str,
        open_store: Callable[[], Awaitable[Store]],
        clock: Clock,
        tell: Callable[[str], None],
    ) -> None:
        self.number = number
        self.name = name
        self._open_store = open_store
        self._clock = clock
        self._tell = tell
        self._store: Store | None = None
        self._away_since: float | None = None
        self._is_reported = False
        self._mutex = asyncio.Lock()

    @asynccontextmanager
    async def asked(self) -> AsyncIterator[Store]:
        """Lend the store to one task at a time. An error of the store in the context becomes :class:`PartAway`."""
        async with self._mutex:
            try:
                if self._store is None:
                    self._store = await self._open_store()
                yield self._store
            except CrawlerError as error:
                await self.close()
                self._note_away()
                raise PartAway(str(error)) from error
            self._away_since = None
            if self._is_reported:
                self._is_reported = False
                self._tell(f"{self.name}: this part of the crawl answers")

    def _note_away(self) -> None:
        now = self._clock.now()
        self._away_since = self._away_since or now
        if not self._is_reported and now - self._away_since >= _REPORTED_AFTER_S:
            self._is_reported = True
            self._tell(f"{self.name}: this part of the crawl does not answer; offers to it and from it wait")

    def away_s(self) -> float:
        """For how many seconds it has not been reached; 0 if the last attempt succeeded."""
        return 0.0 if self._away_since is None else self._clock.now() - self._away_since

    def tell_awaited(self, until: float) -> None:
        """Tell that the crawl waits for this part, which shows no sign of life, ``until`` then (in epoch seconds)."""
        when = brief_time(until, self._clock.now())
        self._tell(
            f"{self.name}: the crawl has nothing else to do, and waits for this part, which shows no sign of life, "
            f"until {when} (workers.patience)"
        )

    async def close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            with suppress(CrawlerError):
                await store.close()


class PartAway(StoreError):
    """The store of another part cannot be reached, or does not exist yet."""


class PartExchange:
    """The exchange of this part with the others. It asks one of them at a time.

    Each part receives the offers to it from the stores of the others: it stores them, and then deletes them there. A
    process that is killed in between stores them again, without effect.

    ``limits`` are the greatest depth and the most pages of a site. :meth:`may_bring_work` waits ``patience_s`` for a
    part that shows no sign of life.
    """

    def __init__(
        self,
        store: Store,
        own: int,
        others: Sequence[OtherPart],
        clock: Clock,
        limits: tuple[int | None, int | None],
        patience_s: float,
    ) -> None:
        self._store = store
        self._own = own
        self._others = others
        self._clock = clock
        self._limits = limits
        self._patience_s = patience_s
        self._quiet: list[int] | None = None  # offers that each part had received in the last round, if it was quiet
        self._seen: dict[int, tuple[PartState | None, float]] = {}  # the last state of each part, and its first time
        self._reported_at: dict[
            int, float
        ] = {}  # the first time of the state of each part when its silence was reported

    async def keep_receiving(self, wake: Callable[[], None]) -> None:
        """Receive offers until cancelled. ``wake`` is called after each transaction."""
        while True:
            for other in self._others:
                with suppress(PartAway):
                    while count := await self._receive(other):
                        wake()
                        if count < _AT_ONCE:
                            break
            await self._clock.sleep(_ASKED_EVERY_S)

    async def _receive(self, other: OtherPart) -> int:
        """Receive some offers of another part; returns how many."""
        async with other.asked() as theirs:
            rows = await theirs.outgoing(self._own, _AT_ONCE)
        if rows:
            await self._store.receive_offers(other.number, [row.offer for row in rows], *self._limits)
            async with other.asked() as theirs:
                await theirs.delete_outgoing(self._own, [row.id for row in rows])
        return len(rows)

    async def robots_of(self, site: str) -> RobotsCopy | None:
        """The robots copy of a site of another part, with its text, from the store of that part.

        ``None`` if there is none, for a site of this part, and if that part has not answered for ``patience_s``: a
        part that never begins must not stop the others.
        """
        number = None if self._store.parts is None else self._store.parts.other_of(site)
        for other in self._others:
            if other.number == number:
                return await self._robots_at(other, site)
        return None

    async def _robots_at(self, other: OtherPart, site: str) -> RobotsCopy | None:
        while True:
            with suppress(PartAway):
                async with other.asked() as theirs:
                    known = await theirs.site(site)
                    copy = None if known is None else known.copy
                    if copy is None or copy.body is not None:
                        return copy
                    return replace(copy, body=await theirs.robots_text(copy.sha256))
            if other.away_s() >= self._patience_s:
                return None
            await self._clock.sleep(_ASKED_EVERY_S)

    async def may_bring_work(self) -> bool:
        """Whether another part may still offer a URL to this one. ``False`` takes two rounds in a row that found none.

        Raises :class:`StoreError` if a part has work, or offers wait for it, and it has shown no sign of life for
        ``patience_s``.
        """
        states = {self._own: await self._store.part_state()}
        for other in self._others:
            state: PartState | None = None
            with suppress(PartAway):
                async with other.asked() as theirs:
                    state = await theirs.part_state()
            self._note(other.number, state)
            if state is not None:
                states[other.number] = state
        quiet = None
        if len(states) > len(self._others) and is_quiet(states):
            quiet = [state.received for state in states.values()]
        is_over = quiet is not None and quiet == self._quiet
        self._quiet = quiet
        if quiet is None:
            self._require_life(states)
        return not is_over

    def _note(self, number: int, state: PartState | None) -> None:
        if number not in self._seen or self._seen[number][0] != state:
            self._seen[number] = state, self._clock.now()

    def _require_life(self, states: Mapping[int, PartState]) -> None:
        """Raise :class:`StoreError` if the crawl has waited for a part for too long."""
        for other in self._others:
            state, since = self._seen[other.number]
            is_idle = state is not None and state.has_begun and (state.has_ended or not state.has_work)
            is_awaited = not is_idle or any(other.number in one.offers_to for one in states.values())
            if not is_awaited:
                continue
            silent_s = self._clock.now() - since
            if silent_s >= _REPORTED_AFTER_S and self._reported_at.get(other.number) != since:
                self._reported_at[other.number] = since
                other.tell_awaited(since + self._patience_s)
            if silent_s >= self._patience_s:
                raise StoreError(
                    f"{other.name}: this part of the crawl has shown no sign of life for {duration(self._patience_s)}, "
                    "and the crawl waits for it no longer; what was committed is kept, run the same command again when "
                    "that part is at work"
                )

    async def close(self) -> None:
        for other in self._others:
            await other.close()
