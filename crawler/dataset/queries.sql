-- The statements of datasets and rounds: over the views of a bucket's store; from `hand_over` on, in DuckDB over Parquet.

-- name: urls
SELECT {columns} FROM urls JOIN (SELECT url_id, hops FROM urls_by_id) AS n USING (url_id)
WHERE reason_code <> 'other_bucket'

-- name: sites
SELECT {columns} FROM sites

-- name: robots_versions
SELECT {columns} FROM robots_versions

-- name: robots_answers
SELECT {columns} FROM robots_answers

-- name: mirrors
SELECT {columns} FROM mirrors

-- name: seeds
SELECT {columns} FROM seeds

-- name: ahead_of_clock
-- The pages that an earlier run has fetched by a clock that was ahead, as a list.
SELECT json_group_array(url_id) AS ahead FROM pages_by_id WHERE fetched_at >= :since

-- name: pages
-- The pages that this run has fetched, and those whose answers an earlier run has left unread.
SELECT {columns} FROM pages WHERE (fetched_at >= :since AND url_id NOT IN (SELECT value FROM json_each(:ahead)))
  OR url_id IN (SELECT value FROM json_each(:unread))

-- name: links
-- The links of these pages, without the URLs: a row for each page, with lists.
SELECT source_id, json_group_array(target_id), json_group_array(anchor), json_group_array(rel), json_group_array(follow)
FROM links_by_id WHERE source_id IN (
  SELECT url_id FROM pages_by_id
  WHERE (fetched_at >= :since AND url_id NOT IN (SELECT value FROM json_each(:ahead)))
    OR url_id IN (SELECT value FROM json_each(:unread)))
GROUP BY source_id

-- name: bodies
-- The bodies that are in no file yet: afterwards the store has their hashes only.
SELECT {columns} FROM (SELECT lower(hex(sha256)) AS body_sha256, data FROM bodies_by_id) AS b WHERE data IS NOT NULL

-- name: urls_of
-- The URLs with these numbers in the store: a list of numbers, and one of URLs.
SELECT json_group_array(u.url_id), json_group_array(s.site || u.path) FROM urls_by_id u JOIN sites_by_id s ON s.site_id = u.site_id
WHERE u.url_id IN (SELECT value FROM json_each(:numbers))

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
-- Several buckets may exclude the same URL: only the views of all buckets count excluded URLs (`states_of_all`).
SELECT state, count(*) AS n FROM urls WHERE state <> 'excluded' GROUP BY state

-- name: hand_over
-- The best offer of each URL and kind, divided by bucket.
COPY (
  SELECT bucket, url, kind, min(depth) AS depth, arg_min(hops, (depth, hops)) AS hops, max(seed) AS seed,
    max(lastmod) AS lastmod, max(by_domain) AS by_domain
  FROM read_parquet($files) GROUP BY ALL)
TO '{target}' (FORMAT parquet, PARTITION_BY (bucket))

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

-- name: table
CREATE TABLE {name} AS {rows}

-- name: view
CREATE OR REPLACE VIEW {name} AS {rows}

-- name: no_rows
SELECT {columns} WHERE false

-- name: files
SELECT {columns} FROM read_parquet([{files}])

-- name: count_linkers
SELECT count(*) AS n FROM links WHERE target = $url

-- ---- the views by number, for features that read a store: their columns are those of the views of a store -------------
-- The number of a site is a hash of its name. The URLs of a site have no range of numbers.

-- name: page_versions
-- A dataset has the newest version of a page only.
SELECT * FROM pages

-- name: sites_by_id
WITH known AS (
  SELECT site FROM sites UNION SELECT DISTINCT site FROM urls WHERE site IS NOT NULL UNION SELECT site FROM requests)
SELECT (hash(k.site) >> 1)::BIGINT AS site_id, k.site,
  (hash(coalesce(s.politeness_group, k.site)) >> 1)::BIGINT AS group_id, a.robots_copy,
  coalesce(s.robots_expires_at, 0) AS robots_until, NULL::VARCHAR AS robots_needs, coalesce(s.rests_until, 0) AS rests_until, s.crawl_delay_s,
  s.main_site, coalesce(s.fetched, 0) AS fetched, NULL::BIGINT AS max_pages, NULL::BIGINT AS first_url_id,
  NULL::BIGINT AS last_url_id,
  coalesce(s.host, regexp_extract(k.site, '^[a-z]+://(\[[^\]]*\]|[^:/]*)', 1)) AS host,
  coalesce(s.registered_domain, regexp_extract(k.site, '^[a-z]+://(\[[^\]]*\]|[^:/]*)', 1)) AS registered_domain
FROM known k LEFT JOIN sites s USING (site)
LEFT JOIN (SELECT site, max(robots_copy) AS robots_copy FROM robots_answers GROUP BY site) a USING (site)

-- name: groups_by_id
SELECT (hash(politeness_group) >> 1)::BIGINT AS group_id, politeness_group, max(next_at) AS ready_at,
  max(next_at) AS next_at, max(delay_s) AS pause_s, NULL::DOUBLE AS backoff_s, NULL::DOUBLE AS usual_s,
  any_value(wait_code) AS wait_code, any_value(waits_for) AS waits_for, NULL::BIGINT AS claimed_by
FROM (SELECT site, politeness_group, next_at, delay_s, wait_code, waits_for FROM sites UNION ALL BY NAME
  SELECT site, site AS politeness_group FROM sites_by_id WHERE site NOT IN (SELECT site FROM sites)) AS each_site
GROUP BY politeness_group

-- name: urls_by_id
SELECT url_id, (hash(site) >> 1)::BIGINT AS site_id, 0 AS path_hash, substr(url, length(site) + 1) AS path, state,
  reason_code, reason, depth, NULL::BIGINT AS found_on_id, target_id, attempts, hops, next_at AS due_at, seed, kind,
  lastmod
FROM urls

-- name: frontier_by_id
SELECT url_id, site_id, due_at, depth, 0 AS is_revisit FROM urls_by_id WHERE state = 'queued'

-- name: pages_by_id
SELECT url_id, (hash(site) >> 1)::BIGINT AS site_id, status, content_type, charset, fetched_at, title, description,
  keywords, canonical_url, meta_url, document_state, noindex, nofollow, (hash(body_sha256) >> 1)::BIGINT AS body_id,
  body_bytes, etag, last_modified, other_schemes, directives, note, version, last_seen_at, gone_at, text_sha256,
  NULL::BIGINT AS preferences_id, NULL::BIGINT AS robots_preferences_id, language, NULL::BIGINT AS answer_id,
  NULL AS resources, soft_404
FROM pages

-- name: links_by_id
SELECT l.source_id, l.target_id, (hash(s.site) >> 1)::BIGINT AS source_site_id,
  (hash(t.site) >> 1)::BIGINT AS target_site_id, l.anchor, l.rel, l.follow
FROM links l JOIN urls s ON s.url_id = l.source_id JOIN urls t ON t.url_id = l.target_id

-- name: requests_by_id
-- The requests of a round are numbered by their times, in the range of the round: see Views.last_request.
SELECT run_id << 32 | row_number() OVER (PARTITION BY run_id ORDER BY started_at, url, purpose) AS request_id, run_id, (hash(site) >> 1)::BIGINT AS site_id, substr(url, length(site) + 1) AS path,
  purpose, started_at, finished_at, status, error_kind, error, bytes, retry_after_s, robots_copy, verdict_line,
  NULL::BIGINT AS for_site_id, NULL AS location, lag_s, address, price, sent
FROM requests

-- name: robots_by_id
SELECT robots_copy, (hash(site) >> 1)::BIGINT AS site_id, (hash(version_sha256) >> 1)::BIGINT AS text_id, action,
  status, fetched_at, valid_from, valid_until, NULL AS etag, NULL AS last_modified, failures, failing_since, retry_at,
  note, run_id, answered_by, headers
FROM robots_answers

-- name: robots_texts_by_id
SELECT (hash(version_sha256) >> 1)::BIGINT AS text_id, unhex(version_sha256) AS sha256, any_value(body) AS body
FROM robots_versions WHERE version_sha256 IS NOT NULL GROUP BY version_sha256

-- name: revisits_by_id
-- A dataset has no revisits.
SELECT NULL::BIGINT AS url_id, NULL AS state_before WHERE false

-- name: ranks_by_id
SELECT url_id, pagerank FROM ranks

-- name: near_duplicates_by_id
SELECT url_id, cluster_id, similarity FROM near_duplicates

-- name: make_page_of_body
-- A page of each body; made when the first body is read.
CREATE TABLE IF NOT EXISTS page_of_body AS
SELECT (hash(body_sha256) >> 1)::BIGINT AS body_id, min(url) AS url FROM pages
WHERE body_sha256 IS NOT NULL GROUP BY body_sha256

-- name: pages_of_bodies
SELECT url FROM page_of_body WHERE body_id IN ({numbers})

-- name: bodies_in
SELECT (hash(body_sha256) >> 1)::BIGINT AS body_id, any_value(data) AS data FROM ({files})
WHERE (hash(body_sha256) >> 1)::BIGINT IN ({numbers}) GROUP BY body_id

-- name: make_texts
CREATE TABLE main_texts_by_id (body_id BIGINT, read_as TEXT, data BLOB)

-- name: make_signatures
-- A character of the keys is an octet: DuckDB takes no parts of octets by substr.
CREATE TABLE text_signatures_by_id (url_id BIGINT, digest BIGINT, keys TEXT)

-- name: make_templates
CREATE TABLE site_templates_by_id (site_id BIGINT, shingles BLOB)

-- name: keep
INSERT INTO {table} SELECT * FROM made

-- name: make_runs
CREATE TABLE runs (run_id BIGINT, started_at DOUBLE, finished_at DOUBLE, ended_code TEXT, ended_by TEXT,
  crawler_version TEXT, settings TEXT, worst_lag_s DOUBLE, pages_before BIGINT)

-- name: add_run
-- A round.
INSERT INTO runs VALUES ($run_id, $started_at, $finished_at, $ended_code, $ended_by, $crawler_version, $settings,
  NULL, NULL)

-- name: counts
SELECT (SELECT count(*) FROM pages) AS pages, (SELECT count(*) FROM links) AS links,
  (SELECT count(*) FROM requests WHERE sent = 1) AS requests, (SELECT count(*) FROM sites_by_id) AS sites,
  (SELECT count(DISTINCT site) FROM requests WHERE sent = 1) AS asked_sites

-- ---- the audit --------------------------------------------------------------------------------------------------------

-- name: count_lost
SELECT count(*) AS n FROM lost

-- name: count_addresses
-- The addresses that were asked in each round.
SELECT count(*) AS n FROM (SELECT DISTINCT run_id, address FROM requests WHERE address IS NOT NULL)

-- name: usable_copies
-- Of the store of a bucket: the robots copies under which something may have been sent.
SELECT site, fetched_at, action, version_sha256 FROM robots_answers WHERE action IN ('parse', 'free', 'restricted')

-- name: published_copy
SELECT 1 FROM robots_answers WHERE site = $site AND abs(fetched_at - $fetched_at) < 1e-3 AND action = $action
  AND version_sha256 IS NOT DISTINCT FROM $version_sha256

-- name: crowded_addresses
-- The addresses to which requests for several sites went in one round, with these sites.
SELECT run_id, address, min(started_at) AS first_at, list(DISTINCT site ORDER BY site) AS sites
FROM requests WHERE address IS NOT NULL GROUP BY run_id, address HAVING count(DISTINCT site) > 1

-- name: after_lost
-- The requests of lost tasks, each with the next one to its politeness group.
WITH asked AS (
  SELECT q.*, coalesce(s.politeness_group, q.site) AS politeness_group, l.url IS NOT NULL AS is_lost
  FROM requests q LEFT JOIN sites s USING (site) LEFT JOIN lost l ON l.url = q.url AND l.started_at = q.started_at),
followed AS (
  SELECT *, lead(url) OVER w AS next_url, lead(started_at) OVER w AS next_started_at, lead(run_id) OVER w AS next_run
  FROM asked WINDOW w AS (PARTITION BY politeness_group ORDER BY started_at))
SELECT url, site, run_id, started_at, finished_at, retry_after_s, next_url, next_started_at, next_run
FROM followed WHERE is_lost

-- ---- the ranks --------------------------------------------------------------------------------------------------------

-- name: page_ranks
-- The rows of the view of ranks, from the ranks of pages by number.
COPY (SELECT u.url, r.pagerank, r.in_links, r.in_sites, r.url_id, u.site FROM result r JOIN urls u USING (url_id))
TO '{file}' (FORMAT parquet)

-- name: site_ranks
COPY (SELECT s.site, r.pagerank, r.pages, r.in_links, r.in_sites FROM result r JOIN sites_by_id s USING (site_id))
TO '{file}' (FORMAT parquet)

-- name: near_duplicates
COPY (SELECT u.url, c.url AS representative, r.similarity, r.cluster_id, r.url_id, u.site
  FROM result r JOIN urls u USING (url_id) JOIN urls c ON c.url_id = r.cluster_id) TO '{file}' (FORMAT parquet)

-- ---- the sample -------------------------------------------------------------------------------------------------------

-- name: samples
-- As a store makes it, with the method of the draw.
SELECT u.url, u.site, s.stratum, s.probability, s.site_probability, d.method, s.walk, u.state, u.reason_code, u.reason,
  s.draw, s.url_id, p.url_id AS page_id
FROM samples_by_id s JOIN urls u USING (url_id) CROSS JOIN sample_draws d LEFT JOIN pages p USING (url_id)

-- name: sample_draws
SELECT 1 AS number, method, per, size, seed, drawn_at, frame AS frame_size, cut_sites, missed, missed_sites,
  follows::INTEGER AS follows, held_from::BIGINT AS held_from, stands::INTEGER AS stands, share, sites::BIGINT AS sites,
  sites_by, design, design_sha256, discarded_at::DOUBLE AS discarded_at
FROM read_parquet('{file}')

-- name: make_samples
CREATE TABLE samples_by_id (
  draw BIGINT, url_id BIGINT, stratum TEXT, walk BIGINT, probability DOUBLE, site_probability DOUBLE)

-- name: make_sample_frame
CREATE TABLE sample_frame (url TEXT, site TEXT, url_id BIGINT)

-- name: add_samples
INSERT INTO samples_by_id
SELECT row_number() OVER (), url_id, stratum, walk, probability, site_probability FROM drawn

-- name: keep_draw
COPY drawn TO '{file}' (FORMAT parquet)

-- name: add_sample_frame
INSERT INTO sample_frame SELECT u.url, u.site, u.url_id FROM framed f JOIN urls u USING (url_id)

-- name: sample_ends_by_id
-- Each draw is of the URL itself: a sample of a dataset follows no redirects.
SELECT DISTINCT url_id, url_id AS end_id FROM samples_by_id

-- name: find
SELECT url_id FROM urls WHERE url = $url
