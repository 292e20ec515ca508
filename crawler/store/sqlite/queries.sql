-- Named queries of the SQLite store. A line "-- name: N" starts a query; a comment below it says what the query is for.
-- Parameters are named; a list is a parameter in JSON.

-- name: known_urls
-- The stored rows of a JSON list of URL numbers.
SELECT id, path, state, reason_code, reason, depth, hops FROM url WHERE id IN (SELECT value FROM json_each(:numbers));

-- name: insert_url
INSERT INTO url (id, path, state, reason_code, reason, depth, found_on, hops, seed, kind, lastmod, by_domain)
VALUES (:id, :path, :state, :reason_code, :reason, :depth, :found_on, :hops, :seed, :kind, :lastmod, :by_domain);

-- name: insert_main_text
-- Keep the text of a body, unless the body was deleted meanwhile.
INSERT OR REPLACE INTO main_text (body_id, read_as, data)
SELECT id, :read_as, :data FROM body WHERE id = :body_id;

-- name: links_of
-- The depths that a JSON list of URL numbers gives to others: one more to outlinks, the same to redirect targets.
SELECT u.depth + 1 AS depth, l.target FROM json_each(:numbers) j JOIN url u ON u.id = j.value
  JOIN link l ON l.source = u.id WHERE l.follow
UNION ALL
SELECT u.depth, u.target FROM json_each(:numbers) j JOIN url u ON u.id = j.value WHERE u.target IS NOT NULL;

-- name: add_groups
INSERT INTO politeness_group (name) VALUES (:name) ON CONFLICT DO NOTHING;

-- name: add_sites
INSERT INTO site (name, host, registered_domain, group_id, other_bucket, max_pages)
  SELECT :name, :host, :registered_domain, id, :other_bucket, :max_pages FROM politeness_group
  WHERE name = :group_name ON CONFLICT DO NOTHING;

-- name: insert_body
-- The body is a gzip member as received, or else plain bytes, which the store compresses. It is kept outside if both
-- are NULL.
INSERT INTO body (sha256, data)
VALUES (:sha256, coalesce(:gzipped, CASE WHEN :plain IS NOT NULL THEN zstd(:plain) END)) ON CONFLICT DO NOTHING;

-- name: insert_page
INSERT OR REPLACE INTO page (url_id, status, content_type, charset, fetched_at, title, description, keywords,
  canonical_url, meta_url, document_state, noindex, nofollow, body_id, body_bytes, etag, last_modified,
  other_schemes, directives, note, text_sha256, version, preferences_id, robots_preferences_id, language, answer_id,
  resources, soft_404)
VALUES (:url_id, :status, :content_type, :charset, :fetched_at, :title, :description, :keywords, :canonical_url,
  :meta_url, :document_state, :noindex, :nofollow, (SELECT id FROM body WHERE sha256 = :sha256), :body_bytes, :etag,
    :last_modified, :other_schemes, :directives, :note, :text_sha256, :version, :preferences_id,
    :robots_preferences_id, :language, :answer_id, :resources, :soft_404);

-- name: insert_link
-- By position: a page has dozens of links, and a tuple is made sooner than a mapping.
INSERT OR REPLACE INTO link (source, target, anchor, rel, follow) VALUES (?, ?, ?, ?, ?);

-- name: insert_request
INSERT INTO request (run_id, site_id, path, purpose, started_at, finished_at, status, error_kind, error, bytes,
  retry_after_s, robots_id, verdict_line, for_site_id, location, lag_s, tls_id, address, price) VALUES (:run_id, :site_id, :path, :purpose,
    :started_at, :finished_at, :status, :error_kind, :error, :bytes, :retry_after_s, :robots_id, :verdict_line,
      :for_site_id, :location, :lag_s, :tls_id, :address, :price);

-- name: insert_robots_copy
INSERT INTO robots_copy (site_id, text_id, action, status, fetched_at, valid_from, valid_until, etag, last_modified,
  failures, failing_since, retry_at, note, run_id, answered_by, headers)
VALUES (:site_id, (SELECT id FROM robots_text WHERE sha256 = :sha256), :action, :status, :fetched_at, :valid_from,
  :valid_until, :etag, :last_modified, :failures, :failing_since, :retry_at, :note, :run_id, :answered_by,
    :headers);

-- name: last_robots_copies
-- The newest copies of a JSON list of sites.
SELECT site_id, max(id) AS id FROM robots_copy WHERE site_id IN (SELECT value FROM json_each(:sites)) GROUP BY site_id;

-- name: set_mirror
INSERT OR REPLACE INTO mirror (site, main_site, evidence, contradiction, seen_at)
VALUES (:site, :main_site, :evidence, :contradiction, :now);

-- name: refresh_ready
-- Recompute when the earliest URL of each group of a JSON list may be fetched. URLs as deep as below_depth are held
-- back. A site that has all its pages is only revisited; a URL that other sites wait for is outside the limits. Almost
-- all held back URLs have due_at 0 and stand last, ordered by depth: two lookups, for due_at 0 and for later, avoid a
-- walk over them.
UPDATE politeness_group SET ready_at = (
  SELECT max(politeness_group.next_at, min(max(s.robots_until, s.rests_until, CASE
    WHEN EXISTS (SELECT 1 FROM robots_wait WHERE target_id = s.id) THEN 0
    WHEN s.fetched < page_limit(s)
    THEN coalesce(
      (SELECT f.due_at FROM frontier f WHERE f.site_id = s.id AND f.due_at = 0 AND f.depth < :below_depth LIMIT 1),
      (SELECT f.due_at FROM frontier f WHERE f.site_id = s.id AND f.due_at > 0 AND f.depth < :below_depth
       ORDER BY f.due_at LIMIT 1))
    ELSE (SELECT f.due_at FROM frontier f INDEXED BY frontier_revisit WHERE f.site_id = s.id AND f.is_revisit = 1
      ORDER BY f.due_at LIMIT 1) END)))
  FROM site s WHERE s.group_id = politeness_group.id)
WHERE id IN (SELECT value FROM json_each(:groups));

-- name: refresh_all
-- The same for every group with nothing held back. Rows that do not change are not written.
WITH now AS MATERIALIZED (
  SELECT g.id, g.ready_at AS before, (
    SELECT max(g.next_at, min(max(s.robots_until, s.rests_until, CASE
      WHEN EXISTS (SELECT 1 FROM robots_wait WHERE target_id = s.id) THEN 0
      WHEN s.fetched < page_limit(s)
      THEN (SELECT f.due_at FROM frontier f WHERE f.site_id = s.id ORDER BY f.due_at LIMIT 1)
      ELSE (SELECT f.due_at FROM frontier f INDEXED BY frontier_revisit WHERE f.site_id = s.id AND f.is_revisit = 1
        ORDER BY f.due_at LIMIT 1) END)))
    FROM site s WHERE s.group_id = g.id) AS ready_at
  FROM politeness_group g)
UPDATE politeness_group SET ready_at = now.ready_at FROM now
WHERE now.id = politeness_group.id AND now.ready_at IS NOT now.before;

-- name: claimable_groups
-- The groups that have been ready longest.
SELECT id, name, next_at, pause_s, backoff_s, wait_code, waits_for, answers, usual_s, recent_s
FROM politeness_group
WHERE ready_at <= :until AND claimed_by IS NULL
  ORDER BY ready_at LIMIT :limit;

-- name: claimed_sites
-- The next sites of claimed groups that have a URL to fetch now, each with its next URLs as JSON, nearest to a seed
-- first. A site that has all its pages gets revisits only. As in refresh_ready, no walk over held back URLs.
-- The sites of a group take turns by the number of pauses since the epoch: under a long pause a claim serves one request
-- only, and would always serve the same site. Nothing more is read of the sites that are not chosen.
WITH able AS (
  SELECT s.id, s.group_id FROM site s
  WHERE s.group_id IN (SELECT value FROM json_each(:groups)) AND s.robots_until <= :until AND s.rests_until <= :until
    AND CASE WHEN s.fetched < page_limit(s)
    THEN EXISTS (SELECT 1 FROM frontier WHERE site_id = s.id AND due_at = 0 AND depth < :below_depth)
      OR EXISTS (SELECT 1 FROM frontier WHERE site_id = s.id AND due_at > 0 AND due_at <= :until
        AND depth < :below_depth)
    ELSE EXISTS (SELECT 1 FROM frontier INDEXED BY frontier_revisit WHERE site_id = s.id AND due_at <= :until
      AND is_revisit = 1) END),
ordered AS (
  SELECT id, group_id, row_number() OVER (PARTITION BY group_id ORDER BY id) - 1 AS place,
    count(*) OVER (PARTITION BY group_id) AS sites FROM able),
chosen AS MATERIALIZED (
  SELECT ordered.id, (place + sites - CAST(:until / max(1.0, g.pause_s) AS INTEGER) % sites) % sites AS nth
  FROM ordered CROSS JOIN politeness_group g ON g.id = group_id WHERE nth < :limit)
SELECT s.id, s.name, s.group_id, s.fetched, page_limit(s) AS page_limit, s.robots_id, s.crawl_delay_s, s.walls, s.refused, s.front_refused, s.rest_count,
  s.rests_until, s.probe, s.closed_at,
  (SELECT json_group_array(json_object('id', u.id, 'path', u.path, 'depth', u.depth, 'attempts', u.attempts, 'hops',
    u.hops,
      'seed', u.seed, 'by_domain', u.by_domain, 'due_at', u.due_at, 'kind', u.kind,
      'seen', CASE WHEN v.url_id IS NOT NULL THEN json_object('state', v.state, 'reason_code', v.reason_code,
        'reason', v.reason,
        'checked_at', v.checked_at, 'changes', v.changes, 'watched_s', v.watched_s, 'failures', v.failures,
        'target', (SELECT t.name || r.path FROM url r JOIN site t ON t.id = site_of(r.id) WHERE r.id = u.target),
        'hint', v.hint, 'version', coalesce(p.version, 0), 'status', p.status, 'etag', coalesce(v.etag, p.etag),
        'last_modified', coalesce(v.last_modified, p.last_modified),
        'content', lower(hex(coalesce((SELECT sha256 FROM body WHERE id = p.body_id), v.content))),
        'text', lower(hex(p.text_sha256)), 'noindex', p.noindex, 'nofollow', p.nofollow,
        'directives', p.directives) END)) FROM
    (SELECT id AS url_id FROM url WHERE id = s.probe AND state = 'queued'
     UNION ALL SELECT url_id FROM (
       SELECT url_id FROM (SELECT url_id FROM frontier
         WHERE site_id = s.id AND due_at = 0 AND s.fetched < page_limit(s) AND depth < :below_depth ORDER BY depth,
           url_id LIMIT :limit)
       UNION ALL SELECT url_id FROM (SELECT url_id FROM frontier
         WHERE site_id = s.id AND due_at > 0 AND due_at <= :until AND s.fetched < page_limit(s)
           AND depth < :below_depth
         ORDER BY due_at, depth, url_id LIMIT :limit) LIMIT :limit)
     UNION ALL SELECT url_id FROM (SELECT url_id FROM frontier INDEXED BY frontier_revisit
       WHERE site_id = s.id AND due_at <= :until AND is_revisit = 1 AND s.fetched >= page_limit(s)
         ORDER BY due_at LIMIT :limit)) q
    JOIN url u ON u.id = q.url_id LEFT JOIN revisit v ON v.url_id = u.id LEFT
      JOIN page p ON p.url_id = v.url_id) AS urls,
  r.action, r.status, r.fetched_at, r.valid_until, CASE WHEN length(t.body) <= :small THEN t.body END AS body, t.sha256,
  r.etag, r.last_modified,
  r.failures, r.failing_since, r.retry_at, r.note,
  EXISTS (SELECT 1 FROM robots_wait
    WHERE site_id = s.id AND (seen <> '[]' OR path = '/robots.txt')) AS is_waiting
FROM chosen c CROSS JOIN site s ON s.id = c.id
LEFT JOIN robots_copy r ON r.id = s.robots_id LEFT JOIN robots_text t ON t.id = r.text_id ORDER BY c.nth;

-- name: lost_groups
-- Groups held by workers that have ended.
SELECT g.id, g.name, coalesce(w.ended_at, w.lease_until) AS lost_at, g.next_at, g.pause_s, g.backoff_s, g.wait_code, g.waits_for,
  g.answers, g.usual_s, g.recent_s
FROM politeness_group g LEFT JOIN worker w ON w.id = g.claimed_by
WHERE g.claimed_by IS NOT NULL
  AND (w.id IS NULL OR w.ended_at IS NOT NULL);

-- name: end_lost_workers
UPDATE worker SET ended_at = lease_until, ended_code = :ended_code, ended_by = :ended_by WHERE ended_at IS NULL AND lease_until <= :now;

-- name: end_all_workers
UPDATE worker SET ended_at = :now, ended_code = :ended_code, ended_by = :ended_by WHERE ended_at IS NULL;

-- name: others_at_work
-- Whether another worker holds a group, or has just released one. One statement, because groups move meanwhile.
SELECT EXISTS (SELECT 1 FROM politeness_group WHERE claimed_by <> :worker)
  OR EXISTS (SELECT 1 FROM politeness_group WHERE ready_at < :before AND claimed_by IS NULL) AS any_other;

-- name: insert_content_mirror
INSERT OR IGNORE INTO mirror (site, main_site, evidence, sample, confidence, seen_at) VALUES (:site, :main_site,
  'content', :sample, :confidence, :now);

-- name: counts
-- One statement, because a crawl may be running. States are counted by the index url_out: a count of all states would
-- sort them.
SELECT (SELECT count(*) FROM url) AS urls, (SELECT count(*) FROM frontier) AS queued,
  (SELECT json_group_object(state, n) FROM
    (SELECT state, count(*) AS n FROM url WHERE state IN ('redirected', 'excluded', 'failed') GROUP BY state)) AS ended,
  (SELECT count(*) FROM page) AS pages, (SELECT count(*) FROM link) AS links, (SELECT count(*)
    FROM request WHERE was_sent(error_kind) = 1) AS requests,
  (SELECT count(*) FROM site) AS sites;

-- name: add_visited_pages
-- Add pages that have no row yet. The tempo of a page without document state is 1.
INSERT INTO revisit (url_id, due_at, not_before, checked_at, watched_s, why)
SELECT url_id, fetched_at + :first_s * tempo, fetched_at + :min_interval_s, fetched_at, :watched_s * tempo,
  'its first revisit' FROM (
  SELECT p.url_id, p.fetched_at,
    CASE p.document_state WHEN 'STATIC' THEN :static_tempo WHEN 'DYNAMIC' THEN :dynamic_tempo ELSE 1.0 END AS tempo
  FROM page p WHERE p.url_id NOT IN (SELECT url_id FROM revisit));

-- name: add_visited_others
-- Add redirects and sitemaps: as add_visited_pages, with the current time in place of the visit's.
INSERT INTO revisit (url_id, due_at, not_before, checked_at, watched_s, why)
SELECT id, :now + :first_s * tempo, :now + :min_interval_s, :now, :watched_s * tempo, 'its first revisit' FROM (
  SELECT id, :static_tempo AS tempo FROM url  -- by the index url_out
  WHERE state IN ('redirected', 'excluded', 'failed') AND state = 'redirected' AND kind = 'page'
  UNION ALL SELECT id, :dynamic_tempo FROM url WHERE kind = 'sitemap' AND state IN ('fetched', 'redirected'))
WHERE id NOT IN (SELECT url_id FROM revisit);

-- name: note_states
-- Remember the state of a JSON list of URLs before they are queued.
UPDATE revisit SET (state, reason_code, reason) = (SELECT u.state, u.reason_code, u.reason FROM url u
  WHERE u.id = revisit.url_id)
WHERE url_id IN (SELECT value FROM json_each(:numbers));

-- name: queue_revisit
UPDATE url SET state = 'queued', attempts = 0, (due_at, reason_code, reason) = (
  SELECT r.due_at, :reason_code, :reason FROM revisit r WHERE r.url_id = url.id)
WHERE id IN (SELECT value FROM json_each(:numbers)) AND state <> 'queued';

-- name: apply_hint
-- Bring a revisit forward, unless the URL was checked since the hint. The least interval does not delay a hint that was
-- asked for.
UPDATE revisit SET hint = :source, hinted_at = :at,
  due_at = CASE WHEN :counts THEN min(due_at, max(:now, iif(:asked_for, 0, not_before))) ELSE due_at END,
  why = CASE WHEN :counts AND due_at > max(:now, iif(:asked_for, 0,
    not_before)) THEN :why ELSE why END
WHERE url_id = :id AND checked_at < :at AND (hinted_at IS NULL OR hinted_at < :at) RETURNING url_id;

-- name: drop_links
DELETE FROM link WHERE source = :id;

-- name: sweep_bodies
DELETE FROM body WHERE id IN (SELECT body_id FROM body_to_drop)
  AND id NOT IN (SELECT body_id FROM page WHERE body_id IN (SELECT body_id FROM body_to_drop))
  AND id NOT IN (SELECT body_id FROM page_version WHERE body_id IN (SELECT body_id FROM body_to_drop));

-- name: queued_on
-- Queued URLs, and seeds that came to nothing, on sites whose names are in a JSON list of ranges.
SELECT f.url_id FROM json_each(:ranges) r CROSS JOIN site s ON s.name BETWEEN r.value ->> 0 AND r.value ->> 1
JOIN frontier f ON f.site_id = s.id
UNION ALL
SELECT u.id FROM json_each(:ranges) r CROSS JOIN site s ON s.name BETWEEN r.value ->> 0 AND r.value ->> 1
JOIN url u ON u.id BETWEEN first_url_of(s.id) AND last_url_of(s.id)
WHERE u.seed = 1 AND +u.state IN ('failed', 'excluded') AND u.reason_code NOT IN
  ('blocked', 'forgotten', 'sample', 'frame', 'other_bucket', 'mirror', 'refresh', 'other_address')
LIMIT :limit;

-- name: numbers_on
-- The first and the last URL number of each site whose name is in a JSON list of ranges, from the site of a number on.
SELECT first_url_of(s.id) AS first, last_url_of(s.id) AS last FROM json_each(:ranges) r
CROSS JOIN site s ON s.name BETWEEN r.value ->> 0 AND r.value ->> 1 WHERE s.id >= site_of(:after) ORDER BY s.id;

-- name: blocked_within
-- Excluded URLs with a reason, in a range of numbers. The signs keep SQLite from building an index over the table.
SELECT id FROM url WHERE id BETWEEN :first AND :last AND +state = 'excluded' AND +reason_code = :reason_code
  ORDER BY id LIMIT :limit;

-- name: forget_beats
DELETE FROM heartbeat WHERE run_id < :run_id;

-- name: beat
INSERT OR REPLACE INTO heartbeat (run_id, pid, seen_at, memory_bytes, lag_s, low_disk, look_ups, vain_claims)
VALUES (:run_id, :pid, :seen_at, :memory_bytes, :lag_s, :low_disk, :look_ups, :vain_claims);

-- name: insert_sample
INSERT INTO sample (url_id, stratum, walk, probability, site_probability)
VALUES (:url_id, :stratum, :walk, :probability, :site_probability);

-- name: erase_deleted
-- From now on overwrite what this connection deletes.
PRAGMA secure_delete = ON;

-- name: redact_requests
-- Reduce the addresses of requests for a JSON list of URLs to their sites.
UPDATE request SET path = '', location = NULL WHERE purpose <> 'robots' AND (site_id, path) IN (
  SELECT site_of(id), path FROM url WHERE id IN (SELECT value FROM json_each(:numbers)));

-- name: store_bytes
SELECT page_count * page_size AS n FROM pragma_page_count(), pragma_page_size();

-- name: empty_log
-- busy is 1 if a reader kept the write-ahead log from being emptied.
PRAGMA wal_checkpoint(TRUNCATE);

-- name: compact
VACUUM;
