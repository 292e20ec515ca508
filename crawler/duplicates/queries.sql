-- The statements of the search for near-duplicates, over the views of the store.

-- name: compared
-- The condition on a page p and its URL u for its text to be compared. r is the page's revisit, if there is one.
p.body_id IS NOT NULL AND p.noindex = 0 AND p.gone_at IS NULL
  AND CASE u.state WHEN 'queued' THEN coalesce(r.state_before, 'fetched') ELSE u.state END = 'fetched'

-- name: next_pages
-- A batch of the pages whose texts are compared, by number, with the digests of their signatures.
SELECT p.url_id, p.site_id, w.site, p.title, p.body_id, p.charset, p.content_type, p.body_bytes, s.digest
FROM pages_by_id p JOIN urls_by_id u ON u.url_id = p.url_id JOIN sites_by_id w ON w.site_id = p.site_id
LEFT JOIN revisits_by_id r ON r.url_id = p.url_id
LEFT JOIN text_signatures_by_id s ON s.url_id = p.url_id
WHERE {compared} AND p.url_id > :after ORDER BY p.url_id LIMIT :limit

-- name: count_pages
SELECT count(*) AS pages
FROM pages_by_id p JOIN urls_by_id u ON u.url_id = p.url_id LEFT JOIN revisits_by_id r ON r.url_id = p.url_id
WHERE {compared}

-- name: outdated
-- The signatures of pages whose texts are no longer compared.
SELECT s.url_id FROM text_signatures_by_id s
WHERE NOT EXISTS (
  SELECT 1 FROM pages_by_id p JOIN urls_by_id u ON u.url_id = p.url_id LEFT JOIN revisits_by_id r ON r.url_id = p.url_id
  WHERE p.url_id = s.url_id AND {compared})

-- name: pages
-- Pages by number. {numbers} is a list of numbers.
SELECT p.url_id, p.site_id, w.site, p.title, p.body_id, p.charset, p.content_type, p.body_bytes
FROM pages_by_id p JOIN sites_by_id w ON w.site_id = p.site_id
WHERE url_id IN ({numbers}) AND body_id IS NOT NULL ORDER BY url_id

-- name: template
-- The shingles of the template of a site, eight bytes each.
SELECT shingles FROM site_templates_by_id WHERE site_id = :site_id

-- name: buckets
-- The pages that have a key, the eight bytes of all keys that begin at :at, in common with another page.
SELECT substr(keys, :at, 8) AS value, url_id FROM text_signatures_by_id
WHERE substr(keys, :at, 8) IN (
  SELECT substr(keys, :at, 8) FROM text_signatures_by_id WHERE length(keys) >= :at
  GROUP BY substr(keys, :at, 8) HAVING count(*) > 1)
ORDER BY 1, 2

-- name: best_first
-- By which pages of a cluster one is chosen to represent it, the lowest first: it has no main page elsewhere, is on no
-- mirror, and is near to a seed with a short path. {numbers} is a list of numbers.
SELECT u.target_id IS NOT NULL AS has_main, s.site IN (SELECT site FROM mirrors) AS on_mirror, u.depth,
  length(u.path) AS length, u.url_id
FROM urls_by_id u JOIN sites_by_id s ON s.site_id = u.site_id WHERE u.url_id IN ({numbers})
