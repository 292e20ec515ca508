"""Revisits: the URLs that are due, the results of a revisit, the versions of pages, and hints.

Every method of :class:`RevisitRows` must be called within a transaction.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crawler.frontier.hints import ASKED_FOR, Hint, HintCounts, HintKind, Refusal, folder_of, usable, with_folders
from crawler.frontier.offers import Offer
from crawler.frontier.revisit import (
    BACK,
    DUE_CHANCE,
    TEMPO,
    Choice,
    Habits,
    RevisitRecord,
    RevisitSettings,
    Seen,
    VisitResult,
    allowance,
    expected,
    hint_trust,
    pay,
)
from crawler.model import Kind, State
from crawler.page.directives import asked_of
from crawler.reasons import Reason, ReasonCode, StoredReason
from crawler.store.keys import site_of
from crawler.store.retrying import retrying
from crawler.store.sql.contents import set_id
from crawler.store.sql.offers import FoundOffer, Offers
from crawler.store.sql.section import StoreSection, are_idle, in_transaction
from crawler.store.sql.tables import StoreStatements

if TYPE_CHECKING:
    from crawler.frontier.decide import Outcome

_ROWS_AT_ONCE = 5000
_ALL_SITES = 0
#: The values of a visit that have the names of its fields.
_OF_SEEN = ("target", "checked_at", "failures", "hint", "version", "status", "etag", "last_modified")
_HINTED_DEPTH = 1  # of a URL that only a hint names: as if a seed linked to it


def seen_from(row: dict[str, Any] | None) -> Seen | None:
    """The last visit to a URL, from a row of ``claimed_sites``; ``None`` if there was none."""
    if row is None:
        return None
    asked = asked_of(row["directives"])
    return Seen(
        state=State(row["state"] or State.FETCHED),
        reason=StoredReason(ReasonCode(row["reason_code"] or ReasonCode.FETCHED), row["reason"] or ""),
        habits=Habits(row["changes"], row["watched_s"]),
        **{name: row[name] for name in _OF_SEEN},
        content=row["content"] or None,
        text=row["text"] or None,
        noindex=bool(row["noindex"]),
        nofollow=bool(row["nofollow"]),
        noarchive=not asked.archive,
        until=asked.until,
        snippet_chars=asked.snippet_chars,
    )


class RevisitRows:
    """The revisits of a store, for one of its writers."""

    def __init__(self, sql: StoreStatements, offers: Offers) -> None:
        self._sql = sql
        self._offers = offers

    # --- planning -----------------------------------------------------------------------------

    async def add_visited(self, settings: RevisitSettings, now: float, numbers: Collection[int] | None = None) -> None:
        """Add the URLs that were visited by runs without ``--revisit``; with ``numbers`` only these."""
        terms = {
            "first_s": settings.first_s,
            "watched_s": expected(settings.first_s).watched_s,
            "static_tempo": TEMPO["STATIC"],
            "dynamic_tempo": TEMPO["DYNAMIC"],
            "min_interval_s": settings.min_interval_s,
        }
        if numbers is None:
            await self._sql.execute("add_visited_pages", **terms)
            await self._sql.execute("add_visited_others", now=now, **terms)
            return
        only = json.dumps(list(numbers))
        await self._sql.execute("add_visited_pages_of", numbers=only, **terms)
        await self._sql.execute("add_visited_others_of", numbers=only, now=now, **terms)

    async def queue_due(self, settings: RevisitSettings, now: float, since: float, *, hinted_only: bool) -> list[int]:
        """Queue the URLs that are due and not visited since ``since``, within the budget; returns their numbers."""
        paid = {row.site_id: row.paid_until for row in await self._sql.fetch("budgets")}

        def left(site: int, per_day: int | None) -> int | None:
            return None if per_day is None else allowance(paid.get(site, 0.0), per_day, now)

        choice = Choice(left(_ALL_SITES, settings.per_day), lambda site: left(site, settings.per_site))
        terms = {
            "now": now,
            "not_before": since + settings.min_interval_s,
            "hinted_only": hinted_only,
            "all_due_before": now - settings.max_interval_s,
        }
        for row in await self._sql.each("due_revisits", **terms):
            chance = Habits(row.changes, row.watched_s).chance(now - row.checked_at)
            if row.is_hinted:
                chance = max(chance, hint_trust(row.tried or 0, row.changed or 0))
            choice.offer(site_of(row.url_id), row.url_id, chance)
        chosen = choice.chosen()
        for start in range(0, len(chosen), _ROWS_AT_ONCE):
            await self._queue(chosen[start : start + _ROWS_AT_ONCE])
        await self._pay(chosen, paid, settings, now)
        return chosen

    async def _queue(self, numbers: list[int]) -> None:
        await self._sql.execute("note_states", numbers=json.dumps(numbers))
        by_source: defaultdict[str | None, list[int]] = defaultdict(list)
        for row in await self._sql.fetch("hint_sources", numbers=json.dumps(numbers)):
            by_source[row.hint].append(row.url_id)
        for source, found in by_source.items():
            reason = Reason(ReasonCode.REVISIT_DUE) if source is None else Reason(ReasonCode.REVISIT_HINTED, source)
            terms = {"reason_code": reason.code, "reason": reason.sentence}
            await self._sql.execute("queue_revisit", numbers=json.dumps(found), **terms)
        await self._offers.enqueue(numbers)

    async def _pay(self, chosen: list[int], paid: Mapping[int, float], settings: RevisitSettings, now: float) -> None:
        spent: dict[int, int] = {}
        if settings.per_site is not None:
            for number in chosen:
                spent[site_of(number)] = spent.get(site_of(number), 0) + 1
        bills = [(site, n, settings.per_site) for site, n in spent.items()]
        bills.append((_ALL_SITES, len(chosen), settings.per_day))
        rows = [
            {"site_id": site, "paid_until": pay(paid.get(site, 0.0), n, per_day, now)}
            for site, n, per_day in bills
            if n and per_day
        ]
        await self._sql.insert("revisit_budget", rows, known="replaced")

    # --- the results of visits ----------------------------------------------------------------

    async def end(self, outcomes: Sequence[Outcome]) -> None:
        """Write the results of revisits beside the page. Must be called before the new versions are written."""
        pairs = [(o.queued, o, o.revisit) for o in outcomes if o.revisit is not None]
        await self._sql.execute_many(
            "record_hint",
            [{"was_right": a.hint_was_right, "id": q.id} for q, _, a in pairs if a.hint_was_right is not None],
        )
        await self._sql.execute_many("end_revisit", [_end_row(o, a) for _, o, a in pairs])
        as_before = [(q.id, o.state, o.reason) for q, o, a in pairs if a.found in BACK]  # and with the same target
        await self._sql.update(
            "url",
            [
                {
                    "id": number,
                    "state": state,
                    "reason_code": reason.code,
                    "reason": reason.sentence,
                    "attempts": 0,
                    "due_at": 0.0,
                }
                for number, state, reason in as_before
            ],
        )
        await self._sql.execute_many(
            "page_seen",
            [
                {
                    "seen_at": a.checked_at,
                    "etag": a.etag,
                    "last_modified": a.last_modified,
                    "id": q.id,
                    "keeps_preferences": int(o.own_preferences is None),
                    "preferences_id": set_id(o.own_preferences),
                    "robots_preferences_id": set_id(o.robots_preferences),
                }
                for q, o, a in pairs
                if a.found is VisitResult.UNCHANGED
            ],
        )
        await self._sql.execute_many(
            "page_gone", [{"gone_at": a.checked_at, "id": q.id} for q, _, a in pairs if a.found is VisitResult.GONE]
        )
        unclear = [q.id for q, _, a in pairs if a.found is VisitResult.UNCLEAR]  # next time asked for as a whole
        await self._sql.update("page", [{"url_id": n, "etag": None, "last_modified": None} for n in unclear], "url_id")
        if changed := [o for _, o, _ in pairs if o.page is not None]:
            await self._keep_versions(changed)

    async def _keep_versions(self, changed: list[Outcome]) -> None:
        """Keep the versions of these pages. If a page says NOINDEX now, remove the texts of its versions."""
        numbers = json.dumps([o.queued.id for o in changed])
        closed = json.dumps([o.queued.id for o in changed if o.page is not None and not o.page.facts.index])
        await self._sql.execute("keep_version", numbers=numbers)
        await self._sql.execute("drop_links", numbers=numbers)
        await self._sql.execute("bodies_of", numbers=closed)
        await self._sql.execute("blank_versions", numbers=closed)

    async def sweep(self) -> None:
        """Delete the bodies that no page names any more since their page said NOINDEX.

        Only while no worker is at work: on PostgreSQL, a commit may be about to name a body that was stored before.
        """
        if await self._sql.fetch("body_to_drop") and await are_idle(self._sql):
            await self._sql.execute("drop_outside")
            await self._sql.execute("sweep_bodies")
            await self._sql.clear("body_to_drop")

    # --- hints --------------------------------------------------------------------------------

    async def apply_hints(
        self,
        hints: Iterable[Hint],
        now: float,
        refusal: Refusal | None = None,
        most_new: int | None = None,
        settings: RevisitSettings | None = None,
    ) -> tuple[HintCounts, set[int]]:
        """Bring revisits forward. If ``refusal`` gives the scope, also store new URLs: at most ``most_new``.

        With ``settings``, the revisits of visited URLs that have none are added first. Returns the counts of
        the hints, and the groups that have new work.
        """
        latest, touched = usable(hints, now), set[int]()
        known = await self._offers.numbers([hint.url for hint in latest])
        latest, folders = await self._with_folders(latest, known)
        known |= folders
        if settings is not None:
            await self.add_visited(settings, now, known.values())
        new = over = 0
        if refusal is not None:
            fresh = [hint.url for hint in latest if hint.url not in known and hint.kind is not HintKind.GONE]
            offers = {url: FoundOffer(Offer(url, _HINTED_DEPTH, refusal(url, _HINTED_DEPTH)), None) for url in fresh}
            wanted = [(url, found) for url, found in offers.items() if found.offer.refusal is None]
            admitted = dict(wanted[:most_new])
            new, over = len(admitted), len(wanted) - len(admitted)
            touched = (await self._offers.store(admitted, None)).touched
        asked = [hint for hint in latest if hint.source in ASKED_FOR and hint.kind is not HintKind.GONE]
        asked_numbers = [known[hint.url] for hint in asked if hint.url in known]
        failed = [row.id for row in await self._sql.fetch("failed_for_good", numbers=json.dumps(asked_numbers))]
        await self._offers.requeue(failed)
        touched |= await self._offers.groups(failed)
        new += len(failed)
        moved = await self._move([(known[hint.url], hint) for hint in latest if hint.url in known], now)
        return HintCounts(moved, new, len(latest) - moved - new - over, over), touched

    async def _with_folders(self, hints: list[Hint], known: Mapping[str, int]) -> tuple[list[Hint], dict[str, int]]:
        """The hints with those for the folders of URLs that sources named on request, and the folders' numbers."""
        asked = [hint for hint in hints if hint.source in ASKED_FOR]
        named = {folder for hint in asked if (folder := folder_of(hint.url)) is not None}
        folders = await self._offers.numbers(list(named))
        known_urls = await self._sql.fetch("known_urls", numbers=json.dumps([*folders.values()]))
        left_out = {row.id for row in known_urls if row.state == State.EXCLUDED}
        folders = {url: number for url, number in folders.items() if number not in left_out}
        others = [hint for hint in hints if hint.source not in ASKED_FOR]
        return others + with_folders(asked, known.keys() | folders.keys()), folders

    async def _move(self, hints: list[tuple[int, Hint]], now: float) -> int:
        """Bring the revisits of these URLs forward; returns how many were."""
        sites = json.dumps(list({site_of(number) for number, _ in hints}))
        records = {
            (row.site_id, row.source): hint_trust(row.tried, row.changed)
            for row in await self._sql.fetch("hint_records", sites=sites)
        }
        moved = 0
        for number, hint in hints:
            trust = records.get((site_of(number), hint.source), hint_trust(0, 0))
            asked = hint.source in ASKED_FOR
            counts = asked or trust >= DUE_CHANCE
            terms = {"source": hint.source, "at": hint.at, "why": f"reported as changed by {hint.source}"}
            applied = await self._sql.fetch("apply_hint", **terms, counts=counts, now=now, id=number, asked_for=asked)
            moved += counts and bool(applied)
        return moved


def _end_row(outcome: Outcome, revisit: RevisitRecord) -> dict[str, object]:
    """How a revisit ended, as parameters of the statement ``end_revisit``."""
    is_sitemap = outcome.queued.kind is Kind.SITEMAP
    return {
        "id": outcome.queued.id,
        "due_at": revisit.next.due_at,
        "not_before": revisit.next.not_before,
        "why": revisit.next.why,
        "checked_at": revisit.checked_at,
        "changes": revisit.habits.changes,
        "watched_s": revisit.habits.watched_s,
        "failures": revisit.failures,
        "etag": revisit.etag if is_sitemap else None,
        "last_modified": revisit.last_modified if is_sitemap else None,
        "content": None if revisit.content is None else bytes.fromhex(revisit.content),
    }


class Revisits(StoreSection):
    """The planning of revisits, and hints."""

    @retrying
    @in_transaction
    async def queue_due(
        self, settings: RevisitSettings, now: float, since: float, per_site: int | None, *, hinted_only: bool = False
    ) -> int:
        """Queue the URLs that are due for a revisit and were not visited since the time ``since``, within the budget.

        ``hinted_only``: only URLs that hints name. Returns how many URLs were queued.
        """
        if not hinted_only:  # else apply_hints has added them
            await self._revisits.add_visited(settings, now)
        numbers = await self._revisits.queue_due(settings, now, since, hinted_only=hinted_only)
        await self._offers.refresh(await self._offers.groups(numbers), per_site)
        return len(numbers)

    @retrying
    @in_transaction
    async def are_queued(self) -> bool:
        """Whether a revisit is queued, also one of an earlier run."""
        return await self._sql.fetch_one("queued_revisit") is not None

    @in_transaction
    async def apply_hints(
        self,
        hints: Iterable[Hint],
        settings: RevisitSettings,
        now: float,
        refusal: Refusal,
        *,
        most_new: int | None = None,
    ) -> HintCounts:
        """Bring the revisits of known URLs forward, and store unknown URLs: at most ``most_new``.

        ``refusal(url, depth)`` is the refusal of the scope. Queues no revisit: :meth:`queue_due` does, within the
        budget.
        """
        counts, touched = await self._revisits.apply_hints(hints, now, refusal, most_new, settings)
        await self._offers.refresh(touched)
        return counts
