"""Which pages are the same page, and who links to each: what the index is planned from, in temporary tables.

``main_of`` leads from every URL that stands for another to that other: canonical URLs, redirects, URLs of mirrors, and
pages with one body. Where all lead to a URL that is no page, the one nearest to a seed stands in for it. What goes
round, or on for more than 16 steps, is left as it is. A page that leads to a NOINDEX page is not indexed either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from crawler.search.index_backend import IndexBackend

MAX_ANCHORS = 50
MAX_ANCHORS_CHARS = 4_000
_MAX_ANCHORS_COUNTED = 1_000

_FOLD = """
CREATE TEMP TABLE step (id INTEGER PRIMARY KEY, next INTEGER NOT NULL);
INSERT INTO step
  SELECT id, target FROM url WHERE target <> id AND state IN ('fetched', 'excluded', 'redirected');
-- A mirror's page: that of the same path on its main host, if it was fetched.
INSERT INTO step
  SELECT u.id, m.id FROM mirrors v JOIN site s ON s.name = v.site JOIN site t ON t.name = v.leads_to
  JOIN url u ON u.id BETWEEN s.id << 39 AND (s.id + 1 << 39) - 1
  JOIN url m ON m.id = (t.id << 39 | (u.id & (1 << 39) - 1)) AND m.path = u.path
  JOIN page p ON p.url_id = m.id WHERE true
  ON CONFLICT DO NOTHING;
-- Of pages with one body: not that of a mirror found by content, nearest to a seed, of the shortest path.
INSERT INTO step
  SELECT url_id, main_id FROM (
    SELECT p.url_id, first_value(p.url_id) OVER (PARTITION BY p.body_id
      ORDER BY s.name IN (SELECT site FROM mirror), u.depth, length(u.path), p.url_id) AS main_id
    FROM page p JOIN url u ON u.id = p.url_id JOIN site s ON s.id = p.url_id >> 39
    WHERE p.body_id IS NOT NULL AND p.noindex = 0 AND NOT EXISTS (SELECT 1 FROM step WHERE id = p.url_id)) AS copy
  WHERE main_id <> url_id;

CREATE TEMP TABLE main_of (id INTEGER PRIMARY KEY, main_id INTEGER NOT NULL);
INSERT INTO main_of
  WITH RECURSIVE way (id, at, n) AS (
    SELECT id, next, 1 FROM step
    UNION ALL SELECT way.id, s.next, n + 1 FROM way JOIN step s ON s.id = way.at WHERE n < 16)
  SELECT id, at FROM way WHERE NOT EXISTS (SELECT 1 FROM step WHERE id = way.at);

CREATE TEMP TABLE stand_in (main_id INTEGER PRIMARY KEY, id INTEGER NOT NULL);
INSERT INTO stand_in
  SELECT main_id, id FROM (
    SELECT m.main_id, m.id, row_number() OVER (PARTITION BY m.main_id ORDER BY u.depth, m.id) AS n
    FROM main_of m JOIN page p ON p.url_id = m.id AND p.body_id IS NOT NULL AND p.noindex = 0
    JOIN url u ON u.id = m.id WHERE NOT EXISTS (SELECT 1 FROM page WHERE url_id = m.main_id)) AS nearest
  WHERE n = 1;
UPDATE main_of SET main_id = s.id FROM stand_in s WHERE s.main_id = main_of.main_id;
DELETE FROM main_of WHERE id = main_id;
INSERT INTO main_of SELECT main_id, id FROM stand_in;

CREATE TEMP TABLE chosen (id INTEGER PRIMARY KEY);
INSERT INTO chosen
  SELECT p.url_id FROM page p JOIN url u ON u.id = p.url_id LEFT JOIN revisit r ON r.url_id = u.id
  WHERE p.body_id IS NOT NULL AND p.noindex = 0 AND p.gone_at IS NULL
    AND CASE u.state WHEN 'queued' THEN coalesce(r.state, 'fetched') ELSE u.state END = 'fetched'
    AND NOT EXISTS (SELECT 1 FROM main_of WHERE id = p.url_id);

CREATE TEMP TABLE inbound (id INTEGER PRIMARY KEY, anchors TEXT, in_links INTEGER, in_sites INTEGER);
"""

# The links to each chosen page, by page and linking page; what a NOINDEX page says of others is not indexed either.
_INBOUND = """
SELECT c.id, coalesce(s.main_id, l.source) AS source, l.anchor
FROM link l
JOIN page p ON p.url_id = l.source AND p.noindex = 0
LEFT JOIN main_of t ON t.id = l.target JOIN chosen c ON c.id = coalesce(t.main_id, l.target)
LEFT JOIN main_of s ON s.id = l.source
WHERE l.follow = 1 AND coalesce(s.main_id, l.source) <> c.id
ORDER BY 1, 2, 3
"""


async def plan(place: IndexBackend) -> int:
    """Make the temporary tables ``chosen`` (the pages to index) and ``inbound`` (what leads to them).

    Returns how many pages are chosen. Memory is bounded: the database sorts in files.
    """
    await place.script(_FOLD)
    async with place.transaction():
        last: list[tuple[int, int, str]] = []  # the links to one page, which may go on in the next batch
        async for batch in place.batches(_INBOUND):
            if not last or last[0][0] != batch[-1][0]:
                await place.add_inbound(_inbound([*last, *(row for row in batch if row[0] != batch[-1][0])]))
                last = []
            last += [row for row in batch if row[0] == batch[-1][0]]
        await place.add_inbound(_inbound(last))
    ((count,),) = await place.query("SELECT count(*) FROM chosen")
    return int(count)


def _inbound(rows: Iterable[tuple[int, int, str]]) -> Iterator[tuple[int, str, int, int]]:
    """For each page: its anchor texts, the most frequent first, how many pages and how many other sites link to it."""
    for page, links in groupby(rows, key=itemgetter(0)):
        anchors: Counter[str] = Counter()
        pages, sites, before = 0, 0, -1
        for _, source, anchor in links:
            if source != before:
                pages += 1
                sites += source >> 39 not in (before >> 39, page >> 39)
                before = source
            if anchor in anchors or len(anchors) < _MAX_ANCHORS_COUNTED:
                anchors[anchor] += 1
        best = sorted(anchors, key=lambda text: (-anchors[text], text))[:MAX_ANCHORS]
        yield page, "\n".join(best)[:MAX_ANCHORS_CHARS], pages, sites
