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
-- The pages that match the FTS5 expression :match and the filters, with their BM25 scores: those up to :place in the
-- order of links, and those that match :head by title, anchors or headings; up to :most of them. {weights} are those of
-- the columns.
matching AS MATERIALIZED (
  SELECT i.*, -bm25({table}, {weights}) AS text_score
  FROM {table} CROSS JOIN search_page i ON i.row_id = {table}.rowid
  WHERE {table} MATCH :match AND {table}.rowid BETWEEN :first_row AND :last_row AND {filters}
    AND (i.place <= :place OR i.row_id IN (SELECT rowid FROM search_head WHERE search_head MATCH :head))
  LIMIT :most)

-- name: count
-- How many pages up to :place match :match and the filters, up to :most.
WITH {wanted}
SELECT count(*) AS n FROM (
  SELECT i.url_id FROM {table} CROSS JOIN search_page i ON i.row_id = {table}.rowid
  WHERE {table} MATCH :match AND {table}.rowid BETWEEN :first_row AND :last_row AND {filters} AND i.place <= :place
  LIMIT :most)

-- name: knows
-- One row if a page matches :match.
SELECT 1 AS known FROM search_text WHERE search_text MATCH :match LIMIT 1

-- name: facets
(SELECT json_group_array(json_array(facet, value, pages)) FROM facet)

-- name: rows_of_site
-- The first and the last row of the pages of the host :host and below it.
WITH {wanted}
SELECT min(row_id) AS first_row, max(row_id) AS last_row FROM search_page
WHERE site_id IN (SELECT site_id FROM wanted)

-- name: live_rows
SELECT count(*) AS n FROM search_page

-- name: highest_row
SELECT rowid AS row_id FROM search_text ORDER BY rowid DESC LIMIT 1

-- name: delete_texts
INSERT INTO search_text (search_text) VALUES ('delete-all')

-- name: delete_heads
INSERT INTO search_head (search_head) VALUES ('delete-all')

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

-- name: insert_head
INSERT INTO search_head (rowid, title, anchors, description, keywords, headings) VALUES (?, ?, ?, ?, ?, ?)

-- name: insert_page
INSERT OR REPLACE INTO search_page (row_id, url_id, digest, in_links, in_sites, depth, fetched_at, site_id, language)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: insert_anchors
INSERT INTO search_anchors (url_id, anchors) VALUES (?, ?)

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

-- name: set_figures
UPDATE search_page SET in_links = ?, in_sites = ?, depth = ?, fetched_at = ? WHERE url_id = ?

-- name: insert_inbound
INSERT INTO inbound (url_id, anchors, in_links, in_sites) VALUES (?, ?, ?, ?)
