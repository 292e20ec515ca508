"""The seeds and front pages of a crawl that only the order of the lines of a robots.txt closes."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from crawler.model import Reading
from crawler.robots.first_match import lost_to_first_match
from crawler.robots.readings import SiteRules, read
from crawler.robots.text import RobotsFile, parse
from crawler.settings.settings import Settings
from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SQL = load_statements("crawler.inspect")
_MOST_JUDGED = 1000
_MOST_OCTETS = 1 << 20  # of robots.txt, which take less than a second
_SHOWN = 5


async def describe_first_matches(store: Store, settings: Settings) -> list[str]:
    """One sentence for each of the first such URLs, with its remedy, and one for the rest.

    Only ``strict`` has such URLs. At most a thousand refused URLs are judged, by a megabyte of robots.txt in all,
    because a run that was told to stop ends soon.
    """
    if settings.robots.reading is not Reading.STRICT:
        return []
    said: list[str] = []
    left, octets_left = 0, _MOST_OCTETS
    last: tuple[str, RobotsFile, SiteRules] | None = None
    async with aclosing(store.rows(_SQL["refused_front_pages"], {"limit": _MOST_JUDGED})) as rows:
        async for row in rows:
            if last is None or last[0] != row.site:
                texts = await store.query(_SQL["robots_text"], {"site": row.site, "most": octets_left})
                if not texts:
                    continue
                body = texts[0]["body"]
                octets_left -= len(body)
                file = parse(body, max_bytes=_MOST_OCTETS)
                token = settings.identity.agent
                last = (row.site, file, read(file, token=token, reading=Reading.STRICT, site=row.site))
            _, file, rules = last
            found = lost_to_first_match(file, rules, token=settings.identity.agent, site=row.site, path=row.path)
            if found is None:
                continue
            if len(said) < _SHOWN:
                said.append(f"{row.site}{row.path} stays closed: in its robots.txt {found.sentence}")
            else:
                left += 1
    if left:
        said.append(f"{left:,} more seeds and front pages stay closed by the order of the lines of a robots.txt")
    if said:
        said.append("`--reading rfc9309` lets the longest match decide instead, as the search engines do")
    return said
