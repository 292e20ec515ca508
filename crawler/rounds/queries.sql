-- The statements of the rounds: over the views of a bucket's store; from `earlier` on, in DuckDB over Parquet.

-- name: urls
SELECT {columns} FROM urls WHERE reason_code <> 'other_bucket'

-- name: sites
SELECT {columns} FROM sites

-- name: robots_versions
SELECT {columns} FROM robots_versions

-- name: pages
-- The pages that this run has fetched, and those whose answers an earlier run has left unread.
SELECT {columns} FROM pages WHERE fetched_at >= :since OR url IN (SELECT value FROM json_each(:unread))

-- name: links
-- The links of these pages.
SELECT {columns} FROM links WHERE source_id IN (
  SELECT url_id FROM pages WHERE fetched_at >= :since OR url IN (SELECT value FROM json_each(:unread)))

-- name: requests
SELECT {columns} FROM requests WHERE run_id = :run_id

-- name: ahead
-- The requests after the one with the number :after.
SELECT r.request_id, s.site || r.path AS url, s.site, r.purpose, r.started_at, r.finished_at, r.status, r.error_kind,
  r.error, r.bytes, r.verdict_line, r.retry_after_s, r.lag_s, r.address, r.price, r.sent
FROM requests_by_id r JOIN sites_by_id s ON s.site_id = r.site_id WHERE r.request_id > :after ORDER BY r.request_id

-- name: outgoing
SELECT {columns} FROM outgoing_by_id ORDER BY offer_id

-- name: states
SELECT state, count(*) AS n FROM urls WHERE reason_code <> 'other_bucket' GROUP BY state

-- name: earlier
-- The offers that were handed over in earlier rounds.
SELECT url, kind, depth FROM read_parquet($earlier)

-- name: none
SELECT NULL AS url, NULL AS kind, NULL AS depth

-- name: offers
-- The best offer of each URL and kind, without those that were made before from no nearer to a seed. An offer with the
-- date of a sitemap, or of a seed, is never left out.
WITH best AS (
  SELECT bucket, url, kind, min(depth) AS depth, arg_min(hops, (depth, hops)) AS hops, max(seed) AS seed,
    max(lastmod) AS lastmod, max(by_domain) AS by_domain
  FROM read_parquet($files) GROUP BY ALL)
SELECT * FROM best b WHERE b.lastmod IS NOT NULL OR b.seed = 1 OR NOT EXISTS (
  SELECT 1 FROM ({known}) AS k WHERE k.url = b.url AND k.kind = b.kind AND k.depth <= b.depth)

-- name: once
-- Each URL once: the row of the bucket of its site, or else the one that is nearest to a seed.
SELECT * FROM ({urls}) QUALIFY row_number() OVER (PARTITION BY url ORDER BY is_own DESC, depth, reason_code) = 1

-- name: states_of_all
SELECT state, count(*) AS n FROM urls GROUP BY state ORDER BY n DESC

-- name: reasons
SELECT state, reason_code, count(*) AS n FROM urls WHERE state IN ('excluded', 'failed')
GROUP BY ALL ORDER BY n DESC LIMIT 20

-- name: seed_causes
-- The outcomes of the seeds, and of the targets of their redirects, that are no pages.
WITH RECURSIVE way (url) AS (
  SELECT url FROM urls WHERE seed = 1
  UNION SELECT u.target FROM way JOIN urls u USING (url) WHERE u.state = 'redirected' AND u.target IS NOT NULL)
SELECT state, reason_code, reason, count(*) AS urls FROM way JOIN urls USING (url)
WHERE state = 'failed' OR (state = 'excluded' AND target IS NULL) GROUP BY ALL ORDER BY urls DESC, reason

-- name: linkers
SELECT source, anchor, rel FROM links WHERE target = $url ORDER BY source LIMIT $most

-- name: made
CREATE TEMP TABLE made AS {offers}

-- name: by_bucket
COPY made TO '{target}' (FORMAT parquet, PARTITION_BY (bucket))

-- name: view
CREATE VIEW {name} AS {rows}

-- name: no_rows
SELECT {columns} WHERE false

-- name: files
SELECT {columns} FROM read_parquet([{files}])

-- name: totals
SELECT (SELECT count(*) FROM pages) AS pages, (SELECT count(*) FROM links) AS links,
  (SELECT count(*) FROM requests) AS requests, (SELECT count(*) FROM sites) AS sites

-- name: count_linkers
SELECT count(*) AS n FROM links WHERE target = $url
