-- Named queries of the PostgreSQL store; sqlite/queries.sql says what those of the same name are for. A query that is
-- executed for many rows takes each column as an array: one statement for any number of rows.

-- name: lock_urls
-- In the order of their numbers: no two transactions wait for each other.
SELECT u.id FROM unnest(numbers(:numbers)) AS t (id)
  JOIN url u ON u.id = t.id
ORDER BY u.id FOR NO KEY UPDATE OF u;

-- name: lock_groups
SELECT id FROM politeness_group WHERE id = ANY(numbers(:numbers)) OR name = ANY(texts(:names))
ORDER BY id FOR NO KEY UPDATE;

-- name: insert_url
-- Returns the inserted numbers: not those that another worker has inserted since.
INSERT INTO url (id, path, state, reason_code, reason, depth, found_on, hops, seed, kind, lastmod, by_domain)
SELECT * FROM unnest(:id::bigint[], :path::text[], :state::text[], :reason_code::text[],
  :reason::text[], :depth::bigint[],
  :found_on::bigint[], :hops::int[], :seed::int[], :kind::text[], :lastmod::float8[],
  :by_domain::int[]) AS t (id) ORDER BY t.id
ON CONFLICT DO NOTHING RETURNING id;

-- name: offers_left
-- Offers left by this worker (NULL: by any), or by a worker that has ended.
SELECT o.id, o.max_depth, o.depth, o.target, o.url, o.source, o.source_depth, o.refusal_code, o.refusal,
  o.hops, o.seed, o.kind, o.lastmod, o.by_domain
FROM offer o WHERE coalesce(o.worker_id = :worker, true)
  OR NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = o.worker_id AND w.ended_at IS NULL)
ORDER BY o.id LIMIT :limit;

-- name: replace_offers_by_links
-- Replace offers that were carried over by the links that they came with.
WITH done AS (
  DELETE FROM offer o USING unnest(:id::bigint[], :number::bigint[]) AS t (id, number)
  WHERE o.id = t.id
  RETURNING o.id, o.source, t.number, o.anchor, o.rel, o.follow, o.leads),
led AS (
  UPDATE url u SET target = d.number FROM done d
  WHERE d.leads = 1 AND u.id = d.source AND u.target IS NULL AND u.state <> 'queued')
INSERT INTO link (source, target, anchor, rel, follow)
SELECT DISTINCT ON (source, number) source, number, anchor, rel, follow FROM done
WHERE follow IS NOT NULL ORDER BY source, number, id DESC
ON CONFLICT (source, target)
DO UPDATE SET anchor = excluded.anchor, rel = excluded.rel, follow = excluded.follow;

-- name: add_groups
-- Two names with the same hash become two groups.
INSERT INTO politeness_group (id, name)
SELECT n.id + EXISTS (SELECT 1 FROM politeness_group g WHERE g.id = n.id)::int, n.name
FROM (SELECT name, group_number(name) AS id FROM unnest(:name::text[]) AS name
  EXCEPT SELECT name, group_number(name) FROM politeness_group WHERE name = ANY(:name::text[])) AS n
ORDER BY 1 ON CONFLICT DO NOTHING;

-- name: insert_body
-- A new body is to be dropped until a commit names it.
WITH new AS (
  INSERT INTO body (sha256, data) SELECT * FROM unnest(:sha256::bytea[], :data::bytea[]) AS t (sha256, data)
  WHERE NOT EXISTS (SELECT 1 FROM body b WHERE b.sha256 = t.sha256) ORDER BY t.sha256 ON CONFLICT DO NOTHING
  RETURNING id)
INSERT INTO body_to_drop SELECT id FROM new ON CONFLICT DO NOTHING;

-- name: keep_bodies
-- A commit has named these bodies.
DELETE FROM body_to_drop WHERE body_id = ANY(:numbers::bigint[]);

-- name: bodies_named
SELECT sha256, id FROM body WHERE sha256 = ANY(:hashes::bytea[]);

-- name: insert_page
INSERT INTO page AS p (url_id, status, content_type, charset, fetched_at, title, description, keywords,
  canonical_url, meta_url, document_state, noindex, nofollow, body_id, body_bytes, etag, last_modified,
  other_schemes, directives, note, text_sha256, version, preferences_id, robots_preferences_id, language, answer_id,
  resources, soft_404)
SELECT t.url_id, t.status, t.content_type, t.charset, t.fetched_at, t.title, t.description, t.keywords,
  t.canonical_url, t.meta_url, t.document_state, t.noindex, t.nofollow, t.body_id, t.body_bytes, t.etag,
    t.last_modified,
  t.other_schemes, t.directives, t.note, t.text_sha256, t.version, t.preferences_id, t.robots_preferences_id,
  t.language, t.answer_id, t.resources, t.soft_404
FROM unnest(:url_id::bigint[], :status::int[], :content_type::text[], :charset::text[],
  :fetched_at::float8[], :title::text[], :description::text[], :keywords::text[],
  :canonical_url::text[], :meta_url::text[], :document_state::text[], :noindex::int[], :nofollow::int[],
    :body_id::bigint[], :body_bytes::bigint[], :etag::text[], :last_modified::text[],
  :other_schemes::text[], :directives::text[], :note::text[], :text_sha256::bytea[], :version::bigint[],
  :preferences_id::bigint[], :robots_preferences_id::bigint[], :language::text[], :answer_id::bigint[],
  :resources::text[], :soft_404::int[])
    AS t (url_id, status, content_type, charset, fetched_at, title, description,
  keywords, canonical_url, meta_url, document_state, noindex, nofollow, body_id, body_bytes, etag, last_modified,
  other_schemes, directives, note, text_sha256, version, preferences_id, robots_preferences_id, language, answer_id,
  resources, soft_404)
ON CONFLICT (url_id) DO UPDATE SET status = excluded.status, content_type = excluded.content_type,
  charset = excluded.charset, fetched_at = excluded.fetched_at, title = excluded.title,
  description = excluded.description, keywords = excluded.keywords, canonical_url = excluded.canonical_url,
  meta_url = excluded.meta_url, document_state = excluded.document_state, noindex = excluded.noindex,
  nofollow = excluded.nofollow, body_id = excluded.body_id, body_bytes = excluded.body_bytes, etag = excluded.etag,
  last_modified = excluded.last_modified, other_schemes = excluded.other_schemes, directives = excluded.directives,
  note = excluded.note, text_sha256 = excluded.text_sha256, version = excluded.version, last_seen_at = NULL,
  gone_at = NULL, preferences_id = excluded.preferences_id, robots_preferences_id = excluded.robots_preferences_id,
  language = excluded.language, answer_id = excluded.answer_id, resources = excluded.resources,
  soft_404 = excluded.soft_404;

-- name: insert_link
INSERT INTO link (source, target, anchor, rel, follow)
SELECT * FROM unnest(:source::bigint[], :target::bigint[], :anchor::text[], :rel::text[],
  :follow::int[])
ON CONFLICT (source, target)
DO UPDATE SET anchor = excluded.anchor, rel = excluded.rel, follow = excluded.follow;

-- name: insert_request
WITH n AS (UPDATE request_number SET last = last + cardinality(:run_id::bigint[])
  RETURNING last - cardinality(:run_id::bigint[]) AS before)
INSERT INTO request (id, run_id, site_id, path, purpose, started_at, finished_at, status, error_kind, error,
  bytes, retry_after_s, robots_id, verdict_line, for_site_id, location, lag_s, tls_id, address, price)
SELECT n.before + t.ordinality, t.run_id, t.site_id, t.path, t.purpose, t.started_at, t.finished_at,
  t.status,
  t.error_kind, t.error, t.bytes, t.retry_after_s, t.robots_id, t.verdict_line, t.for_site_id, t.location, t.lag_s,
  t.tls_id, t.address, t.price
FROM n, unnest(:run_id::bigint[], :site_id::bigint[], :path::text[], :purpose::text[],
  :started_at::float8[], :finished_at::float8[], :status::int[],
  :error_kind::text[], :error::text[], :bytes::bigint[], :retry_after_s::float8[], :robots_id::bigint[],
    :verdict_line::int[], :for_site_id::bigint[], :location::text[],
    :lag_s::float8[], :tls_id::bigint[], :address::text[], :price::text[])
  WITH ORDINALITY
  AS t (run_id, site_id, path, purpose, started_at, finished_at, status, error_kind, error, bytes,
    retry_after_s,
  robots_id, verdict_line, for_site_id, location, lag_s, tls_id, address, price, ordinality);

-- name: insert_robots_copy
INSERT INTO robots_copy (site_id, text_id, action, status, fetched_at, valid_from, valid_until, etag,
  last_modified, failures, failing_since, retry_at, note, run_id, answered_by, headers)
SELECT t.site_id, (SELECT x.id FROM robots_text x WHERE x.sha256 = t.sha256), t.action, t.status, t.fetched_at,
  t.valid_from, t.valid_until, t.etag, t.last_modified, t.failures, t.failing_since, t.retry_at, t.note, t.run_id,
  t.answered_by, t.headers
FROM unnest(:site_id::bigint[], :sha256::bytea[], :action::text[], :status::text[], :fetched_at::float8[],
  :valid_from::float8[], :valid_until::float8[], :etag::text[], :last_modified::text[], :failures::bigint[],
  :failing_since::float8[], :retry_at::float8[], :note::text[], :run_id::bigint[], :answered_by::text[],
  :headers::text[])
  AS t (site_id, sha256, action, status, fetched_at, valid_from, valid_until, etag, last_modified, failures,
  failing_since, retry_at, note, run_id, answered_by, headers)
RETURNING site_id, id;

-- name: set_mirror
INSERT INTO mirror (site, main_site, evidence, contradiction, seen_at)
SELECT * FROM unnest(:site::text[], :main_site::text[], :evidence::text[], :contradiction::text[], :now::float8[])
ON CONFLICT (site) DO UPDATE SET main_site = excluded.main_site, evidence = excluded.evidence,
  contradiction = excluded.contradiction, seen_at = excluded.seen_at, sample = NULL, confidence = NULL;

-- name: claimed_sites
WITH able AS (
  SELECT s.id, s.group_id FROM site s
  WHERE s.group_id = ANY(numbers(:groups)) AND s.robots_until <= :until AND s.rests_until <= :until
    AND CASE WHEN s.fetched < page_limit(s)
    THEN EXISTS (SELECT FROM frontier WHERE site_id = s.id AND due_at = 0
      AND depth < :below_depth)
      OR EXISTS (SELECT FROM frontier
        WHERE site_id = s.id AND due_at > 0 AND due_at <= :until AND depth < :below_depth)
    ELSE EXISTS (SELECT FROM frontier
      WHERE site_id = s.id AND due_at <= :until AND is_revisit = 1) END),
ordered AS (
  SELECT id, group_id, row_number() OVER (PARTITION BY group_id ORDER BY id) - 1 AS place,
    count(*) OVER (PARTITION BY group_id) AS sites FROM able),
turned AS (
  SELECT p.id, p.group_id, (place + sites - floor(:until / greatest(1.0, g.pause_s))::bigint % sites) % sites AS nth
  FROM ordered p JOIN politeness_group g ON g.id = p.group_id),
chosen AS MATERIALIZED (SELECT * FROM turned WHERE nth < :limit)
SELECT claimed_site(s), s.group_id, page_limit(s) AS page_limit, robots_copy_of(r), robots_text_of(t),
  (SELECT coalesce(json_agg(json_build_object('id', u.id, 'path', u.path, 'depth', u.depth, 'attempts', u.attempts,
    'hops', u.hops,
      'seed', u.seed, 'by_domain', u.by_domain, 'due_at', u.due_at, 'kind', u.kind,
      'seen', CASE WHEN v.url_id IS NOT NULL THEN json_build_object('state', v.state, 'reason_code', v.reason_code,
        'reason', v.reason,
        'checked_at', v.checked_at, 'changes', v.changes, 'watched_s', v.watched_s, 'failures', v.failures,
        'target', (SELECT t.name || r.path FROM url r JOIN site t ON t.id = site_of(r.id) WHERE r.id = u.target),
        'hint', v.hint, 'version', coalesce(p.version, 0), 'status', p.status, 'etag', coalesce(v.etag, p.etag),
        'last_modified', coalesce(v.last_modified, p.last_modified),
        'content', encode(coalesce((SELECT sha256 FROM body WHERE id = p.body_id), v.content), 'hex'),
        'text', encode(p.text_sha256, 'hex'), 'noindex', p.noindex, 'nofollow', p.nofollow,
        'directives', p.directives) END)
     ORDER BY q.due_at, q.depth, q.url_id), '[]')::text FROM (
    (SELECT -1::float8 AS due_at, depth, id AS url_id FROM url WHERE id = s.probe AND state = 'queued')
    UNION ALL
    (SELECT due_at, depth, url_id FROM frontier WHERE site_id = s.id AND due_at <= :until
     AND s.fetched < page_limit(s) AND depth < :below_depth ORDER BY due_at, depth, url_id LIMIT :limit)
    UNION ALL
    (SELECT due_at, depth, url_id FROM frontier WHERE site_id = s.id AND due_at <= :until
     AND is_revisit = 1 AND s.fetched >= page_limit(s) ORDER BY due_at LIMIT :limit)) q
    JOIN url u ON u.id = q.url_id
    LEFT JOIN revisit v ON v.url_id = u.id
    LEFT JOIN page p ON p.url_id = v.url_id) AS urls
FROM chosen c JOIN site s ON s.id = c.id
LEFT JOIN robots_copy r ON r.id = s.robots_id
LEFT JOIN robots_text t ON t.id = r.text_id ORDER BY c.nth;

-- name: await_lost_workers
-- A worker whose lease ran out may have its row locked in an unfinished commit. Waits until it goes on, or until
-- idle_in_transaction_session_timeout ends its connection.
SELECT id FROM worker WHERE ended_at IS NULL AND lease_until <= clock() ORDER BY id FOR UPDATE;

-- name: still_at_work
-- A worker that wants to end this one waits for the transaction.
SELECT id FROM worker WHERE id = :worker AND ended_at IS NULL FOR SHARE;

-- name: drop_links
-- Also the links that are still to be carried over; the URLs that they lead to stay found.
WITH gone AS (UPDATE offer SET follow = NULL, leads = 0 WHERE source = ANY(:id::bigint[]))
DELETE FROM link WHERE source = ANY(:id::bigint[]);

-- name: sweep_bodies
DELETE FROM body b USING body_to_drop d WHERE b.id = d.body_id
  AND NOT EXISTS (SELECT 1 FROM page WHERE body_id = b.id)
  AND NOT EXISTS (SELECT 1 FROM page_version WHERE body_id = b.id);

-- name: forget_beats
DELETE FROM heartbeat h USING worker w WHERE w.id = h.worker AND (h.run_id < :run_id OR w.ended_at IS NOT NULL);

-- name: offer_left
SELECT 1 AS n FROM offer LIMIT 1;

-- name: notify
SELECT pg_notify(:channel, '');

-- name: clock
SELECT clock() AS now;

-- name: lock
-- Until the transaction ends.
SELECT pg_advisory_xact_lock(:key);

-- name: lock_workers
LOCK TABLE worker IN SHARE MODE;

-- name: number_requests
UPDATE request_number SET last = (SELECT coalesce(max(id), 0) FROM request);

-- name: volatile_functions
-- The volatile functions among these words, in any schema.
SELECT DISTINCT proname::text AS proname FROM pg_catalog.pg_proc
WHERE provolatile = 'v' AND proname = ANY(:words::name[]) ORDER BY 1;

-- name: reader_role
-- The facts about the role :role: one row, also if there is no such role.
SELECT count(*) > 0 AS exists, coalesce(bool_or(rolsuper), false) AS is_superuser,
  coalesce(bool_or(pg_has_role(rolname, (SELECT relowner FROM pg_catalog.pg_class
    WHERE oid = 'politeness_group'::regclass), 'MEMBER')), false) AS is_owner
FROM pg_catalog.pg_roles WHERE rolname = :role::text;

-- name: make_reader
-- The statements that make the role :role.
SELECT format(template, :role::text) AS statement
FROM unnest(ARRAY[
  'CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION',
  'ALTER ROLE %I SET default_transaction_read_only = on'
]) WITH ORDINALITY AS t (template, n) ORDER BY n;

-- name: set_password
-- The statement that sets the password of the role :role.
SELECT format('ALTER ROLE %I PASSWORD %L', :role::text, :verifier::text) AS statement;

-- name: grant_reader
-- The statements that let the role :role read the store and make temporary tables, and do nothing else. The keys of
-- registrations are in rup_server; the view rup_servers has the rest of it.
SELECT format(template, :role::text, current_schema(), current_database()) AS statement
FROM unnest(ARRAY[
  'REVOKE ALL ON ALL TABLES IN SCHEMA %2$I FROM %1$I',
  'REVOKE ALL ON ALL SEQUENCES IN SCHEMA %2$I FROM %1$I',
  'REVOKE CREATE ON SCHEMA %2$I FROM %1$I, PUBLIC',
  'GRANT USAGE ON SCHEMA %2$I TO %1$I',
  'GRANT CONNECT, TEMPORARY ON DATABASE %3$I TO %1$I',
  'GRANT SELECT ON ALL TABLES IN SCHEMA %2$I TO %1$I',
  'REVOKE ALL ON %2$I.rup_server FROM %1$I'
]) WITH ORDINALITY AS t (template, n) ORDER BY n;

-- name: store_bytes
SELECT pg_database_size(current_database()) AS n;

-- name: erase_deleted
-- No-op: PostgreSQL leaves deleted rows in place until `compact`.
SELECT 1 AS done;

-- name: empty_log
SELECT 0 AS busy;

-- name: compact
VACUUM (FULL, ANALYZE);
