"""A connection that tells statements which politeness group their rows belong to.

All that a turn writes carries its group, so that the tables can be distributed by it (docs/scale.md), while the rest of
the crawl goes by the numbers of URLs and sites. So a statement says whose groups it wants: ``:groups($7)`` are those of
the URLs or sites whose numbers are its seventh parameter (an array or a JSON list), one for each, ``:group($7)`` is
that of one, and ``:named($7)`` are the numbers of the groups with these names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from crawler.store.keys import site_of
from crawler.store.postgres.connection import Postgres

#: Every table with the group of its rows, and whose number in it tells the group: a URL's, or a site's.
GROUPED = {
    "robots_copy": "site_id",
    "url": "id",
    "frontier": "site_id",
    "page": "url_id",
    "link": "source",
    "request": "site_id",
    "agent_server": "site_id",
    "page_version": "url_id",
    "revisit": "url_id",
    "hint_record": "site_id",
}
_MARK = re.compile(r":(groups|group|named)\(\$(\d+)\)")
_TYPES = {"groups": "bigint[]", "group": "bigint", "named": "bigint[]"}
_KEPT = 200_000


class GroupedPostgres(Postgres):
    """See the module. Sites and groups that it has met are remembered, within bounds."""

    def __init__(self, url: str, *, crawling: bool = False) -> None:
        super().__init__(url, crawling=crawling)
        self._of_site: dict[int, int] = {}
        self._of_name: dict[str, int] = {}
        self._nodes: dict[int, int] = {}
        self.is_spread = False  # whether several nodes have groups

    def forget(self) -> None:
        """After a rollback, or where sites were put into other groups."""
        self._of_site.clear()
        self._of_name.clear()

    async def groups_of(self, numbers: Iterable[int]) -> list[int | None]:
        """The group of each URL or site with such a number; ``None`` where there is no such site."""
        sites = [site_of(number) or number for number in numbers]
        await self._learn(self._of_site, set(sites), "SELECT id, group_id FROM site WHERE id = ANY($1::bigint[])")
        return [self._of_site.get(site) for site in sites]

    async def groups_named(self, names: Iterable[str]) -> list[int | None]:
        wanted = list(names)
        sql = "SELECT name, id FROM politeness_group WHERE name = ANY($1::text[])"
        await self._learn(self._of_name, set(wanted), sql)
        return [self._of_name.get(name) for name in wanted]

    async def groups_to_be(self, names: Iterable[str]) -> dict[str, int]:
        """The numbers of groups by name, of those too that are not there yet."""
        sql = """SELECT n, coalesce((SELECT min(id) FROM politeness_group WHERE name = n), group_number(n))
                 FROM unnest($1::text[]) n"""
        return dict(await super()._run("fetch", sql, (list(set(names)),)))

    async def nodes_of(self, groups: Iterable[int]) -> dict[int, int]:
        """The number of the node that has a group's rows."""
        wanted = set(groups)
        await self._learn(self._nodes, wanted, "SELECT n, node_of(n) FROM unnest($1::bigint[]) n")
        return {group: self._nodes[group] for group in wanted}

    async def _learn(self, known: dict[Any, int], wanted: set[Any], sql: str) -> None:
        if wanted <= known.keys():
            return
        if len(known) > _KEPT:
            known.clear()
        known.update(await super()._run("fetch", sql, (list(wanted - known.keys()),)))

    async def _run(self, how: str, sql: str, parameters: Iterable[Any]) -> Any:
        marked, marks = _marks(sql)
        values = list(parameters)
        for kind, number, place in marks:
            given = values[number - 1]
            listed: Any = json.loads(given) if isinstance(given, str) else [given] if isinstance(given, int) else given
            found = await (self.groups_named(listed) if kind == "named" else self.groups_of(listed))
            values[place - 1 : place] = [found[0] if kind == "group" else found]
        return await super()._run(how, marked, values)


@lru_cache(maxsize=1000)
def _marks(sql: str) -> tuple[str, list[tuple[str, int, int]]]:
    """The statement with parameters for its marks, and of each mark its kind, what it is of, and its parameter.

    A mark takes the place of the parameter that it is of where nothing else asks for that, or else a new one.
    """
    rest = _MARK.sub("", sql)
    asked = {int(number) for number in re.findall(r"\$(\d+)", rest)}
    marks: dict[tuple[str, int], int] = {}
    last = max([0, *(int(number) for number in re.findall(r"\$(\d+)", sql))])
    for kind, digits in _MARK.findall(sql):
        number = int(digits)
        if (kind, number) not in marks:
            last += number in asked
            marks[kind, number] = last if number in asked else number
    placed = _MARK.sub(lambda mark: f"${marks[mark[1], int(mark[2])]}::{_TYPES[mark[1]]}", sql)
    return placed, [(kind, number, place) for (kind, number), place in marks.items()]
