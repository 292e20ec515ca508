-- {kept} stands for the statement `kept`: the rows of a view to export.

-- name: kept
-- The rows of a view that meet the user's condition, which has lines of its own because it may end in a comment.
-- {allowed} is TRUE, or the statement `allowed`.
(SELECT * FROM {view} WHERE (
{where}
) AND {allowed})

-- name: allowed
-- Whether the page whose number is {page} refuses no use of these categories.
{page} NOT IN (SELECT f.url_id FROM preferences f WHERE f.value = 'n' AND f.category IN ({categories}))

-- name: allowed_version
-- Whether a row of page_versions refuses no use of these categories, in its own version and in the last one.
(url_id, version) NOT IN (SELECT f.url_id, f.version FROM version_preferences f
  WHERE f.value = 'n' AND f.category IN ({categories}))
AND url_id NOT IN (SELECT f.url_id FROM preferences f WHERE f.value = 'n' AND f.category IN ({categories}))

-- name: allowed_url
-- Whether the page whose address is {page} refuses no use of these categories.
{page} NOT IN (SELECT f.url FROM preferences f WHERE f.value = 'n' AND f.category IN ({categories}))

-- name: refused
-- The number of rows that meet the user's condition and are left out because of their preferences.
SELECT count(*) AS rows_left_out FROM {view} WHERE (
{where}
) AND NOT {allowed}

-- name: no_row
-- No row. The database rejects the statement if it rejects the condition.
SELECT 1 FROM {kept} AS kept LIMIT 0

-- name: count
-- How many rows meet {condition}.
SELECT count(*) AS rows_in_all FROM {kept} AS kept WHERE {condition}

-- name: texts
-- The pages with a body, and what is written beside their texts.
SELECT url_id, url, title, description, fetched_at, preferences, robots_preferences, charset, content_type,
  directives AS page_directives
FROM {kept} AS kept WHERE body_sha256 IS NOT NULL ORDER BY url_id

-- name: document
-- The stored body of a page.
SELECT p.body_id, p.charset, p.content_type, s.site
FROM pages_by_id p JOIN sites_by_id s ON s.site_id = p.site_id WHERE p.url_id = :url_id AND p.body_id IS NOT NULL

-- name: rows
-- The rows as a table. The last column has the directives of the row's page.
SELECT {columns}, {directives} AS page_directives FROM {kept} AS kept

-- name: directives_of_page
-- The directives of the page that a row is about.
(SELECT p.directives FROM pages_by_id p WHERE p.url_id = kept.url_id)

-- name: graph_nodes
-- The URLs at the ends of links, with title, status and directives if they were fetched.
SELECT u.url_id, u.url, (SELECT p.title FROM pages_by_id p WHERE p.url_id = u.url_id AND {titled}) AS title,
       (SELECT p.status FROM pages_by_id p WHERE p.url_id = u.url_id) AS status,
       (SELECT p.directives FROM pages_by_id p WHERE p.url_id = u.url_id) AS page_directives
FROM urls u
WHERE u.url_id IN (SELECT source_id FROM {kept} AS a UNION SELECT target_id FROM {kept} AS b)

-- name: graph_edges
SELECT source_id, target_id, rel FROM {kept} AS kept

-- name: edges
SELECT source, target FROM {kept} AS kept

-- name: judged_for_sitemap
-- The pages, and why one is in no sitemap: it may not be indexed, exists no more, or another page stands for it. why is
-- NULL for the others.
(SELECT p.url_id, p.site, p.url, u.lastmod, p.last_modified, p.directives AS page_directives,
  CASE WHEN p.noindex <> 0 THEN 'noindex' WHEN p.gone_at IS NOT NULL THEN 'gone'
    WHEN coalesce(p.canonical_url, p.url) <> p.url THEN 'canonical'
    WHEN CASE u.state WHEN 'queued' THEN coalesce(r.state_before, 'fetched') ELSE u.state END <> 'fetched' THEN 'moved'
    WHEN u.target_id IS NOT NULL THEN 'refresh' END AS why
FROM {kept} p
JOIN urls_by_id u ON u.url_id = p.url_id LEFT JOIN revisits_by_id r ON r.url_id = u.url_id)

-- name: sitemap
-- The pages of the sitemap, those of one site together.
SELECT site, url, lastmod, last_modified, page_directives FROM {judged} AS j WHERE why IS NULL ORDER BY url_id

-- name: not_in_sitemap
-- How many pages are not in a sitemap, by the reason.
SELECT why, count(*) AS pages FROM {judged} AS j WHERE why IS NOT NULL GROUP BY why ORDER BY why

-- name: archived_pages
-- The pages that have a body, each with the request that fetched it.
SELECT p.url_id, p.url, p.status, p.content_type, p.charset, p.etag, p.last_modified, p.fetched_at, p.title,
       p.body_sha256, p.depth, (SELECT u.discovered_from FROM urls u WHERE u.url_id = p.url_id) AS discovered_from,
       q.started_at, q.bytes, q.run_id, p.preferences, p.robots_preferences, p.directives AS page_directives
FROM {kept} p LEFT JOIN requests q ON q.finished_at = p.fetched_at AND q.url = p.url AND q.purpose = 'page'
WHERE p.body_sha256 IS NOT NULL

-- name: pages_without_body
SELECT count(*) AS pages FROM {kept} AS kept WHERE body_sha256 IS NULL

-- name: runs
SELECT *, run_id AS run FROM runs ORDER BY run_id

-- ---- the rows that runs after :run have added -------------------------------------------------------------------------

-- name: runs_since
-- When the first of these runs began, and the number of the last one.
SELECT min(started_at) AS began_at, max(run_id) AS last FROM runs WHERE run_id > :run

-- name: since_urls
-- All URLs, in the order of earlier files.
(SELECT * FROM urls ORDER BY url_id) AS added

-- name: since_requests
(SELECT * FROM requests WHERE run_id > {run}) AS added

-- name: since_robots_answers
(SELECT * FROM robots_answers WHERE run_id > {run}) AS added

-- name: since_pages
(SELECT * FROM pages WHERE fetched_at >= {began_at}) AS added

-- name: since_page_versions
(SELECT * FROM page_versions WHERE fetched_at >= {began_at}) AS added

-- name: since_links
-- The links of the pages that were fetched: a page that was fetched again may have lost others.
(SELECT l.* FROM links l JOIN (SELECT url_id FROM pages WHERE fetched_at >= {began_at}) AS p ON p.url_id = l.source_id)
AS added
