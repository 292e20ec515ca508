"""The tdmrep.json of each site, where the operator wants it (setting ``robots.tdmrep``)."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from crawler.engine.gate import FetchPermit, Gate
from crawler.engine.outbox import Outbox
from crawler.engine.permission import Closed, permission
from crawler.model import Purpose, Request
from crawler.robots.readings import SiteRules
from crawler.robots.tdmrep import MAX_BYTES, NO_RULES, TDMREP_PATH, TdmRules, interpret_tdmrep, tdm_rules
from crawler.store.rows import ClaimedSite

if TYPE_CHECKING:
    from crawler.store.sections import Store

_KEPT = 1_000


class _Known(NamedTuple):
    fetched_at: float
    rules: TdmRules


class TdmrepCache:
    """The rules of the sites that are worked on.

    The file of a site is requested once for each of its robots.txt copies, before the first page under that copy: it is
    as fresh as robots.txt is. Without an answer it states nothing until then.
    """

    def __init__(self, gate: Gate, store: Store, outbox: Outbox) -> None:
        self._gate = gate
        self._store = store
        self._outbox = outbox
        self._known: OrderedDict[int, _Known] = OrderedDict()

    async def rules(self, site: ClaimedSite, group: str, rules: SiteRules | None) -> TdmRules | None:
        """The rules of ``site``, requested under its robots copy in force, whose rules are ``rules``.

        ``None`` if the robots copy has run out meanwhile. Raises :class:`crawler.engine.gate.Unsent` and
        :class:`crawler.errors.StoreError`.
        """
        assert site.copy is not None, "a page is about to be requested"
        allowed = permission(site.name, site.copy, rules, TDMREP_PATH)
        if isinstance(allowed, Closed):
            return NO_RULES
        known = self._known.get(site.id) or await self._stored(site)
        if known is None or known.fetched_at < site.copy.fetched_at:
            permit = FetchPermit.under(site, group, site.copy, rules, allowed)
            request = Request(f"{site.name}{TDMREP_PATH}", Purpose.TDMREP, max_bytes=MAX_BYTES, any_type=True)
            answer = await self._gate.send(request, permit)
            if answer is None:
                return None
            file, found = interpret_tdmrep(answer, site.name)
            known = _Known(file.fetched_at, found)
            self._outbox.add_tdmrep(site.id, file)
        self._known[site.id] = known
        self._known.move_to_end(site.id)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return known.rules

    async def _stored(self, site: ClaimedSite) -> _Known | None:
        file = await self._store.tdmrep_file(site.id)
        if file is None:
            return None
        return _Known(file.fetched_at, NO_RULES if file.note else tdm_rules(file.body, site.name))
