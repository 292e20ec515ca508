-- The statements on the file of the index: SQLite with FTS5 (https://www.sqlite.org/fts5.html).

-- ---- searching --------------------------------------------------------------------------------------------------

-- name: state
-- What the index covers, with the numbers of its pages and sites. No row if there is no index.
SELECT crawl, last_request, complete, under_way, languages, (SELECT count(*) FROM search_page) AS pages,
  (SELECT count(*) FROM search_site) AS sites
FROM search_state

-- name: find
-- The best of the pages that match the FTS5 expression :match and the filters: those up to :place in the order of
-- links, and those that match :head by title, anchors or headings; up to :most of them. {weights} are those of the
-- columns. {share} of a page m is 1 if it has all words, and less by the weights of those that it has not. total counts
-- all these pages, whole those with all words; {facets} has the facets of the latter or is NULL.
WITH {wanted},
matching AS MATERIALIZED (
  SELECT i.*, -bm25({table}, {weights}) AS text_score
  FROM {table} CROSS JOIN search_page i ON i.row_id = {table}.rowid
  WHERE {table} MATCH :match AND {table}.rowid BETWEEN :first_row AND :last_row AND {filters}
    AND (i.place <= :place OR i.row_id IN (SELECT rowid FROM search_head WHERE search_head MATCH :head))
  LIMIT :most),
covered AS MATERIALIZED (SELECT m.*, {share} AS share FROM matching m),
{facet},
weighed AS (
  SELECT m.*, CASE WHEN ranked > 0 THEN coalesce(pagerank * ranked, 0)
    WHEN mean_inbound > 0 THEN (in_links + {site_weight} * in_sites) / mean_inbound ELSE 0 END AS popularity
  FROM covered m CROSS JOIN search_state)
SELECT row_id, share, url_id, language, depth, fetched_at, in_links, in_sites, pagerank, coalesce(cluster_id, url_id) AS cluster_id,
  text_score * share * CASE share WHEN 1 THEN 1 + {popularity_share} * popularity / (popularity + {popularity_half}) ELSE 1 END
    AS score,
  count(*) OVER () AS total, sum(share = 1) OVER () AS whole, {facets} AS facets,
  CASE WHEN cluster_id IS NULL THEN 0 ELSE
    (SELECT count(*) FROM search_page o WHERE o.cluster_id = weighed.cluster_id) - 1 END AS similar
FROM weighed ORDER BY score DESC, url_id LIMIT :limit

-- name: facets
(SELECT json_group_array(json_array(facet, value, pages)) FROM facet)

-- name: count
-- How many pages match :match and the filters, up to :most.
WITH {wanted}
SELECT count(*) AS n FROM (
  SELECT i.url_id FROM {table} CROSS JOIN search_page i ON i.row_id = {table}.rowid
  WHERE {table} MATCH :match AND {table}.rowid BETWEEN :first_row AND :last_row AND {filters}
  LIMIT :most)

-- name: count_any
-- How many rows match :match, up to :most: pages without a filter, in half the time.
SELECT count(*) AS n FROM (SELECT rowid FROM {table} WHERE {table} MATCH :match LIMIT :most)

-- name: knows
-- One row if a page matches :match.
SELECT 1 AS known FROM search_text WHERE search_text MATCH :match LIMIT 1

-- name: wanted
-- The sites of the host :host and below it.
wanted AS MATERIALIZED (
  SELECT site_id FROM search_site
  WHERE instr(site || ':', '://' || :host || ':') > 0 OR instr(site || ':', '.' || :host || ':') > 0)

-- name: filters
-- Whether the page i of the index passes the filters; a filter that is NULL lets all pages pass.
(:host IS NULL OR i.site_id IN (SELECT site_id FROM wanted))
  AND (:language IS NULL OR i.language = :language) AND (:depth IS NULL OR i.depth = :depth)
  AND (:since IS NULL OR i.fetched_at >= :since) AND (:cluster IS NULL OR i.cluster_id = :cluster)

-- name: facet
-- How many of the pages with all words have which site (the most frequent ones), language and depth, and how many were
-- fetched within the last day, week, month and year before :now.
facet AS (
  SELECT 'site' AS facet, s.site AS value, n AS pages FROM (
    SELECT site_id, count(*) AS n FROM covered WHERE share = 1 GROUP BY site_id ORDER BY n DESC, site_id LIMIT {most}) AS g
  JOIN search_site s ON s.site_id = g.site_id
  UNION ALL SELECT 'language', language, n FROM (
    SELECT language, count(*) AS n FROM covered WHERE share = 1 AND language <> '' GROUP BY language ORDER BY n DESC, language
    LIMIT {most}) AS g
  UNION ALL SELECT 'depth', CAST(depth AS TEXT), n FROM (
    SELECT depth, count(*) AS n FROM covered WHERE share = 1 GROUP BY depth ORDER BY depth LIMIT {most}) AS g
  UNION ALL SELECT 'since', e.key, e.value FROM (
    SELECT json_object('day', sum(fetched_at >= :now - 86400), 'week', sum(fetched_at >= :now - 7 * 86400),
      'month', sum(fetched_at >= :now - 30 * 86400), 'year', sum(fetched_at >= :now - 365 * 86400)) AS counts
    FROM covered WHERE share = 1) AS g, json_each(g.counts) AS e)

-- name: rows_of_site
-- The first and the last row of the pages of the host :host and below it.
WITH {wanted}
SELECT min(row_id) AS first_row, max(row_id) AS last_row FROM search_page
WHERE site_id IN (SELECT site_id FROM wanted)

-- name: cluster
-- The cluster of near-duplicates that a page belongs to.
SELECT cluster_id FROM search_page WHERE url_id = :url_id AND cluster_id IS NOT NULL

-- name: documents
-- The texts of pages. {rows} is a list of numbers.
SELECT row_id, texts FROM search_document WHERE row_id IN ({rows})

-- name: count_words
-- The pages of the words from :first to :last, counted once for each word.
SELECT coalesce(sum(doc), 0) AS pages FROM search_word WHERE term BETWEEN :first AND :last

-- name: frequent_words
-- The most frequent words that begin with :prefix, and how many pages have them.
SELECT term, doc FROM search_word WHERE term >= :prefix AND term < :after ORDER BY doc DESC, term LIMIT :most

-- ---- writing ----------------------------------------------------------------------------------------------------

-- name: settings
-- Of the connection that writes. It overwrites what it deletes: pages are forgotten.
PRAGMA busy_timeout = 10000;
PRAGMA page_size = 8192;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA temp_store = FILE;
PRAGMA secure_delete = ON

-- name: tables
-- The tables of an index, whatever its version; those of FTS5, which own others, first.
SELECT name, sql LIKE 'CREATE VIRTUAL%' AS is_virtual FROM sqlite_master
WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY is_virtual DESC, name

-- name: set_hash_size
-- Few, large segments.
INSERT INTO search_text (search_text, rank) VALUES ('hashsize', 33554432)

-- name: version
-- The version of the tables, or 0.
PRAGMA user_version

-- name: set_version
PRAGMA user_version = {version}

-- name: drop_table
DROP TABLE {name}

-- name: begin_state
-- The index is written. One that was complete answers meanwhile.
INSERT INTO search_state (id, crawl, last_request, complete, under_way, mean_inbound, ranked, languages)
VALUES (1, :crawl, 0, 0, 1, 0, 0, '') ON CONFLICT DO UPDATE SET under_way = 1

-- name: end_state
-- The index is complete.
UPDATE search_state SET complete = 1, under_way = 0, last_request = :last_request, languages = :languages,
  mean_inbound = (SELECT coalesce(avg(in_links + {site_weight} * in_sites), 0) FROM search_page),
  ranked = (SELECT count(pagerank) FROM search_page)

-- name: known
-- What the index holds for pages. {numbers} is a list of numbers.
SELECT row_id, url_id, digest, in_links, in_sites, depth, fetched_at, pagerank, cluster_id FROM search_page
WHERE url_id IN ({numbers})

-- name: highest_row
SELECT max(row_id) AS row_id FROM search_page

-- name: insert_text
INSERT INTO search_text (rowid, title, anchors, headings, body) VALUES (?, ?, ?, ?, ?)

-- name: insert_head
INSERT INTO search_head (rowid, title, anchors, headings) VALUES (?, ?, ?, ?)

-- name: delete_text
INSERT INTO search_text (search_text, rowid, title, anchors, headings, body) VALUES ('delete', ?, ?, ?, ?, ?)

-- name: delete_head
INSERT INTO search_head (search_head, rowid, title, anchors, headings) VALUES ('delete', ?, ?, ?, ?)

-- name: insert_page
INSERT INTO search_page (row_id, digest, site_id, language, in_links, in_sites, depth, fetched_at, pagerank, cluster_id, url_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: insert_document
INSERT INTO search_document (row_id, texts) VALUES (?, ?)

-- name: insert_site
INSERT OR REPLACE INTO search_site (site_id, site) VALUES (?, ?)

-- name: delete_page
DELETE FROM search_page WHERE row_id = ?

-- name: delete_document
DELETE FROM search_document WHERE row_id = ?

-- name: set_figures
UPDATE search_page SET in_links = ?, in_sites = ?, depth = ?, fetched_at = ?, pagerank = ?, cluster_id = ? WHERE url_id = ?

-- name: unchosen
-- The rows of pages that are no longer indexed.
SELECT row_id FROM search_page WHERE url_id NOT IN (SELECT url_id FROM chosen)

-- name: drop_empty_sites
DELETE FROM search_site WHERE site_id NOT IN (SELECT site_id FROM search_page)

-- name: make_vocabulary
CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, search_text, row)

-- name: delete_words
DELETE FROM search_word

-- name: insert_words
-- The words of the index, each with the number of rows that have it. This reads the whole index.
INSERT INTO search_word (term, doc) SELECT term, doc FROM temp.vocabulary

-- name: set_places
-- The pages in the order of the links to them.
UPDATE search_page SET place = p.place FROM (
  SELECT url_id, row_number() OVER (ORDER BY in_links + {site_weight} * in_sites DESC, url_id) AS place
  FROM search_page) AS p
WHERE p.url_id = search_page.url_id AND p.place <> search_page.place

-- name: pages_by_language
SELECT language, count(*) AS pages FROM search_page GROUP BY language

-- name: merge_texts
-- Write all words anew, without those that were taken out.
INSERT INTO search_text (search_text) VALUES ('optimize')

-- name: merge_heads
INSERT INTO search_head (search_head) VALUES ('optimize')

-- name: empty_log
PRAGMA wal_checkpoint(TRUNCATE)

-- ---- planning ---------------------------------------------------------------------------------------------------

-- name: plan_tables
-- Temporary tables, see deduplicate.py.
CREATE TEMP TABLE step (url_id INTEGER PRIMARY KEY, next_id INTEGER NOT NULL);
CREATE TEMP TABLE fact (
  url_id INTEGER PRIMARY KEY, site_id INTEGER, body_id INTEGER, is_indexable INTEGER, depth INTEGER, path_length INTEGER,
  on_mirror INTEGER);
CREATE TEMP TABLE main_of (url_id INTEGER PRIMARY KEY, main_id INTEGER NOT NULL);
CREATE TEMP TABLE chosen (url_id INTEGER PRIMARY KEY, site_id INTEGER NOT NULL);
CREATE TEMP TABLE found_link (page_id INTEGER, source_id INTEGER, source_site_id INTEGER, anchor TEXT);
CREATE TEMP TABLE inbound (url_id INTEGER PRIMARY KEY, anchors TEXT, in_links INTEGER, in_sites INTEGER)

-- name: insert_step
INSERT OR IGNORE INTO step (url_id, next_id) VALUES (?, ?)

-- name: insert_fact
INSERT INTO fact (url_id, site_id, body_id, is_indexable, depth, path_length, on_mirror) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: choose
-- Of pages with the same body, one is the main page: not on a mirror, then nearest to a seed, then with the shortest path.
INSERT INTO step
  SELECT url_id, main_id FROM (
    SELECT url_id, first_value(url_id) OVER (
      PARTITION BY body_id ORDER BY on_mirror, depth, path_length, url_id) AS main_id
    FROM fact WHERE body_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM step WHERE step.url_id = fact.url_id))
  WHERE main_id <> url_id;
INSERT INTO main_of
  WITH RECURSIVE way (url_id, at_id, n) AS (
    SELECT url_id, next_id, 1 FROM step
    UNION ALL SELECT way.url_id, s.next_id, n + 1 FROM way JOIN step s ON s.url_id = way.at_id WHERE n < 16)
  SELECT url_id, at_id FROM way WHERE NOT EXISTS (SELECT 1 FROM step WHERE url_id = way.at_id);
CREATE TEMP TABLE stand_in AS
  SELECT main_id, url_id FROM (
    SELECT m.main_id, m.url_id, row_number() OVER (PARTITION BY m.main_id ORDER BY f.depth, m.url_id) AS n
    FROM main_of m JOIN fact f ON f.url_id = m.url_id AND f.body_id IS NOT NULL
    WHERE NOT EXISTS (SELECT 1 FROM fact WHERE url_id = m.main_id)) AS nearest
  WHERE n = 1;
UPDATE main_of SET main_id = s.url_id FROM stand_in s WHERE s.main_id = main_of.main_id;
DELETE FROM main_of WHERE url_id = main_id;
INSERT INTO main_of SELECT main_id, url_id FROM stand_in;
INSERT INTO chosen
  SELECT url_id, site_id FROM fact WHERE is_indexable AND NOT EXISTS (SELECT 1 FROM main_of WHERE url_id = fact.url_id)

-- name: keep_indexed
-- Choose no page that the index has not.
DELETE FROM chosen WHERE url_id NOT IN (SELECT url_id FROM search_page)

-- name: count_chosen
SELECT count(*) AS pages FROM chosen

-- name: insert_link
-- A link to a chosen page or to a duplicate of one. A linking page that is a duplicate counts as its main page.
INSERT INTO found_link
  SELECT c.url_id, coalesce(s.main_id, l.source_id), coalesce(f.site_id, l.source_site_id), l.anchor
  FROM (SELECT ? AS source_id, ? AS source_site_id, ? AS target_id, ? AS anchor) AS l
  LEFT JOIN main_of t ON t.url_id = l.target_id
  JOIN chosen c ON c.url_id = coalesce(t.main_id, l.target_id)
  LEFT JOIN main_of s ON s.url_id = l.source_id LEFT JOIN fact f ON f.url_id = s.main_id
  WHERE coalesce(s.main_id, l.source_id) <> c.url_id

-- name: found_links
-- The links to each chosen page, ordered by page and linking page.
SELECT page_id, site_id AS page_site_id, source_id, source_site_id, anchor
FROM found_link JOIN chosen ON url_id = page_id ORDER BY 1, 3, 5

-- name: insert_inbound
INSERT INTO inbound (url_id, anchors, in_links, in_sites) VALUES (?, ?, ?, ?)

-- name: next_chosen
-- A batch of the chosen pages, and what links to each.
SELECT c.url_id, coalesce(i.anchors, '') AS anchors, coalesce(i.in_links, 0) AS in_links, coalesce(i.in_sites, 0) AS in_sites
FROM chosen c LEFT JOIN inbound i ON i.url_id = c.url_id WHERE c.url_id > :after ORDER BY c.url_id LIMIT :limit
