"""The SQL that the report's figures come from. A URL's number is its site's << 39 and 39 bits more."""

from __future__ import annotations

TOTALS = """SELECT (SELECT count(*) FROM url WHERE seed = 1) AS seeds, (SELECT count(*) FROM mirror) AS mirrors,
    coalesce(sum(body_bytes), 0) AS page_bytes, coalesce(sum(noindex), 0) AS noindex FROM page"""

RUNS = "SELECT id, started_at, finished_at, ended_by, crawler_version, settings FROM run ORDER BY id"

SEEDS = """SELECT s.name || u.path AS url FROM url u JOIN site s ON s.id = u.id >> 39
  WHERE u.seed = 1 ORDER BY u.id LIMIT ?"""

#: How long was crawled, pauses between runs left out.
ACTIVE_S = """SELECT coalesce(sum(span), 0) AS s
  FROM (SELECT max(finished_at) - min(started_at) AS span FROM request GROUP BY run_id) AS runs"""

#: Into how many slots of a width requests fall, counted no further than a limit: (width, limit).
FILLED = """SELECT count(*) AS n
  FROM (SELECT DISTINCT CAST(started_at / ? AS INTEGER) FROM request LIMIT ?) AS slots"""

SLOT_PAGES = "SELECT CAST(fetched_at / ? AS INTEGER) AS slot, count(*) AS n FROM page GROUP BY 1"

SLOT_REQUESTS = """SELECT CAST(started_at / ? AS INTEGER) AS slot,
    coalesce(CAST(status / 100 AS TEXT) || 'xx', 'no answer') AS answer, count(*) AS n
  FROM request GROUP BY 1, 2"""

DEPTHS = "SELECT depth, state, count(*) AS n FROM url WHERE kind = 'page' GROUP BY 1, 2 ORDER BY 1"

ANSWERS = """SELECT coalesce(CAST(status AS TEXT), error_kind, 'no answer') AS what, count(*) AS n
  FROM request WHERE purpose = 'page' GROUP BY 1 ORDER BY n DESC, what LIMIT ?"""

TYPES = """SELECT coalesce(nullif(content_type, ''), 'none said') AS what, count(*) AS n
  FROM page GROUP BY 1 ORDER BY n DESC, what LIMIT ?"""

#: What the robots.txt in force at each site means: (how many).
ROBOTS = """SELECT r.action AS what, count(*) AS n FROM site s JOIN robots_copy r ON r.id = s.robots_id
  GROUP BY 1 ORDER BY n DESC, what LIMIT ?"""

#: Sites with a robots.txt in force, those with the same text together, and its number.
ROBOTS_FILES = """SELECT s.id, s.name, s.fetched, r.text_id FROM site s JOIN robots_copy r ON r.id = s.robots_id
  WHERE r.action = 'parse' AND r.text_id IS NOT NULL ORDER BY r.text_id"""

ROBOTS_TEXT = "SELECT body FROM robots_text WHERE id = ?"

#: An expression and a source for answers to requests for pages, in seconds.
ANSWER_TIME = ("finished_at - started_at", "request WHERE purpose = 'page' AND status IS NOT NULL")

#: Reasons by their code, with the first URL of each: (state, how many).
REASONS = """SELECT g.code, g.n, s.name || u.path AS url, u.reason
  FROM (SELECT reason_code AS code, count(*) AS n, min(id) AS id
        FROM url WHERE state = ? GROUP BY 1 ORDER BY n DESC, code LIMIT ?) AS g
  JOIN url u ON u.id = g.id JOIN site s ON s.id = u.id >> 39 ORDER BY g.n DESC, g.code"""

#: Links to what failed or redirects there, the most linked targets first: each with its first pages, and with how many
#: links and targets there are. Redirects are followed backwards from what failed, so that no circle is entered.
#: (pages of each, how many)
BROKEN = """WITH RECURSIVE moved AS MATERIALIZED (SELECT id, target FROM url WHERE state = 'redirected'),
  broken (id, ends_at) AS (
    SELECT id, id FROM url WHERE state = 'failed'
    UNION ALL SELECT m.id, b.ends_at FROM broken b CROSS JOIN moved m WHERE m.target = b.id),
  linked AS (
    SELECT b.id, b.ends_at, l.source, count(*) OVER (PARTITION BY b.id) AS pages,
      row_number() OVER (PARTITION BY b.id ORDER BY l.source) AS place
    FROM link l JOIN broken b ON b.id = l.target),
  counted AS (SELECT *, count(*) OVER () AS links, count(*) FILTER (WHERE place = 1) OVER () AS targets FROM linked),
  first AS (SELECT * FROM counted WHERE place <= ? ORDER BY pages DESC, id, place LIMIT ?)
  SELECT s.name || u.path AS url, CASE WHEN u.id = e.id THEN u.reason ELSE u.reason || ': ' || e.reason END AS reason,
    f.pages, ps.name || p.path AS page, f.links, f.targets
  FROM first f JOIN url u ON u.id = f.id JOIN site s ON s.id = f.id >> 39 JOIN url e ON e.id = f.ends_at
    JOIN url p ON p.id = f.source JOIN site ps ON ps.id = f.source >> 39
  ORDER BY f.pages DESC, f.id, f.place"""

#: The sites worth a row, those with most pages first, with what happened at each: (how many).
SITES = """WITH top AS MATERIALIZED (
    SELECT id, name, robots_id, crawl_delay_s, group_id FROM site
    ORDER BY fetched DESC, robots_id IS NULL, id LIMIT ?),
  ends AS (
    SELECT t.id, {states}, count(*) FILTER (WHERE u.state = 'excluded' AND u.reason_code = 'robots') AS disallowed
    FROM top t JOIN url u ON u.id BETWEEN t.id << 39 AND (t.id + 1 << 39) - 1 GROUP BY t.id),
  asked AS (
    SELECT site_id, count(*) AS n, sum(bytes) AS bytes,
      avg(finished_at - started_at) FILTER (WHERE purpose = 'page' AND status IS NOT NULL) AS mean_s
    FROM request WHERE site_id IN (SELECT id FROM top) GROUP BY site_id),
  linked AS (
    SELECT target >> 39 AS site_id, count(*) AS n FROM link WHERE source >> 39 <> target >> 39 GROUP BY 1)
  SELECT t.id, t.name, {names}, coalesce(a.n, 0) AS requests, coalesce(a.bytes, 0) AS bytes, a.mean_s,
    r.action, r.status, coalesce(e.disallowed, 0) AS disallowed, t.crawl_delay_s,
    CASE WHEN a.n > 0 THEN g.pause_s END AS pause_s,
    coalesce(l.n, 0) AS links_in
  FROM top t JOIN politeness_group g ON g.id = t.group_id LEFT JOIN ends e ON e.id = t.id
    LEFT JOIN asked a ON a.site_id = t.id LEFT JOIN linked l ON l.site_id = t.id
    LEFT JOIN robots_copy r ON r.id = t.robots_id"""

MIRRORS = "SELECT site, main_site, evidence, sample, confidence, leads_to FROM mirrors ORDER BY main_site, site LIMIT ?"

FETCHED_SITES = "SELECT count(*) AS n FROM site WHERE fetched > 0"

#: The sites to draw: those with most pages, then those with most links to them from other sites: (how many).
DRAWN = """SELECT s.id, s.name, s.fetched FROM site s
    LEFT JOIN (SELECT target >> 39 AS id, count(*) AS n FROM link WHERE source >> 39 <> target >> 39 GROUP BY 1) AS l
      ON l.id = s.id
  WHERE s.fetched > 0 OR l.n > 0 ORDER BY s.fetched DESC, coalesce(l.n, 0) DESC, s.id LIMIT ?"""

#: Links between sites, of which places stand for a list: (sites, sites).
EDGES = """SELECT source >> 39 AS a, target >> 39 AS b, count(*) AS n FROM link
  WHERE source >> 39 <> target >> 39 AND source >> 39 IN ({places}) AND target >> 39 IN ({places}) GROUP BY 1, 2"""

_PAGE = """SELECT s.name || u.path AS url, p.title, p.directives, f.figure FROM ({figures}) AS f
  JOIN url u ON u.id = f.id JOIN site s ON s.id = u.id >> 39 LEFT JOIN page p ON p.url_id = u.id
  ORDER BY f.figure DESC, url"""

#: Pages that stand out, with the figure that they stand out by: (how many).
MOST_LINKED = _PAGE.format(
    figures="SELECT target AS id, count(*) AS figure FROM link WHERE source <> target"
    " GROUP BY 1 ORDER BY 2 DESC LIMIT ?"
)
LARGEST = _PAGE.format(figures="SELECT url_id AS id, body_bytes AS figure FROM page ORDER BY 2 DESC LIMIT ?")

#: The requests for pages that took longest: (how many).
SLOWEST = """SELECT s.name || q.path AS url, NULL AS title, NULL AS directives, q.finished_at - q.started_at AS figure
  FROM request q JOIN site s ON s.id = q.site_id
  WHERE q.status IS NOT NULL AND q.purpose = 'page' ORDER BY figure DESC, url LIMIT ?"""
