-- The statements of sampling, over the views of the store.

-- name: frame
-- The sampling frame: every page URL up to depth :deepest that the crawl requested, that only robots.txt, a mirror's Host
-- line, its content type or its address kept from being requested, or that is held back at depth :held_from or deeper.
-- A site is cut if it has had its :pages_per_site pages and has URLs queued; its queued URLs are not in the frame.
WITH cut (site_id) AS MATERIALIZED (
  SELECT s.site_id FROM sites_by_id s
  WHERE s.fetched >= coalesce(s.max_pages, :pages_per_site) AND EXISTS (SELECT 1 FROM frontier_by_id f WHERE f.site_id = s.site_id))
SELECT u.url_id, s.site, s.site || u.path AS url, u.site_id IN (SELECT site_id FROM cut) AS is_cut
FROM urls_by_id u JOIN sites_by_id s ON s.site_id = u.site_id
WHERE u.kind = 'page' AND u.depth <= :deepest AND (
  u.state IN ('fetched', 'redirected', 'failed')
  OR (u.state = 'excluded' AND u.reason_code IN ('robots', 'mirror', 'mirror_cycle', 'type', 'address'))
  OR (u.state = 'queued' AND u.depth >= :held_from AND u.site_id NOT IN (SELECT site_id FROM cut)))

-- name: unreached
-- What is nearer than the pages that are held back and was not reached, without the sites that are cut.
SELECT count(*) AS urls, count(DISTINCT f.site_id) AS sites FROM frontier_by_id f JOIN sites_by_id s ON s.site_id = f.site_id
WHERE f.depth < :held_from AND f.is_revisit = 0 AND s.fetched < coalesce(s.max_pages, :pages_per_site)

-- name: links
SELECT source_id, target_id FROM links_by_id

-- name: drawn
-- A row for each draw, with what became of the drawn URL, or of the URL that stands for it (sample_ends_by_id). A site
-- is full if it has had its :pages_per_site pages.
WITH ends (drawn_id, url_id) AS MATERIALIZED (SELECT url_id, end_id FROM sample_ends_by_id),
answers AS (
  SELECT e.drawn_id, q.status, q.error_kind, row_number() OVER (PARTITION BY e.drawn_id ORDER BY q.request_id DESC) AS back
  FROM ends e JOIN urls_by_id u ON u.url_id = e.url_id
  JOIN requests_by_id q ON q.site_id = u.site_id AND q.path = u.path
  WHERE u.state IN ('redirected', 'failed') AND q.purpose = 'page')
SELECT a.stratum, a.walk, a.probability, a.site_probability, e.drawn_id, ds.site AS drawn_site, ds.site || d.path AS drawn_url, e.url_id, u.state, u.reason_code, s.site || u.path AS url,
  CASE WHEN s.fetched >= coalesce(s.max_pages, :pages_per_site) THEN 1 ELSE 0 END AS is_full,
  w.status AS answer, w.error_kind, p.status, p.body_bytes, p.noindex, p.language, p.soft_404,
  CASE WHEN u.state = 'fetched' AND p.nofollow = 0 THEN (SELECT count(*) FROM links_by_id l WHERE l.source_id = e.url_id) END AS links
FROM samples_by_id a JOIN ends e ON e.drawn_id = a.url_id
JOIN urls_by_id u ON u.url_id = e.url_id JOIN sites_by_id s ON s.site_id = u.site_id
JOIN urls_by_id d ON d.url_id = a.url_id JOIN sites_by_id ds ON ds.site_id = d.site_id
LEFT JOIN pages_by_id p ON p.url_id = e.url_id
LEFT JOIN answers w ON w.drawn_id = e.drawn_id AND w.back = 1 ORDER BY a.draw

-- name: variable
-- The value of the user's expression for each of some pages; it has lines of its own, because it may end in a comment.
SELECT url_id, (
{expression}
) AS value, directives FROM pages WHERE url_id IN ({numbers})

-- name: blocked_outside
-- The known pages of blocked sites that were not drawn. A URL outside the scope has another reason_code.
SELECT count(*) AS urls FROM urls_by_id
WHERE state = 'excluded' AND reason_code = 'blocked' AND kind = 'page'
  AND url_id NOT IN (SELECT url_id FROM samples_by_id)

-- name: frame_sites
-- The number of URLs of each site in the frame that the sample was drawn from.
SELECT site, count(*) AS urls FROM sample_frame GROUP BY site

-- name: seed_ends
-- Every seed with what became of it.
SELECT url, outcome, leads_to FROM seeds

-- name: pilot_sites
-- The requests to each site, those for drawn URLs at depth :held_from or deeper, and its URLs in the sampling frame.
SELECT s.site, coalesce(q.requests, 0) AS requests, coalesce(q.answer_s, 0) AS answer_s,
  coalesce(d.urls, 0) AS drawn_urls, coalesce(d.requests, 0) AS drawn_requests,
  coalesce(f.urls, 0) AS frame_urls, coalesce(f.held, 0) AS held
FROM sites_by_id s
LEFT JOIN (
  SELECT site_id, count(*) AS requests, sum(finished_at - started_at) AS answer_s FROM requests_by_id GROUP BY site_id
) q ON q.site_id = s.site_id
LEFT JOIN (
  SELECT u.site_id, count(DISTINCT u.url_id) AS urls, count(r.request_id) AS requests
  FROM (SELECT DISTINCT url_id FROM samples_by_id) a JOIN urls_by_id u ON u.url_id = a.url_id
  LEFT JOIN requests_by_id r ON r.site_id = u.site_id AND r.path = u.path AND r.purpose = 'page'
  WHERE u.depth >= :held_from GROUP BY u.site_id
) d ON d.site_id = s.site_id
LEFT JOIN (
  SELECT u.site_id, count(*) AS urls, sum(CASE WHEN u.depth >= :held_from THEN 1 ELSE 0 END) AS held
  FROM sample_frame f JOIN urls_by_id u ON u.url_id = f.url_id GROUP BY u.site_id
) f ON f.site_id = s.site_id
WHERE q.requests > 0 OR f.urls > 0

-- name: pilot_runs
-- The time of all runs that ended, in seconds.
SELECT coalesce(sum(finished_at - started_at), 0) AS run_s FROM runs WHERE finished_at IS NOT NULL
