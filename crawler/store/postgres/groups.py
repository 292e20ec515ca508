"""A connection that adds the politeness groups of rows to the parameters of statements.

All rows that a commit writes carry their group, for the tables to be distributed by it (docs/scale.md). The rest of the
crawl works with the numbers of URLs and sites. A statement names the groups that it needs: ``groups_of(:id)`` are the
groups of the URLs or sites whose numbers are the parameter ``id`` (an array, or a list in JSON), one for each;
``group_of(:id)`` is the group of one; ``groups_named(:names)`` are the numbers of the groups with these names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from crawler.store.keys import site_of
from crawler.store.postgres.connection import Postgres

#: Every table whose rows carry a group, and the column that determines the group: the number of a URL or of a site.
GROUPED = {
    "robots_copy": "site_id",
    "url": "id",
    "frontier": "site_id",
    "page": "url_id",
    "link": "source",
    "request": "site_id",
    "agent_server": "site_id",
    "tdmrep_file": "site_id",
    "page_version": "url_id",
    "revisit": "url_id",
    "hint_record": "site_id",
}
_MARK = re.compile(r"\b(groups_of|group_of|groups_named)\(:(\w+)\)")
_TYPES = {"groups_of": "bigint[]", "group_of": "bigint", "groups_named": "bigint[]"}
_KEPT = 200_000


class Mark(NamedTuple):
    """A mark in a statement: its kind, and the parameter that it refers to."""

    kind: str
    parameter: str

    @property
    def name(self) -> str:
        """The parameter that takes the place of the mark."""
        return f"{self.kind}__{self.parameter}"


class GroupedPostgres(Postgres):
    """See the module. It remembers the groups of sites and names that it has looked up, within bounds."""

    def __init__(self, url: str, *, crawling: bool = False) -> None:
        super().__init__(url, crawling=crawling)
        self._of_site: dict[int, int] = {}
        self._of_name: dict[str, int] = {}

    def forget(self) -> None:
        """Forget all groups, after a rollback or after sites were regrouped."""
        self._of_site.clear()
        self._of_name.clear()

    async def groups_of(self, numbers: Iterable[int]) -> list[int | None]:
        """The group of each URL or site with such a number; ``None`` if there is no such site."""
        sites = [site_of(number) or number for number in numbers]
        await self._learn(
            self._of_site, set(sites), "SELECT id AS key, group_id AS value FROM site WHERE id = ANY(:keys::bigint[])"
        )
        return [self._of_site.get(site) for site in sites]

    async def groups_named(self, names: Iterable[str]) -> list[int | None]:
        """The number of each group with such a name; ``None`` if there is no such group."""
        wanted = list(names)
        await self._learn(
            self._of_name,
            set(wanted),
            "SELECT name AS key, id AS value FROM politeness_group WHERE name = ANY(:keys::text[])",
        )
        return [self._of_name.get(name) for name in wanted]

    async def _learn(self, known: dict[Any, int], wanted: set[Any], sql: str) -> None:
        if wanted <= known.keys():
            return
        if len(known) > _KEPT:
            known.clear()
        rows = await super()._run("fetch", sql, {"keys": list(wanted - known.keys())})
        known.update({row["key"]: row["value"] for row in rows})

    async def _run(self, how: str, sql: str, parameters: Any) -> Any:
        sql, marks = marked(sql)
        if marks:
            parameters = dict(parameters)
            for mark in marks:
                parameters[mark.name] = await self._groups(mark.kind, parameters[mark.parameter])
        return await super()._run(how, sql, parameters)

    async def _groups(self, kind: str, given: Any) -> Any:
        """The groups that a mark of this kind stands for, with the value of its parameter."""
        if kind == "group_of":
            return (await self.groups_of([given]))[0]
        listed = json.loads(given) if isinstance(given, str) else given
        return await (self.groups_named(listed) if kind == "groups_named" else self.groups_of(listed))


@lru_cache(maxsize=1000)
def marked(sql: str) -> tuple[str, tuple[Mark, ...]]:
    """A statement with a parameter for each mark, and the marks."""
    marks = tuple(dict.fromkeys(Mark(kind, parameter) for kind, parameter in _MARK.findall(sql)))
    placed = _MARK.sub(lambda found: f":{Mark(found[1], found[2]).name}::{_TYPES[found[1]]}", sql)
    return placed, marks
