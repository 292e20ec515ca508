-- Named queries of both databases; crawler/store/sql/schema.py spells what they write differently. A line "-- name: N"
-- starts a query; a comment below it says what the query is for. Parameters are named.

-- name: robots_text
-- The text of a robots.txt by its SHA-256.
SELECT body FROM robots_text WHERE sha256 = :sha256;

-- name: put_unread
-- Keep an answer that is in the log until it is read. Nobody waits for it if its URL is queued no more.
INSERT INTO unread_answer (url_id, facts, body, request, response)
SELECT url_id, facts, body, request, response
FROM given(:url_id bigint, :facts text, :body bytea, :request bytea, :response bytea)
WHERE EXISTS (SELECT 1 FROM url WHERE id = t.url_id AND state = 'queued') ON CONFLICT DO NOTHING;

-- name: unread_answer
SELECT facts, body, request, response FROM unread_answer WHERE url_id = :url_id;

-- name: drop_unread
DELETE FROM unread_answer WHERE url_id in_numbers(:numbers);

-- name: sweep_unread
-- Delete the answers for URLs that are queued no more.
DELETE FROM unread_answer WHERE EXISTS (SELECT 1 FROM url WHERE id = url_id AND state <> 'queued');

-- name: set_body_error
-- A body turns out to be broken soon after its request was logged: the last rows suffice, and no index is needed.
UPDATE request SET error_kind = :error_kind, error = :error WHERE id = (
  SELECT id FROM (SELECT id, site_id, path, started_at FROM request ORDER BY id DESC LIMIT 10000) AS r
  WHERE r.site_id = :site_id AND r.path = :path AND r.started_at = :started_at ORDER BY id DESC LIMIT 1);

-- name: refute_mirror
UPDATE mirror SET evidence = 'refuted', contradiction = :contradiction, seen_at = :now
WHERE site = :site AND main_site = :main_site AND evidence = 'host';

-- name: refuted_among
SELECT site FROM mirror WHERE site in_texts(:sites) AND evidence = 'refuted' ORDER BY site;

-- name: mirrors_of
SELECT site FROM mirror WHERE main_site = :main_site AND evidence = 'host';

-- name: pages_of_main
-- Whether a site has brought a page, and whether it may yet bring one.
SELECT s.fetched, EXISTS (SELECT 1 FROM url u
  WHERE u.id BETWEEN first_url_of(s.id) AND last_url_of(s.id) AND u.state = 'queued' AND u.kind = 'page') AS is_waiting
FROM site s WHERE s.name = :site;

-- name: news_of_workers
-- The number of groups that have work or a worker, counted up to a limit, the number of workers, and the rows of
-- heard_since as JSON.
SELECT (SELECT count(*) FROM (SELECT 1 FROM politeness_group WHERE ready_at IS NOT NULL
  AND claimed_by IS NULL LIMIT :limit) AS r)
    + (SELECT count(*) FROM politeness_group WHERE claimed_by IS NOT NULL) AS groups,
  (SELECT count(*) FROM worker WHERE ended_at IS NULL AND lease_until > :now) AS workers,
  (SELECT json_group_array(json_array(h.site, h.main_site, h.evidence, h.contradiction))
   FROM (statement(heard_since)) AS h) AS heard;

-- name: waiting_groups
-- The unclaimed groups that are ready first, and those with the longest wait: so many of each. A group comes with the
-- last answer for a robots.txt that it waits for. waits_for is empty if the group waits for the next attempt of a URL,
-- and not for its pause.
SELECT w.name, w.site, w.ready_at, w.waits_for, coalesce(a.robots_needs, nullif(r.note, ''), r.status) AS robots_problem,
  r.status AS robots_status, r.failing_since
FROM (SELECT g.name, (SELECT s.name FROM site s
      WHERE s.group_id = g.id AND EXISTS (SELECT 1 FROM frontier f WHERE f.site_id = s.id)
      ORDER BY latest(s.robots_until, s.rests_until), s.id LIMIT 1) AS site,
    g.ready_at, CASE WHEN g.ready_at <= g.next_at THEN g.waits_for
      WHEN EXISTS (SELECT 1 FROM site s WHERE s.group_id = g.id AND s.rests_until > :now)
      THEN 'rest after walls or refusals' ELSE '' END AS waits_for,
    (SELECT s.id FROM site s WHERE s.group_id = g.id AND s.robots_until > :now LIMIT 1) AS awaiting
  FROM (SELECT * FROM (SELECT * FROM politeness_group WHERE ready_at IS NOT NULL AND claimed_by IS NULL
        ORDER BY ready_at LIMIT :first) AS first
      UNION ALL SELECT * FROM (SELECT * FROM politeness_group WHERE ready_at > :now AND claimed_by IS NULL
        ORDER BY ready_at DESC LIMIT :longest) AS longest) g) w
LEFT JOIN site a ON a.id = w.awaiting LEFT JOIN robots_copy r ON r.id = a.robots_id ORDER BY w.ready_at DESC;

-- name: relieve
-- Delete the worker that had joined a run in place of others.
DELETE FROM worker WHERE run_id = :run_id AND ended_at IS NULL AND ended_code = :ended_code;

-- name: neighbours
-- The other workers whose processes this machine can check.
SELECT id, pid FROM worker WHERE processes = :processes AND ended_at IS NULL AND id <> :worker;

-- name: workers_ahead
-- The workers that were seen in the future: their clocks were wrong.
SELECT id, seen_at FROM worker WHERE seen_at > latest_now(:now) + :differ;

-- name: set_workers_right
UPDATE worker SET lease_until = lease_until - seen_at + :now, seen_at = :now
WHERE seen_at > latest_now(:now) + :differ;

-- name: paces_ahead
-- The groups whose pauses end later than they can if they begin now.
SELECT g.id, pace_of(g) FROM politeness_group g WHERE g.next_at - g.pause_s - :differ > :now;

-- name: set_robots_right
-- No copy of a robots.txt that was received in the future is in force, because nobody knows its age. The wait for a file
-- that could not be had begins anew. Returns the groups of the sites.
UPDATE site SET robots_id = NULL, robots_until = coalesce(r.retry_at - r.fetched_at + :now, 0), robots_needs = NULL
FROM robots_copy r WHERE r.id = site.robots_id AND r.fetched_at - :differ > :now RETURNING site.group_id;

-- name: retries_ahead
-- The queued URLs that wait for longer than their groups and than any retry.
SELECT f.url_id AS id FROM site s JOIN politeness_group g ON g.id = s.group_id
JOIN frontier f ON f.site_id = s.id AND f.due_at > :latest WHERE f.due_at > g.next_at;

-- name: set_revisits_right
UPDATE revisit SET due_at = due_at - checked_at + :now, not_before = not_before - checked_at + :now, checked_at = :now
WHERE checked_at - :differ > :now RETURNING url_id;

-- name: commits
SELECT commits FROM worker WHERE id = :worker;

-- name: count_late
-- Count a late commit of a worker that may have ended, once.
UPDATE worker SET commits = commits + 1, requests = requests + :requests WHERE id = :worker
  AND commits = :commits RETURNING id;

-- name: end_worker
UPDATE worker SET ended_at = :now, ended_code = :ended_code, ended_by = :ended_by WHERE id = :worker AND ended_at IS NULL;

-- name: pages_used
-- Under a limit on the pages of a run: the pages used, and those reserved for other workers.
SELECT r.pages_before + (SELECT sum(pages) FROM worker WHERE run_id = r.id) AS used,
  (SELECT coalesce(sum(reserved), 0) FROM worker WHERE run_id = r.id AND id <> w.id AND ended_at IS NULL) AS reserved
FROM worker w JOIN run r ON r.id = w.run_id WHERE w.id = :worker;

-- name: reopen_run
-- A worker that returns continues a run that the others had ended.
UPDATE run SET finished_at = NULL, ended_code = NULL, ended_by = NULL WHERE id = :run_id AND finished_at IS NOT NULL;

-- name: insert_run
INSERT INTO run (started_at, crawler_version, settings, pages_before)
SELECT :now, :version, :settings, coalesce(sum(fetched), 0) FROM site RETURNING id;

-- name: end_run
-- Only the last worker of a run ends it.
UPDATE run SET finished_at = :now, ended_code = :ended_code, ended_by = :ended_by WHERE id = :run_id
  AND NOT EXISTS (SELECT 1 FROM worker WHERE run_id = :run_id AND ended_at IS NULL AND lease_until > :now);

-- name: bucket
SELECT number, buckets FROM bucket;

-- name: lengthen_pause
UPDATE politeness_group SET pause_s = :pause_s WHERE name = :name AND pause_s < :pause_s;

-- name: pause_all_groups
UPDATE politeness_group SET next_at = :over_at + pause_s WHERE next_at < :over_at + pause_s;

-- name: end_address_waits
UPDATE politeness_group SET next_at = :now + pause_s + backoff_s
WHERE wait_code = 'address' AND next_at > :now + pause_s + backoff_s;

-- name: unread_urls
SELECT url_id FROM unread_answer;

-- name: heard_since
-- The mirrors by Host lines, those that were refuted, and the hosts that take the place of seeds.
SELECT site, main_site, evidence, contradiction FROM mirror WHERE evidence IN ('host', 'refuted') AND seen_at > :since
UNION ALL SELECT host, NULL, 'adopted', NULL FROM adopted_host WHERE found_at > :since

-- name: urls_in
-- The URLs in some states in the order of their numbers, after one.
SELECT u.id, s.name || u.path AS url, u.reason_code, u.depth, u.seed = 1 OR u.kind <> 'page' AS is_asked_for
  FROM url u JOIN site s ON s.id = site_of(u.id)
WHERE u.id > :after AND u.state in_texts(:states) ORDER BY u.id LIMIT :limit;

-- name: site_named
-- A site with its robots copy, as in claimed_sites.
SELECT claimed_site(s), robots_copy_of(r), robots_text_of(t) FROM site s
LEFT JOIN robots_copy r ON r.id = s.robots_id LEFT JOIN robots_text t ON t.id = r.text_id
WHERE s.name = :name;

-- name: robots_copy_from
-- The newest copy that came from a URL behind a redirect, and that has not run out.
SELECT robots_copy_of(r), robots_text_of(t) FROM robots_copy r LEFT JOIN robots_text t ON t.id = r.text_id
WHERE r.answered_by = :url AND (r.valid_until > :now OR r.retry_at > :now) ORDER BY r.id DESC LIMIT 1;

-- name: claim_group
-- Claim a group by its name, whether it has a URL or not.
UPDATE politeness_group SET claimed_by = :worker WHERE name = :group_name
  AND (claimed_by IS NULL OR claimed_by = :worker) RETURNING id;

-- name: set_robots_until
UPDATE site SET robots_until = :until, robots_needs = :needs WHERE id in_numbers(:sites);

-- name: add_refusals
-- Refusals only grow, whichever worker writes them last: walls and refused are those that came since its claim. A site
-- that answers otherwise has them set to 0 before.
UPDATE site AS s SET walls = s.walls + t.walls, refused = s.refused + t.refused,
  front_refused = latest(s.front_refused, t.front_refused), rest_count = latest(s.rest_count, t.rest_count),
  rests_until = latest(s.rests_until, t.rests_until),
  probe = CASE WHEN t.rest_count < s.rest_count THEN s.probe ELSE t.probe END,
  closed_at = CASE WHEN t.closed = 1 THEN coalesce(s.closed_at, t.now) ELSE s.closed_at END
FROM given(:walls int, :refused int, :front_refused int, :rest_count int, :rests_until float8, :probe bigint,
  :closed int, :now float8, :site_id bigint)
WHERE s.id = t.site_id;

-- name: refused_of
-- The URLs of sites that failed or were excluded for one of these reasons.
SELECT u.id FROM site s JOIN url u ON u.id BETWEEN first_url_of(s.id) AND last_url_of(s.id)
WHERE s.id in_numbers(:sites) AND u.state IN ('failed', 'excluded') AND u.reason_code in_texts(:codes);

-- name: refusing_of
-- Those of a JSON list of sites that rest or are closed, and whether a wall came in place of their robots.txt.
SELECT s.id, s.group_id, coalesce(r.status, '') = 'wall' AS is_walled FROM site s LEFT JOIN robots_copy r ON r.id = s.robots_id
WHERE s.name in_texts(:sites) AND (s.walls > 0 OR s.refused > 0 OR s.rest_count > 0 OR r.status = 'wall');

-- name: forget_refusals
UPDATE site SET walls = 0, refused = 0, front_refused = 0, rest_count = 0, rests_until = 0, probe = NULL, closed_at = NULL
WHERE id in_numbers(:sites);

-- name: forget_walls
-- A robots.txt in place of which a wall came is requested again, as if for the first time.
UPDATE robots_copy SET valid_until = earliest(valid_until, :now), retry_at = NULL, failures = 0
WHERE status = 'wall' AND id IN (SELECT robots_id FROM site WHERE id in_numbers(:sites));

-- name: end_robots_waits
DELETE FROM robots_wait WHERE site_id in_numbers(:sites) RETURNING site_id, target_id;

-- name: robots_waits
-- The sites that wait for a URL; those that wait for the copy of the site alone, without a redirect, have no seen URLs.
SELECT w.site_id, s.name, s.group_id, w.seen, w.hops FROM robots_wait w JOIN site s ON s.id = w.site_id
WHERE w.target_id = (SELECT id FROM site WHERE name = :site) AND w.path = :path ORDER BY w.hops, w.site_id;

-- name: asks
-- The sites that wait for the robots.txt or a licence of a site of another bucket, each with the URL.
SELECT s.name AS site, t.name || w.path AS url FROM robots_wait w JOIN site s ON s.id = w.site_id
JOIN site t ON t.id = w.target_id WHERE t.other_bucket IS NOT NULL AND (w.path = '/robots.txt' OR w.seen = '[]');

-- name: waits_for_itself
-- Whether a site waits for a site that waits for it, over any number of others.
WITH RECURSIVE way (site_id) AS (SELECT target_id FROM robots_wait WHERE site_id = :site_id
  UNION SELECT w.target_id FROM way JOIN robots_wait w ON w.site_id = way.site_id)
SELECT EXISTS (SELECT 1 FROM way WHERE site_id = :site_id) AS is_circle;

-- name: abandon_robots_waits
-- The waits came from answers that an earlier run has received: the sites of these waits are asked again.
DELETE FROM robots_wait WHERE NOT EXISTS (SELECT 1 FROM worker WHERE ended_at IS NULL) RETURNING site_id, target_id;

-- name: seed_states
-- The states of the seeds with their reasons, most frequent first; without the seeds of other buckets.
SELECT state, reason FROM urls_by_id WHERE seed = 1 AND reason_code <> 'other_bucket' GROUP BY 1, 2 ORDER BY count(*) DESC;

-- name: seed_causes
-- The outcomes of the seeds and the targets of their redirects that are no pages. A URL that was excluded for its target, as
-- on a mirror, is left out: the target is a seed too.
WITH RECURSIVE way (url_id) AS (
  SELECT url_id FROM urls_by_id WHERE seed = 1
  UNION
  SELECT u.target_id FROM way JOIN urls_by_id u ON u.url_id = way.url_id WHERE u.state = 'redirected' AND u.target_id IS NOT NULL)
SELECT u.state, u.reason_code, u.reason, count(*) AS urls FROM way JOIN urls_by_id u ON u.url_id = way.url_id
WHERE (u.state = 'failed' OR (u.state = 'excluded' AND u.target_id IS NULL)) AND u.reason_code <> 'other_bucket'
GROUP BY u.state, u.reason_code, u.reason ORDER BY urls DESC, u.reason;

-- name: unfetched_seed
-- A seed that was not fetched: of those on sites that this run sent a request to, if there are any, the failed ones first.
SELECT s.name || u.path AS url FROM url u JOIN site s ON s.id = site_of(u.id)
WHERE u.seed = 1 AND u.state <> 'fetched' AND u.reason_code <> 'other_bucket'
ORDER BY CASE WHEN s.id IN (SELECT site_id FROM request WHERE run_id = :run_id) THEN 0 ELSE 1 END,
  CASE WHEN u.state = 'failed' THEN 0 WHEN u.reason_code = 'other_address' THEN 2 ELSE 1 END, u.id LIMIT 1;

-- name: last_asking_run
-- The run that sent the last request.
SELECT run_id FROM requests_by_id ORDER BY request_id DESC LIMIT 1;

-- name: fail_circles
-- Fail redirects that are in a circle or lead into one: all that no end of a chain reaches backwards.
WITH RECURSIVE moved AS MATERIALIZED (
    SELECT id, target FROM url WHERE state IN ('redirected', 'excluded', 'failed') AND state = 'redirected'),
  ending (id) AS (
    SELECT m.id FROM moved m LEFT JOIN url u ON u.id = m.target WHERE u.state IS NULL OR u.state <> 'redirected'
    UNION ALL SELECT m.id FROM ending e CROSS JOIN moved m WHERE m.target = e.id)
UPDATE url SET state = 'failed', reason_code = 'redirect_circle', reason = replace(:sentence, '{}', reason)
WHERE state = 'redirected' AND id IN (SELECT id FROM moved EXCEPT SELECT id FROM ending);

-- name: way_to
-- The URLs from a seed to this one, as it was first found. The first address of a domain begins the way: another
-- address of it may lead back to it.
WITH RECURSIVE way (id, found_on, n) AS (
  SELECT id, CASE WHEN seed = 1 AND hops = 0 THEN NULL ELSE found_on END, 0 FROM url WHERE id = :number
  UNION ALL SELECT u.id, CASE WHEN u.seed = 1 AND u.hops = 0 THEN NULL ELSE u.found_on END, n + 1
  FROM way JOIN url u ON u.id = way.found_on WHERE n < 30)
SELECT s.name || u.path AS url FROM way JOIN url u ON u.id = way.id JOIN site s ON s.id = site_of(u.id) ORDER BY n DESC;

-- name: all_sites
SELECT s.id, s.name AS site, g.name AS group_name, pace_of(g) FROM site s JOIN politeness_group g ON g.id = s.group_id;

-- name: keep_longer_pauses
-- Lengthen pauses that are shorter than the new minimum.
UPDATE politeness_group SET next_at = next_at - pause_s + :pause_s, pause_s = :pause_s WHERE pause_s < :pause_s
  AND next_at > 0
RETURNING id;

-- name: clear_page_limits
UPDATE site SET max_pages = NULL WHERE max_pages IS NOT NULL;

-- name: set_page_limit
-- The limit of a table [site] for the sites of a host or domain, and of all hosts below it.
UPDATE site SET max_pages = CAST(:max_pages AS bigint)
WHERE rtrim(host, '.') = :name OR substr(rtrim(host, '.'), length(rtrim(host, '.')) - length(:name)) = '.' || :name;

-- name: skipped_and_meant
SELECT source, line, meant FROM skipped_seed WHERE meant <> '';

-- name: drop_skipped
DELETE FROM skipped_seed WHERE source = :source AND line = :line;

-- name: budgets
SELECT site_id, paid_until FROM revisit_budget;

-- name: orders
SELECT id, asked_at, command, name, run_id, done_at, because FROM control WHERE id > :after ORDER BY id;

-- name: exclude_not_drawn
-- Exclude the pages that were held back and are not in the sample. If the targets of redirects belong to the sample
-- (:follows), they stay.
UPDATE url SET state = 'excluded', reason_code = 'sample', reason = :sentence
WHERE state = 'queued' AND kind = 'page' AND NOT (hops > 0 AND :follows) AND id IN (SELECT url_id FROM frontier WHERE depth >= :held_from)
  AND id NOT IN (SELECT url_id FROM sample);

-- name: exclude_not_reached
-- Exclude what is nearer than the pages that were held back and was not reached. A site that has had its pages keeps
-- its queued URLs.
UPDATE url SET state = 'excluded', reason_code = 'frame', reason = :sentence
WHERE state = 'queued' AND id IN (SELECT f.url_id FROM frontier f JOIN site s ON s.id = f.site_id
  WHERE f.depth < :held_from AND f.is_revisit = 0 AND s.fetched < page_limit(s));

-- name: dequeue_not_drawn
DELETE FROM frontier WHERE (SELECT state FROM url WHERE id = url_id) <> 'queued';

-- name: standing_sample
-- Whether a sample decides which pages are requested.
SELECT 1 AS stands FROM sample_draw WHERE stands = 1 AND held_from IS NOT NULL;

-- name: is_at_work
SELECT 1 AS is_at_work FROM worker WHERE id = :worker AND pid = :pid AND ended_at IS NULL;

-- name: workers_not_ended
SELECT id FROM worker WHERE ended_at IS NULL;

-- name: seeds
-- The seeds that were named. The targets of their redirects, and other addresses that were tried for a domain, are none.
SELECT s.name || u.path AS url FROM url u JOIN site s ON s.id = site_of(u.id)
WHERE u.seed = 1 AND u.hops = 0;

-- name: domains
-- The seeds that stand for a domain: its first address.
SELECT s.name || u.path AS url FROM url u JOIN site s ON s.id = site_of(u.id)
WHERE u.seed = 1 AND u.by_domain = 1 AND u.hops = 0;

-- name: group_pace
SELECT pace_of(g) FROM politeness_group g WHERE g.name = :name;

-- name: site_file
SELECT path, purpose, fetched_at, status, body, note, valid_until, failures, failing_since, moved_to
FROM site_file WHERE site_id = :site_id AND path = :path;

-- name: hash_key
SELECT key FROM hash_key;

-- name: site_number
-- The number of a site, with the key of the hashes of its paths. No row: the store has no URL of the site.
SELECT s.id, k.key FROM site s CROSS JOIN hash_key k WHERE s.name = :site;

-- name: fetched_count
SELECT coalesce(sum(fetched), 0) AS n FROM site;

-- name: fetched_by_run
SELECT (SELECT coalesce(sum(fetched), 0) FROM site) - pages_before AS n FROM run WHERE id = :run_id;

-- name: queued_count
SELECT count(*) AS n FROM frontier;

-- name: excluded_count
SELECT count(*) AS n FROM url WHERE state = 'excluded';

-- name: unfinished_copy
SELECT source FROM store_copy WHERE done_at IS NULL ORDER BY source;

-- name: reopen_copy
UPDATE store_copy SET done_at = NULL;

-- name: finish_copy
UPDATE store_copy SET done_at = :now;

-- name: body_location
SELECT location, store_id FROM body_location;

-- name: outside_between
-- The bodies outside the database whose hashes are in a range.
SELECT sha256 FROM body WHERE sha256 BETWEEN :first AND :last AND data IS NULL;

-- name: drop_outside
-- The bodies that are about to be dropped, if they are kept outside.
INSERT INTO object_to_delete (sha256)
SELECT b.sha256 FROM body_to_drop d JOIN body b ON b.id = d.body_id WHERE b.data IS NULL ON CONFLICT DO NOTHING;

-- name: objects_to_delete
-- The first objects that may be deleted. Those that a body names again must stay.
SELECT d.sha256, EXISTS (SELECT 1 FROM body b WHERE b.sha256 = d.sha256 AND b.data IS NULL) AS is_named
FROM object_to_delete d ORDER BY d.sha256 LIMIT :limit;

-- name: objects_deleted
DELETE FROM object_to_delete WHERE sha256 <= :last;

-- name: sample_draws
-- Every draw, in their order. The one that is not discarded is the last.
SELECT number, method, per, size, seed, drawn_at, frame, cut_sites, missed, missed_sites, follows, held_from, stands,
  share, sites, sites_by, design, design_sha256, discarded_at
FROM sample_draw ORDER BY number;

-- name: discard_sample_draw
UPDATE sample_draw SET stands = 0, discarded_at = :now WHERE discarded_at IS NULL;

-- name: reopen_sample
UPDATE sample_draw SET stands = 0;

-- name: order_carried_out
--- Each worker says when it began to obey; the last one counts.
UPDATE control SET done_at = CASE WHEN done_at > :now THEN done_at ELSE :now END WHERE id = :id;

-- name: newest_order
SELECT max(id) AS id FROM control WHERE asked_at = :now AND command = :command;

-- name: forget_beats
DELETE FROM heartbeat WHERE run_id < :run_id
  OR EXISTS (SELECT 1 FROM worker w WHERE w.id = heartbeat.worker AND w.ended_at IS NOT NULL);

-- name: beats
SELECT run_id, pid, seen_at, memory_bytes, lag_s, low_disk, look_ups, vain_claims FROM heartbeat;

-- name: rup_offer
SELECT site, url, found_at, cgi, authentifier, latencies, exclude, include_only, max_query_span
FROM rup_offer WHERE site = :site;

-- name: rup_servers
SELECT site, cgi, key, email, latency, registered_at, units, max_query_span, sequence_number, good_until,
  heard_at, quiet, exclude, include_only, question, lost, given_up, unreached, silent_at
FROM rup_server;

-- name: trim_rup_mails
-- Keep the newest mails only.
DELETE FROM rup_mail WHERE id <= (SELECT max(id) FROM rup_mail) - :kept;

-- name: is_mail_read
SELECT 1 AS is_read FROM rup_mail WHERE digest = :digest;

-- name: drop_unused_preferences
DELETE FROM preference_set
WHERE id NOT IN (SELECT preferences_id FROM page WHERE preferences_id IS NOT NULL)
  AND id NOT IN (SELECT robots_preferences_id FROM page WHERE robots_preferences_id IS NOT NULL)
  AND id NOT IN (SELECT preferences_id FROM page_version WHERE preferences_id IS NOT NULL)
  AND id NOT IN (SELECT robots_preferences_id FROM page_version WHERE robots_preferences_id IS NOT NULL);

-- name: drop_unused_answers
DELETE FROM answer
WHERE id NOT IN (SELECT answer_id FROM page WHERE answer_id IS NOT NULL)
  AND id NOT IN (SELECT answer_id FROM page_version WHERE answer_id IS NOT NULL);

-- name: drop_templates_of_empty_sites
DELETE FROM site_template WHERE site_id NOT IN (SELECT DISTINCT site_of(url_id) FROM text_signature);

-- name: drop_clusters_of_one
DELETE FROM near_duplicate
WHERE cluster_id IN (SELECT cluster_id FROM near_duplicate GROUP BY cluster_id HAVING count(*) = 1);

-- name: last_request
SELECT coalesce(max(id), 0) AS id FROM request;

-- name: drop_old_main_texts
-- The texts of bodies that only earlier versions of pages have.
DELETE FROM main_text WHERE body_id NOT IN (SELECT body_id FROM page WHERE body_id IS NOT NULL);

-- name: computations_behind
UPDATE computation SET last_request = -1;

-- name: index_behind
-- The search index has earlier ranks and near-duplicates.
UPDATE computation SET last_request = -1 WHERE name = 'index';

-- name: computations
SELECT name, is_behind FROM computations_by_id;

-- name: drop_ranks_of_empty_sites
DELETE FROM site_rank WHERE site_id NOT IN (SELECT site_id FROM rank);

-- name: outdated_versions
-- The earlier versions that were last seen before a time, or have as many newer versions as are to be kept.
SELECT url_id, version, body_id FROM page_version v WHERE v.last_seen_at < :before
  OR (SELECT count(*) FROM page_version n WHERE n.url_id = v.url_id AND n.version > v.version) + 1 >= :kept

-- name: outdated
SELECT count(*) AS n FROM (statement(outdated_versions)) AS v;

-- name: outdated_bodies
INSERT INTO body_to_drop SELECT DISTINCT body_id FROM (statement(outdated_versions)) AS v WHERE body_id IS NOT NULL
ON CONFLICT DO NOTHING;

-- name: prune_versions
DELETE FROM page_version WHERE (url_id, version) IN (SELECT url_id, version FROM (statement(outdated_versions)) AS v);

-- name: change_url
-- Apply a better offer to a known URL.
UPDATE url AS u SET depth = t.depth, hops = t.hops, state = t.state, reason_code = t.reason_code, reason = t.reason,
  found_on = coalesce(t.found_on, u.found_on), seed = latest(u.seed, t.seed),
  by_domain = coalesce(t.by_domain, u.by_domain)
FROM given(:depth bigint, :hops int, :state text, :reason_code text, :reason text, :found_on bigint, :seed int,
  :by_domain int, :id bigint) WHERE u.id = t.id;

-- name: end_url
-- Write how a visit ended. A URL that is retried keeps the target of an earlier visit.
UPDATE url AS u SET state = t.state, reason_code = t.reason_code, reason = t.reason, attempts = t.attempts,
  target = CASE t.state WHEN 'queued' THEN u.target ELSE t.target END, due_at = t.due_at, kind = t.kind
FROM given(:state text, :reason_code text, :reason text, :attempts int, :target bigint, :due_at float8, :kind text,
  :id bigint) WHERE u.id = t.id;

-- name: enqueue
-- Insert the frontier rows of the queued URLs of a JSON list from their own rows.
INSERT INTO frontier (site_id, due_at, depth, url_id, is_revisit)
SELECT site_of(id), due_at, depth, id, CASE WHEN EXISTS (SELECT 1 FROM revisit WHERE url_id = url.id) THEN 1 ELSE 0 END
FROM url WHERE id in_numbers(:numbers) AND state = 'queued' ON CONFLICT DO NOTHING;

-- name: dequeue
DELETE FROM frontier WHERE (site_id, due_at, depth, url_id) IN (
  SELECT site_of(id), due_at, depth, id FROM url WHERE id in_numbers(:numbers));

-- name: queued_revisit
SELECT url_id FROM frontier by_revisits() WHERE is_revisit = 1 LIMIT 1;

-- name: hold_pages
-- No queued page of a site is due before a time. A page that is visited again keeps the reason of its last visit.
UPDATE url SET due_at = :until,
  reason_code = CASE WHEN EXISTS (SELECT 1 FROM revisit WHERE url_id = url.id) THEN reason_code ELSE 'retry' END,
  reason = CASE WHEN EXISTS (SELECT 1 FROM revisit WHERE url_id = url.id) THEN reason ELSE :why END
FROM site s WHERE s.id = :site_id AND url.id BETWEEN first_url_of(s.id) AND last_url_of(s.id)
  AND url.state = 'queued' AND url.kind = 'page' AND url.due_at < :until;

-- name: hold_pages_in_frontier
UPDATE frontier SET due_at = :until WHERE site_id = :site_id AND due_at < :until
  AND EXISTS (SELECT 1 FROM url WHERE id = frontier.url_id AND kind = 'page');

-- name: requeue
-- Queue the excluded and failed URLs of a JSON list anew, unless another worker has done so. The caller enqueues them.
UPDATE url SET state = 'queued', reason_code = 'requeued', reason = '', due_at = 0, attempts = 0,
  target = NULL
WHERE id in_numbers(:numbers) AND state IN ('excluded', 'failed');

-- name: set_seed
-- Make a known URL a named seed: it is no hop on the way from another URL.
UPDATE url AS u SET seed = 1, by_domain = t.by_domain, hops = 0
FROM given(:id bigint, :by_domain int)
WHERE u.id = t.id AND u.seed = 0;

-- name: exclude
-- A URL that was visited since it was read keeps its outcome.
UPDATE url AS u SET state = 'excluded', reason_code = t.reason_code, reason = t.reason
FROM given(:reason_code text, :reason text, :id bigint)
WHERE u.id = t.id AND u.state NOT IN ('fetched', 'redirected');

-- name: make_sitemap
-- A URL known as a link is named as a sitemap before it was requested.
UPDATE url AS u SET kind = 'sitemap', found_on = coalesce(t.found_on, u.found_on)
FROM given(:found_on bigint, :id bigint)
WHERE u.id = t.id AND u.kind = 'page' AND u.state IN ('queued', 'excluded')
  AND NOT EXISTS (SELECT 1 FROM revisit r WHERE r.url_id = u.id);

-- name: robots_in_force
-- When the robots copies in force of a JSON list of sites were received.
SELECT s.id AS site_id, r.fetched_at FROM site s JOIN robots_copy r ON r.id = s.robots_id WHERE s.id in_numbers(:sites);

-- name: sites_named
SELECT id, name, group_id FROM site WHERE name in_texts(:names);

-- name: sites
SELECT id, group_id, main_site FROM site WHERE id in_numbers(:sites);

-- name: count_fetched
UPDATE site AS s SET fetched = s.fetched + t.pages FROM given(:pages bigint, :site_id bigint)
WHERE s.id = t.site_id;

-- name: close_robots_copy
-- A newer copy replaces the copy in force.
UPDATE robots_copy AS c SET valid_until = earliest(c.valid_until, t.now)
FROM given(:now float8, :site_id bigint) JOIN site s ON s.id = t.site_id
WHERE c.id = s.robots_id;

-- name: drop_mirrors
DELETE FROM mirror WHERE site in_texts(:sites) AND evidence IN ('host', 'refuted');

-- name: set_pace
-- If two workers have sent requests to the group, the longer wait holds.
UPDATE politeness_group AS g SET next_at = t.next_at, pause_s = t.pause_s, backoff_s = t.backoff_s,
  wait_code = t.wait_code, waits_for = t.waits_for, answers = t.answers, usual_s = t.usual_s, recent_s = t.recent_s
FROM given(:next_at float8, :pause_s float8, :backoff_s float8, :wait_code text, :waits_for text, :answers bigint,
  :usual_s float8, :recent_s float8, :name text) WHERE g.name = t.name AND g.next_at <= t.next_at;

-- name: run_under_way
SELECT r.id, r.settings FROM run r JOIN worker w ON w.run_id = r.id
WHERE w.ended_at IS NULL AND w.lease_until > latest_now(:now)
  AND setting(auxiliary_run) IS NULL ORDER BY r.id DESC LIMIT 1;

-- name: last_run
SELECT id, finished_at, started_at, ended_code, ended_by, crawler_version, settings, worst_lag_s, pages_before FROM run
WHERE setting(auxiliary_run) IS NULL ORDER BY id DESC LIMIT 1;

-- name: alike_sites
-- Sites with the same bodies at the same paths: the site, the site with more pages, the number of equal paths, of paths
-- compared, and the pages of the smaller site. Each page is compared with the same page of the site with the lowest
-- number only: a body at one path of ten thousand sites makes ten thousand pairs. The same path has the same path hash on
-- every site.
WITH twin AS (
  SELECT body_id, site_of(url_id) AS b, min(site_of(url_id)) OVER (PARTITION BY body_id, path_hash_of(url_id)) AS a
  FROM page
  WHERE body_id IN (SELECT body_id FROM page WHERE body_id IS NOT NULL GROUP BY body_id HAVING count(*) > 1)),
alike AS (
  SELECT a, b, count(*) AS n FROM twin WHERE b > a GROUP BY a, b HAVING count(DISTINCT body_id) >= :least),
ranked AS (
  SELECT s.id AS main_id, t.id AS site_id, s.name AS main_site, t.name AS site, n, t.fetched
  FROM alike JOIN site s ON s.id IN (a, b) JOIN site t
    ON (s.id = a AND t.id = b AND s.fetched >= t.fetched) OR (s.id = b AND t.id = a AND s.fetched > t.fetched))
SELECT site, main_site, n AS alike,
  (SELECT count(*) FROM page p JOIN page q ON q.url_id = (first_url_of(main_id) | (path_hash_of(p.url_id)))
   WHERE p.url_id BETWEEN first_url_of(site_id) AND last_url_of(site_id) AND p.body_id IS NOT NULL
     AND q.body_id IS NOT NULL) AS compared,
  fetched AS pages
FROM ranked ORDER BY n DESC, main_id;

-- name: expire_robots
-- Expire all copies in force, or only those of sites to which no connection was made, or which were given up.
UPDATE robots_copy SET valid_until = earliest(valid_until, :now), retry_at = NULL
WHERE valid_until > :now AND id IN (SELECT robots_id FROM site) AND (NOT CAST(:unreached AS boolean) OR (action IN ('unreachable', 'untrusted', 'given_up')
  OR status IN ('dns', 'dns_no_name', 'dns_failed', 'dns_timeout')));

-- name: expire_robots_of
-- Expire the copies of before a time at a JSON list of sites, also of sites that were given up, but for those that refuse.
UPDATE robots_copy SET valid_until = earliest(valid_until, :now)
WHERE valid_until > :now AND fetched_at < :now AND action IN ('parse', 'free', 'restricted', 'given_up') AND status <> 'wall'
  AND id IN (SELECT robots_id FROM site WHERE name in_texts(:sites));

-- name: end_robots_wait
UPDATE site SET robots_until = 0
WHERE NOT CAST(:unreached AS boolean) OR robots_id IN (SELECT id FROM robots_copy WHERE action IN ('unreachable', 'untrusted', 'given_up')
  OR status IN ('dns', 'dns_no_name', 'dns_failed', 'dns_timeout'));

-- name: regroup_site
UPDATE site AS s SET group_id = g.id FROM given(:group_name text, :id bigint)
JOIN politeness_group g ON g.name = t.group_name WHERE s.id = t.id;

-- name: last_settings
SELECT CASE WHEN EXISTS (SELECT 1 FROM change_under_way) THEN '{}' ELSE settings END AS settings FROM run
WHERE id <> :run_id AND setting(auxiliary_run) IS NULL ORDER BY id DESC LIMIT 1;

-- name: due_revisits
-- The revisits that are due and were not made in this run. A site that reports its changes is not polled meanwhile,
-- except for URLs checked before the registration, checked before all_due_before, or unreachable since. A page that the
-- standing sample did not draw is not visited, if its depth was held back.
SELECT r.url_id, r.changes, r.watched_s, r.checked_at, r.hint IS NOT NULL AS is_hinted, h.tried, h.changed
FROM revisit r JOIN url u ON u.id = r.url_id
LEFT JOIN hint_record h ON h.site_id = site_of(r.url_id) AND h.source = r.hint
LEFT JOIN (SELECT site.id, t.registered_at FROM rup_server t JOIN site ON site.name = t.site
  WHERE t.silent_at > :now AND t.exclude = '[]' AND t.include_only = '[]') reporting ON reporting.id = site_of(r.url_id)
WHERE r.due_at <= :now AND r.not_before < :not_before AND u.state <> 'queued'
  AND (r.hint IS NOT NULL OR NOT CAST(:hinted_only AS boolean))
  AND NOT EXISTS (SELECT 1 FROM sample_draw d WHERE d.stands = 1 AND u.depth >= d.held_from AND u.kind = 'page'
    AND u.hops = 0 AND NOT EXISTS (SELECT 1 FROM sample a WHERE a.url_id = u.id))
  AND (reporting.id IS NULL OR r.hint IS NOT NULL OR r.checked_at < latest(reporting.registered_at, :all_due_before)
    OR (r.failures > 0 AND u.state <> 'failed'));

-- name: hint_sources
-- The source of the newest hint of each URL of a JSON list; NULL: none.
SELECT url_id, hint FROM revisit WHERE url_id in_numbers(:numbers);

-- name: end_revisit
-- Write how a revisit ended; checked_at is NULL if it observed nothing.
UPDATE revisit AS r SET due_at = t.due_at, not_before = t.not_before, checked_at = coalesce(t.checked_at, r.checked_at),
  changes = t.changes, watched_s = t.watched_s, failures = t.failures, why = t.why,
  hint = CASE WHEN t.checked_at IS NULL THEN r.hint END,
    hinted_at = CASE WHEN t.checked_at IS NULL THEN r.hinted_at END,
  etag = CASE WHEN t.checked_at IS NULL THEN r.etag ELSE t.etag END,
  last_modified = CASE WHEN t.checked_at IS NULL THEN r.last_modified ELSE t.last_modified END,
  content = CASE WHEN t.checked_at IS NULL THEN r.content ELSE t.content END
FROM given(:due_at float8, :not_before float8, :checked_at float8, :changes float8, :watched_s float8,
  :failures bigint, :why text, :etag text, :last_modified text, :content bytea, :id bigint) WHERE r.url_id = t.id;

-- name: record_hint
-- Record whether a hint was right.
INSERT INTO hint_record AS h (site_id, source, tried, changed)
SELECT site_of(r.url_id), r.hint, count(*), sum(t.was_right)
FROM given(:was_right int, :id bigint)
JOIN revisit r ON r.url_id = t.id WHERE r.hint IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2
ON CONFLICT (site_id, source) DO UPDATE SET tried = h.tried + excluded.tried,
  changed = h.changed + excluded.changed;

-- name: failed_for_good
-- Of a JSON list of URL numbers, those that failed and never were a page, and that a standing sample does not leave
-- out.
SELECT id FROM url WHERE id in_numbers(:numbers) AND state = 'failed'
  AND NOT EXISTS (SELECT 1 FROM revisit WHERE url_id = url.id)
  AND (EXISTS (SELECT 1 FROM sample a WHERE a.url_id = url.id)
    OR NOT EXISTS (SELECT 1 FROM sample_draw WHERE stands = 1 AND held_from IS NOT NULL));

-- name: hint_records
SELECT site_id, source, tried, changed FROM hint_record WHERE site_id in_numbers(:sites);

-- name: page_seen
UPDATE page AS p SET last_seen_at = t.seen_at, etag = t.etag, last_modified = t.last_modified, gone_at = NULL,
  preferences_id = CASE WHEN t.keeps_preferences = 1 THEN p.preferences_id ELSE t.preferences_id END,
  robots_preferences_id = t.robots_preferences_id
FROM given(:seen_at float8, :etag text, :last_modified text, :id bigint, :keeps_preferences int,
  :preferences_id bigint, :robots_preferences_id bigint) WHERE p.url_id = t.id;

-- name: page_gone
UPDATE page AS p SET gone_at = coalesce(p.gone_at, t.gone_at)
FROM given(:gone_at float8, :id bigint)
WHERE p.url_id = t.id;

-- name: bodies_of
-- The bodies of all versions of a JSON list of pages may be dropped, once no page names them.
INSERT INTO body_to_drop SELECT body_id FROM page_version WHERE url_id in_numbers(:numbers) AND body_id IS NOT NULL
UNION SELECT body_id FROM page WHERE url_id in_numbers(:numbers) AND body_id IS NOT NULL ON CONFLICT DO NOTHING;

-- name: blank_versions
-- A page says NOINDEX: remove what its earlier versions said.
UPDATE page_version SET title = NULL, description = NULL, keywords = NULL, body_id = NULL, text_sha256 = NULL,
  language = NULL, noindex = 1
WHERE url_id in_numbers(:numbers);

-- name: body_to_drop
SELECT 1 AS n FROM body_to_drop LIMIT 1;

-- name: sweep_bodies
DELETE FROM body WHERE id IN (SELECT body_id FROM body_to_drop)
  AND id NOT IN (SELECT body_id FROM page WHERE body_id IN (SELECT body_id FROM body_to_drop))
  AND id NOT IN (SELECT body_id FROM page_version WHERE body_id IN (SELECT body_id FROM body_to_drop));

-- name: bodies
-- The bodies with the numbers in a JSON array.
SELECT id, sha256, data FROM body WHERE id in_numbers(:numbers);

-- name: whole_bodies
-- The range of the numbers of the bodies that are in the database.
SELECT min(id) AS first, max(id) AS last FROM body WHERE data IS NOT NULL;

-- name: empty_bodies
UPDATE body SET data = NULL WHERE id BETWEEN :first AND :last;

-- name: offer_to_buckets
-- Offer, of a JSON list of URLs, those of other buckets to them: queued ones, and those that were left to them.
INSERT INTO outgoing (bucket, url, depth, hops, seed, kind, lastmod, by_domain)
SELECT s.other_bucket, s.name || u.path, u.depth, u.hops, u.seed, u.kind, u.lastmod, u.by_domain
FROM url u JOIN site s ON s.id = site_of(u.id)
WHERE u.id in_numbers(:numbers) AND s.other_bucket IS NOT NULL
  AND (u.state = 'queued' OR u.reason_code = 'other_bucket');

-- name: leave_to_buckets
-- Exclude, of a JSON list of URLs, the queued ones of other buckets.
UPDATE url AS u SET state = 'excluded', reason_code = 'other_bucket', reason = :sentence, target = NULL
FROM site s WHERE u.id in_numbers(:numbers) AND u.state = 'queued' AND s.id = site_of(u.id)
  AND s.other_bucket IS NOT NULL;

-- name: leave_not_drawn
-- Exclude, of a JSON list of queued URLs, the pages that the standing sample did not draw: those that were held back,
-- and those found after the draw. The target of a redirect is requested.
UPDATE url AS u SET state = 'excluded', reason_code = 'sample', reason = :sentence, target = NULL
WHERE u.id in_numbers(:numbers) AND u.state = 'queued' AND u.kind = 'page' AND u.hops = 0
  AND NOT EXISTS (SELECT 1 FROM sample a WHERE a.url_id = u.id)
  AND (u.depth >= (SELECT held_from FROM sample_draw WHERE discarded_at IS NULL)
    OR NOT EXISTS (SELECT 1 FROM revisit r WHERE r.url_id = u.id));

-- name: uncount_page
UPDATE site AS s SET fetched = latest(0, s.fetched - n.pages)
FROM (SELECT site_of(url_id) AS site_id, count(*) AS pages FROM page WHERE url_id in_numbers(:numbers) GROUP BY 1) n
WHERE s.id = n.site_id;

-- name: forget_near_duplicate
DELETE FROM near_duplicate WHERE url_id in_numbers(:numbers) OR cluster_id in_numbers(:numbers);

-- name: forgettable
-- The content that the deletion of a JSON list of URLs would remove.
SELECT (SELECT count(*) FROM page WHERE url_id in_numbers(:numbers)) AS pages,
  (SELECT count(*) FROM page_version WHERE url_id in_numbers(:numbers)) AS versions,
  (SELECT count(*) FROM link WHERE source in_numbers(:numbers)) AS links;

-- name: redact_locations
-- Clear the locations of requests that were redirected to a JSON list of URLs: those of URLs whose target is in the list,
-- and, for redirects of earlier visits, those that name a URL of the list.
UPDATE request SET location = NULL WHERE purpose <> 'robots' AND location IS NOT NULL AND (
  (site_id, path) IN (SELECT site_of(id), path FROM url
    WHERE state IN ('redirected', 'excluded', 'failed') AND target in_numbers(:numbers))
  OR location IN (SELECT s.name || u.path FROM url u JOIN site s ON s.id = site_of(u.id)
    WHERE u.id in_numbers(:numbers))
  OR (site_id, location) IN (SELECT site_of(id), path FROM url WHERE id in_numbers(:numbers)));

-- name: join
-- ended_code is set if the way in which the worker ends is known beforehand.
INSERT INTO worker (run_id, host, pid, processes, started_at, seen_at, lease_until, ended_code)
VALUES (:run_id, :host, :pid, :processes, :now, :now, lease_clock(:now) + :lease_s, :ended_code) RETURNING id;

-- name: renew
-- Renew the lease and count a commit, unless another worker has ended this one.
UPDATE worker SET seen_at = :now, lease_until = lease_clock(:now) + :lease_s, commits = commits + :commits, pages = pages + :pages,
  requests = requests + :requests
WHERE id = :worker AND ended_at IS NULL RETURNING commits;

-- name: body_of
-- The number of the body of a page, or of one of its versions.
SELECT v.body_id FROM (SELECT body_id, version FROM page WHERE url_id = :url_id
  UNION ALL SELECT body_id, version FROM page_version WHERE url_id = :url_id AND CAST(:version AS bigint) IS NOT NULL) v
WHERE v.body_id IS NOT NULL AND (:version IS NULL OR v.version = :version);

-- name: urls_behind_mirrors
-- URLs excluded as a mirror's, on a JSON list of sites and on all sites whose Host lines lead there.
WITH RECURSIVE behind (site) AS (
  list_of_texts(:sites)
  UNION SELECT m.site FROM behind b JOIN mirror m ON m.main_site = b.site AND m.evidence = 'host')
SELECT u.id FROM behind b JOIN site s ON s.name = b.site
JOIN url u ON u.id BETWEEN first_url_of(s.id) AND last_url_of(s.id)
WHERE u.state = 'excluded' AND u.reason_code IN ('mirror', 'mirror_cycle');

-- name: known_urls
-- The stored rows of a JSON list of URL numbers.
SELECT id, path, state, reason_code, reason, depth, hops, kind FROM url WHERE id in_numbers(:numbers)

-- name: locked_urls
-- As known_urls. On PostgreSQL they are locked in the order of their numbers: no two transactions wait for each other.
statement(known_urls) locking_in_order()

-- name: drop_links
DELETE FROM link WHERE source in_numbers(:numbers);

-- name: links_of
-- The depths that a JSON list of URL numbers gives to others: one more to outlinks, the same to redirect targets.
SELECT u.id AS source, u.depth + 1 AS depth, l.target FROM url u JOIN link l ON l.source = u.id AND l.follow = 1
WHERE u.id in_numbers(:numbers)
UNION ALL SELECT id, depth, target FROM url WHERE id in_numbers(:numbers) AND target IS NOT NULL;

-- name: insert_main_text
-- Keep the text of a body, unless the body was deleted meanwhile. A worker may be deleting it.
INSERT INTO main_text (body_id, read_as, data)
SELECT b.id, t.read_as, t.data FROM given(:body_id bigint, :read_as text, :data bytea) JOIN body b ON b.id = t.body_id
ORDER BY b.id locking_keys(b) ON CONFLICT (body_id) DO UPDATE SET new_values(read_as, data);

-- name: add_sites
INSERT INTO site (name, host, registered_domain, group_id, other_bucket, max_pages)
SELECT t.name, t.host, t.registered_domain, g.id, t.other_bucket, t.max_pages
FROM given(:name text, :host text, :registered_domain text, :group_name text, :other_bucket int, :max_pages bigint)
JOIN politeness_group g ON g.name = t.group_name
WHERE NOT EXISTS (SELECT 1 FROM site s WHERE s.name = t.name) ORDER BY t.name ON CONFLICT DO NOTHING;

-- name: ready_times
-- When the earliest URL of each group may be fetched; NULL if it has none. URLs as deep as below_depth are held back. A
-- site that has all its pages is only revisited; a URL that other sites wait for is outside the limits. Almost all held
-- back URLs have due_at 0 and stand last, ordered by depth: two lookups, for due_at 0 and for later, avoid a walk over
-- them.
SELECT g.id, g.ready_at AS before, (
  SELECT nullif(min(latest(g.next_at, n.robots_until, n.rests_until, n.due_at)), 9e99) FROM (
    SELECT s.robots_until, s.rests_until, CASE
      WHEN EXISTS (SELECT 1 FROM robots_wait WHERE target_id = s.id) THEN 0
      WHEN s.fetched < page_limit(s) THEN coalesce(
        (SELECT due_at FROM frontier WHERE site_id = s.id AND due_at = 0 AND depth < :below_depth LIMIT 1),
        (SELECT due_at FROM frontier WHERE site_id = s.id AND due_at > 0 AND depth < :below_depth
         ORDER BY due_at LIMIT 1), 9e99)
      ELSE coalesce((SELECT due_at FROM frontier by_revisits() WHERE site_id = s.id AND is_revisit = 1
        ORDER BY due_at LIMIT 1), 9e99) END AS due_at
    FROM site s WHERE s.group_id = g.id) AS n) AS ready_at
FROM politeness_group g

-- name: refresh_ready
-- Recompute when each group of a JSON list is ready, and release those of another list.
UPDATE politeness_group SET ready_at = n.ready_at,
  claimed_by = CASE WHEN politeness_group.id IN (list_of_numbers(:released)) THEN NULL ELSE claimed_by END
FROM (statement(ready_times) WHERE g.id in_numbers(:groups)) AS n
WHERE n.id = politeness_group.id;

-- name: stale_groups
-- The groups whose times are not those that they should be. The others are not written.
SELECT id FROM (statement(ready_times)) AS n WHERE coalesce(ready_at, -1) <> coalesce(before, -1);

-- name: claim_groups
-- Claim the groups that have been ready longest. On PostgreSQL, those that another worker is claiming are left out. They
-- come with the URLs on their sites that other sites wait for, as JSON.
WITH ready AS MATERIALIZED (
  SELECT g.id FROM politeness_group g
  WHERE g.ready_at <= :until AND g.claimed_by IS NULL ORDER BY g.ready_at LIMIT :limit skipping_locked(g))
UPDATE politeness_group SET claimed_by = :worker WHERE id IN (SELECT id FROM ready)
RETURNING id, name, ready_at, pace_of(politeness_group),
  (SELECT json_group_array(json_object('site', t.name, 'path', t.path, 'hops', t.hops)) FROM (
    SELECT s.name, w.path, min(w.hops) AS hops FROM site s JOIN robots_wait w ON w.target_id = s.id
    WHERE s.group_id = politeness_group.id AND s.robots_until <= :until AND s.rests_until <= :until
    GROUP BY s.name, w.path) AS t) AS targets;

-- name: lost_groups
-- Groups held by workers that have ended, but for those that another worker is releasing.
SELECT g.id, g.name, coalesce(w.ended_at, w.lease_until) AS lost_at, pace_of(g)
FROM politeness_group g LEFT JOIN worker w ON w.id = g.claimed_by
WHERE g.claimed_by IS NOT NULL AND (w.id IS NULL OR w.ended_at IS NOT NULL) ORDER BY g.id skipping_locked(g);

-- name: end_lost_workers
-- Before their groups are released. A worker that is renewing its lease is not lost.
UPDATE worker SET ended_at = lease_until, ended_code = :ended_code, ended_by = :ended_by WHERE id IN (
  SELECT w.id FROM worker w WHERE w.ended_at IS NULL AND w.lease_until <= earliest_now(:now) skipping_locked(w));

-- name: others_at_work
-- Whether another worker holds a group, or has just released one. One statement, because groups move meanwhile.
SELECT EXISTS (SELECT 1 FROM politeness_group WHERE claimed_by <> :worker)
  OR EXISTS (SELECT 1 FROM politeness_group WHERE ready_at < :before AND claimed_by IS NULL) AS any_other;

-- name: counts
-- One statement, because a crawl may be running. States are counted by the index url_out: a count of all states would
-- sort them.
SELECT state AS what, count(*) AS n FROM url WHERE state IN ('redirected', 'excluded', 'failed') GROUP BY state
UNION ALL SELECT 'queued', count(*) FROM frontier
UNION ALL SELECT 'urls', count(*) FROM url
UNION ALL SELECT 'pages', count(*) FROM page
UNION ALL SELECT 'links', count(*) FROM link
UNION ALL SELECT 'requests', count(*) FROM request WHERE was_sent(error_kind) = 1
UNION ALL SELECT 'sites', count(*) FROM site;

-- name: visited_pages
-- Pages that have no row yet. The tempo of a page without document state is 1.
INSERT INTO revisit (url_id, due_at, not_before, checked_at, watched_s, why)
SELECT url_id, fetched_at + :first_s * tempo, fetched_at + :min_interval_s, fetched_at, :watched_s * tempo,
  'its first revisit' FROM (SELECT p.url_id, p.fetched_at, CASE p.document_state WHEN 'STATIC' THEN :static_tempo
    WHEN 'DYNAMIC' THEN :dynamic_tempo ELSE CAST(1 AS double precision) END AS tempo FROM page p) AS n
WHERE NOT EXISTS (SELECT 1 FROM revisit r WHERE r.url_id = n.url_id)

-- name: visited_others
-- Redirects and sitemaps: as visited_pages, with the current time in place of the visit's.
INSERT INTO revisit (url_id, due_at, not_before, checked_at, watched_s, why)
SELECT url_id, :now + :first_s * tempo, :now + :min_interval_s, :now, :watched_s * tempo, 'its first revisit' FROM (
  SELECT id AS url_id, CAST(:static_tempo AS double precision) AS tempo FROM url  -- by the index url_out
  WHERE state IN ('redirected', 'excluded', 'failed') AND state = 'redirected' AND kind = 'page'
  UNION ALL SELECT id, :dynamic_tempo FROM url WHERE kind = 'sitemap' AND state IN ('fetched', 'redirected')) AS n
WHERE NOT EXISTS (SELECT 1 FROM revisit r WHERE r.url_id = n.url_id)

-- name: add_visited_pages
statement(visited_pages) ON CONFLICT DO NOTHING;

-- name: add_visited_others
statement(visited_others) ON CONFLICT DO NOTHING;

-- name: add_visited_pages_of
-- Of a JSON list of URLs.
statement(visited_pages) AND n.url_id in_numbers(:numbers) ON CONFLICT DO NOTHING;

-- name: add_visited_others_of
statement(visited_others) AND n.url_id in_numbers(:numbers) ON CONFLICT DO NOTHING;

-- name: note_states
-- Remember the state of a JSON list of URLs before they are queued.
UPDATE revisit SET state = u.state, reason_code = u.reason_code, reason = u.reason FROM url u
WHERE u.id = revisit.url_id AND revisit.url_id in_numbers(:numbers);

-- name: queue_revisit
UPDATE url SET state = 'queued', attempts = 0, due_at = r.due_at, reason_code = :reason_code, reason = :reason
FROM revisit r WHERE r.url_id = url.id AND url.id in_numbers(:numbers) AND url.state <> 'queued';

-- name: apply_hint
-- Bring a revisit forward, unless the URL was checked since the hint. The least interval does not delay a hint that was
-- asked for.
UPDATE revisit SET hint = :source, hinted_at = :at,
  due_at = CASE WHEN CAST(:counts AS boolean) AND n.soonest < due_at THEN n.soonest ELSE due_at END,
  why = CASE WHEN CAST(:counts AS boolean) AND n.soonest < due_at THEN :why ELSE why END
FROM (SELECT url_id AS id, latest(:now, CASE WHEN :asked_for = 1 THEN 0 ELSE not_before END) AS soonest FROM revisit
  WHERE url_id = :id) AS n
WHERE url_id = n.id AND checked_at < :at AND (hinted_at IS NULL OR hinted_at < :at) RETURNING url_id;

-- name: keep_version
-- Keep the version that a page had so far, unless it was NOINDEX.
INSERT INTO page_version (url_id, version, status, content_type, charset, fetched_at, last_seen_at, title,
  description, keywords, noindex, body_id, body_bytes, text_sha256, etag, last_modified, preferences_id,
  robots_preferences_id, language, answer_id)
SELECT p.url_id, version, status, content_type, charset, fetched_at, coalesce(last_seen_at, fetched_at),
  title, description, keywords, noindex, body_id, body_bytes, text_sha256, etag, last_modified, preferences_id,
  robots_preferences_id, language, answer_id
FROM page p WHERE p.url_id in_numbers(:numbers) AND noindex = 0
ON CONFLICT (url_id, version) DO UPDATE SET new_values(status, content_type, charset, fetched_at, last_seen_at, title,
  description, keywords, noindex, body_id, body_bytes, text_sha256, etag, last_modified, preferences_id,
  robots_preferences_id, language, answer_id);

-- name: queued_on
-- Queued URLs, and seeds that came to nothing, on sites whose names are in a JSON list of ranges.
SELECT f.url_id FROM ranges_of(:ranges) r CROSS JOIN site s JOIN frontier f ON f.site_id = s.id
WHERE s.name BETWEEN r.first AND r.last
UNION ALL
SELECT u.id FROM ranges_of(:ranges) r CROSS JOIN site s JOIN url u ON u.id BETWEEN first_url_of(s.id) AND last_url_of(s.id)
WHERE s.name BETWEEN r.first AND r.last AND u.seed = 1 AND u.state || '' IN ('failed', 'excluded')
  AND u.reason_code NOT IN
    ('blocked', 'forgotten', 'sample', 'frame', 'other_bucket', 'mirror', 'refresh', 'other_address')
LIMIT :limit;

-- name: numbers_on
-- The first and the last URL number of each site whose name is in a JSON list of ranges, from a site on.
SELECT first_url_of(s.id) AS first, last_url_of(s.id) AS last FROM ranges_of(:ranges) r CROSS JOIN site s
WHERE s.name BETWEEN r.first AND r.last AND s.id >= :least ORDER BY s.id;

-- name: blocked_within
-- Excluded URLs with a reason, in a range of numbers, which is a walk over the table and needs no index by state.
SELECT id FROM url WHERE id BETWEEN :first AND :last AND state || '' = 'excluded' AND reason_code = :reason_code
ORDER BY id LIMIT :limit;

-- name: redact_requests
-- Reduce the addresses of requests for a JSON list of URLs to their sites.
UPDATE request SET path = '', location = NULL WHERE purpose <> 'robots' AND (site_id, path) IN (
  SELECT site_of(id), path FROM url WHERE id in_numbers(:numbers));

-- name: claimed_sites
-- The next sites of claimed groups that have a URL to fetch now, each with its next URLs as JSON, nearest to a seed
-- first. A site that has all its pages gets revisits only. As in ready_times, no walk over held back URLs.
-- The sites of a group take turns by the number of pauses since the epoch: under a long pause a claim serves one request
-- only, and would always serve the same site. Nothing more is read of the sites that are not chosen.
WITH able AS (
  SELECT s.id, s.group_id FROM site s
  WHERE s.group_id in_numbers(:groups) AND s.robots_until <= :until AND s.rests_until <= :until
    AND CASE WHEN s.fetched < page_limit(s)
    THEN EXISTS (SELECT 1 FROM frontier WHERE site_id = s.id AND due_at = 0 AND depth < :below_depth)
      OR EXISTS (SELECT 1 FROM frontier
        WHERE site_id = s.id AND due_at > 0 AND due_at <= :until AND depth < :below_depth)
    ELSE EXISTS (SELECT 1 FROM frontier by_revisits()
      WHERE site_id = s.id AND due_at <= :until AND is_revisit = 1) END),
ordered AS (
  SELECT able.id, row_number() OVER (PARTITION BY group_id ORDER BY able.id) - 1 AS place,
    count(*) OVER (PARTITION BY group_id) AS sites, :until / latest(1.0, g.pause_s) AS pauses
  FROM able CROSS JOIN politeness_group g WHERE g.id = able.group_id),
turned AS (SELECT id, (place + sites - CAST(pauses AS INTEGER) % sites) % sites AS nth FROM ordered),
chosen AS MATERIALIZED (SELECT id, nth FROM turned WHERE nth < :limit)
SELECT claimed_site(s), s.group_id, page_limit(s) AS page_limit, robots_copy_of(r), robots_text_of(t),
  (SELECT json_group_array(json_object('id', u.id, 'path', u.path, 'depth', u.depth, 'attempts', u.attempts,
      'hops', u.hops, 'seed', u.seed, 'by_domain', u.by_domain, 'due_at', u.due_at, 'kind', u.kind,
      'is_answered', EXISTS (SELECT 1 FROM unread_answer WHERE url_id = u.id),
      'seen', CASE WHEN v.url_id IS NOT NULL THEN json_object('state', v.state, 'reason_code', v.reason_code,
        'reason', v.reason, 'checked_at', v.checked_at, 'changes', v.changes, 'watched_s', v.watched_s,
        'failures', v.failures,
        'target', (SELECT t.name || r.path FROM url r JOIN site t ON t.id = site_of(r.id) WHERE r.id = u.target),
        'hint', v.hint, 'version', coalesce(p.version, 0), 'status', p.status, 'etag', coalesce(v.etag, p.etag),
        'last_modified', coalesce(v.last_modified, p.last_modified),
        'content', lower(hex(coalesce((SELECT sha256 FROM body WHERE id = p.body_id), v.content))),
        'text', lower(hex(p.text_sha256)), 'noindex', p.noindex, 'nofollow', p.nofollow,
        'directives', p.directives) END)) FROM
    (SELECT id AS url_id FROM url WHERE id = s.probe AND state = 'queued'
     UNION ALL SELECT url_id FROM (
       SELECT url_id FROM (SELECT url_id FROM frontier
         WHERE site_id = s.id AND due_at = 0 AND s.fetched < page_limit(s) AND depth < :below_depth
         ORDER BY depth, url_id LIMIT :limit) AS now
       UNION ALL SELECT url_id FROM (SELECT url_id FROM frontier
         WHERE site_id = s.id AND due_at > 0 AND due_at <= :until AND s.fetched < page_limit(s)
           AND depth < :below_depth ORDER BY due_at, depth, url_id LIMIT :limit) AS later LIMIT :limit) AS new
     UNION ALL SELECT url_id FROM (SELECT url_id FROM frontier by_revisits()
       WHERE site_id = s.id AND due_at <= :until AND is_revisit = 1 AND s.fetched >= page_limit(s)
       ORDER BY due_at LIMIT :limit) AS again) q
    JOIN url u ON u.id = q.url_id LEFT JOIN revisit v ON v.url_id = u.id LEFT JOIN page p ON p.url_id = v.url_id) AS urls
FROM chosen c CROSS JOIN site s
LEFT JOIN robots_copy r ON r.id = s.robots_id LEFT JOIN robots_text t ON t.id = r.text_id WHERE s.id = c.id ORDER BY c.nth;

-- name: last_robots_copies
-- The newest copies of a JSON list of sites.
SELECT site_id, max(id) AS id FROM robots_copy WHERE site_id in_numbers(:sites) GROUP BY site_id;
