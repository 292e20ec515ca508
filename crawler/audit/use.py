"""The pages of which more is kept than ``Content-Signal: use`` allows.

``immediate`` allows nothing beyond the log of requests, ``reference`` no copy. Exports leave out the copies of pages
whose directives say NOARCHIVE, so the page must say it. Rules: ``docs/protocols.md``, section 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from crawler.audit.checks import Check, Findings, Violation
from crawler.audit.log_reader import read_rows
from crawler.audit.records import LoggedRequest, RobotsVersion
from crawler.model import Preference
from crawler.page.directives import asked_of
from crawler.preferences.schemes import IMMEDIATE_USE
from crawler.preferences.use import limits_use
from crawler.robots.rules import Verdict

if TYPE_CHECKING:
    from crawler.store.sections import Store


class LimitedUse(NamedTuple):
    """A request for a page whose use the robots.txt in force, ``version``, limits to ``level`` by its line ``rule``."""

    request: LoggedRequest
    version: RobotsVersion | None
    level: str
    rule: Verdict


def limited_use(preferences: Iterable[Preference]) -> Preference | None:
    """The statement that limits the use of a page the most; ``None`` if none does."""
    return min(filter(limits_use, preferences), key=lambda one: one.value != IMMEDIATE_USE, default=None)


async def judge_kept_by_robots(store: Store, limited: Sequence[LimitedUse], findings: Findings) -> None:
    """Find what is kept against the robots.txt under which a page was requested, if no later request brought it."""
    numbers = [each.request.id for each in limited]
    pages = {page.request_id: page for page in await read_rows(store, "kept_of_requests", numbers)} if limited else {}
    findings.add(
        Violation.by_request(Check.USE, request, _required(level), done, version=version, rule=rule)
        for request, version, level, rule in limited
        if request.id in pages and (done := _kept(pages[request.id], level))
    )


async def judge_kept_by_header(store: Store, findings: Findings) -> None:
    """Find the pages of which more is kept than their own headers allow."""
    pages = await read_rows(store, "kept_of_stated")
    findings.counts[Check.USE].judged += len(pages)
    findings.add(
        Violation.of_page(Check.USE, page, _required(page.value), f"{done}; it states {page.stated}")
        for page in pages
        if (done := _kept(page, page.value))
    )


def _required(level: str) -> str:
    return "nothing of the page beyond the log" if level == IMMEDIATE_USE else "a page of which no copy is handed out"


def _kept(page: Any, level: str) -> str:
    """What of a page is kept although only ``level`` is allowed; empty if nothing is."""
    if level == IMMEDIATE_USE:
        kept = [name for name in ("body", "title", "description", "keywords", "links") if getattr(page, f"has_{name}")]
        return f"kept: {', '.join(kept)}" if kept else ""
    return "exports hand out its body" if page.has_body and asked_of(page.directives).archive else ""
