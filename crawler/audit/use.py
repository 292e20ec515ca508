"""The pages of which more is kept than ``Content-Signal: use`` allows.

``immediate`` allows nothing beyond the log of requests, ``reference`` no copy. Exports leave out the copies of pages
whose directives say NOARCHIVE, so the page must say it. Rules: ``docs/protocols.md``, section 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from crawler.audit.checks import Check, Violation
from crawler.audit.records import LoggedRequest, RobotsVersion
from crawler.model import Preference
from crawler.page.directives import asked_of
from crawler.preferences.schemes import IMMEDIATE_USE
from crawler.preferences.use import limits_use
from crawler.robots.rules import Verdict
from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SQL = load_statements("crawler.audit")


class LimitedUse(NamedTuple):
    """A request for a page whose use the robots.txt in force, ``version``, limits to ``level`` by its line ``rule``."""

    request: LoggedRequest
    version: RobotsVersion | None
    level: str
    rule: Verdict


def limited_use(preferences: Iterable[Preference]) -> Preference | None:
    """The statement that limits the use of a page the most; ``None`` if none does."""
    return min(filter(limits_use, preferences), key=lambda one: one.value != IMMEDIATE_USE, default=None)


async def kept_by_robots(store: Store, limited: Sequence[LimitedUse]) -> list[Violation]:
    """What is kept against the robots.txt under which a page was requested, if no later request brought the page."""
    if not limited:
        return []
    names = {f"request_{n}": each.request.id for n, each in enumerate(limited)}
    sql = _SQL["kept_of_requests"].format(numbers=", ".join(f":{name}" for name in names))
    pages = {row["request_id"]: row for row in await store.query(sql, dict(names))}
    violations = []
    for request, version, level, rule in limited:
        page = pages.get(request.id)
        if page is not None and (done := _kept(page, level)):
            violations.append(
                Violation.by_request(Check.USE, request, _required(level), done, version=version, rule=rule)
            )
    return violations


async def kept_by_header(store: Store) -> tuple[int, list[Violation]]:
    """The number of pages whose own headers limit their use, and those of which more is kept than that allows."""
    rows = await store.query(_SQL["kept_of_stated"])
    violations = [
        Violation(
            Check.USE,
            _required(row["value"]),
            f"{done}; it states {row['stated']}",
            url=row["url"],
            started_at=row["fetched_at"],
            finished_at=row["fetched_at"],
        )
        for row in rows
        if (done := _kept(row, row["value"]))
    ]
    return len(rows), violations


def _required(level: str) -> str:
    return "nothing of the page beyond the log" if level == IMMEDIATE_USE else "a page of which no copy is handed out"


def _kept(page: Any, level: str) -> str:
    """What of a page is kept although only ``level`` is allowed; empty if nothing is."""
    if level == IMMEDIATE_USE:
        kept = [name for name in ("body", "title", "description", "keywords", "links") if page[f"has_{name}"]]
        return f"kept: {', '.join(kept)}" if kept else ""
    return "exports hand out its body" if page["has_body"] and asked_of(page["directives"]).archive else ""
