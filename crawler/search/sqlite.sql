-- The index in SQLite: FTS5 (https://www.sqlite.org/fts5.html).

-- name: settings
-- Of the connection.
PRAGMA busy_timeout = 10000;
PRAGMA synchronous = NORMAL;
PRAGMA temp_store = FILE;

-- name: erase_deleted
-- From now on overwrite what this connection deletes.
PRAGMA secure_delete = ON

-- name: matching
-- The pages that match the FTS5 expression :match, with their BM25 scores. {weights} are those of the columns.
matching AS MATERIALIZED (
  SELECT i.url_id, -bm25(search_text, {weights}) AS text_score
  FROM search_text CROSS JOIN search_page i ON i.row_id = search_text.rowid WHERE search_text MATCH :match AND {filters})

-- name: matching_pages
-- The same pages without scores.
matching AS (
  SELECT i.url_id FROM search_text CROSS JOIN search_page i ON i.row_id = search_text.rowid
  WHERE search_text MATCH :match AND {filters})

-- name: count_rows
-- How many rows match :match, up to :most; takes 0.04 µs a row. Stale rows count too.
SELECT count(*) AS n FROM (SELECT rowid FROM search_text WHERE search_text MATCH :match LIMIT :most)

-- name: count_filtered
-- How many pages match :match and the filters, up to :most.
WITH {wanted}
SELECT count(*) AS n FROM (
  SELECT i.url_id FROM search_text CROSS JOIN search_page i ON i.row_id = search_text.rowid
  WHERE search_text MATCH :match AND {filters} LIMIT :most)

-- name: live_rows
SELECT count(*) AS n FROM search_page

-- name: highest_row
SELECT rowid AS row_id FROM search_text ORDER BY rowid DESC LIMIT 1

-- name: delete_texts
INSERT INTO search_text (search_text) VALUES ('delete-all')

-- name: delete_pages
DELETE FROM search_page

-- name: delete_anchors
DELETE FROM search_anchors

-- name: delete_anchors_of
DELETE FROM search_anchors WHERE url_id = ?

-- name: set_hash_size
-- Few, large segments.
INSERT INTO search_text (search_text, rank) VALUES ('hashsize', 33554432)

-- name: insert_text
INSERT INTO search_text (rowid, title, anchors, description, keywords, headings, body) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: insert_page
INSERT OR REPLACE INTO search_page (row_id, url_id, digest, in_links, in_sites, depth, fetched_at, site_id, language)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: insert_anchors
INSERT INTO search_anchors (url_id, anchors) VALUES (?, ?)

-- name: set_figures
UPDATE search_page SET in_links = ?, in_sites = ?, depth = ?, fetched_at = ? WHERE url_id = ?

-- name: insert_inbound
INSERT INTO inbound (url_id, anchors, in_links, in_sites) VALUES (?, ?, ?, ?)
