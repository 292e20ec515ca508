-- Named queries of the SQLite store. `-- name: N` starts one, the comment below it says what it is for.

-- name: known_urls
-- What the store has of a JSON list of URL numbers.
SELECT id, path, state, reason_code, reason, depth, hops FROM url WHERE id IN (SELECT value FROM json_each(?));

-- name: insert_url
INSERT INTO url (id, path, state, reason_code, reason, depth, found_on, hops, seed, kind, lastmod)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: enqueue
-- The frontier row of a queued URL, from its own row.
INSERT INTO frontier (site_id, due_at, depth, url_id, again)
SELECT site_of(id), due_at, depth, id, EXISTS (SELECT 1 FROM revisit WHERE url_id = url.id)
FROM url WHERE id = ? AND state = 'queued' ON CONFLICT DO NOTHING;

-- name: dequeue
DELETE FROM frontier WHERE (site_id, due_at, depth, url_id) = (SELECT site_of(id), due_at, depth, id FROM url WHERE id = ?);

-- name: change_url
-- A better offer: (depth, hops, state, reason code, reason, found_on, is a seed, id).
UPDATE url SET depth = ?, hops = ?, state = ?, reason_code = ?, reason = ?, found_on = coalesce(?, found_on),
  seed = max(seed, ?)
WHERE id = ?;

-- name: end_url
-- How a visit ended: (state, reason code, reason, attempts, target, due_at, kind, id).
UPDATE url SET state = ?, reason_code = ?, reason = ?, attempts = ?, target = ?, due_at = ?, kind = ? WHERE id = ?;

-- name: requeue
-- An excluded URL begins anew, unless another worker has seen to that already; its frontier row is still to be made.
UPDATE url SET state = 'queued', reason_code = 'requeued', reason = '', due_at = 0, attempts = 0, deaths = 0, target = NULL
WHERE id = ? AND state IN ('excluded', 'failed');

-- name: set_seed
UPDATE url SET seed = 1 WHERE id = ?;

-- name: exclude
-- Not what was visited since it was looked up, by this worker or another one: the answer counts.
UPDATE url SET state = 'excluded', reason_code = ?, reason = ? WHERE id = ? AND state NOT IN ('fetched', 'redirected');

-- name: insert_rank
INSERT INTO rank VALUES (?, ?, ?, ?, ?);

-- name: insert_site_rank
INSERT INTO site_rank VALUES (?, ?, ?, ?, ?);

-- name: set_lastmod
UPDATE url SET lastmod = ? WHERE id = ?;

-- name: make_sitemap
-- A URL known as a link turns out to be named as a sitemap, before it was asked for: (named on, id).
UPDATE url SET kind = 'sitemap', found_on = coalesce(?, found_on)
WHERE id = ? AND kind = 'page' AND state IN ('queued', 'excluded') AND id NOT IN (SELECT url_id FROM revisit);

-- name: main_site
SELECT main_site FROM site WHERE id = ?;

-- name: urls_behind_mirrors
-- URLs that ended as a mirror's, of these sites and of all whose Host lines lead there: (JSON list of sites).
WITH RECURSIVE behind (site) AS (
  SELECT value FROM json_each(?)
  UNION SELECT m.site FROM behind b JOIN mirror m ON m.main_site = b.site AND m.evidence = 'host')
SELECT u.id FROM behind b JOIN site s ON s.name = b.site
JOIN url u ON u.id BETWEEN first_url_of(s.id) AND last_url_of(s.id)
WHERE u.state = 'excluded' AND u.reason_code IN ('mirror', 'mirror_cycle');

-- name: links_of
-- What follows from a JSON list of URL numbers: their outlinks one deeper, their redirect targets as deep.
SELECT u.depth + 1, l.target FROM json_each(?1) j JOIN url u ON u.id = j.value JOIN link l ON l.source = u.id WHERE l.follow
UNION ALL
SELECT u.depth, u.target FROM json_each(?1) j JOIN url u ON u.id = j.value WHERE u.target IS NOT NULL;

-- name: add_groups
INSERT INTO politeness_group (name) VALUES (?) ON CONFLICT DO NOTHING;

-- name: add_sites
INSERT INTO site (name, group_id) SELECT ?, id FROM politeness_group WHERE name = ? ON CONFLICT DO NOTHING;

-- name: sites_named
SELECT id, name, group_id FROM site WHERE name IN (SELECT value FROM json_each(?));

-- name: groups_of_sites
SELECT DISTINCT group_id FROM site WHERE id IN (SELECT value FROM json_each(?));

-- name: depths
SELECT id, depth, kind FROM url WHERE id IN (SELECT value FROM json_each(?));

-- name: insert_body
-- (digest, gzip member or NULL, else the plain bytes): read back by the magic number that either begins with.
INSERT INTO body (sha256, data) VALUES (?, coalesce(?, zstd(?))) ON CONFLICT DO NOTHING;

-- name: insert_page
INSERT OR REPLACE INTO page (url_id, status, content_type, charset, fetched_at, title, description, keywords,
  canonical_url, meta_url, document_state, noindex, nofollow, body_id, body_bytes, etag, last_modified,
  other_schemes, directives, note, text_sha256, version)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT id FROM body WHERE sha256 = ?), ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_link
INSERT OR REPLACE INTO link (source, target, anchor, rel, follow) VALUES (?, ?, ?, ?, ?);

-- name: insert_request
INSERT INTO request (run_id, site_id, path, purpose, started_at, finished_at, status, error_kind, error, bytes,
  retry_after_s, robots_id, verdict_line, for_site_id, location) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: count_fetched
UPDATE site SET fetched = fetched + ? WHERE id = ?;

-- name: insert_robots_text
INSERT INTO robots_text (sha256, body) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: close_robots_copy
-- A newer copy takes the place of the one in force: (now, site).
UPDATE robots_copy SET valid_until = min(valid_until, ?) WHERE id = (SELECT robots_id FROM site WHERE id = ?);

-- name: insert_robots_copy
INSERT INTO robots_copy (site_id, text_id, action, status, fetched_at, valid_from, valid_until, etag, last_modified,
  failures, failing_since, retry_at, note, run_id, answered_by, headers)
VALUES (?, (SELECT id FROM robots_text WHERE sha256 = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id;

-- name: set_site_robots
UPDATE site SET robots_id = coalesce(?, robots_id), wait_until = ?, crawl_delay_s = ?, main_site = ? WHERE id = ?;

-- name: set_mirror
INSERT OR REPLACE INTO mirror (site, main_site, evidence, seen_at) VALUES (?, ?, 'host', ?);

-- name: drop_agent_servers
DELETE FROM agent_server WHERE site_id = ?;

-- name: insert_agent_server
INSERT INTO agent_server (site_id, line, path, agent_server) VALUES (?, ?, ?, ?);

-- name: drop_mirror
DELETE FROM mirror WHERE site = ? AND evidence = 'host';

-- name: set_pace
-- Of two workers that have asked it, the one that is to wait longer has the say: (next_at, pause_s, backoff_s,
-- waits_for, name)
UPDATE politeness_group SET next_at = ?1, pause_s = ?2, backoff_s = ?3, waits_for = ?4 WHERE name = ?5 AND next_at <= ?1;

-- name: end_visit
UPDATE politeness_group SET visited_by = NULL WHERE name = ?;

-- name: release_groups
UPDATE politeness_group SET claimed_by = NULL, caution = max(0, caution - 1)
WHERE id IN (SELECT value FROM json_each(?));

-- name: refresh_ready
-- When the earliest URL of each named group may be fetched that is not held back: (pages allowed per site, JSON list of
-- groups, depth from which URLs are held back). A site that has its pages is only visited again. What is held back has
-- hardly ever been asked for, and stands at 0, the deepest last: looked up in two steps, none of it is gone through.
UPDATE politeness_group SET ready_at = (
  SELECT max(politeness_group.next_at, min(max(s.wait_until, CASE WHEN s.fetched < ?1
    THEN coalesce(
      (SELECT f.due_at FROM frontier f WHERE f.site_id = s.id AND f.due_at = 0 AND f.depth < ?3 LIMIT 1),
      (SELECT f.due_at FROM frontier f WHERE f.site_id = s.id AND f.due_at > 0 AND f.depth < ?3
       ORDER BY f.due_at LIMIT 1))
    ELSE (SELECT f.due_at FROM frontier f INDEXED BY frontier_again WHERE f.site_id = s.id AND f.again
      ORDER BY f.due_at LIMIT 1) END)))
  FROM site s WHERE s.group_id = politeness_group.id)
WHERE id IN (SELECT value FROM json_each(?2));

-- name: refresh_all
-- The same for every group, without writing what is as it was: (pages allowed per site).
WITH now AS MATERIALIZED (
  SELECT g.id, g.ready_at AS before, (
    SELECT max(g.next_at, min(max(s.wait_until, CASE WHEN s.fetched < ?
      THEN (SELECT f.due_at FROM frontier f WHERE f.site_id = s.id ORDER BY f.due_at LIMIT 1)
      ELSE (SELECT f.due_at FROM frontier f INDEXED BY frontier_again WHERE f.site_id = s.id AND f.again
        ORDER BY f.due_at LIMIT 1) END)))
    FROM site s WHERE s.group_id = g.id) AS ready_at
  FROM politeness_group g)
UPDATE politeness_group SET ready_at = now.ready_at FROM now
WHERE now.id = politeness_group.id AND now.ready_at IS NOT now.before;

-- name: claimable_groups
-- Longest ready first: (until when, worker, how many).
SELECT id, name, next_at, pause_s, backoff_s, waits_for, caution FROM politeness_group
WHERE ready_at <= ? AND claimed_by IS NULL AND (visited_by IS NULL OR visited_by = ?) ORDER BY ready_at LIMIT ?;

-- name: groups_and_workers
-- How many groups have work or a worker, and how many workers there are: (no more groups than, now).
SELECT (SELECT count(*) FROM (SELECT 1 FROM politeness_group WHERE ready_at IS NOT NULL AND claimed_by IS NULL LIMIT ?) AS r)
    + (SELECT count(*) FROM politeness_group WHERE claimed_by IS NOT NULL OR visited_by IS NOT NULL),
  (SELECT count(*) FROM worker WHERE ended_at IS NULL AND lease_until > ?);

-- name: claim_groups
UPDATE politeness_group SET claimed_by = ? WHERE id IN (SELECT value FROM json_each(?));

-- name: crawl_delay
SELECT crawl_delay_s FROM site WHERE name = ?;

-- name: claimed_sites
-- Of claimed groups, the next sites in turn that have something to ask now, each with its next URLs as JSON, nearest to
-- the seeds first; of a site that has its pages, only those to be visited again: (now, how many sites of a group and URLs
-- of a site, JSON list of groups, pages per site, depth from which URLs are held back). As in refresh_ready, nothing that
-- is held back is gone through. After every pause another site is the first: under a long one a claim is good for one
-- request only, and would always go to the same site. Of the sites that are not chosen, nothing more is read.
WITH able AS (
  SELECT s.id, s.group_id FROM site s
  WHERE s.group_id IN (SELECT value FROM json_each(?3)) AND s.wait_until <= ?1 AND CASE WHEN s.fetched < ?4
    THEN EXISTS (SELECT 1 FROM frontier WHERE site_id = s.id AND due_at = 0 AND depth < ?5)
      OR EXISTS (SELECT 1 FROM frontier WHERE site_id = s.id AND due_at > 0 AND due_at <= ?1 AND depth < ?5)
    ELSE EXISTS (SELECT 1 FROM frontier INDEXED BY frontier_again WHERE site_id = s.id AND due_at <= ?1 AND again) END),
placed AS (
  SELECT id, group_id, row_number() OVER (PARTITION BY group_id ORDER BY id) - 1 AS place,
    count(*) OVER (PARTITION BY group_id) AS sites FROM able),
chosen AS MATERIALIZED (
  SELECT placed.id, (place + sites - CAST(?1 / max(1.0, g.pause_s) AS INTEGER) % sites) % sites AS nth
  FROM placed CROSS JOIN politeness_group g ON g.id = group_id WHERE nth < ?2)
SELECT s.id, s.name, s.group_id, s.fetched, s.robots_id, s.crawl_delay_s,
  (SELECT json_group_array(json_array(u.id, u.path, u.depth, u.attempts, u.hops, u.seed, u.due_at, u.kind,
      CASE WHEN v.url_id IS NOT NULL THEN json_array(v.state, v.reason_code, v.reason, v.checked_at, v.changes, v.watched_s,
        v.failures, v.hint, coalesce(p.version, 0), p.status, coalesce(v.etag, p.etag),
        coalesce(v.last_modified, p.last_modified),
        lower(hex(coalesce((SELECT sha256 FROM body WHERE id = p.body_id), v.content))), lower(hex(p.text_sha256)),
        p.noindex, p.nofollow, p.directives) END)) FROM
    (SELECT url_id FROM (
       SELECT url_id FROM (SELECT url_id FROM frontier
         WHERE site_id = s.id AND due_at = 0 AND s.fetched < ?4 AND depth < ?5 ORDER BY depth, url_id LIMIT ?2)
       UNION ALL SELECT url_id FROM (SELECT url_id FROM frontier
         WHERE site_id = s.id AND due_at > 0 AND due_at <= ?1 AND s.fetched < ?4 AND depth < ?5
         ORDER BY due_at, depth, url_id LIMIT ?2) LIMIT ?2)
     UNION ALL SELECT url_id FROM (SELECT url_id FROM frontier INDEXED BY frontier_again
       WHERE site_id = s.id AND due_at <= ?1 AND again AND s.fetched >= ?4 ORDER BY due_at LIMIT ?2)) q
    JOIN url u ON u.id = q.url_id LEFT JOIN revisit v ON v.url_id = u.id LEFT JOIN page p ON p.url_id = v.url_id),
  r.action, r.status, r.fetched_at, r.valid_until, t.body, t.sha256, r.etag, r.last_modified,
  r.failures, r.failing_since, r.retry_at, r.note
FROM chosen c CROSS JOIN site s ON s.id = c.id
LEFT JOIN robots_copy r ON r.id = s.robots_id LEFT JOIN robots_text t ON t.id = r.text_id ORDER BY c.nth;

-- name: next_ready
SELECT ready_at, name, waits_for FROM politeness_group
WHERE ready_at IS NOT NULL AND claimed_by IS NULL ORDER BY ready_at LIMIT 1;

-- name: waiting_groups
-- The unclaimed groups that wait longest from now: (now, how many).
SELECT g.name, g.ready_at,
  coalesce((SELECT 'robots.txt: ' || r.status FROM site s JOIN robots_copy r ON r.id = s.robots_id
    WHERE s.group_id = g.id AND s.wait_until > ?1 LIMIT 1), nullif(g.waits_for, ''), 'retry')
FROM politeness_group g WHERE g.ready_at > ?1 AND g.claimed_by IS NULL ORDER BY g.ready_at DESC LIMIT ?2;

-- name: lost_groups
-- What workers have left behind that are at work no more, and (in a store of before there were workers) dead runs.
SELECT g.id, g.name, coalesce(w.ended_at, w.lease_until), g.next_at, g.pause_s, g.backoff_s, g.waits_for
FROM politeness_group g LEFT JOIN worker w ON w.id = coalesce(g.claimed_by, g.visited_by)
WHERE (g.claimed_by IS NOT NULL OR g.visited_by IS NOT NULL)
  AND (w.id IS NULL OR w.ended_at IS NOT NULL);

-- name: free_group
-- The worker of a group died. After the second death in a row, the next 20 URLs of the group are tried alone.
UPDATE politeness_group SET claimed_by = NULL, visited_by = NULL, caution = CASE WHEN caution = 0 THEN 1 ELSE 21 END
WHERE id = ?;

-- name: begin_trial
-- (URL number, worker)
UPDATE worker SET trial = ? WHERE id = ?;

-- name: lost_trials
-- The URLs that workers tried alone when they died: (worker, URL number).
SELECT id, trial FROM worker WHERE trial IS NOT NULL AND ended_at IS NOT NULL;

-- name: blame
-- A worker died while it tried a URL alone: (now, URL number). The URL waits a little, so that others come first.
UPDATE url SET deaths = deaths + 1, due_at = ?1 + 2 * (deaths + 1) WHERE id = ?2 AND state = 'queued' RETURNING deaths;

-- name: fail_killer
-- (the sentence of the code worker_died, URL number)
UPDATE url SET state = 'failed', reason_code = 'worker_died', reason = ?1, due_at = 0 WHERE id = ?2;

-- name: end_lost_workers
UPDATE worker SET ended_at = lease_until, ended_by = 'lease ran out' WHERE ended_at IS NULL AND lease_until <= ?;

-- name: join
-- (run, host, process, processes, now, lease, how it ends where that is known)
INSERT INTO worker (run_id, host, pid, processes, started_at, seen_at, lease_until, ended_by)
VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?5 + ?6, ?7) RETURNING id;

-- name: relieve
-- Who had joined a run for others: (run, how that would have ended).
DELETE FROM worker WHERE run_id = ? AND ended_at IS NULL AND ended_by = ?;

-- name: neighbours
-- The other workers whose processes can be looked for here: (processes, worker).
SELECT id, pid FROM worker WHERE processes = ? AND ended_at IS NULL AND id <> ?;

-- name: renew
-- Only who has not been ended goes on: (now, lease, 1 for a turn, pages, requests, worker).
UPDATE worker SET seen_at = ?1, lease_until = ?1 + ?2, turns = turns + ?3, pages = pages + ?4, requests = requests + ?5
WHERE id = ?6 AND ended_at IS NULL RETURNING turns;

-- name: end_all_workers
UPDATE worker SET ended_at = ?, ended_by = 'killed' WHERE ended_at IS NULL;

-- name: turns
SELECT turns FROM worker WHERE id = ?;

-- name: count_late
-- As a turn, but of a worker that may have ended: (requests, worker, turns so far).
UPDATE worker SET turns = turns + 1, requests = requests + ? WHERE id = ? AND turns = ? RETURNING id;

-- name: end_worker
-- (now, why, worker)
UPDATE worker SET ended_at = ?, ended_by = ? WHERE id = ? AND ended_at IS NULL;

-- name: pages_taken
-- Under a limit on all workers of a run: how many are taken, and how many are set aside for others than (worker).
SELECT r.pages_before + (SELECT sum(pages) FROM worker WHERE run_id = r.id),
  (SELECT coalesce(sum(granted), 0) FROM worker WHERE run_id = r.id AND id <> w.id AND ended_at IS NULL)
FROM worker w JOIN run r ON r.id = w.run_id WHERE w.id = ?;

-- name: run_under_way
-- (now)
SELECT r.id, r.settings FROM run r JOIN worker w ON w.run_id = r.id
WHERE w.ended_at IS NULL AND w.lease_until > ?
  AND json_extract(r.settings, '$.auxiliary_run') IS NULL ORDER BY r.id DESC LIMIT 1;

-- name: last_run
SELECT id, finished_at, started_at, ended_code, ended_by, crawler_version, settings, worst_lag_s, pages_before FROM run
WHERE json_extract(settings, '$.auxiliary_run') IS NULL ORDER BY id DESC LIMIT 1;

-- name: reopen_run
-- Who comes back goes on with what the others thought was over: (run)
UPDATE run SET finished_at = NULL, ended_code = NULL, ended_by = NULL WHERE id = ? AND finished_at IS NOT NULL;

-- name: others_at_work
-- Whether any group is with another worker, or was given back just now; in one look, for they come and go: (worker,
-- worker).
SELECT EXISTS (SELECT 1 FROM politeness_group
  WHERE (claimed_by IS NOT NULL OR visited_by IS NOT NULL) AND (claimed_by <> ? OR visited_by <> ?))
  OR EXISTS (SELECT 1 FROM politeness_group WHERE ready_at IS NOT NULL AND claimed_by IS NULL);

-- name: insert_run
INSERT INTO run (started_at, crawler_version, settings, pages_before)
SELECT ?, ?, ?, coalesce(sum(fetched), 0) FROM site RETURNING id;

-- name: end_run
-- By the last of its workers: (now, code, sentence, run).
UPDATE run SET finished_at = ?1, ended_code = ?2, ended_by = ?3 WHERE id = ?4
  AND NOT EXISTS (SELECT 1 FROM worker WHERE run_id = ?4 AND ended_at IS NULL AND lease_until > ?1);

-- name: mirrors_since
SELECT site, main_site FROM mirror WHERE evidence = 'host' AND seen_at > ?;

-- name: excluded_from
-- Excluded and failed URLs after a number, for a look under changed options: (last number, how many).
SELECT u.id, s.name || u.path, u.reason_code, u.depth, u.seed OR u.kind <> 'page' FROM url u JOIN site s ON s.id = site_of(u.id)
WHERE u.id > ? AND u.state IN ('excluded', 'failed') ORDER BY u.id LIMIT ?;

-- name: robots_copy_of
SELECT r.action, r.status, r.fetched_at, r.valid_until, t.body, t.sha256, r.etag, r.last_modified,
  r.failures, r.failing_since, r.retry_at, r.note
FROM site s JOIN robots_copy r ON r.id = s.robots_id LEFT JOIN robots_text t ON t.id = r.text_id WHERE s.name = ?;

-- name: alike_sites
-- Sites with the same bodies at the same paths: (site, the one with more pages, paths alike, paths compared, pages of
-- the smaller). Each page is held against the same page of the lowest site that has it, no pair of sites beside, so
-- that one body at a path of ten thousand sites makes ten thousand pairs. Counted out are those that have at least so
-- many distinct bodies in common. The same path has the same bits in every site's numbers. (how many)
WITH twin AS (
  SELECT body_id, site_of(url_id) AS b, min(site_of(url_id)) OVER (PARTITION BY body_id, path_hash_of(url_id)) AS a
  FROM page
  WHERE body_id IN (SELECT body_id FROM page WHERE body_id IS NOT NULL GROUP BY body_id HAVING count(*) > 1)),
alike AS (
  SELECT a, b, count(*) AS n FROM twin WHERE b > a GROUP BY a, b HAVING count(DISTINCT body_id) >= ?),
ranked AS (
  SELECT s.id AS main_id, t.id AS site_id, s.name AS main_site, t.name AS site, n, t.fetched
  FROM alike JOIN site s JOIN site t
    ON (s.id = a AND t.id = b AND s.fetched >= t.fetched) OR (s.id = b AND t.id = a AND s.fetched > t.fetched))
SELECT site, main_site, n,
  (SELECT count(*) FROM page p JOIN page q ON q.url_id = (first_url_of(main_id) | (path_hash_of(p.url_id)))
   WHERE p.url_id BETWEEN first_url_of(site_id) AND last_url_of(site_id) AND p.body_id NOTNULL AND q.body_id NOTNULL),
  fetched
FROM ranked ORDER BY n DESC, main_id;

-- name: insert_content_mirror
INSERT OR IGNORE INTO mirror (site, main_site, evidence, sample, confidence, seen_at) VALUES (?, ?, 'content', ?, ?, ?);

-- name: fail_circles
-- Redirects that are in a circle, or lead into one: all but those that come to an end, found backwards from these ends.
-- (CROSS JOIN has SQLite look up what redirects to a URL, instead of the other way round.) Parameter: the sentence of
-- the code redirect_circle.
WITH RECURSIVE moved AS MATERIALIZED (
    SELECT id, target FROM url WHERE state IN ('redirected', 'excluded', 'failed') AND state = 'redirected'),
  ending (id) AS (
    SELECT m.id FROM moved m LEFT JOIN url u ON u.id = m.target WHERE u.state IS NULL OR u.state <> 'redirected'
    UNION ALL SELECT m.id FROM ending e CROSS JOIN moved m WHERE m.target = e.id)
UPDATE url SET state = 'failed', reason_code = 'redirect_circle', reason = replace(?, '{}', reason)
WHERE state = 'redirected' AND id IN (SELECT id FROM moved EXCEPT SELECT id FROM ending);

-- name: way_to
-- The URLs from a seed to this one, as it was first found.
WITH RECURSIVE way (id, found_on, n) AS (
  SELECT id, found_on, 0 FROM url WHERE id = ?
  UNION ALL SELECT u.id, u.found_on, n + 1 FROM way JOIN url u ON u.id = way.found_on WHERE n < 30)
SELECT s.name || u.path FROM way JOIN url u ON u.id = way.id JOIN site s ON s.id = site_of(u.id) ORDER BY n DESC;

-- name: expire_robots
-- Another reading, or another token: what the answers meant under the old one no longer applies; or of those only where
-- no connection was made. (now, now, whether only those)
UPDATE robots_copy SET valid_until = min(valid_until, ?), retry_at = NULL
WHERE valid_until > ? AND id IN (SELECT robots_id FROM site) AND (NOT ? OR status IN ('address', 'dns'));

-- name: end_robots_wait
-- (whether only where no connection was made)
UPDATE site SET wait_until = 0
WHERE NOT ? OR robots_id IN (SELECT id FROM robots_copy WHERE status IN ('address', 'dns'));

-- name: all_sites
SELECT s.id, s.name, g.name, g.next_at, g.pause_s, g.backoff_s, g.waits_for
FROM site s JOIN politeness_group g ON g.id = s.group_id;

-- name: regroup_site
UPDATE site SET group_id = (SELECT id FROM politeness_group WHERE name = ?) WHERE id = ?;

-- name: queued_from
-- Queued URLs after a number: (last number, how many).
SELECT u.id, s.name || u.path, u.depth, u.seed OR u.kind <> 'page' FROM url u JOIN site s ON s.id = site_of(u.id)
WHERE u.id > ? AND u.state = 'queued' ORDER BY u.id LIMIT ?;

-- name: visit_group
-- One request of this worker goes to a group that no other one has: (worker, group, worker, worker).
UPDATE politeness_group SET visited_by = ? WHERE name = ?
  AND (claimed_by IS NULL OR claimed_by = ?) AND (visited_by IS NULL OR visited_by = ?) RETURNING id;

-- name: keep_longer_pauses
-- A run with a longer least pause than the last one's holds to it from the first request on: (pause).
UPDATE politeness_group SET next_at = next_at - pause_s + ?1, pause_s = ?1 WHERE pause_s < ?1 AND next_at > 0
RETURNING id;

-- name: counts
-- In one statement, for a crawl may go on meanwhile. Of states by the index url_out alone: a count of all would sort them.
SELECT (SELECT count(*) FROM url), (SELECT count(*) FROM frontier),
  (SELECT json_group_object(state, n) FROM
    (SELECT state, count(*) AS n FROM url WHERE state IN ('redirected', 'excluded', 'failed') GROUP BY state)),
  (SELECT count(*) FROM page), (SELECT count(*) FROM link), (SELECT count(*) FROM request), (SELECT count(*) FROM site);

-- name: last_settings
SELECT CASE WHEN EXISTS (SELECT 1 FROM unsettled) THEN '{}' ELSE settings END FROM run
WHERE id <> ? AND json_extract(settings, '$.auxiliary_run') IS NULL ORDER BY id DESC LIMIT 1;

-- name: take_up_pages
-- Pages that are not up for revisits yet: (revisit.first, T of a page that is due after it, tempo of STATIC, tempo of
-- DYNAMIC, least pause). The usual tempo is 1.
INSERT INTO revisit (url_id, due_at, not_before, checked_at, watched_s, why)
SELECT url_id, fetched_at + ?1 * tempo, fetched_at + ?5, fetched_at, ?2 * tempo, 'its first revisit' FROM (
  SELECT p.url_id, p.fetched_at,
    CASE p.document_state WHEN 'STATIC' THEN ?3 WHEN 'DYNAMIC' THEN ?4 ELSE 1.0 END AS tempo
  FROM page p WHERE p.url_id NOT IN (SELECT url_id FROM revisit));

-- name: take_up_others
-- Redirects, and sitemaps that were there: as take_up_pages, with the time now in place of when they were visited.
INSERT INTO revisit (url_id, due_at, not_before, checked_at, watched_s, why)
SELECT id, ?6 + ?1 * tempo, ?6 + ?5, ?6, ?2 * tempo, 'its first revisit' FROM (
  SELECT id, ?3 AS tempo FROM url  -- by the index url_out
  WHERE state IN ('redirected', 'excluded', 'failed') AND state = 'redirected' AND kind = 'page'
  UNION ALL SELECT id, ?4 FROM url WHERE kind = 'sitemap' AND state IN ('fetched', 'redirected'))
WHERE id NOT IN (SELECT url_id FROM revisit);

-- name: due_revisits
-- What is due, and may be visited by a run that visits nothing twice: (now, not_before at most, only what hints name,
-- checked at before which all is due). A site that reports its changes is not polled meanwhile, but for what was visited
-- before it began to, or could not be reached since.
SELECT r.url_id, r.changes, r.watched_s, r.checked_at, r.hint IS NOT NULL, h.tried, h.changed
FROM revisit r JOIN url u ON u.id = r.url_id
LEFT JOIN hint_record h ON h.site_id = site_of(r.url_id) AND h.source = r.hint
LEFT JOIN (SELECT site.id, t.registered_at FROM rup_server t JOIN site ON site.name = t.site
  WHERE t.silent_at > ?1 AND t.exclude = '[]' AND t.include_only = '[]') told ON told.id = site_of(r.url_id)
WHERE r.due_at <= ?1 AND r.not_before < ?2 AND u.state <> 'queued' AND (r.hint IS NOT NULL OR NOT ?3)
  AND (told.id IS NULL OR r.hint IS NOT NULL OR r.checked_at < max(told.registered_at, ?4)
    OR (r.failures AND u.state <> 'failed'));

-- name: note_states
-- What these URLs were before they are queued again: (JSON list of URL numbers).
UPDATE revisit SET (state, reason_code, reason) = (SELECT u.state, u.reason_code, u.reason FROM url u WHERE u.id = revisit.url_id)
WHERE url_id IN (SELECT value FROM json_each(?));

-- name: queue_again
-- (JSON list of URL numbers, the sentence of revisit_due, the sentence of revisit_hinted)
UPDATE url SET state = 'queued', attempts = 0, (due_at, reason_code, reason) = (
  SELECT r.due_at, iif(r.hint IS NULL, 'revisit_due', 'revisit_hinted'),
    iif(r.hint IS NULL, ?2, replace(?3, '{}', r.hint))
  FROM revisit r WHERE r.url_id = url.id)
WHERE id IN (SELECT value FROM json_each(?1)) AND state <> 'queued';

-- name: budgets
SELECT site_id, paid_until FROM revisit_budget;

-- name: pay
INSERT OR REPLACE INTO revisit_budget (site_id, paid_until) VALUES (?, ?);

-- name: end_revisit
-- How a revisit ended: (due_at, not_before, checked_at or NULL where it told nothing, changes, watched_s, failures, why,
-- etag, last_modified, content, id).
UPDATE revisit SET due_at = ?1, not_before = ?2, checked_at = coalesce(?3, checked_at), changes = ?4, watched_s = ?5,
  failures = ?6, why = ?7, hint = iif(?3 IS NULL, hint, NULL), hinted_at = iif(?3 IS NULL, hinted_at, NULL),
  etag = iif(?3 IS NULL, etag, ?8), last_modified = iif(?3 IS NULL, last_modified, ?9),
  content = iif(?3 IS NULL, content, ?10)
WHERE url_id = ?11;

-- name: record_hint
-- Whether a hint was right: (1 if it was, URL).
INSERT INTO hint_record (site_id, source, tried, changed)
SELECT site_of(url_id), hint, 1, ?1 FROM revisit WHERE url_id = ?2 AND hint IS NOT NULL
ON CONFLICT DO UPDATE SET tried = tried + 1, changed = changed + excluded.changed;

-- name: take_hint
-- Bring a visit forward: (source, at, 1 if its word counts, now, URL, 1 if it was asked to tell: then the least pause
-- between visits does not hold it back). What was seen since is no news.
UPDATE revisit SET hint = ?1, hinted_at = ?2,
  due_at = CASE WHEN ?3 THEN min(due_at, max(?4, iif(?6, 0, not_before))) ELSE due_at END,
  why = CASE WHEN ?3 AND due_at > max(?4, iif(?6, 0, not_before)) THEN 'told of by ' || ?1 ELSE why END
WHERE url_id = ?5 AND checked_at < ?2 AND (hinted_at IS NULL OR hinted_at < ?2) RETURNING url_id;

-- name: failed_for_good
-- Of these URLs, those that never were a page: a hint may know better by now.
SELECT id FROM url WHERE id IN (SELECT value FROM json_each(?)) AND state = 'failed'
  AND id NOT IN (SELECT url_id FROM revisit);

-- name: excluded_of
SELECT id FROM url WHERE id IN (SELECT value FROM json_each(?)) AND state = 'excluded';

-- name: hint_records
SELECT site_id, source, tried, changed FROM hint_record WHERE site_id IN (SELECT value FROM json_each(?));

-- name: back_to
-- A revisit changed nothing: (state, reason code, reason, id). What it leads to stays.
UPDATE url SET state = ?, reason_code = ?, reason = ?, attempts = 0, due_at = 0 WHERE id = ?;

-- name: page_seen
-- (when, etag, last_modified, id)
UPDATE page SET last_seen_at = ?, etag = ?, last_modified = ?, gone_at = NULL WHERE url_id = ?;

-- name: page_gone
UPDATE page SET gone_at = coalesce(gone_at, ?) WHERE url_id = ?;

-- name: ask_whole
UPDATE page SET etag = NULL, last_modified = NULL WHERE url_id = ?;

-- name: keep_version
-- What a page was so far, if there is anything to keep of it.
INSERT OR REPLACE INTO page_version (url_id, version, status, content_type, charset, fetched_at, last_seen_at, title,
  description, keywords, noindex, body_id, body_bytes, text_sha256, etag, last_modified)
SELECT url_id, version, status, content_type, charset, fetched_at, coalesce(last_seen_at, fetched_at), title,
  description, keywords, noindex, body_id, body_bytes, text_sha256, etag, last_modified
FROM page WHERE url_id = ? AND NOT noindex;

-- name: bodies_of
INSERT OR IGNORE INTO body_to_drop SELECT body_id FROM page_version WHERE url_id = ? AND body_id IS NOT NULL;

-- name: blank_versions
-- A page says NOINDEX: nothing is kept of what it said before either.
UPDATE page_version SET title = NULL, description = NULL, keywords = NULL, body_id = NULL, text_sha256 = NULL, noindex = 1
WHERE url_id = ?;

-- name: drop_links
DELETE FROM link WHERE source = ?;

-- name: sweep_bodies
DELETE FROM body WHERE id IN (SELECT body_id FROM body_to_drop)
  AND id NOT IN (SELECT body_id FROM page WHERE body_id IN (SELECT body_id FROM body_to_drop))
  AND id NOT IN (SELECT body_id FROM page_version WHERE body_id IN (SELECT body_id FROM body_to_drop));

-- name: body_of
-- The body of a page, or of one of its versions: (URL, version or NULL).
SELECT b.data FROM (SELECT body_id, version FROM page WHERE url_id = ?1
  UNION ALL SELECT body_id, version FROM page_version WHERE url_id = ?1 AND ?2 IS NOT NULL) v
JOIN body b ON b.id = v.body_id WHERE ?2 IS NULL OR v.version = ?2;

-- name: orders
-- What the operator has asked since an order: (its number).
SELECT id, asked_at, command, name, run_id, done_at FROM control WHERE id > ? ORDER BY id;

-- name: give_order
INSERT INTO control (asked_at, command, name, run_id) VALUES (?, ?, ?, ?);

-- name: queued_on
-- Some queued URLs on sites of these ranges of names: (JSON list of first and last, how many).
SELECT f.url_id FROM json_each(?) r CROSS JOIN site s ON s.name BETWEEN r.value ->> 0 AND r.value ->> 1
JOIN frontier f ON f.site_id = s.id LIMIT ?;

-- name: numbers_on
-- The first and the last number that URLs of a site may have, of sites in these ranges of names, but for those that end
-- before a number: (JSON list, number).
SELECT first_url_of(s.id), last_url_of(s.id) FROM json_each(?) r
CROSS JOIN site s ON s.name BETWEEN r.value ->> 0 AND r.value ->> 1 WHERE s.id >= site_of(?) ORDER BY s.id;

-- name: blocked_within
-- Some URLs that are left out for a reason: (first number, last, reason code, how many). The signs keep SQLite from building
-- an index over all of the table for it.
SELECT id FROM url WHERE id BETWEEN ? AND ? AND +state = 'excluded' AND +reason_code = ? ORDER BY id LIMIT ?;

-- name: beat
INSERT OR REPLACE INTO heartbeat (run_id, pid, seen_at, memory_bytes, lag_s) VALUES (?, ?, ?, ?, ?);

-- name: insert_sample
INSERT INTO sample (url_id, stratum, walk, probability) VALUES (?, ?, ?, ?);

-- name: exclude_not_drawn
-- Of the pages that were held back, those that are not in the sample: (the sentence of the code sample, depth from which
-- they were).
UPDATE url SET state = 'excluded', reason_code = 'sample', reason = ?
WHERE state = 'queued' AND kind = 'page' AND id IN (SELECT url_id FROM frontier WHERE depth >= ?)
  AND id NOT IN (SELECT url_id FROM sample);

-- name: dequeue_not_drawn
DELETE FROM frontier WHERE depth >= ? AND (SELECT state FROM url WHERE id = url_id) <> 'queued';

-- name: leave_not_drawn
-- Of these excluded URLs, those that are not in the sample were only left to chance: (the sentence of the code
-- sample, JSON list of URL numbers).
UPDATE url SET reason_code = 'sample', reason = ?, target = NULL
WHERE id IN (SELECT value FROM json_each(?)) AND id NOT IN (SELECT url_id FROM sample);

-- name: drawn_of
SELECT DISTINCT url_id FROM sample WHERE url_id IN (SELECT value FROM json_each(?));
