-- Named queries of the PostgreSQL store; those of the SQLite store with the same names say what each is for. What is
-- executed for many rows takes its columns as arrays: one statement, whatever their number.
--
-- What a turn executes names the group of every row: `:groups($7)` are those of the URLs or sites whose numbers are the
-- seventh parameter, `:group($7)` is that of one, and `:named($7)` are the groups with these names (postgres_groups.py).

-- name: known_urls
SELECT u.id, u.path, u.state, u.reason_code, u.reason, u.depth, u.hops
FROM unnest(:groups($1), numbers($1)) AS t (group_id, id) JOIN url u ON u.group_id = t.group_id AND u.id = t.id;

-- name: lock_urls
-- In the order of their numbers, so that no two transactions wait for each other.
SELECT u.id FROM unnest(:groups($1), numbers($1)) AS t (group_id, id) JOIN url u ON u.group_id = t.group_id AND u.id = t.id
ORDER BY u.id FOR NO KEY UPDATE OF u;

-- name: lock_groups
-- (JSON list of numbers, JSON list of names)
SELECT id FROM politeness_group WHERE id = ANY(numbers($1) || :named($2)) ORDER BY id FOR NO KEY UPDATE;

-- name: insert_url
-- Those that another worker has inserted meanwhile are left out: what was inserted is returned.
INSERT INTO url (group_id, id, path, state, reason_code, reason, depth, found_on, hops, seed, kind, lastmod)
SELECT * FROM unnest(:groups($1), $1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[],
  $7::bigint[], $8::int[], $9::int[], $10::text[], $11::float8[]) AS t (group_id, id) ORDER BY t.id
ON CONFLICT DO NOTHING RETURNING id;

-- name: leave_offer
-- What a page of one group says of URLs of others; $1 are the pages' sites.
INSERT INTO offer (group_id, worker_id, max_depth, depth, target, url, source, source_depth, refusal_code, refusal, hops,
  seed, kind, lastmod, anchor, rel, follow, leads)
SELECT * FROM unnest(:groups($1), $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[],
  $8::bigint[], $9::text[], $10::text[], $11::int[], $12::int[], $13::text[], $14::float8[], $15::text[], $16::text[],
  $17::int[], $18::int[]);

-- name: leave_nearer
-- What a page that has come nearer to the seeds means for a known URL of another group.
INSERT INTO offer (group_id, worker_id, max_depth, depth, target)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]);

-- name: offers_left
-- By this worker (NULL: by any), or by one that is gone.
SELECT o.group_id, o.id, o.max_depth, o.depth, o.target, o.url, o.source, o.source_depth, o.refusal_code, o.refusal,
  o.hops, o.seed, o.kind, o.lastmod
FROM offer o WHERE coalesce(o.worker_id = $1, true)
  OR NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = o.worker_id AND w.ended_at IS NULL)
ORDER BY o.id LIMIT $2;

-- name: take_offers
-- Offers that were carried over make place for the links that they were found by: (group, offer, number of the URL).
WITH done AS (
  DELETE FROM offer o USING unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS t (group_id, id, number)
  WHERE o.group_id = t.group_id AND o.id = t.id
  RETURNING o.group_id, o.id, o.source, t.number, o.anchor, o.rel, o.follow, o.leads),
led AS (
  UPDATE url u SET target = d.number FROM done d
  WHERE d.leads = 1 AND u.group_id = d.group_id AND u.id = d.source AND u.target IS NULL AND u.state <> 'queued')
INSERT INTO link (group_id, source, target, anchor, rel, follow)
SELECT DISTINCT ON (source, number) group_id, source, number, anchor, rel, follow FROM done
WHERE follow IS NOT NULL ORDER BY source, number, id DESC
ON CONFLICT (source, target, group_id)
DO UPDATE SET anchor = excluded.anchor, rel = excluded.rel, follow = excluded.follow;

-- name: enqueue
INSERT INTO frontier (group_id, site_id, due_at, depth, url_id, again)
SELECT u.group_id, site_of(u.id), u.due_at, u.depth, u.id,
  EXISTS (SELECT 1 FROM revisit r WHERE r.group_id = u.group_id AND r.url_id = u.id)::int
FROM unnest(:groups($1), $1::bigint[]) AS t (group_id, id) JOIN url u ON u.group_id = t.group_id AND u.id = t.id
WHERE u.state = 'queued' ON CONFLICT DO NOTHING;

-- name: dequeue
DELETE FROM frontier f USING unnest(:groups($1), $1::bigint[]) AS t (group_id, id), url u
WHERE u.group_id = t.group_id AND u.id = t.id AND f.group_id = t.group_id
  AND f.site_id = site_of(u.id) AND f.due_at = u.due_at AND f.depth = u.depth AND f.url_id = u.id;

-- name: change_url
UPDATE url u SET depth = t.depth, hops = t.hops, state = t.state, reason_code = t.reason_code, reason = t.reason,
  found_on = coalesce(t.found_on, u.found_on), seed = greatest(u.seed, t.seed)
FROM unnest(:groups($8), $1::bigint[], $2::int[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::int[],
    $8::bigint[])
  AS t (group_id, depth, hops, state, reason_code, reason, found_on, seed, id) WHERE u.group_id = t.group_id AND u.id = t.id;

-- name: end_url
UPDATE url u SET state = t.state, reason_code = t.reason_code, reason = t.reason, attempts = t.attempts,
  target = t.target, due_at = t.due_at, kind = t.kind
FROM unnest(:groups($8), $1::text[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::float8[], $7::text[],
    $8::bigint[])
  AS t (group_id, state, reason_code, reason, attempts, target, due_at, kind, id) WHERE u.group_id = t.group_id AND u.id = t.id;

-- name: requeue
UPDATE url SET state = 'queued', reason_code = 'requeued', reason = '', due_at = 0, attempts = 0, deaths = 0, target = NULL
WHERE id = ANY($1::bigint[]) AND state IN ('excluded', 'failed');

-- name: set_seed
UPDATE url SET seed = 1 WHERE id = ANY($1::bigint[]) AND seed = 0;

-- name: exclude
UPDATE url u SET state = 'excluded', reason_code = t.reason_code, reason = t.reason
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS t (reason_code, reason, id)
WHERE u.id = t.id AND u.state NOT IN ('fetched', 'redirected');

-- name: insert_rank
INSERT INTO rank SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::float8[], $4::bigint[], $5::bigint[]);

-- name: insert_site_rank
INSERT INTO site_rank SELECT * FROM unnest($1::bigint[], $2::float8[], $3::bigint[], $4::bigint[], $5::bigint[]);

-- name: set_lastmod
UPDATE url u SET lastmod = t.lastmod FROM unnest(:groups($2), $1::float8[], $2::bigint[]) AS t (group_id, lastmod, id)
WHERE u.group_id = t.group_id AND u.id = t.id;

-- name: make_sitemap
UPDATE url u SET kind = 'sitemap', found_on = coalesce(t.found_on, u.found_on)
FROM unnest(:groups($2), $1::bigint[], $2::bigint[]) AS t (group_id, found_on, id)
WHERE u.group_id = t.group_id AND u.id = t.id AND u.kind = 'page' AND u.state IN ('queued', 'excluded')
  AND NOT EXISTS (SELECT 1 FROM revisit r WHERE r.group_id = u.group_id AND r.url_id = u.id);

-- name: main_site
SELECT main_site FROM site WHERE id = $1 AND group_id = :group($1);

-- name: urls_behind_mirrors
WITH RECURSIVE behind (site) AS (
  SELECT unnest(texts($1)) COLLATE "C"
  UNION SELECT m.site FROM behind b JOIN mirror m ON m.main_site = b.site AND m.evidence = 'host')
SELECT u.id FROM behind b JOIN site s ON s.name = b.site
JOIN url u ON u.id BETWEEN first_url_of(s.id) AND last_url_of(s.id)
WHERE u.state = 'excluded' AND u.reason_code IN ('mirror', 'mirror_cycle');

-- name: links_of
-- Each with the group of the page.
SELECT u.depth + 1, l.target, u.group_id
FROM unnest(:groups($1), numbers($1)) AS t (group_id, id) JOIN url u ON u.group_id = t.group_id AND u.id = t.id
JOIN link l ON l.group_id = u.group_id AND l.source = u.id AND l.follow = 1
UNION ALL
SELECT u.depth, u.target, u.group_id
FROM unnest(:groups($1), numbers($1)) AS t (group_id, id) JOIN url u ON u.group_id = t.group_id AND u.id = t.id
WHERE u.target IS NOT NULL;

-- name: add_groups
-- Two names with the same hash are two groups all the same.
INSERT INTO politeness_group (id, name)
SELECT n.id + EXISTS (SELECT 1 FROM politeness_group g WHERE g.id = n.id)::int, n.name
FROM (SELECT name, group_number(name) AS id FROM unnest($1::text[]) AS name
  EXCEPT SELECT name, group_number(name) FROM politeness_group WHERE name = ANY($1::text[])) AS n
ORDER BY 1 ON CONFLICT DO NOTHING;

-- name: add_sites
INSERT INTO site (name, group_id)
SELECT t.name, t.group_id FROM unnest($1::text[], :named($2)) AS t (name, group_id)
WHERE NOT EXISTS (SELECT 1 FROM site s WHERE s.name = t.name) ORDER BY t.name ON CONFLICT DO NOTHING;

-- name: sites_named
SELECT id, name, group_id FROM site WHERE name = ANY(texts($1));

-- name: depths
SELECT u.id, u.depth, u.kind
FROM unnest(:groups($1), numbers($1)) AS t (group_id, id) JOIN url u ON u.group_id = t.group_id AND u.id = t.id;

-- name: insert_body
-- They are to be dropped unless a turn comes that names them.
WITH new AS (
  INSERT INTO body (sha256, data) SELECT * FROM unnest($1::bytea[], $2::bytea[]) AS t (sha256, data)
  WHERE NOT EXISTS (SELECT 1 FROM body b WHERE b.sha256 = t.sha256) ORDER BY t.sha256 ON CONFLICT DO NOTHING
  RETURNING id)
INSERT INTO body_to_drop SELECT id FROM new ON CONFLICT DO NOTHING;

-- name: keep_bodies
-- A turn has named them.
DELETE FROM body_to_drop WHERE body_id = ANY($1::bigint[]);

-- name: bodies_named
SELECT sha256, id FROM body WHERE sha256 = ANY($1::bytea[]);

-- name: insert_page
INSERT INTO page AS p (group_id, url_id, status, content_type, charset, fetched_at, title, description, keywords,
  canonical_url, meta_url, document_state, noindex, nofollow, body_id, body_bytes, etag, last_modified,
  other_schemes, directives, note, text_sha256, version)
SELECT t.group_id, t.url_id, t.status, t.content_type, t.charset, t.fetched_at, t.title, t.description, t.keywords,
  t.canonical_url, t.meta_url, t.document_state, t.noindex, t.nofollow, t.body_id, t.body_bytes, t.etag, t.last_modified,
  t.other_schemes, t.directives, t.note, t.text_sha256, t.version
FROM unnest(:groups($1), $1::bigint[], $2::int[], $3::text[], $4::text[], $5::float8[], $6::text[], $7::text[], $8::text[],
  $9::text[], $10::text[], $11::text[], $12::int[], $13::int[], $14::bigint[], $15::bigint[], $16::text[], $17::text[],
  $18::text[], $19::text[], $20::text[], $21::bytea[], $22::bigint[]) AS t (group_id, url_id, status, content_type, charset, fetched_at, title, description,
  keywords, canonical_url, meta_url, document_state, noindex, nofollow, body_id, body_bytes, etag, last_modified,
  other_schemes, directives, note, text_sha256, version)
ON CONFLICT (url_id, group_id) DO UPDATE SET status = excluded.status, content_type = excluded.content_type,
  charset = excluded.charset, fetched_at = excluded.fetched_at, title = excluded.title,
  description = excluded.description, keywords = excluded.keywords, canonical_url = excluded.canonical_url,
  meta_url = excluded.meta_url, document_state = excluded.document_state, noindex = excluded.noindex,
  nofollow = excluded.nofollow, body_id = excluded.body_id, body_bytes = excluded.body_bytes, etag = excluded.etag,
  last_modified = excluded.last_modified, other_schemes = excluded.other_schemes, directives = excluded.directives,
  note = excluded.note, text_sha256 = excluded.text_sha256, version = excluded.version, last_seen_at = NULL,
  gone_at = NULL;

-- name: insert_link
INSERT INTO link (group_id, source, target, anchor, rel, follow)
SELECT * FROM unnest(:groups($1), $1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::int[])
ON CONFLICT (source, target, group_id)
DO UPDATE SET anchor = excluded.anchor, rel = excluded.rel, follow = excluded.follow;

-- name: insert_request
WITH n AS (UPDATE request_number SET last = last + cardinality($1::bigint[]) RETURNING last - cardinality($1::bigint[]) AS before)
INSERT INTO request (group_id, id, run_id, site_id, path, purpose, started_at, finished_at, status, error_kind, error,
  bytes, retry_after_s, robots_id, verdict_line, for_site_id, location)
SELECT t.group_id, n.before + t.ordinality, t.run_id, t.site_id, t.path, t.purpose, t.started_at, t.finished_at, t.status,
  t.error_kind, t.error, t.bytes, t.retry_after_s, t.robots_id, t.verdict_line, t.for_site_id, t.location
FROM n, unnest(:groups($2), $1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::float8[], $6::float8[], $7::int[],
  $8::text[], $9::text[], $10::bigint[], $11::float8[], $12::bigint[], $13::int[], $14::bigint[], $15::text[])
  WITH ORDINALITY
  AS t (group_id, run_id, site_id, path, purpose, started_at, finished_at, status, error_kind, error, bytes, retry_after_s,
  robots_id, verdict_line, for_site_id, location, ordinality);

-- name: count_fetched
UPDATE site s SET fetched = s.fetched + t.n FROM unnest(:groups($2), $1::bigint[], $2::bigint[]) AS t (group_id, n, id)
WHERE s.group_id = t.group_id AND s.id = t.id;

-- name: insert_robots_text
INSERT INTO robots_text (sha256, body) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: close_robots_copy
UPDATE robots_copy SET valid_until = least(valid_until, $1) WHERE group_id = :group($2)
  AND id = (SELECT robots_id FROM site WHERE id = $2 AND group_id = :group($2));

-- name: insert_robots_copy
INSERT INTO robots_copy (group_id, site_id, text_id, action, status, fetched_at, valid_from, valid_until, etag,
  last_modified, failures, failing_since, retry_at, note, run_id, answered_by, headers)
VALUES (:group($1), $1, (SELECT id FROM robots_text WHERE sha256 = $2), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
  $14, $15, $16)
RETURNING id;

-- name: set_site_robots
UPDATE site SET robots_id = coalesce($1, robots_id), wait_until = $2, crawl_delay_s = $3, main_site = $4
WHERE id = $5 AND group_id = :group($5);

-- name: set_mirror
INSERT INTO mirror (site, main_site, evidence, seen_at) VALUES ($1, $2, 'host', $3)
ON CONFLICT (site) DO UPDATE SET main_site = excluded.main_site, evidence = 'host', seen_at = excluded.seen_at,
  sample = NULL, confidence = NULL;

-- name: drop_agent_servers
DELETE FROM agent_server WHERE site_id = $1 AND group_id = :group($1);

-- name: insert_agent_server
INSERT INTO agent_server (group_id, site_id, line, path, agent_server)
SELECT * FROM unnest(:groups($1), $1::bigint[], $2::bigint[], $3::text[], $4::text[]);

-- name: drop_mirror
DELETE FROM mirror WHERE site = $1 AND evidence = 'host';

-- name: set_pace
-- Of two workers that have asked it, the one that is to wait longer has the say.
UPDATE politeness_group g SET next_at = t.next_at, pause_s = t.pause_s, backoff_s = t.backoff_s, waits_for = t.waits_for
FROM unnest($1::float8[], $2::float8[], $3::float8[], $4::text[], :named($5))
  AS t (next_at, pause_s, backoff_s, waits_for, id) WHERE g.id = t.id AND g.next_at <= t.next_at;

-- name: end_visit
UPDATE politeness_group SET visited_by = NULL WHERE id = ANY(:named($1));

-- name: release_groups
UPDATE politeness_group SET claimed_by = NULL, caution = greatest(0, caution - 1) WHERE id = ANY(numbers($1));

-- name: refresh_ready
UPDATE politeness_group g SET ready_at = (
  SELECT min(greatest(g.next_at, s.wait_until, f.due_at))
  FROM site s CROSS JOIN LATERAL (
    (SELECT due_at FROM frontier WHERE group_id = s.group_id AND site_id = s.id AND depth < $3 AND s.fetched < $1
     ORDER BY due_at LIMIT 1)
    UNION ALL
    (SELECT due_at FROM frontier WHERE group_id = s.group_id AND site_id = s.id AND again = 1 AND s.fetched >= $1
     ORDER BY due_at LIMIT 1)) f
  WHERE s.group_id = g.id)
WHERE id = ANY(numbers($2));

-- name: stale_groups
-- Which groups are not ready when they are said to be.
SELECT g.id FROM politeness_group g LEFT JOIN (
  SELECT s.group_id, min(greatest(h.next_at, s.wait_until, f.due_at)) AS ready_at
  FROM site s JOIN politeness_group h ON h.id = s.group_id CROSS JOIN LATERAL (
    (SELECT due_at FROM frontier WHERE site_id = s.id AND s.fetched < $1 ORDER BY due_at LIMIT 1)
    UNION ALL
    (SELECT due_at FROM frontier WHERE site_id = s.id AND again = 1 AND s.fetched >= $1 ORDER BY due_at LIMIT 1)) f
  GROUP BY s.group_id) n ON n.group_id = g.id
WHERE n.ready_at IS DISTINCT FROM g.ready_at;

-- name: claimable_groups
-- Those that another worker is just about to claim are passed over.
SELECT id, name, next_at, pause_s, backoff_s, waits_for, caution FROM politeness_group
WHERE ready_at <= $1 AND claimed_by IS NULL AND (visited_by IS NULL OR visited_by = $2)
ORDER BY ready_at LIMIT $3 FOR UPDATE SKIP LOCKED;

-- name: groups_and_workers
-- How many groups have work or a worker, and how many workers there are: (no more groups than, now).
SELECT (SELECT count(*) FROM (SELECT 1 FROM politeness_group WHERE ready_at IS NOT NULL AND claimed_by IS NULL LIMIT $1) AS r)
    + (SELECT count(*) FROM politeness_group WHERE claimed_by IS NOT NULL OR visited_by IS NOT NULL),
  (SELECT count(*) FROM worker WHERE ended_at IS NULL AND lease_until > $2);

-- name: claim_groups
UPDATE politeness_group SET claimed_by = $1 WHERE id = ANY(numbers($2));

-- name: crawl_delay
SELECT crawl_delay_s FROM site WHERE name = $1;

-- name: claimed_sites
WITH able AS (
  SELECT s.id, s.group_id FROM site s
  WHERE s.group_id = ANY(numbers($3)) AND s.wait_until <= $1 AND CASE WHEN s.fetched < $4
    THEN EXISTS (SELECT FROM frontier WHERE group_id = s.group_id AND site_id = s.id AND due_at = 0 AND depth < $5)
      OR EXISTS (SELECT FROM frontier
        WHERE group_id = s.group_id AND site_id = s.id AND due_at > 0 AND due_at <= $1 AND depth < $5)
    ELSE EXISTS (SELECT FROM frontier
      WHERE group_id = s.group_id AND site_id = s.id AND due_at <= $1 AND again = 1) END),
placed AS (
  SELECT id, group_id, row_number() OVER (PARTITION BY group_id ORDER BY id) - 1 AS place,
    count(*) OVER (PARTITION BY group_id) AS sites FROM able),
turned AS (
  SELECT p.id, p.group_id, (place + sites - floor($1 / greatest(1.0, g.pause_s))::bigint % sites) % sites AS nth
  FROM placed p JOIN politeness_group g ON g.id = p.group_id),
chosen AS MATERIALIZED (SELECT * FROM turned WHERE nth < $2)
SELECT s.id, s.name, s.group_id, s.fetched, s.robots_id, s.crawl_delay_s,
  (SELECT coalesce(json_agg(json_build_array(u.id, u.path, u.depth, u.attempts, u.hops, u.seed, u.due_at, u.kind,
      CASE WHEN v.url_id IS NOT NULL THEN json_build_array(v.state, v.reason_code, v.reason, v.checked_at, v.changes, v.watched_s,
        v.failures, v.hint, coalesce(p.version, 0), p.status, coalesce(v.etag, p.etag),
        coalesce(v.last_modified, p.last_modified),
        encode(coalesce((SELECT sha256 FROM body WHERE id = p.body_id), v.content), 'hex'),
        encode(p.text_sha256, 'hex'), p.noindex, p.nofollow, p.directives) END)
     ORDER BY q.due_at, q.depth, q.url_id), '[]')::text FROM (
    (SELECT due_at, depth, url_id FROM frontier WHERE group_id = s.group_id AND site_id = s.id AND due_at <= $1
     AND s.fetched < $4 AND depth < $5 ORDER BY due_at, depth, url_id LIMIT $2)
    UNION ALL
    (SELECT due_at, depth, url_id FROM frontier WHERE group_id = s.group_id AND site_id = s.id AND due_at <= $1
     AND again = 1 AND s.fetched >= $4 ORDER BY due_at LIMIT $2)) q
    JOIN url u ON u.group_id = s.group_id AND u.id = q.url_id
    LEFT JOIN revisit v ON v.group_id = s.group_id AND v.url_id = u.id
    LEFT JOIN page p ON p.group_id = s.group_id AND p.url_id = v.url_id),
  r.action, r.status, r.fetched_at, r.valid_until, t.body, t.sha256, r.etag, r.last_modified,
  r.failures, r.failing_since, r.retry_at, r.note
FROM chosen c JOIN site s ON s.id = c.id
LEFT JOIN robots_copy r ON r.group_id = s.group_id AND r.id = s.robots_id
LEFT JOIN robots_text t ON t.id = r.text_id ORDER BY c.nth;

-- name: next_ready
SELECT ready_at, name, waits_for FROM politeness_group
WHERE ready_at IS NOT NULL AND claimed_by IS NULL ORDER BY ready_at LIMIT 1;

-- name: waiting_groups
SELECT g.name, g.ready_at,
  coalesce((SELECT 'robots.txt: ' || r.status FROM site s JOIN robots_copy r ON r.id = s.robots_id
    WHERE s.group_id = g.id AND s.wait_until > $1 LIMIT 1), nullif(g.waits_for, ''), 'retry')
FROM politeness_group g WHERE g.ready_at > $1 AND g.claimed_by IS NULL ORDER BY g.ready_at DESC LIMIT $2;

-- name: lost_groups
-- Passed over while another worker releases them.
SELECT g.id, g.name, coalesce(w.ended_at, w.lease_until), g.next_at, g.pause_s, g.backoff_s, g.waits_for
FROM politeness_group g JOIN worker w ON w.id = coalesce(g.claimed_by, g.visited_by)
WHERE (g.claimed_by IS NOT NULL OR g.visited_by IS NOT NULL)
  AND w.ended_at IS NOT NULL
ORDER BY g.id FOR NO KEY UPDATE OF g SKIP LOCKED;

-- name: free_group
UPDATE politeness_group SET claimed_by = NULL, visited_by = NULL, caution = CASE WHEN caution = 0 THEN 1 ELSE 21 END
WHERE id = ANY($1::bigint[]);

-- name: begin_trial
UPDATE worker SET trial = $1 WHERE id = $2;

-- name: lost_trials
-- Passed over while another worker blames them.
SELECT id, trial FROM worker WHERE trial IS NOT NULL AND ended_at IS NOT NULL ORDER BY id FOR NO KEY UPDATE SKIP LOCKED;

-- name: blame
UPDATE url SET deaths = deaths + 1, due_at = $1::float8 + 2 * (deaths + 1)
WHERE id = $2 AND group_id = :group($2) AND state = 'queued' RETURNING deaths;

-- name: fail_killer
UPDATE url SET state = 'failed', reason_code = 'worker_died', reason = $1, due_at = 0
WHERE id = $2 AND group_id = :group($2);

-- name: await_lost_workers
-- One whose lease has run out may have its row locked, stopped in the middle of a turn: until it goes on, or its
-- connection is ended for it (idle_in_transaction_session_timeout).
SELECT id FROM worker WHERE ended_at IS NULL AND lease_until <= clock() ORDER BY id FOR UPDATE;

-- name: end_lost_workers
-- Before what they held is released; one that is just now renewing is not lost.
UPDATE worker SET ended_at = lease_until, ended_by = 'lease ran out' WHERE id IN (
  SELECT id FROM worker WHERE ended_at IS NULL AND lease_until <= least($1, clock()) FOR UPDATE SKIP LOCKED);

-- name: join
INSERT INTO worker (run_id, host, pid, processes, started_at, seen_at, lease_until, ended_by)
VALUES ($1, $2, $3, $4, $5, $5, clock() + $6, $7) RETURNING id;

-- name: relieve
DELETE FROM worker WHERE run_id = $1 AND ended_at IS NULL AND ended_by = $2;

-- name: neighbours
SELECT id, pid FROM worker WHERE processes = $1 AND ended_at IS NULL AND id <> $2;

-- name: renew
UPDATE worker SET seen_at = $1, lease_until = clock() + $2, turns = turns + $3, pages = pages + $4,
  requests = requests + $5
WHERE id = $6 AND ended_at IS NULL RETURNING turns;

-- name: turns
SELECT turns FROM worker WHERE id = $1;

-- name: count_late
-- As a turn, but of a worker that may have ended: (requests, worker, turns so far).
UPDATE worker SET turns = turns + 1, requests = requests + $1 WHERE id = $2 AND turns = $3 RETURNING id;

-- name: still_at_work
-- Who ends this worker waits for the transaction to end.
SELECT id FROM worker WHERE id = $1 AND ended_at IS NULL FOR SHARE;

-- name: end_worker
UPDATE worker SET ended_at = $1, ended_by = $2 WHERE id = $3 AND ended_at IS NULL;

-- name: pages_taken
-- One worker after the other, until each turn is committed.
SELECT r.pages_before + (SELECT sum(pages) FROM worker WHERE run_id = r.id),
  (SELECT coalesce(sum(granted), 0) FROM worker WHERE run_id = r.id AND id <> w.id AND ended_at IS NULL)
FROM worker w JOIN run r ON r.id = w.run_id WHERE w.id = $1;

-- name: run_under_way
SELECT r.id, r.settings FROM run r JOIN worker w ON w.run_id = r.id
WHERE w.ended_at IS NULL AND w.lease_until > greatest($1, clock())
  AND r.settings::json ->> 'auxiliary_run' IS NULL ORDER BY r.id DESC LIMIT 1;

-- name: last_run
SELECT id, finished_at, started_at, ended_code, ended_by, crawler_version, settings, worst_lag_s, pages_before FROM run
WHERE settings::json ->> 'auxiliary_run' IS NULL ORDER BY id DESC LIMIT 1;

-- name: reopen_run
UPDATE run SET finished_at = NULL, ended_code = NULL, ended_by = NULL WHERE id = $1 AND finished_at IS NOT NULL;

-- name: others_at_work
SELECT EXISTS (SELECT 1 FROM politeness_group
  WHERE (claimed_by IS NOT NULL OR visited_by IS NOT NULL) AND (claimed_by <> $1 OR visited_by <> $2))
  OR EXISTS (SELECT 1 FROM politeness_group WHERE ready_at IS NOT NULL AND claimed_by IS NULL)
  OR EXISTS (SELECT 1 FROM offer);

-- name: insert_run
INSERT INTO run (started_at, crawler_version, settings, pages_before)
SELECT $1, $2, $3, coalesce(sum(fetched), 0) FROM site RETURNING id;

-- name: end_run
UPDATE run SET finished_at = $1, ended_code = $2, ended_by = $3 WHERE id = $4
  AND NOT EXISTS (SELECT 1 FROM worker WHERE run_id = $4 AND ended_at IS NULL AND lease_until > $1);

-- name: mirrors_since
SELECT site, main_site FROM mirror WHERE evidence = 'host' AND seen_at > $1;

-- name: excluded_from
SELECT u.id, s.name || u.path, u.reason_code, u.depth, u.seed = 1 OR u.kind <> 'page' FROM url u JOIN site s ON s.id = site_of(u.id)
WHERE u.id > $1 AND u.state IN ('excluded', 'failed') ORDER BY u.id LIMIT $2;

-- name: robots_copy_of
SELECT r.action, r.status, r.fetched_at, r.valid_until, t.body, t.sha256, r.etag, r.last_modified,
  r.failures, r.failing_since, r.retry_at, r.note
FROM site s JOIN robots_copy r ON r.id = s.robots_id LEFT JOIN robots_text t ON t.id = r.text_id WHERE s.name = $1;

-- name: alike_sites
WITH twin AS (
  SELECT body_id, site_of(url_id) AS b, min(site_of(url_id)) OVER (PARTITION BY body_id, path_hash_of(url_id)) AS a
  FROM page
  WHERE body_id IN (SELECT body_id FROM page WHERE body_id IS NOT NULL GROUP BY body_id HAVING count(*) > 1)),
alike AS (
  SELECT a, b, count(*) AS n FROM twin WHERE b > a GROUP BY a, b HAVING count(DISTINCT body_id) >= $1),
ranked AS (
  SELECT s.id AS main_id, t.id AS site_id, s.name AS main_site, t.name AS site, n, t.fetched
  FROM alike JOIN site s ON s.id IN (a, b) JOIN site t
    ON (s.id = a AND t.id = b AND s.fetched >= t.fetched) OR (s.id = b AND t.id = a AND s.fetched > t.fetched))
SELECT site, main_site, n,
  (SELECT count(*) FROM page p JOIN page q ON q.url_id = (first_url_of(main_id) | (path_hash_of(p.url_id)))
   WHERE p.url_id BETWEEN first_url_of(site_id) AND last_url_of(site_id) AND p.body_id IS NOT NULL AND q.body_id IS NOT NULL),
  fetched
FROM ranked ORDER BY n DESC, main_id;

-- name: insert_content_mirror
INSERT INTO mirror (site, main_site, evidence, sample, confidence, seen_at)
SELECT site, main_site, 'content', sample, confidence, seen_at
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::float8[], $5::float8[]) WITH ORDINALITY
  AS t (site, main_site, sample, confidence, seen_at, n) ORDER BY n ON CONFLICT DO NOTHING;

-- name: fail_circles
WITH RECURSIVE moved AS MATERIALIZED (
    SELECT id, target FROM url WHERE state IN ('redirected', 'excluded', 'failed') AND state = 'redirected'),
  ending (id) AS (
    SELECT m.id FROM moved m LEFT JOIN url u ON u.id = m.target WHERE u.state IS NULL OR u.state <> 'redirected'
    UNION ALL SELECT m.id FROM ending e CROSS JOIN moved m WHERE m.target = e.id)
UPDATE url SET state = 'failed', reason_code = 'redirect_circle', reason = replace($1, '{}', reason)
WHERE state = 'redirected' AND id IN (SELECT id FROM moved EXCEPT SELECT id FROM ending);

-- name: way_to
WITH RECURSIVE way (id, found_on, n) AS (
  SELECT id, found_on, 0 FROM url WHERE id = $1
  UNION ALL SELECT u.id, u.found_on, n + 1 FROM way JOIN url u ON u.id = way.found_on WHERE n < 30)
SELECT s.name || u.path FROM way JOIN url u ON u.id = way.id JOIN site s ON s.id = site_of(u.id) ORDER BY n DESC;

-- name: expire_robots
UPDATE robots_copy SET valid_until = least(valid_until, $1), retry_at = NULL
WHERE valid_until > $2 AND id IN (SELECT robots_id FROM site)
  AND (NOT $3::boolean OR status IN ('address', 'dns'));

-- name: end_robots_wait
UPDATE site SET wait_until = 0
WHERE NOT $1::boolean OR robots_id IN (SELECT id FROM robots_copy WHERE status IN ('address', 'dns'));

-- name: all_sites
SELECT s.id, s.name, g.name, g.next_at, g.pause_s, g.backoff_s, g.waits_for
FROM site s JOIN politeness_group g ON g.id = s.group_id;

-- name: regroup_site
UPDATE site s SET group_id = g.id FROM unnest($1::text[], $2::bigint[]) AS t (group_name, id)
JOIN politeness_group g ON g.name = t.group_name WHERE s.id = t.id;

-- name: queued_from
SELECT u.id, s.name || u.path, u.depth, u.seed = 1 OR u.kind <> 'page' FROM url u JOIN site s ON s.id = site_of(u.id)
WHERE u.id > $1 AND u.state = 'queued' ORDER BY u.id LIMIT $2;

-- name: visit_group
UPDATE politeness_group SET visited_by = $1 WHERE name = $2
  AND (claimed_by IS NULL OR claimed_by = $3) AND (visited_by IS NULL OR visited_by = $4) RETURNING id;

-- name: keep_longer_pauses
UPDATE politeness_group SET next_at = next_at - pause_s + $1, pause_s = $1 WHERE pause_s < $1 AND next_at > 0
RETURNING id;

-- name: counts
SELECT (SELECT count(*) FROM url), (SELECT count(*) FROM frontier),
  (SELECT coalesce(json_object_agg(state, n), '{}')::text FROM
    (SELECT state, count(*) AS n FROM url WHERE state IN ('redirected', 'excluded', 'failed') GROUP BY state) AS ended),
  (SELECT count(*) FROM page), (SELECT count(*) FROM link), (SELECT count(*) FROM request), (SELECT count(*) FROM site);

-- name: last_settings
SELECT CASE WHEN EXISTS (SELECT 1 FROM unsettled) THEN '{}' ELSE settings END FROM run
WHERE id <> $1 AND settings::json ->> 'auxiliary_run' IS NULL ORDER BY id DESC LIMIT 1;

-- name: insert_sample
INSERT INTO sample (url_id, stratum, walk, probability)
SELECT url_id, stratum, walk, probability FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::float8[])
  WITH ORDINALITY AS t (url_id, stratum, walk, probability, n) ORDER BY n;

-- name: exclude_not_drawn
UPDATE url SET state = 'excluded', reason_code = 'sample', reason = $1
WHERE state = 'queued' AND kind = 'page' AND id IN (SELECT url_id FROM frontier WHERE depth >= $2)
  AND id NOT IN (SELECT url_id FROM sample);

-- name: dequeue_not_drawn
DELETE FROM frontier WHERE depth >= $1 AND (SELECT state FROM url WHERE id = url_id) <> 'queued';

-- name: take_up_pages
INSERT INTO revisit (group_id, url_id, due_at, not_before, checked_at, watched_s, why)
SELECT group_id, url_id, fetched_at + $1 * tempo, fetched_at + $5, fetched_at, $2 * tempo, 'its first revisit' FROM (
  SELECT p.group_id, p.url_id, p.fetched_at,
    CASE p.document_state WHEN 'STATIC' THEN $3 WHEN 'DYNAMIC' THEN $4 ELSE 1.0::float8 END AS tempo
  FROM page p WHERE NOT EXISTS (SELECT 1 FROM revisit r WHERE r.url_id = p.url_id)) AS n
ON CONFLICT DO NOTHING;

-- name: take_up_others
INSERT INTO revisit (group_id, url_id, due_at, not_before, checked_at, watched_s, why)
SELECT group_id, id, $6 + $1 * tempo, $6 + $5, $6, $2 * tempo, 'its first revisit' FROM (
  SELECT group_id, id, $3::float8 AS tempo FROM url
  WHERE state IN ('redirected', 'excluded', 'failed') AND state = 'redirected' AND kind = 'page'
  UNION ALL SELECT group_id, id, $4::float8 FROM url WHERE kind = 'sitemap' AND state IN ('fetched', 'redirected')) AS n
WHERE NOT EXISTS (SELECT 1 FROM revisit r WHERE r.url_id = n.id)
ON CONFLICT DO NOTHING;

-- name: due_revisits
SELECT r.url_id, r.changes, r.watched_s, r.checked_at, r.hint IS NOT NULL, h.tried, h.changed
FROM revisit r JOIN url u ON u.id = r.url_id
LEFT JOIN hint_record h ON h.site_id = site_of(r.url_id) AND h.source = r.hint
LEFT JOIN (SELECT site.id, t.registered_at FROM rup_server t JOIN site ON site.name = t.site
  WHERE t.silent_at > $1 AND t.exclude = '[]' AND t.include_only = '[]') told ON told.id = site_of(r.url_id)
WHERE r.due_at <= $1 AND r.not_before < $2 AND u.state <> 'queued' AND (r.hint IS NOT NULL OR NOT $3::boolean)
  AND (told.id IS NULL OR r.hint IS NOT NULL OR r.checked_at < greatest(told.registered_at, $4)
    OR (r.failures > 0 AND u.state <> 'failed'));

-- name: note_states
UPDATE revisit r SET state = u.state, reason_code = u.reason_code, reason = u.reason FROM url u WHERE u.id = r.url_id AND r.url_id = ANY(numbers($1));

-- name: queue_again
UPDATE url u SET state = 'queued', attempts = 0, due_at = r.due_at,
  reason_code = CASE WHEN r.hint IS NULL THEN 'revisit_due' ELSE 'revisit_hinted' END,
  reason = CASE WHEN r.hint IS NULL THEN $2 ELSE replace($3, '{}', r.hint) END
FROM revisit r WHERE r.url_id = u.id AND u.id = ANY(numbers($1)) AND u.state <> 'queued';

-- name: budgets
SELECT site_id, paid_until FROM revisit_budget;

-- name: pay
INSERT INTO revisit_budget (site_id, paid_until) SELECT * FROM unnest($1::bigint[], $2::float8[])
ON CONFLICT (site_id) DO UPDATE SET paid_until = excluded.paid_until;

-- name: end_revisit
UPDATE revisit r SET due_at = t.due_at, not_before = t.not_before, checked_at = coalesce(t.checked_at, r.checked_at),
  changes = t.changes, watched_s = t.watched_s, failures = t.failures, why = t.why,
  hint = CASE WHEN t.checked_at IS NULL THEN r.hint END, hinted_at = CASE WHEN t.checked_at IS NULL THEN r.hinted_at END,
  etag = CASE WHEN t.checked_at IS NULL THEN r.etag ELSE t.etag END,
  last_modified = CASE WHEN t.checked_at IS NULL THEN r.last_modified ELSE t.last_modified END,
  content = CASE WHEN t.checked_at IS NULL THEN r.content ELSE t.content END
FROM unnest(:groups($11), $1::float8[], $2::float8[], $3::float8[], $4::float8[], $5::float8[], $6::bigint[],
  $7::text[], $8::text[], $9::text[], $10::bytea[], $11::bigint[]) AS t (group_id, due_at, not_before, checked_at,
  changes, watched_s, failures, why, etag, last_modified, content, id) WHERE r.group_id = t.group_id AND r.url_id = t.id;

-- name: record_hint
INSERT INTO hint_record AS h (group_id, site_id, source, tried, changed)
SELECT r.group_id, site_of(r.url_id), r.hint, count(*), sum(t.was_right)
FROM unnest(:groups($2), $1::int[], $2::bigint[]) AS t (group_id, was_right, id)
JOIN revisit r ON r.group_id = t.group_id AND r.url_id = t.id WHERE r.hint IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 2, 3
ON CONFLICT (site_id, source, group_id) DO UPDATE SET tried = h.tried + excluded.tried, changed = h.changed + excluded.changed;

-- name: take_hint
UPDATE revisit SET hint = $1, hinted_at = $2,
  due_at = CASE WHEN $3::boolean THEN least(due_at, greatest($4, CASE WHEN $6::boolean THEN 0 ELSE not_before END))
    ELSE due_at END,
  why = CASE WHEN $3::boolean AND due_at > greatest($4, CASE WHEN $6::boolean THEN 0 ELSE not_before END)
    THEN 'told of by ' || $1 ELSE why END
WHERE url_id = $5 AND checked_at < $2 AND (hinted_at IS NULL OR hinted_at < $2) RETURNING url_id;

-- name: failed_for_good
SELECT id FROM url WHERE id = ANY(numbers($1)) AND state = 'failed'
  AND NOT EXISTS (SELECT 1 FROM revisit WHERE url_id = url.id);

-- name: hint_records
SELECT site_id, source, tried, changed FROM hint_record WHERE site_id = ANY(numbers($1));

-- name: back_to
UPDATE url u SET state = t.state, reason_code = t.reason_code, reason = t.reason, attempts = 0, due_at = 0
FROM unnest(:groups($4), $1::text[], $2::text[], $3::text[], $4::bigint[]) AS t (group_id, state, reason_code, reason, id)
WHERE u.group_id = t.group_id AND u.id = t.id;

-- name: page_seen
UPDATE page p SET last_seen_at = t.seen_at, etag = t.etag, last_modified = t.last_modified, gone_at = NULL
FROM unnest(:groups($4), $1::float8[], $2::text[], $3::text[], $4::bigint[])
  AS t (group_id, seen_at, etag, last_modified, id) WHERE p.group_id = t.group_id AND p.url_id = t.id;

-- name: page_gone
UPDATE page p SET gone_at = coalesce(p.gone_at, t.gone_at)
FROM unnest(:groups($2), $1::float8[], $2::bigint[]) AS t (group_id, gone_at, id)
WHERE p.group_id = t.group_id AND p.url_id = t.id;

-- name: ask_whole
UPDATE page SET etag = NULL, last_modified = NULL WHERE url_id = ANY($1::bigint[]) AND group_id = ANY(:groups($1));

-- name: keep_version
INSERT INTO page_version (group_id, url_id, version, status, content_type, charset, fetched_at, last_seen_at, title,
  description, keywords, noindex, body_id, body_bytes, text_sha256, etag, last_modified)
SELECT p.group_id, p.url_id, version, status, content_type, charset, fetched_at, coalesce(last_seen_at, fetched_at),
  title, description, keywords, noindex, body_id, body_bytes, text_sha256, etag, last_modified
FROM unnest(:groups($1), $1::bigint[]) AS t (group_id, id) JOIN page p ON p.group_id = t.group_id AND p.url_id = t.id
WHERE noindex = 0
ON CONFLICT (url_id, version, group_id) DO UPDATE SET status = excluded.status, content_type = excluded.content_type,
  charset = excluded.charset, fetched_at = excluded.fetched_at, last_seen_at = excluded.last_seen_at,
  title = excluded.title, description = excluded.description, keywords = excluded.keywords,
  noindex = excluded.noindex, body_id = excluded.body_id, body_bytes = excluded.body_bytes,
  text_sha256 = excluded.text_sha256, etag = excluded.etag, last_modified = excluded.last_modified;

-- name: bodies_of
INSERT INTO body_to_drop SELECT DISTINCT body_id FROM page_version
WHERE url_id = ANY($1::bigint[]) AND group_id = ANY(:groups($1)) AND body_id IS NOT NULL ON CONFLICT DO NOTHING;

-- name: blank_versions
UPDATE page_version SET title = NULL, description = NULL, keywords = NULL, body_id = NULL, text_sha256 = NULL, noindex = 1
WHERE url_id = ANY($1::bigint[]) AND group_id = ANY(:groups($1));

-- name: drop_links
-- Those that are still to be carried over, too: what they lead to was found all the same.
WITH gone AS (UPDATE offer SET follow = NULL, leads = 0 WHERE source = ANY($1::bigint[]) AND group_id = ANY(:groups($1)))
DELETE FROM link WHERE source = ANY($1::bigint[]) AND group_id = ANY(:groups($1));

-- name: sweep_bodies
DELETE FROM body b USING body_to_drop d WHERE b.id = d.body_id
  AND NOT EXISTS (SELECT 1 FROM page WHERE body_id = b.id)
  AND NOT EXISTS (SELECT 1 FROM page_version WHERE body_id = b.id);

-- name: body_of
SELECT b.data FROM (SELECT body_id, version FROM page WHERE url_id = $1
  UNION ALL SELECT body_id, version FROM page_version WHERE url_id = $1 AND $2::bigint IS NOT NULL) v
JOIN body b ON b.id = v.body_id WHERE $2 IS NULL OR v.version = $2;

-- name: orders
SELECT id, asked_at, command, name, run_id, done_at FROM control WHERE id > $1 ORDER BY id;

-- name: give_order
INSERT INTO control (asked_at, command, name, run_id) VALUES ($1, $2, $3, $4);

-- name: queued_on
SELECT f.url_id FROM ranges($1) r JOIN site s ON s.name BETWEEN r.first AND r.last
JOIN frontier f ON f.site_id = s.id LIMIT $2;

-- name: numbers_on
SELECT first_url_of(s.id), last_url_of(s.id) FROM ranges($1) r JOIN site s ON s.name BETWEEN r.first AND r.last
WHERE s.id >= site_of($2::bigint) ORDER BY s.id;

-- name: blocked_within
SELECT id FROM url WHERE id BETWEEN $1 AND $2 AND state = 'excluded' AND reason_code = $3 ORDER BY id LIMIT $4;

-- name: forget_beats
DELETE FROM heartbeat h USING worker w WHERE w.id = h.worker AND (h.run_id < $1 OR w.ended_at IS NOT NULL);

-- name: beat
INSERT INTO heartbeat (worker, run_id, pid, seen_at, memory_bytes, lag_s) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (worker) DO UPDATE SET seen_at = excluded.seen_at, memory_bytes = excluded.memory_bytes,
  lag_s = excluded.lag_s;

-- name: excluded_of
SELECT id FROM url WHERE id = ANY(numbers($1)) AND state = 'excluded';

-- name: leave_not_drawn
UPDATE url SET reason_code = 'sample', reason = $1, target = NULL
WHERE id = ANY(numbers($2)) AND NOT EXISTS (SELECT 1 FROM sample WHERE url_id = url.id);

-- name: drawn_of
SELECT DISTINCT url_id FROM sample WHERE url_id = ANY(numbers($1));
