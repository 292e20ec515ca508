-- The statements of the ranking, over the views of the store.

-- name: urls
-- Every URL by number, with the URL that stands for it: the canonical URL of a page if that was fetched or leads on to
-- its main site, or the main site's URL of a mirror.
SELECT u.url_id, u.site_id, CASE WHEN u.state = 'excluded' OR (u.state = 'fetched' AND (
    t.state = 'fetched' OR (t.state = 'excluded' AND t.target_id IS NOT NULL))) THEN u.target_id END AS target_id,
  u.state = 'fetched' AND u.kind = 'page' AS is_page
FROM urls_by_id u LEFT JOIN urls_by_id t ON t.url_id = u.target_id ORDER BY u.url_id

-- name: links
-- The links that may be followed: a row for each page, with its targets as one text. This returns thirty times fewer
-- rows than one row for each link.
SELECT source_id, count(*) AS links, group_concat(target_id) AS targets
FROM links_by_id WHERE follow = 1 GROUP BY source_id

-- name: mirrored_urls
-- The URLs of mirrors that are mapped by their Host line alone, with the main site and the URL that stands for them:
-- the main site's URL with the same path, or the first URL of a mirror with that path if the crawl has none of the main
-- host. Two URLs with the same path have the same path_hash, or one that differs by a few if another path took the place.
WITH followed (site_id, first_url_id, last_url_id, main_site_id, main_first_url_id) AS MATERIALIZED (
  SELECT s.site_id, s.first_url_id, s.last_url_id, t.site_id, t.first_url_id
  FROM mirrors m JOIN sites_by_id s ON s.site = m.site JOIN sites_by_id t ON t.site = m.leads_to
  WHERE EXISTS (SELECT 1 FROM urls_by_id u WHERE u.url_id BETWEEN s.first_url_id AND s.last_url_id
                AND u.state = 'excluded' AND u.target_id IS NOT NULL)),
mirrored AS (
  SELECT u.url_id, u.path, f.main_site_id, f.main_first_url_id + u.path_hash AS near_id
  FROM followed f JOIN urls_by_id u ON u.url_id BETWEEN f.first_url_id AND f.last_url_id)
SELECT b.url_id, b.main_site_id,
  coalesce(m.url_id, min(b.url_id) OVER (PARTITION BY b.main_site_id, b.path)) AS stand_in_id
FROM mirrored b LEFT JOIN urls_by_id m
  ON m.url_id BETWEEN b.near_id - 8 AND b.near_id + 8 AND m.path = b.path AND m.site_id = b.main_site_id

-- name: near_duplicates
-- The pages of clusters, with the pages that represent these.
SELECT n.url_id, n.cluster_id FROM near_duplicates_by_id n
JOIN pages_by_id p ON p.url_id = n.url_id AND p.body_id IS NOT NULL WHERE n.url_id <> n.cluster_id

-- name: top_pages
-- The pages with the highest PageRank. A page may have a rank that was never fetched, so the state is shown.
SELECT r.url, r.pagerank, r.in_links, r.in_sites, u.state
FROM ranks r JOIN urls_by_id u ON u.url_id = r.url_id ORDER BY r.pagerank DESC, r.url LIMIT 20

-- name: top_sites
-- The sites with the highest PageRank, and how many of their pages were fetched.
SELECT r.site, r.pagerank, r.pages, s.fetched, r.in_links, r.in_sites
FROM site_ranks r JOIN sites_by_id s ON s.site = r.site ORDER BY r.pagerank DESC, r.site LIMIT 20
