"""Revisits in the SQLite store: what is due, what a visit leaves, pages' versions, hints. In transactions only."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from crawler.frontier.decide import Outcome
from crawler.frontier.hints import ASKED_FOR, Heeded, Hint, HintKind, Refusal, folder_of, usable, with_folders
from crawler.frontier.offers import Offer
from crawler.frontier.revisit import (
    BACK,
    DUE_CHANCE,
    TEMPO,
    Again,
    Choice,
    Found,
    Habits,
    RevisitSettings,
    Seen,
    allowance,
    expected,
    hint_trust,
    pay,
)
from crawler.model import Kind, State
from crawler.page.directives import asked_of
from crawler.reasons import ReasonCode, StoredReason
from crawler.store.keys import site_of
from crawler.store.sql.offers import Offers
from crawler.store.sqlite.connection import Database, every, one

_ROWS_AT_ONCE = 5000
_ALL_SITES = 0
_HINTED_DEPTH = 1  # of a URL that is new by a hint: as near as if a seed linked to it


def seen_from(row: list[Any] | None) -> Seen | None:
    """What ``claimed_sites`` tells of a URL that was visited before."""
    if row is None:
        return None
    state, code, reason, checked_at, changes, watched_s, failures, hint, version, status, etag, last_modified = row[:12]
    content, text, noindex, nofollow, directives = row[12:]
    asked = asked_of(directives)
    return Seen(
        state=State(state or State.FETCHED),
        reason=StoredReason(ReasonCode(code or ReasonCode.FETCHED), reason or ""),
        checked_at=checked_at,
        habits=Habits(changes, watched_s),
        failures=failures,
        hint=hint,
        version=version,
        status=status,
        etag=etag,
        last_modified=last_modified,
        content=content or None,
        text=text or None,
        noindex=bool(noindex),
        nofollow=bool(nofollow),
        noarchive=not asked.archive,
        until=asked.until,
    )


class Revisits:
    """The revisits of one store, for its one writer."""

    def __init__(self, db: Database, queries: Mapping[str, str], offers: Offers) -> None:
        self._db = db
        self._sql = queries
        self._offers = offers

    # --- planning -----------------------------------------------------------------------------

    async def take_up(self, settings: RevisitSettings, now: float) -> None:
        """Put what was visited without ``--revisit`` on the list."""
        first = (settings.first_s, expected(settings.first_s).watched_s)
        terms = (*first, TEMPO["STATIC"], TEMPO["DYNAMIC"], settings.min_interval_s)
        await self._db.execute(self._sql["take_up_pages"], terms)
        await self._db.execute(self._sql["take_up_others"], (*terms, now))

    async def queue_due(self, settings: RevisitSettings, now: float, since: float, *, hinted_only: bool) -> list[int]:
        """Queue what is due and was not visited ``since`` then, as far as the budget goes; the numbers."""
        paid = dict(await every(self._db, self._sql["budgets"]))

        def left(site: int, per_day: int | None) -> int | None:
            return None if per_day is None else allowance(paid.get(site, 0.0), per_day, now)

        choice = Choice(left(_ALL_SITES, settings.per_day), lambda site: left(site, settings.per_site))
        terms = (now, since + settings.min_interval_s, hinted_only, now - settings.max_interval_s)
        async for number, changes, watched_s, checked_at, hinted, tried, right in self._due(terms):
            chance = Habits(changes, watched_s).chance(now - checked_at)
            if hinted:
                chance = max(chance, hint_trust(tried or 0, right or 0))
            choice.offer(site_of(number), number, chance)
        chosen = choice.chosen()
        for start in range(0, len(chosen), _ROWS_AT_ONCE):
            await self._queue(chosen[start : start + _ROWS_AT_ONCE])
        await self._pay(chosen, paid, settings, now)
        return chosen

    async def _due(self, terms: tuple[object, ...]) -> AsyncIterator[Any]:
        async with await self._db.execute(self._sql["due_revisits"], terms) as cursor:
            while rows := await cursor.fetchmany(_ROWS_AT_ONCE):
                for row in rows:
                    yield row

    async def _queue(self, numbers: list[int]) -> None:
        await self._db.execute(self._sql["note_states"], (json.dumps(numbers),))
        rows = [(number,) for number in numbers]
        sentences = (ReasonCode.REVISIT_DUE.sentence, ReasonCode.REVISIT_HINTED.sentence)
        await self._db.execute(self._sql["queue_again"], (json.dumps(list(numbers)), *sentences))
        await self._db.executemany(self._sql["enqueue"], rows)

    async def _pay(self, chosen: list[int], paid: Mapping[int, float], settings: RevisitSettings, now: float) -> None:
        spent: dict[int, int] = {}
        if settings.per_site is not None:
            for number in chosen:
                spent[site_of(number)] = spent.get(site_of(number), 0) + 1
        bills = [(site, n, settings.per_site) for site, n in spent.items()] + [
            (_ALL_SITES, len(chosen), settings.per_day)
        ]
        rows = [(site, pay(paid.get(site, 0.0), n, per_day, now)) for site, n, per_day in bills if n and per_day]
        await self._db.executemany(self._sql["pay"], rows)

    # --- what a visit leaves ------------------------------------------------------------------

    async def end(self, outcomes: Sequence[Outcome]) -> None:
        """Write what revisits leave beside the page. To be called before the new versions are written."""
        pairs = [(o, o.again) for o in outcomes if o.again is not None]
        right = [(a.hint_was_right, o.queued.id) for o, a in pairs if a.hint_was_right is not None]
        await self._db.executemany(self._sql["record_hint"], right)
        await self._db.executemany(self._sql["end_revisit"], [_row(o, a) for o, a in pairs])
        await self._db.executemany(
            self._sql["back_to"],
            [(o.state, o.reason.code, o.reason.sentence, o.queued.id) for o, a in pairs if a.found in BACK],
        )
        seen = [(a.checked_at, a.etag, a.last_modified, o.queued.id) for o, a in pairs if a.found is Found.UNCHANGED]
        await self._db.executemany(self._sql["page_seen"], seen)
        gone = [(a.checked_at, o.queued.id) for o, a in pairs if a.found is Found.GONE]
        await self._db.executemany(self._sql["page_gone"], gone)
        unclear = [(o.queued.id,) for o, a in pairs if a.found is Found.UNCLEAR]
        await self._db.executemany(self._sql["ask_whole"], unclear)
        await self._keep_versions([o for o, a in pairs if o.page is not None])

    async def _keep_versions(self, changed: list[Outcome]) -> None:
        """Put away what these pages were; of those that say NOINDEX by now, nothing stays of what they said before."""
        numbers = [(o.queued.id,) for o in changed]
        await self._db.executemany(self._sql["keep_version"], numbers)
        await self._db.executemany(self._sql["drop_links"], numbers)
        closed = [(o.queued.id,) for o in changed if o.page is not None and not o.page.facts.index]
        await self._db.executemany(self._sql["bodies_of"], closed)
        await self._db.executemany(self._sql["blank_versions"], closed)

    async def sweep(self) -> None:
        """Delete the bodies that nothing names any more since their page said NOINDEX."""
        if await one(self._db, "SELECT 1 FROM body_to_drop LIMIT 1"):
            await self._db.execute(self._sql["sweep_bodies"])
            await self._db.execute("DELETE FROM body_to_drop")

    # --- hints --------------------------------------------------------------------------------

    async def take_hints(
        self, hints: Iterable[Hint], now: float, refusal: Refusal | None = None, most_new: int | None = None
    ) -> tuple[Heeded, set[int]]:
        """Bring visits forward, and, where ``refusal`` says what the scope leaves out, take up URLs that are new:
        ``most_new`` of them, ``None`` for all.

        Returns what came of it, and the groups that have got new work.
        """
        latest, touched = usable(hints, now), set[int]()
        known = await self._offers.numbers([hint.url for hint in latest])
        latest, folders = await self._with_folders(latest, known)
        known |= folders
        new = over = 0
        if refusal is not None:
            fresh = [hint.url for hint in latest if hint.url not in known and hint.kind is not HintKind.GONE]
            offers = {url: (Offer(url, _HINTED_DEPTH, refusal(url, _HINTED_DEPTH)), None) for url in fresh}
            wanted = [(url, offer) for url, offer in offers.items() if offer[0].refusal is None]
            admitted = dict(wanted[:most_new])
            new, over, touched = (
                len(admitted),
                len(wanted) - len(admitted),
                (await self._offers.take(admitted, None))[1],
            )
        asked = [hint for hint in latest if hint.source in ASKED_FOR and hint.kind is not HintKind.GONE]
        told = [known[hint.url] for hint in asked if hint.url in known]
        failed = [row[0] for row in await every(self._db, self._sql["failed_for_good"], (json.dumps(told),))]
        await self._db.executemany(self._sql["requeue"], [(n,) for n in failed])
        await self._db.executemany(self._sql["enqueue"], [(n,) for n in failed])
        touched |= await self._offers.groups(failed)
        new += len(failed)
        moved = await self._move([(known[hint.url], hint) for hint in latest if hint.url in known], now)
        return Heeded(moved, new, len(latest) - moved - new - over, over), touched

    async def _with_folders(self, hints: list[Hint], known: Mapping[str, int]) -> tuple[list[Hint], dict[str, int]]:
        """The hints of those who were asked to tell name folders, too; with the numbers of these."""
        asked = [hint for hint in hints if hint.source in ASKED_FOR]
        named = {folder for hint in asked if (folder := folder_of(hint.url)) is not None}
        folders = await self._offers.numbers(list(named))
        left_out = {
            row[0] for row in await every(self._db, self._sql["excluded_of"], (json.dumps([*folders.values()]),))
        }
        folders = {url: number for url, number in folders.items() if number not in left_out}
        others = [hint for hint in hints if hint.source not in ASKED_FOR]
        return others + with_folders(asked, known.keys() | folders.keys()), folders

    async def _move(self, hints: list[tuple[int, Hint]], now: float) -> int:
        sites = json.dumps(list({site_of(number) for number, _ in hints}))
        records = {
            (site, source): hint_trust(tried, right)
            for site, source, tried, right in await every(self._db, self._sql["hint_records"], (sites,))
        }
        moved = 0
        for number, hint in hints:
            trust = records.get((site_of(number), hint.source), hint_trust(0, 0))
            asked = hint.source in ASKED_FOR
            counts = asked or trust >= DUE_CHANCE
            taken = await one(self._db, self._sql["take_hint"], (hint.source, hint.at, counts, now, number, asked))
            moved += counts and taken is not None
        return moved


def _row(outcome: Outcome, again: Again) -> tuple[Any, ...]:
    habits = again.habits
    sitemap = outcome.queued.kind is Kind.SITEMAP
    return (
        again.next.due_at, again.next.not_before, again.checked_at, habits.changes, habits.watched_s, again.failures,
        again.next.why, again.etag if sitemap else None, again.last_modified if sitemap else None,
        None if again.content is None else bytes.fromhex(again.content), outcome.queued.id,
    )  # fmt: skip
