-- Named queries of the SQLite store. A line "-- name: N" starts a query; a comment below it says what the query is for.
-- Parameters are named; a list is a parameter in JSON.

-- name: insert_url
INSERT INTO url (id, path, state, reason_code, reason, depth, found_on, hops, seed, kind, lastmod, by_domain)
VALUES (:id, :path, :state, :reason_code, :reason, :depth, :found_on, :hops, :seed, :kind, :lastmod, :by_domain);

-- name: add_groups
INSERT INTO politeness_group (name) VALUES (:name) ON CONFLICT DO NOTHING;

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
SELECT claimed_site(s), s.group_id, page_limit(s) AS page_limit, robots_copy_of(r), robots_text_of(t),
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
      JOIN page p ON p.url_id = v.url_id) AS urls
FROM chosen c CROSS JOIN site s ON s.id = c.id
LEFT JOIN robots_copy r ON r.id = s.robots_id LEFT JOIN robots_text t ON t.id = r.text_id ORDER BY c.nth;

-- name: end_all_workers
UPDATE worker SET ended_at = :now, ended_code = :ended_code, ended_by = :ended_by WHERE ended_at IS NULL;

-- name: drop_links
DELETE FROM link WHERE source = :id;

-- name: sweep_bodies
DELETE FROM body WHERE id IN (SELECT body_id FROM body_to_drop)
  AND id NOT IN (SELECT body_id FROM page WHERE body_id IN (SELECT body_id FROM body_to_drop))
  AND id NOT IN (SELECT body_id FROM page_version WHERE body_id IN (SELECT body_id FROM body_to_drop));

-- name: forget_beats
DELETE FROM heartbeat WHERE run_id < :run_id;

-- name: erase_deleted
-- From now on overwrite what this connection deletes.
PRAGMA secure_delete = ON;

-- name: store_bytes
SELECT page_count * page_size AS n FROM pragma_page_count(), pragma_page_size();

-- name: empty_log
-- busy is 1 if a reader kept the write-ahead log from being emptied.
PRAGMA wal_checkpoint(TRUNCATE);

-- name: compact
VACUUM;
