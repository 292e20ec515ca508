-- The statements of the report, over the views of the store.

-- name: totals
SELECT (SELECT count(*) FROM mirrors) AS mirrors,
  coalesce(sum(body_bytes), 0) AS page_bytes, coalesce(sum(noindex), 0) AS not_kept,
  (SELECT count(*) FROM urls_by_id WHERE state = 'fetched' AND reason_code = 'withheld') AS withheld,
  (SELECT count(*) FROM urls_by_id WHERE state = 'fetched' AND reason_code = 'unread') AS unread,
  (SELECT count(*) FROM urls_by_id WHERE state = 'fetched' AND reason_code = 'not_kept') AS unwanted,
  (SELECT count(*) FROM sites_by_id WHERE fetched > 0) AS fetched_sites
FROM pages_by_id

-- name: runs
SELECT run_id AS number, started_at, finished_at, ended_code, ended_by, crawler_version, settings FROM runs ORDER BY run_id

-- name: seeds
-- The first seeds with what became of each.
SELECT url, outcome FROM seeds WHERE outcome <> 'skipped' ORDER BY url_id LIMIT :limit

-- name: seed_outcomes
SELECT outcome, count(*) AS seeds FROM seeds GROUP BY outcome

-- ---- over time ----------------------------------------------------------------------------------------------------

-- name: active_time
-- How long the runs sent requests, in seconds. The time between runs does not count.
SELECT coalesce(sum(span), 0) AS active_s
FROM (SELECT max(finished_at) - min(started_at) AS span FROM requests_by_id GROUP BY run_id) AS runs

-- name: filled_slots
-- How many slots of width_s seconds contain a request. It counts up to the limit.
SELECT count(*) AS slots
FROM (SELECT DISTINCT CAST(started_at / :width_s AS INTEGER) FROM requests_by_id LIMIT :limit) AS slots

-- name: pages_by_slot
SELECT CAST(fetched_at / :width_s AS INTEGER) AS slot, count(*) AS pages FROM pages_by_id GROUP BY 1

-- name: requests_by_slot
-- Requests by the class of their answer, such as 2xx.
SELECT CAST(started_at / :width_s AS INTEGER) AS slot,
  coalesce(CAST(status / 100 AS TEXT) || 'xx', 'no answer') AS answer, count(*) AS requests
FROM requests_by_id WHERE sent = 1 GROUP BY 1, 2

-- ---- pages --------------------------------------------------------------------------------------------------------

-- name: urls_by_depth
SELECT depth, state, count(*) AS urls FROM urls_by_id WHERE kind = 'page' GROUP BY 1, 2 ORDER BY 1

-- name: answers
-- Requests for pages by status, or by the kind of their error if there was no answer, and the number of all.
SELECT coalesce(CAST(status AS TEXT), error_kind, '') AS what, count(*) AS n,
  CAST(sum(count(*)) OVER () AS bigint) AS total
FROM requests_by_id WHERE purpose = 'page' GROUP BY 1 ORDER BY n DESC, what LIMIT :limit

-- name: content_types
SELECT coalesce(content_type, '') AS what, count(*) AS n, CAST(sum(count(*)) OVER () AS bigint) AS total
FROM pages_by_id GROUP BY 1 ORDER BY n DESC, what LIMIT :limit

-- name: page_size_classes
-- How many pages have a size from low on, up to the next low, in bytes.
WITH bound (low) AS (
    VALUES (0), (500), (1000), (2000), (5000), (10000), (20000), (50000), (100000), (200000), (500000), (1000000),
      (2000000), (5000000)),
  counted AS (
    SELECT CASE WHEN x < 500 THEN 0 WHEN x < 1000 THEN 500 WHEN x < 2000 THEN 1000 WHEN x < 5000 THEN 2000
        WHEN x < 10000 THEN 5000 WHEN x < 20000 THEN 10000 WHEN x < 50000 THEN 20000 WHEN x < 100000 THEN 50000
        WHEN x < 200000 THEN 100000 WHEN x < 500000 THEN 200000 WHEN x < 1000000 THEN 500000
        WHEN x < 2000000 THEN 1000000 WHEN x < 5000000 THEN 2000000 ELSE 5000000 END AS low, count(*) AS n
    FROM (SELECT body_bytes AS x FROM pages_by_id) AS p GROUP BY 1)
SELECT b.low, coalesce(c.n, 0) AS n FROM bound b LEFT JOIN counted c ON c.low = b.low ORDER BY b.low

-- name: page_size_ranks
-- The sizes at these places in the order of size.
SELECT place, x FROM (SELECT body_bytes AS x, row_number() OVER (ORDER BY body_bytes) AS place FROM pages_by_id) AS r
WHERE place IN (:half, :most, :nearly_all, :all) ORDER BY place

-- name: response_time_classes
-- How many responses to requests for pages took from low on, up to the next low, in seconds.
WITH bound (low) AS (
    VALUES (0), (0.001), (0.002), (0.005), (0.01), (0.02), (0.05), (0.1), (0.2), (0.5), (1), (2), (5), (10), (20),
      (60)),
  counted AS (
    SELECT CASE WHEN x < 0.001 THEN 0 WHEN x < 0.002 THEN 0.001 WHEN x < 0.005 THEN 0.002 WHEN x < 0.01 THEN 0.005
        WHEN x < 0.02 THEN 0.01 WHEN x < 0.05 THEN 0.02 WHEN x < 0.1 THEN 0.05 WHEN x < 0.2 THEN 0.1
        WHEN x < 0.5 THEN 0.2 WHEN x < 1 THEN 0.5 WHEN x < 2 THEN 1 WHEN x < 5 THEN 2 WHEN x < 10 THEN 5
        WHEN x < 20 THEN 10 WHEN x < 60 THEN 20 ELSE 60 END AS low, count(*) AS n
    FROM (
      SELECT finished_at - started_at AS x FROM requests_by_id WHERE purpose = 'page' AND status IS NOT NULL) AS q
    GROUP BY 1)
SELECT b.low, coalesce(c.n, 0) AS n FROM bound b LEFT JOIN counted c ON c.low = b.low ORDER BY b.low

-- name: response_time_ranks
-- The times at these places in the order of time.
SELECT place, x
FROM (
  SELECT finished_at - started_at AS x, row_number() OVER (ORDER BY finished_at - started_at) AS place
  FROM requests_by_id WHERE purpose = 'page' AND status IS NOT NULL) AS r
WHERE place IN (:half, :most, :nearly_all, :all) ORDER BY place

-- name: reasons
-- URLs in a state by the code of their reason, most first, with one URL of each. There are few codes.
SELECT g.reason_code AS code, g.urls, s.site || u.path AS example_url, u.reason AS example
FROM (
  SELECT reason_code, count(*) AS urls, min(url_id) AS url_id FROM urls_by_id
  WHERE state = :state GROUP BY 1) AS g
JOIN urls_by_id u ON u.url_id = g.url_id JOIN sites_by_id s ON s.site_id = u.site_id
ORDER BY g.urls DESC, g.reason_code

-- name: broken_links
-- Links to a URL that failed or redirects to one that failed, the most linked targets first: a row for each of the first
-- pages with such a link, and the number of all links and targets. The statement follows redirects backwards from the
-- URLs that failed, so it never enters a circle.
WITH RECURSIVE moved AS MATERIALIZED (SELECT url_id, target_id FROM urls_by_id WHERE state = 'redirected'),
  broken (url_id, end_id) AS (
    SELECT url_id, url_id FROM urls_by_id WHERE state = 'failed'
    UNION ALL
    SELECT m.url_id, b.end_id FROM broken b CROSS JOIN moved m WHERE m.target_id = b.url_id),
  linked AS (
    SELECT b.url_id, b.end_id, l.source_id, count(*) OVER (PARTITION BY b.url_id) AS pages,
      row_number() OVER (PARTITION BY b.url_id ORDER BY l.source_id) AS place
    FROM links_by_id l JOIN broken b ON b.url_id = l.target_id),
  counted AS (SELECT *, count(*) OVER () AS links, count(*) FILTER (WHERE place = 1) OVER () AS targets FROM linked),
  first AS (SELECT * FROM counted WHERE place <= :pages_of_each ORDER BY pages DESC, url_id, place LIMIT :limit)
SELECT s.site || u.path AS url,
  CASE WHEN u.url_id = e.url_id THEN u.reason ELSE u.reason || ': ' || e.reason END AS reason,
  f.pages, ps.site || p.path AS page, f.links, f.targets
FROM first f
JOIN urls_by_id u ON u.url_id = f.url_id JOIN sites_by_id s ON s.site_id = u.site_id
JOIN urls_by_id e ON e.url_id = f.end_id
JOIN urls_by_id p ON p.url_id = f.source_id JOIN sites_by_id ps ON ps.site_id = p.site_id
ORDER BY f.pages DESC, f.url_id, f.place

-- ---- sites --------------------------------------------------------------------------------------------------------

-- name: robots_actions
-- The meaning of the robots.txt in force, and the number of sites.
SELECT r.action AS what, count(*) AS n, CAST(sum(count(*)) OVER () AS bigint) AS total
FROM sites_by_id s JOIN robots_by_id r ON r.robots_copy = s.robots_copy GROUP BY 1 ORDER BY n DESC, what LIMIT :limit

-- name: disallowed
-- The sites with most URLs that their robots.txt disallows, and the number of these URLs on all sites.
SELECT s.site AS what, d.n, d.total
FROM (
  SELECT site_id, count(*) AS n, CAST(sum(count(*)) OVER () AS bigint) AS total FROM urls_by_id
  WHERE state = 'excluded' AND reason_code = 'robots' GROUP BY 1 ORDER BY n DESC, site_id LIMIT :limit) AS d
JOIN sites_by_id s ON s.site_id = d.site_id ORDER BY d.n DESC, d.site_id

-- name: robots_files
-- Sites with a robots.txt in force, in the order of its text.
SELECT s.site_id, s.site, s.fetched, r.text_id
FROM sites_by_id s JOIN robots_by_id r ON r.robots_copy = s.robots_copy
WHERE r.action = 'parse' AND r.text_id IS NOT NULL ORDER BY r.text_id

-- name: robots_text
SELECT body FROM robots_texts_by_id WHERE text_id = :text_id

-- name: sites
-- The sites with most pages.
WITH top AS MATERIALIZED (
    SELECT site_id, site, robots_copy, crawl_delay_s, group_id, first_url_id, last_url_id FROM sites_by_id
    ORDER BY fetched DESC, robots_copy IS NULL, site_id LIMIT :limit),
  ends AS (
    SELECT t.site_id, count(*) FILTER (WHERE u.state = 'fetched') AS fetched,
      count(*) FILTER (WHERE u.state = 'redirected') AS redirected, count(*) FILTER (WHERE u.state = 'queued') AS queued,
      count(*) FILTER (WHERE u.state = 'excluded') AS excluded, count(*) FILTER (WHERE u.state = 'failed') AS failed,
      count(*) FILTER (WHERE u.state = 'excluded' AND u.reason_code = 'robots') AS disallowed
    FROM top t JOIN urls_by_id u ON u.url_id BETWEEN t.first_url_id AND t.last_url_id GROUP BY t.site_id),
  sent AS (
    SELECT site_id, count(*) AS requests, sum(bytes) AS bytes,
      avg(finished_at - started_at) FILTER (WHERE purpose = 'page' AND status IS NOT NULL) AS mean_s
    FROM requests_by_id WHERE site_id IN (SELECT site_id FROM top) AND sent = 1 GROUP BY site_id),
  linked AS (
    SELECT target_site_id AS site_id, count(*) AS links FROM links_by_id
    WHERE source_site_id <> target_site_id GROUP BY 1)
SELECT t.site_id AS number, t.site, coalesce(e.fetched, 0) AS fetched, coalesce(e.redirected, 0) AS redirected,
  coalesce(e.queued, 0) AS queued, coalesce(e.excluded, 0) AS excluded, coalesce(e.failed, 0) AS failed,
  coalesce(q.requests, 0) AS requests, coalesce(q.bytes, 0) AS bytes, q.mean_s, r.action AS robots_action,
  r.status AS robots_status, coalesce(e.disallowed, 0) AS disallowed, t.crawl_delay_s,
  CASE WHEN q.requests > 0 THEN g.pause_s END AS pause_s, coalesce(l.links, 0) AS links_in
FROM top t JOIN groups_by_id g ON g.group_id = t.group_id LEFT JOIN ends e ON e.site_id = t.site_id
LEFT JOIN sent q ON q.site_id = t.site_id LEFT JOIN linked l ON l.site_id = t.site_id
LEFT JOIN robots_by_id r ON r.robots_copy = t.robots_copy
ORDER BY fetched DESC, requests DESC, number

-- name: mirrors
SELECT site, main_site, evidence, sample, confidence, leads_to, contradiction FROM mirrors
ORDER BY main_site, site LIMIT :limit
