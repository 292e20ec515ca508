-- The index in PostgreSQL: its text search (manual, chapter 12), ranked as FTS5 ranks (postgres_text_search.py).

-- name: matching
-- The pages that match :match, with their BM25 scores. :match is a JSON array of [group, tsquery]. A page must match a
-- term of each group from 1 up. Terms of group 0 only add to the score. A page must match no term of group -1.
-- The score of each page is a query of its own (LATERAL). PostgreSQL cannot estimate how many candidates there are: it
-- expects one, and computed the scores of all of them once for each of them when they were joined.
term AS MATERIALIZED (
  SELECT row_number() OVER () AS n, (t ->> 0)::int AS term_group, (t ->> 1)::tsquery AS query
  FROM json_array_elements(:match::json) AS t),
place AS MATERIALIZED (
  SELECT t.n, t.term_group, x.url_id, x.part FROM term t JOIN search_text x ON x.words @@ t.query),
candidate AS MATERIALIZED (
  SELECT i.*, p.parts, p.terms FROM search_page i JOIN (
    SELECT url_id, array_agg(part) FILTER (WHERE term_group >= 0) AS parts,
      array_agg(n) FILTER (WHERE term_group >= 0) AS terms
    FROM place GROUP BY url_id
    HAVING count(DISTINCT term_group) FILTER (WHERE term_group > 0) = (SELECT max(term_group) FROM term)
      AND count(*) FILTER (WHERE term_group < 0) = 0) AS p ON p.url_id = i.url_id
  WHERE {filters}),
collection AS MATERIALIZED (SELECT count(*) AS pages, avg(size)::double precision AS size FROM search_page),
rarity AS MATERIALIZED (
  SELECT n, greatest(ln((pages - have + 0.5) / (have + 0.5)), 1e-6) AS idf
  FROM (SELECT n, count(DISTINCT url_id)::double precision AS have FROM place GROUP BY n) AS h, collection),
matching AS MATERIALIZED (
  SELECT c.*, w.text_score FROM candidate c CROSS JOIN collection a CROSS JOIN LATERAL (
    SELECT sum(r.idf * f.f * 2.2 / (f.f + 1.2 * (0.25 + 0.75 * c.size / a.size)) ORDER BY f.n) AS text_score
    FROM (
      SELECT t.n, {heaviest} * sum(
        ts_rank_cd('{{0.02, 0.1, 0.4, 1}}', x.words, t.query)::double precision ORDER BY x.part) AS f
      FROM unnest(c.parts, c.terms) AS p (part, n) JOIN term t ON t.n = p.n
      JOIN search_text x ON x.url_id = c.url_id AND x.part = p.part GROUP BY t.n) AS f
    JOIN rarity r ON r.n = f.n) AS w)

-- name: knows
-- One row if a page matches :match.
SELECT 1 AS known FROM search_text WHERE words @@ CAST(:match AS tsquery) LIMIT 1

-- name: facets
(SELECT json_agg(json_build_array(facet, value, pages))::text FROM facet)

-- name: try_lock
-- Whether this process has got the lock of the one that builds the index.
SELECT pg_try_advisory_lock(:key) AS is_locked

-- name: delete_index
TRUNCATE search_page, search_text, search_anchors, search_word

-- name: delete_words
-- No TRUNCATE: searches would wait until all words are listed anew.
DELETE FROM search_word

-- name: insert_words
-- The words of the index, each with the number of rows that have it. This reads the whole index.
INSERT INTO search_word (term, doc) SELECT word, ndoc FROM ts_stat('SELECT words FROM search_text')

-- name: delete_page
DELETE FROM search_page WHERE url_id = ANY($1::bigint[])

-- name: insert_page
INSERT INTO search_page (url_id, digest, in_links, in_sites, depth, fetched_at, site_id, language, size)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::double precision[], $7::bigint[],
  $8::text[], $9::bigint[])

-- name: insert_anchors
INSERT INTO search_anchors (url_id, anchors) SELECT * FROM unnest($1::bigint[], $2::text[])

-- name: insert_text
INSERT INTO search_text (url_id, part, words)
SELECT url_id, part, words::tsvector FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS t (url_id, part, words)

-- name: set_figures
UPDATE search_page s SET in_links = t.in_links, in_sites = t.in_sites, depth = t.depth, fetched_at = t.fetched_at
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::double precision[], $5::bigint[])
  AS t (in_links, in_sites, depth, fetched_at, url_id) WHERE s.url_id = t.url_id

-- name: insert_inbound
INSERT INTO inbound (url_id, anchors, in_links, in_sites)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[])
