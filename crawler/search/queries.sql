-- The statements of the search, over the views of the store and the tables of the index (search_page, search_text,
-- search_state). The index tables belong to this feature. What differs by database is in sqlite.sql and postgres.sql.

-- ---- searching --------------------------------------------------------------------------------------------------

-- name: index_state
-- Whether the index is complete.
SELECT complete FROM search_state

-- name: languages
-- The languages of the index, separated by blanks.
SELECT languages FROM search_state

-- name: known_site
-- One row if the crawl knows a site of the host or below it.
SELECT 1 AS known FROM sites_by_id
WHERE instr(site || ':', '://' || :host || ':') > 0 OR instr(site || ':', '.' || :host || ':') > 0
LIMIT 1

-- name: cluster
-- The cluster of near-duplicates that a page belongs to.
SELECT cluster_id FROM near_duplicates_by_id WHERE url_id = :url_id

-- name: find
-- The best of the pages that match :match and the filters, with their scores. {matching} defines the table "matching",
-- their rows of search_page with text_score. total counts all these pages, {facets} has their facets or is NULL.
WITH {wanted},
{matching},
{facet},
average AS MATERIALIZED (
  SELECT (SELECT count(*) FROM ranks_by_id) AS ranked, mean_inbound FROM search_state),
scored AS (
  SELECT m.*, (SELECT r.pagerank FROM ranks_by_id r WHERE r.url_id = m.url_id) AS pagerank, ranked, mean_inbound
  FROM matching m CROSS JOIN average),
weighed AS (
  SELECT url_id, site_id, language, depth, text_score, in_links, in_sites, pagerank,
    CASE WHEN ranked > 0 THEN coalesce(pagerank * ranked, 0)
         WHEN mean_inbound > 0 THEN (in_links + {site_weight} * in_sites) / mean_inbound
         ELSE 0 END AS popularity
  FROM scored),
best AS MATERIALIZED (
  SELECT url_id, site_id, language, depth, in_links, in_sites, pagerank,
    text_score * (1 + {popularity_share} * popularity / (popularity + {popularity_half})) AS score,
    count(*) OVER () AS total
  FROM weighed ORDER BY score DESC, url_id LIMIT :limit)
SELECT w.url_id, s.site || u.path AS url, s.site, p.title, p.description, p.fetched_at, p.body_id, p.charset,
  p.content_type, p.directives, w.in_links, w.in_sites, w.pagerank, w.language, w.depth, w.score, w.total,
  {facets} AS facets,
  p.noindex = 0 AND p.body_id IS NOT NULL AND CASE u.state WHEN 'queued'
    THEN coalesce((SELECT v.state_before FROM revisits_by_id v WHERE v.url_id = u.url_id), 'fetched') ELSE u.state END
    = 'fetched' AS is_page,
  coalesce(n.cluster_id, w.url_id) AS cluster_id, CASE WHEN n.cluster_id IS NULL THEN 0 ELSE
    (SELECT count(*) FROM near_duplicates_by_id d WHERE d.cluster_id = n.cluster_id) - 1 END AS similar
FROM best w LEFT JOIN near_duplicates_by_id n ON n.url_id = w.url_id JOIN pages_by_id p ON p.url_id = w.url_id
JOIN urls_by_id u ON u.url_id = w.url_id JOIN sites_by_id s ON s.site_id = w.site_id
ORDER BY w.score DESC, w.url_id

-- name: wanted
-- The sites of the host :host and below it.
wanted AS MATERIALIZED (
  SELECT site_id FROM sites_by_id
  WHERE instr(site || ':', '://' || :host || ':') > 0 OR instr(site || ':', '.' || :host || ':') > 0)

-- name: filters
-- Whether the page i of the index passes the filters; a filter that is NULL lets all pages pass.
(CAST(:host AS TEXT) IS NULL OR i.site_id IN (SELECT site_id FROM wanted))
  AND (CAST(:language AS TEXT) IS NULL OR i.language = :language)
  AND (CAST(:depth AS BIGINT) IS NULL OR i.depth = :depth)
  AND (CAST(:since AS DOUBLE PRECISION) IS NULL OR i.fetched_at >= :since)
  AND (CAST(:cluster AS BIGINT) IS NULL
    OR i.url_id IN (SELECT url_id FROM near_duplicates_by_id WHERE cluster_id = :cluster))

-- name: facet
-- How many of the pages that match have which site (the most frequent ones), language and depth, and how many were
-- fetched within the last day, week, month and year before :now.
facet AS (
  SELECT 'site' AS facet, s.site AS value, n AS pages FROM (
    SELECT site_id, count(*) AS n FROM matching GROUP BY site_id ORDER BY n DESC, site_id LIMIT {most}) AS g
  JOIN sites_by_id s ON s.site_id = g.site_id
  UNION ALL SELECT 'language', language, n FROM (
    SELECT language, count(*) AS n FROM matching WHERE language <> '' GROUP BY language ORDER BY n DESC, language
    LIMIT {most}) AS g
  UNION ALL SELECT 'depth', CAST(depth AS TEXT), n FROM (
    SELECT depth, count(*) AS n FROM matching GROUP BY depth ORDER BY depth LIMIT {most}) AS g
  UNION ALL SELECT 'since', 'day', count(*) FROM matching WHERE fetched_at >= :now - 86400
  UNION ALL SELECT 'since', 'week', count(*) FROM matching WHERE fetched_at >= :now - 7 * 86400
  UNION ALL SELECT 'since', 'month', count(*) FROM matching WHERE fetched_at >= :now - 30 * 86400
  UNION ALL SELECT 'since', 'year', count(*) FROM matching WHERE fetched_at >= :now - 365 * 86400)

-- name: anchors
-- The anchors of links to pages, one a line, the most frequent first. {pages} is a list of parameters.
SELECT url_id, anchors FROM search_anchors WHERE url_id IN ({pages})

-- name: count_pages
-- The pages in the index, and their sites.
SELECT count(*) AS pages, count(DISTINCT site_id) AS sites FROM search_page

-- name: word
-- How many pages have the word; no row if none has it.
SELECT doc FROM search_word WHERE term = :term

-- name: words_of_prefix
-- The words that begin with :prefix, counted once for each row that has them.
SELECT sum(doc) AS pages FROM search_word WHERE term >= :prefix AND term < :after

-- name: frequent_words
-- The most frequent words that begin with :prefix.
SELECT term FROM search_word WHERE term >= :prefix AND term < :after ORDER BY doc DESC, term LIMIT :most

-- name: words_like
-- The words of the index that begin with :prefix, of some length, with how many pages have them.
SELECT term, doc FROM search_word WHERE term >= :prefix AND term < :after AND length(term) BETWEEN :least AND :most

-- ---- planning the index -----------------------------------------------------------------------------------------

-- name: deduplicate
-- The temporary tables "main_of" and "chosen", see deduplicate.py. BIGINT would not be a row number in SQLite, so the
-- PostgreSQL backend replaces INTEGER.
CREATE TEMP TABLE step (url_id INTEGER PRIMARY KEY, next_id INTEGER NOT NULL);
INSERT INTO step
  SELECT url_id, target_id FROM urls_by_id
  WHERE target_id <> url_id AND state IN ('fetched', 'excluded', 'redirected');
-- A mirror's page leads to the page with the same path on the main site, if that was fetched.
INSERT INTO step
  SELECT u.url_id, m.url_id FROM mirrors v JOIN sites_by_id s ON s.site = v.site JOIN sites_by_id t ON t.site = v.leads_to
  JOIN urls_by_id u ON u.url_id BETWEEN s.first_url_id AND s.last_url_id
  JOIN urls_by_id m ON m.url_id = t.first_url_id + u.path_hash AND m.path = u.path
  JOIN pages_by_id p ON p.url_id = m.url_id WHERE true
  ON CONFLICT DO NOTHING;
-- Of pages with the same body, one is the main page: not on a mirror, then nearest to a seed, then with the shortest path.
INSERT INTO step
  SELECT url_id, main_id FROM (
    SELECT p.url_id, first_value(p.url_id) OVER (PARTITION BY p.body_id
      ORDER BY s.site IN (SELECT site FROM mirrors), u.depth, length(u.path), p.url_id) AS main_id
    FROM pages_by_id p JOIN urls_by_id u ON u.url_id = p.url_id JOIN sites_by_id s ON s.site_id = p.site_id
    WHERE p.body_id IS NOT NULL AND p.noindex = 0 AND NOT EXISTS (SELECT 1 FROM step WHERE url_id = p.url_id)) AS copy
  WHERE main_id <> url_id;

CREATE TEMP TABLE main_of (url_id INTEGER PRIMARY KEY, main_id INTEGER NOT NULL);
INSERT INTO main_of
  WITH RECURSIVE way (url_id, at_id, n) AS (
    SELECT url_id, next_id, 1 FROM step
    UNION ALL SELECT way.url_id, s.next_id, n + 1 FROM way JOIN step s ON s.url_id = way.at_id WHERE n < 16)
  SELECT url_id, at_id FROM way WHERE NOT EXISTS (SELECT 1 FROM step WHERE url_id = way.at_id);

CREATE TEMP TABLE stand_in (main_id INTEGER PRIMARY KEY, url_id INTEGER NOT NULL);
INSERT INTO stand_in
  SELECT main_id, url_id FROM (
    SELECT m.main_id, m.url_id, row_number() OVER (PARTITION BY m.main_id ORDER BY u.depth, m.url_id) AS n
    FROM main_of m JOIN pages_by_id p ON p.url_id = m.url_id AND p.body_id IS NOT NULL AND p.noindex = 0
    JOIN urls_by_id u ON u.url_id = m.url_id
    WHERE NOT EXISTS (SELECT 1 FROM pages_by_id WHERE url_id = m.main_id)) AS nearest
  WHERE n = 1;
UPDATE main_of SET main_id = s.url_id FROM stand_in s WHERE s.main_id = main_of.main_id;
DELETE FROM main_of WHERE url_id = main_id;
INSERT INTO main_of SELECT main_id, url_id FROM stand_in;

CREATE TEMP TABLE chosen (url_id INTEGER PRIMARY KEY, site_id INTEGER NOT NULL);
INSERT INTO chosen
  SELECT p.url_id, p.site_id
  FROM pages_by_id p JOIN urls_by_id u ON u.url_id = p.url_id LEFT JOIN revisits_by_id r ON r.url_id = u.url_id
  WHERE p.body_id IS NOT NULL AND p.noindex = 0 AND p.gone_at IS NULL
    AND CASE u.state WHEN 'queued' THEN coalesce(r.state_before, 'fetched') ELSE u.state END = 'fetched'
    AND NOT EXISTS (SELECT 1 FROM main_of WHERE url_id = p.url_id);

CREATE TEMP TABLE inbound (url_id INTEGER PRIMARY KEY, anchors TEXT, in_links INTEGER, in_sites INTEGER)

-- name: count_chosen
SELECT count(*) AS pages FROM chosen

-- name: inbound_links
-- The links to each chosen page, ordered by page and linking page. A link on a NOINDEX page is not indexed. A linking
-- page that is a duplicate counts as its main page.
SELECT c.url_id AS page_id, c.site_id AS page_site_id, coalesce(s.main_id, l.source_id) AS source_id,
  coalesce(m.site_id, l.source_site_id) AS source_site_id, l.anchor
FROM links_by_id l
JOIN pages_by_id p ON p.url_id = l.source_id AND p.noindex = 0
LEFT JOIN main_of t ON t.url_id = l.target_id
JOIN chosen c ON c.url_id = coalesce(t.main_id, l.target_id)
LEFT JOIN main_of s ON s.url_id = l.source_id
LEFT JOIN urls_by_id m ON m.url_id = s.main_id
WHERE l.follow = 1 AND coalesce(s.main_id, l.source_id) <> c.url_id
ORDER BY 1, 3, 5

-- name: next_pages
-- A batch of the chosen pages with all that their index entries are made of, and what the index holds for them now.
SELECT c.url_id, p.title, p.description, p.keywords, p.body_id, p.charset, p.content_type,
  coalesce(i.anchors, '') AS anchors, coalesce(i.in_links, 0) AS in_links, coalesce(i.in_sites, 0) AS in_sites,
  u.depth, p.fetched_at, c.site_id, s.site, e.digest AS indexed_digest, e.in_links AS indexed_in_links,
  e.in_sites AS indexed_in_sites, e.depth AS indexed_depth, e.fetched_at AS indexed_fetched_at, p.body_bytes
FROM chosen c JOIN urls_by_id u ON u.url_id = c.url_id JOIN sites_by_id s ON s.site_id = c.site_id
JOIN pages_by_id p ON p.url_id = c.url_id AND p.noindex = 0 AND p.body_id IS NOT NULL
LEFT JOIN inbound i ON i.url_id = c.url_id LEFT JOIN search_page e ON e.url_id = c.url_id
WHERE c.url_id > :after ORDER BY c.url_id LIMIT :limit

-- ---- writing the index ------------------------------------------------------------------------------------------

-- name: index_version
SELECT version, complete FROM search_state

-- name: forget_state
DELETE FROM search_state

-- name: begin_state
-- The index is under construction, and will cover the crawl up to its last request.
INSERT INTO search_state (id, version, last_request, complete, mean_inbound, languages)
SELECT 1, {version}, coalesce(max(request_id), 0), 0, 0, '' FROM requests_by_id

-- name: remove_unchosen
-- Remove the entries of pages that are no longer indexed.
DELETE FROM search_page WHERE NOT EXISTS (SELECT 1 FROM chosen c WHERE c.url_id = search_page.url_id) RETURNING url_id

-- name: remove_unchosen_anchors
DELETE FROM search_anchors WHERE NOT EXISTS (SELECT 1 FROM search_page p WHERE p.url_id = search_anchors.url_id)

-- name: pages_by_language
SELECT language, count(*) AS pages FROM search_page GROUP BY language

-- name: end_state
-- The index is complete.
UPDATE search_state SET complete = 1, languages = '{languages}', mean_inbound =
  (SELECT coalesce(avg(in_links + {site_weight} * in_sites), 0) FROM search_page)
