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
row_score AS MATERIALIZED (
  SELECT rowid AS row_id, -bm25(search_text, {weights}) AS text_score FROM search_text WHERE search_text MATCH :match),
matching AS (SELECT url_id, text_score FROM row_score JOIN search_page USING (row_id))

-- name: live_rows
SELECT count(*) AS n FROM search_page

-- name: highest_row
SELECT rowid AS row_id FROM search_text ORDER BY rowid DESC LIMIT 1

-- name: delete_texts
INSERT INTO search_text (search_text) VALUES ('delete-all')

-- name: delete_pages
DELETE FROM search_page

-- name: set_hash_size
-- Few, large segments.
INSERT INTO search_text (search_text, rank) VALUES ('hashsize', 33554432)

-- name: insert_text
INSERT INTO search_text (rowid, title, anchors, description, keywords, headings, body) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: insert_page
INSERT OR REPLACE INTO search_page (row_id, url_id, digest, in_links, in_sites) VALUES (?, ?, ?, ?, ?)

-- name: set_links
UPDATE search_page SET in_links = ?, in_sites = ? WHERE url_id = ?

-- name: insert_inbound
INSERT INTO inbound (url_id, anchors, in_links, in_sites) VALUES (?, ?, ?, ?)
