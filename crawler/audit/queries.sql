-- The statements of the audit, over the views of the store.

-- name: runs
-- Every run with its settings, in the order in which they began.
SELECT run_id AS run, started_at, finished_at, ended_code, ended_by, crawler_version, settings FROM runs ORDER BY run_id

-- name: log_numbering
-- How many requests the log holds, the last number that was given to one, and how many of them name a known site.
SELECT count(*) AS requests, coalesce(max(q.request_id), 0) AS last_id, count(s.site_id) AS with_site
FROM requests_by_id q LEFT JOIN sites_by_id s ON s.site_id = q.site_id

-- name: request_counts
-- The requests of each run: as many as the log holds, and as many as the workers counted. A worker increases its count
-- in the transaction that logs the requests.
SELECT r.run_id AS run, coalesce(q.n, 0) AS logged, CAST(coalesce(w.n, 0) AS BIGINT) AS counted
FROM runs r
LEFT JOIN (SELECT run_id, count(*) AS n FROM requests_by_id GROUP BY run_id) AS q ON q.run_id = r.run_id
LEFT JOIN (SELECT run_id, sum(requests) AS n FROM workers GROUP BY run_id) AS w ON w.run_id = r.run_id
ORDER BY r.run_id

-- ---- the log, in the order in which it is replayed --------------------------------------------------------------

-- name: create_site_table
-- The sites, each with its replay unit.
CREATE TEMP TABLE audit_site (site_id BIGINT PRIMARY KEY, site TEXT NOT NULL, unit TEXT NOT NULL)

-- name: create_event_table
-- The events in the order of the replay. kind: 0 a response to a request for robots.txt, 1 a robots.txt version,
-- 2 a request; number: that of the request or of the version.
CREATE TEMP TABLE audit_event (n INTEGER PRIMARY KEY, kind INTEGER NOT NULL, number BIGINT NOT NULL, site_id BIGINT)

-- name: sites
-- A page of the sites, by number.
SELECT site_id, site FROM sites_by_id WHERE site_id > :after ORDER BY site_id LIMIT :limit

-- name: add_sites
INSERT INTO audit_site (site_id, site, unit) VALUES {rows}

-- name: add_events
-- All that happened, ordered by replay unit and time. A response for robots.txt belongs to the site that it was
-- requested for.
INSERT INTO audit_event (n, kind, number, site_id)
SELECT row_number() OVER (ORDER BY unit, at, kind, number), kind, number, site_id FROM (
  SELECT s.unit AS unit, q.started_at AS at, 2 AS kind, q.request_id AS number, s.site_id AS site_id
  FROM requests_by_id q JOIN audit_site s ON s.site_id = q.site_id
  UNION ALL
  SELECT s.unit, q.finished_at, 0, q.request_id, s.site_id
  FROM requests_by_id q LEFT JOIN audit_site f ON f.site_id = q.for_site_id
  JOIN audit_site s ON s.site_id = coalesce(f.site_id, q.site_id)
  WHERE q.purpose = 'robots'
  UNION ALL
  SELECT s.unit, r.valid_from, 1, r.robots_copy, s.site_id
  FROM robots_by_id r JOIN audit_site s ON s.site_id = r.site_id) AS happened

-- name: create_elsewhere_table
-- The versions that come from a URL on another site that is not the /robots.txt of that site. text_id 0: without text.
CREATE TEMP TABLE audit_elsewhere (url TEXT NOT NULL, text_id BIGINT NOT NULL, action TEXT NOT NULL,
  robots_copy BIGINT NOT NULL, valid_until DOUBLE PRECISION NOT NULL, PRIMARY KEY (url, text_id, action, robots_copy))

-- name: add_elsewhere
INSERT INTO audit_elsewhere (url, text_id, action, robots_copy, valid_until)
SELECT r.answered_by, coalesce(r.text_id, 0), r.action, r.robots_copy, r.valid_until
FROM robots_by_id r JOIN audit_site s ON s.site_id = r.site_id
WHERE r.answered_by <> s.site || '/robots.txt' AND NOT EXISTS (SELECT 1 FROM sites_by_id y
  WHERE y.site = replace(r.answered_by, '/robots.txt', '')
    AND y.site || '/robots.txt' = r.answered_by)

-- name: request_events
-- The requests and responses of a slice of the replay. event_site is the site that the event belongs to, site the one
-- that the request was sent to.
SELECT e.n, e.kind, s.unit, s.site_id AS event_site_id, s.site AS event_site, q.request_id AS id, q.run_id AS run,
  q.site_id, h.site, q.path, q.purpose, q.started_at, q.finished_at, q.status, q.error_kind, q.error, q.bytes,
  q.retry_after_s, q.for_site_id, q.location, q.lag_s
FROM audit_event e JOIN requests_by_id q ON q.request_id = e.number JOIN audit_site s ON s.site_id = e.site_id
JOIN audit_site h ON h.site_id = q.site_id
WHERE e.n > :after AND e.n <= :last AND e.kind <> 1

-- name: version_events
-- The robots.txt versions of a slice of the replay. A version that comes from another site may have been requested for
-- a site before (source): from the /robots.txt of another site, the version that was the last one there; from another
-- URL, an equal version from that URL that was in force.
SELECT e.n, s.unit, s.site_id AS event_site_id, s.site AS event_site, r.valid_from, r.valid_until, r.action, r.status,
  r.text_id, coalesce(lower(hex(t.sha256)), '') AS sha256, r.run_id AS run, r.answered_by, r.headers,
  o.action AS source_action, o.text_id AS source_text_id, o.valid_from AS source_from, o.valid_until AS source_until
FROM audit_event e JOIN robots_by_id r ON r.robots_copy = e.number JOIN audit_site s ON s.site_id = e.site_id
LEFT JOIN robots_texts_by_id t ON t.text_id = r.text_id
LEFT JOIN robots_by_id o ON o.robots_copy = coalesce((
  SELECT max(x.robots_copy) FROM sites_by_id y JOIN robots_by_id x ON x.site_id = y.site_id
  WHERE y.site = replace(r.answered_by, '/robots.txt', '')
    AND y.site || '/robots.txt' = r.answered_by AND y.site_id <> r.site_id AND x.valid_from <= r.valid_from), (
  SELECT max(x.robots_copy) FROM audit_elsewhere x
  WHERE x.url = r.answered_by AND x.text_id = coalesce(r.text_id, 0) AND x.action = r.action
    AND x.robots_copy < r.robots_copy AND x.valid_until >= r.valid_from))
WHERE e.n > :after AND e.n <= :last AND e.kind = 1

-- name: robots_texts
-- The bodies of robots.txt files by number; {among} is a list of parameters.
SELECT text_id, sha256, body FROM robots_texts_by_id WHERE text_id IN ({among})

-- ---- licences ---------------------------------------------------------------------------------------------------

-- name: licences
-- The last answer for each licence of RSL.
SELECT url, fetched_at, note, body FROM site_files WHERE purpose = 'license' ORDER BY url

-- name: licence_answers
-- The requests for licences in the log.
SELECT s.site || q.path AS url, q.finished_at, q.status, q.error_kind, q.location
FROM requests_by_id q JOIN sites_by_id s ON s.site_id = q.site_id
WHERE q.purpose = 'license' ORDER BY q.finished_at, q.request_id

-- ---- preferences about use --------------------------------------------------------------------------------------

-- name: pages_of_run
-- How many pages were fetched from :since until :until, and not visited later.
SELECT count(*) AS pages FROM pages_by_id WHERE fetched_at >= :since AND coalesce(last_seen_at, fetched_at) <= :until

-- name: pages_kept
-- Of these pages, those whose body is kept although the page itself refuses one of the {among}, a list of
-- parameters.
SELECT p.url, p.fetched_at, min(f.text) AS stated
FROM preferences f JOIN pages p ON p.url_id = f.url_id
WHERE f.value = 'n' AND f.source <> 'robots.txt' AND f.category IN ({among})
  AND p.body_sha256 IS NOT NULL AND p.fetched_at >= :since AND coalesce(p.last_seen_at, p.fetched_at) <= :until
GROUP BY p.url, p.fetched_at ORDER BY p.url

-- name: kept_of_requests
-- What is kept of the pages that the requests with the {among}, a list of parameters, have brought.
SELECT q.request_id, p.body_id IS NOT NULL AS has_body, p.title IS NOT NULL AS has_title,
  p.description IS NOT NULL AS has_description, p.keywords IS NOT NULL AS has_keywords,
  EXISTS (SELECT 1 FROM links_by_id l WHERE l.source_id = p.url_id) AS has_links, p.directives
FROM requests_by_id q JOIN urls_by_id u ON u.site_id = q.site_id AND u.path = q.path
JOIN pages_by_id p ON p.url_id = u.url_id AND p.fetched_at BETWEEN q.started_at AND q.finished_at
WHERE q.request_id IN ({among})

-- name: kept_of_stated
-- The same of the pages whose own headers limit their use, with what they state.
SELECT f.url, p.fetched_at, f.value, f.text AS stated, p.body_id IS NOT NULL AS has_body,
  p.title IS NOT NULL AS has_title, p.description IS NOT NULL AS has_description,
  p.keywords IS NOT NULL AS has_keywords,
  EXISTS (SELECT 1 FROM links_by_id l WHERE l.source_id = p.url_id) AS has_links, p.directives
FROM preferences f JOIN pages_by_id p ON p.url_id = f.url_id
WHERE f.category = 'use' AND f.value <> 'full' AND f.source <> 'robots.txt' ORDER BY f.url

-- ---- the sample -------------------------------------------------------------------------------------------------

-- name: sample_judged
-- The requests for pages since the sample was drawn, if it decides which pages are requested.
SELECT count(*) AS requests FROM sample_draws d JOIN requests_by_id q ON q.started_at > d.drawn_at
WHERE d.discarded_at IS NULL AND d.held_from IS NOT NULL AND q.purpose = 'page'

-- name: page_counts
SELECT s.site_id, s.site, p.pages
FROM (SELECT site_id, count(*) AS pages FROM pages_by_id GROUP BY site_id) p JOIN sites_by_id s ON s.site_id = p.site_id
ORDER BY s.site

-- name: pages_at_once
-- The pages of a site that the first request for their URL brought.
SELECT count(*) AS pages FROM pages_by_id p JOIN urls_by_id u ON u.url_id = p.url_id
WHERE p.site_id = :site_id AND u.kind = 'page' AND (SELECT q.status FROM requests_by_id q
  WHERE q.site_id = p.site_id AND q.path = u.path AND q.purpose = 'page' ORDER BY q.request_id LIMIT 1) BETWEEN 200 AND 299

-- name: not_drawn
-- Of these, the requests for pages that were not drawn. Allowed are the targets of redirects, and pages nearer than the
-- depth that was held back, if they were requested before the draw: they made the frame. While the frame is open again
-- (stands = 0), nearer pages that it did not have make the next frame.
SELECT q.request_id, q.run_id, s.site || q.path AS url, q.started_at, q.finished_at, d.drawn_at
FROM sample_draws d JOIN requests_by_id q ON q.started_at > d.drawn_at
JOIN sites_by_id s ON s.site_id = q.site_id
JOIN urls_by_id u ON u.site_id = q.site_id AND u.path = q.path
WHERE d.discarded_at IS NULL AND d.held_from IS NOT NULL AND q.purpose = 'page' AND u.kind = 'page' AND u.hops = 0
  AND u.url_id NOT IN (SELECT url_id FROM samples_by_id)
  AND (u.depth >= d.held_from OR (d.stands = 1 OR u.url_id IN (SELECT url_id FROM sample_frame))
    AND NOT EXISTS (SELECT 1 FROM requests_by_id b
      WHERE b.site_id = q.site_id AND b.path = q.path AND b.started_at <= d.drawn_at))
ORDER BY q.request_id

-- ---- what the hash covers ---------------------------------------------------------------------------------------
-- docs/audit.md publishes these statements: each row becomes one JSON array. The column number is the paging key.

-- name: hashed_runs
SELECT 'run' AS kind, run_id AS number, started_at, crawler_version, settings
FROM runs ORDER BY run_id

-- name: hashed_robots
SELECT 'robots' AS kind, r.robots_copy AS number, s.site, r.action, r.status, r.fetched_at, r.valid_from, r.valid_until,
  nullif(lower(hex(t.sha256)), '') AS sha256, r.run_id, r.answered_by, r.headers
FROM robots_by_id r JOIN sites_by_id s ON s.site_id = r.site_id
LEFT JOIN robots_texts_by_id t ON t.text_id = r.text_id
ORDER BY r.robots_copy

-- name: hashed_requests
SELECT 'request' AS kind, q.request_id AS number, q.run_id, s.site, q.path, q.purpose, q.started_at, q.finished_at,
  q.status, q.error, q.bytes, q.retry_after_s, q.for_site_id, q.location, q.lag_s
FROM requests_by_id q JOIN sites_by_id s ON s.site_id = q.site_id
ORDER BY q.request_id

-- name: hashed_orders
SELECT 'order' AS kind, order_id AS number, asked_at, command, name, run_id, done_at
FROM orders ORDER BY order_id

-- ---- totals -----------------------------------------------------------------------------------------------------

-- name: site_totals
-- Every site: the requests that were sent and their octets, the number of the others, its URLs by state, and what is
-- kept of its pages. NOARCHIVE stands in the directives of a page or its headers.
WITH q AS (
  SELECT site_id, count(*) AS requests, count(CASE WHEN purpose = 'robots' THEN 1 END) AS robots_requests,
    count(CASE WHEN purpose = 'page' THEN 1 END) AS page_requests, CAST(sum(bytes) AS BIGINT) AS bytes,
    min(started_at) AS first_at, max(finished_at) AS last_at
  FROM requests_by_id WHERE sent = 1 GROUP BY site_id),
n AS (SELECT site_id, count(*) AS unsent FROM requests_by_id WHERE sent = 0 GROUP BY site_id),
u AS (
  SELECT site_id, count(CASE WHEN state = 'queued' THEN 1 END) AS queued,
    count(CASE WHEN state = 'excluded' THEN 1 END) AS excluded, count(CASE WHEN state = 'failed' THEN 1 END) AS failed,
    count(CASE WHEN reason_code = 'forgotten' THEN 1 END) AS forgotten,
    count(CASE WHEN reason_code = 'blocked' THEN 1 END) AS blocked
  FROM urls_by_id GROUP BY site_id),
p AS (
  SELECT site_id, count(*) AS pages, count(CASE WHEN noindex = 1 THEN 1 END) AS noindex_pages,
    count(CASE WHEN lower(directives) LIKE '%noarchive%' THEN 1 END) AS noarchive_pages,
    count(body_id) AS bodies_kept
  FROM pages_by_id GROUP BY site_id)
SELECT s.site, s.host, s.registered_domain, coalesce(q.requests, 0) AS requests, coalesce(n.unsent, 0) AS unsent,
  coalesce(q.robots_requests, 0) AS robots_requests, coalesce(q.page_requests, 0) AS page_requests,
  coalesce(q.bytes, 0) AS bytes, q.first_at, q.last_at, s.crawl_delay_s, coalesce(p.pages, 0) AS pages,
  coalesce(p.noindex_pages, 0) AS noindex_pages, coalesce(p.noarchive_pages, 0) AS noarchive_pages,
  coalesce(p.bodies_kept, 0) AS bodies_kept, coalesce(u.queued, 0) AS queued, coalesce(u.excluded, 0) AS excluded,
  coalesce(u.failed, 0) AS failed, coalesce(u.forgotten, 0) AS forgotten, coalesce(u.blocked, 0) AS blocked
FROM sites_by_id s LEFT JOIN q ON q.site_id = s.site_id LEFT JOIN n ON n.site_id = s.site_id
LEFT JOIN u ON u.site_id = s.site_id LEFT JOIN p ON p.site_id = s.site_id ORDER BY s.site

-- name: totals
-- Requests and sites are those to which something was sent.
SELECT count(CASE WHEN sent = 1 THEN 1 END) AS requests, count(DISTINCT CASE WHEN sent = 1 THEN site_id END) AS sites, coalesce(sum(bytes), 0) AS bytes,
  min(started_at) AS first_at, max(finished_at) AS last_at, count(CASE WHEN path = '' THEN 1 END) AS redacted,
  count(CASE WHEN sent = 0 THEN 1 END) AS unsent,
  count(DISTINCT CASE WHEN sent = 0 THEN site_id END) AS sites_without_address
FROM requests_by_id

-- name: answers
-- Requests by purpose and class of status.
SELECT purpose, coalesce(CAST(status / 100 AS TEXT) || 'xx', CASE WHEN sent = 1 THEN 'no answer' ELSE 'not sent' END)
  AS answer, count(*) AS requests
FROM requests_by_id GROUP BY 1, 2 ORDER BY 1 DESC, 2

-- name: requests_per_run
SELECT run_id AS run, count(CASE WHEN sent = 1 THEN 1 END) AS requests, min(started_at) AS first_at, max(finished_at) AS last_at,
  min(request_id) AS first, max(request_id) AS last
FROM requests_by_id GROUP BY run_id ORDER BY run_id

-- name: robots_actions
-- The meanings of the answers for robots.txt.
SELECT action, count(*) AS answers, count(DISTINCT text_id) AS texts
FROM robots_by_id GROUP BY action ORDER BY answers DESC, action

-- name: exclusions
-- Excluded URLs by reason, the most frequent first.
SELECT reason_code, count(*) AS urls
FROM urls_by_id WHERE state = 'excluded' GROUP BY reason_code ORDER BY urls DESC, reason_code

-- name: refuted_mirrors
-- Host lines that an answer has contradicted, so that they were ignored.
SELECT site, main_site FROM mirrors WHERE evidence = 'refuted'

-- ---- facts for an ethics board ----------------------------------------------------------------------------------

-- name: contacts
-- How many sites were sent each number of requests.
SELECT requests, count(*) AS sites
FROM (SELECT count(*) AS requests FROM requests_by_id WHERE sent = 1 GROUP BY site_id) AS each_site
GROUP BY requests ORDER BY requests

-- name: most_contacted
SELECT s.site, count(*) AS requests, CAST(sum(q.bytes) AS BIGINT) AS bytes
FROM requests_by_id q JOIN sites_by_id s ON s.site_id = q.site_id
WHERE q.sent = 1 GROUP BY s.site ORDER BY 2 DESC, 1 LIMIT :limit

-- name: kept
SELECT count(*) AS pages, count(body_id) AS bodies, count(CASE WHEN noindex = 1 THEN 1 END) AS noindex,
  count(CASE WHEN noindex = 1 THEN body_id END) AS noindex_bodies,
  count(CASE WHEN lower(directives) LIKE '%noarchive%' THEN 1 END) AS noarchive,
  count(CASE WHEN lower(directives) LIKE '%noarchive%' THEN body_id END) AS noarchive_bodies,
  count(gone_at) AS gone, min(fetched_at) AS oldest_at, max(fetched_at) AS newest_at,
  (SELECT count(*) FROM page_versions) - count(*) AS versions,
  (SELECT min(v.last_seen_at) FROM page_versions v JOIN pages_by_id n ON n.url_id = v.url_id AND n.version > v.version)
    AS versions_since
FROM pages_by_id

-- name: forgotten
SELECT s.site, u.reason, count(*) AS urls FROM urls_by_id u JOIN sites_by_id s ON s.site_id = u.site_id
WHERE u.state = 'excluded' AND u.reason_code = 'forgotten' GROUP BY s.site, u.reason ORDER BY 1, 2 LIMIT :limit

-- name: blocked_sites
-- The sites with URLs that are excluded because of a block, and how many of their pages the store keeps.
SELECT s.site, count(*) AS urls, (SELECT count(*) FROM pages_by_id p WHERE p.site_id = u.site_id) AS pages
FROM urls_by_id u JOIN sites_by_id s ON s.site_id = u.site_id
WHERE u.state = 'excluded' AND u.reason_code = 'blocked' GROUP BY u.site_id, s.site ORDER BY 1 LIMIT :limit
