-- The statements of the search over the views of the store. Those on the index are in index.sql.

-- name: crawl
-- What tells this crawl from others: the beginning of its first run.
SELECT min(started_at) AS begun FROM runs

-- name: is_behind
-- Whether a page was requested after the request :last_request that had changed.
SELECT 1 AS found WHERE EXISTS (
  SELECT 1 FROM requests_by_id WHERE request_id > :last_request AND purpose = 'page' AND coalesce(status, 0) <> 304)

-- name: known_site
-- One row if the crawl knows a site of the host or below it.
SELECT 1 AS known FROM sites_by_id
WHERE instr(site || ':', '://' || :host || ':') > 0 OR instr(site || ':', '.' || :host || ':') > 0
LIMIT 1

-- name: pages
-- The pages of a list of {numbers} that may be shown, as the crawl knows them now.
SELECT p.url_id, s.site || u.path AS url, s.site, p.title, p.description, p.directives
FROM pages_by_id p JOIN urls_by_id u ON u.url_id = p.url_id JOIN sites_by_id s ON s.site_id = p.site_id
WHERE p.url_id IN ({numbers}) AND p.noindex = 0 AND p.body_id IS NOT NULL AND CASE u.state WHEN 'queued'
  THEN coalesce((SELECT v.state_before FROM revisits_by_id v WHERE v.url_id = u.url_id), 'fetched') ELSE u.state END
  = 'fetched'

-- ---- planning the index -----------------------------------------------------------------------------------------

-- name: duplicate_steps
-- From pages to their canonical URLs, and from URLs to where they redirect.
SELECT url_id, target_id FROM urls_by_id
WHERE target_id <> url_id AND state IN ('fetched', 'excluded', 'redirected')

-- name: mirror_steps
-- A mirror's page leads to the page with the same path on the main site, if that was fetched.
SELECT u.url_id, m.url_id AS main_id
FROM mirrors v JOIN sites_by_id s ON s.site = v.site JOIN sites_by_id t ON t.site = v.leads_to
JOIN urls_by_id u ON u.url_id BETWEEN s.first_url_id AND s.last_url_id
JOIN urls_by_id m ON m.url_id = t.first_url_id + u.path_hash AND m.path = u.path
JOIN pages_by_id p ON p.url_id = m.url_id

-- name: page_facts
-- Every page, with its body if it may be indexed, and whether it is to be indexed if it has no duplicate.
SELECT p.url_id, p.site_id, CASE WHEN p.noindex = 0 THEN p.body_id END AS body_id,
  CASE WHEN p.body_id IS NOT NULL AND p.noindex = 0 AND p.gone_at IS NULL
    AND CASE u.state WHEN 'queued' THEN coalesce(r.state_before, 'fetched') ELSE u.state END = 'fetched'
    THEN 1 ELSE 0 END AS is_indexable,
  u.depth, length(u.path) AS path_length,
  CASE WHEN s.site IN (SELECT site FROM mirrors) THEN 1 ELSE 0 END AS on_mirror
FROM pages_by_id p JOIN urls_by_id u ON u.url_id = p.url_id JOIN sites_by_id s ON s.site_id = p.site_id
LEFT JOIN revisits_by_id r ON r.url_id = u.url_id

-- name: links
-- The links that say something of their targets. A link on a NOINDEX page is not indexed.
SELECT l.source_id, l.source_site_id, l.target_id, l.anchor
FROM links_by_id l JOIN pages_by_id p ON p.url_id = l.source_id AND p.noindex = 0 WHERE l.follow = 1

-- name: contents
-- What the index entries of a list of {numbers} are made of, besides the links to them.
SELECT p.url_id, p.title, p.description, p.keywords, p.body_id, p.charset, p.content_type, p.body_bytes, p.fetched_at,
  p.site_id, s.site, u.depth, k.pagerank, n.cluster_id
FROM pages_by_id p JOIN urls_by_id u ON u.url_id = p.url_id JOIN sites_by_id s ON s.site_id = p.site_id
LEFT JOIN ranks_by_id k ON k.url_id = p.url_id LEFT JOIN near_duplicates_by_id n ON n.url_id = p.url_id
WHERE p.url_id IN ({numbers}) AND p.noindex = 0 AND p.body_id IS NOT NULL ORDER BY p.url_id
