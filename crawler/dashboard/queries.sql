-- The statements of the dashboard, over the views of the store.

-- name: last_request
SELECT coalesce(max(request_id), 0) AS request_id FROM requests_by_id

-- name: request_totals
-- The requests of a part of the log, by purpose, status and kind of error. second is that in which a request ended; NULL for requests
-- that ended before :since.
SELECT purpose, status, error_kind, CASE WHEN finished_at >= :since THEN CAST(finished_at AS INTEGER) END AS second,
  count(*) AS requests, sum(bytes) AS bytes
FROM requests_by_id WHERE request_id > :after AND request_id <= :last GROUP BY 1, 2, 3, 4

-- name: run_ends
-- The newest end of the runs with each code.
SELECT ended_code, max(finished_at) AS at FROM runs WHERE finished_at IS NOT NULL GROUP BY ended_code

-- name: site_totals
SELECT count(*) AS sites, coalesce(sum(fetched), 0) AS pages FROM sites_by_id

-- name: ended_urls
-- The URLs that ended otherwise than fetched.
SELECT state, count(*) AS urls FROM urls_by_id WHERE state IN ('redirected', 'excluded', 'failed') GROUP BY state

-- name: group_totals
-- The politeness groups that a worker has claimed, those that wait, and those that are ready.
SELECT count(claimed_by) AS worked_on,
  count(*) FILTER (WHERE claimed_by IS NULL AND ready_at > :now) AS waiting,
  count(*) FILTER (WHERE claimed_by IS NULL AND ready_at <= :now) AS ready
FROM groups_by_id

-- name: sites
-- Sites with queued URLs, in the politeness groups that {groups} selects. queued is counted up to :most_queued.
SELECT s.site, g.politeness_group, g.claimed_by IS NOT NULL AS worked_on, g.pause_s, s.fetched, r.status AS robots, r.failing_since,
  CASE WHEN s.robots_until > :now THEN coalesce(s.robots_needs, nullif(r.note, ''), r.status) END AS robots_problem,
  CASE WHEN s.rests_until > :now THEN 'rest after walls or refusals'
    WHEN g.claimed_by IS NULL AND g.ready_at > g.next_at THEN '' ELSE g.waits_for END AS waits_for,
  g.next_at, s.robots_until, s.rests_until, coalesce(g.ready_at, 0) AS ready_at,
  ({at_limit}) AS at_limit,
  (SELECT count(*) FROM (SELECT 1 FROM frontier_by_id f WHERE f.site_id = s.site_id LIMIT :most_queued) AS q) AS queued
FROM ({groups}) g JOIN sites_by_id s ON s.group_id = g.group_id LEFT JOIN robots_by_id r ON r.robots_copy = s.robots_copy
WHERE EXISTS (SELECT 1 FROM frontier_by_id f WHERE f.site_id = s.site_id) LIMIT :limit

-- name: claimed_groups
SELECT * FROM groups_by_id WHERE claimed_by IS NOT NULL ORDER BY next_at LIMIT :limit

-- name: next_groups
SELECT * FROM groups_by_id WHERE ready_at IS NOT NULL AND claimed_by IS NULL ORDER BY ready_at LIMIT :limit

-- name: last_groups
SELECT * FROM groups_by_id WHERE ready_at > :now AND claimed_by IS NULL ORDER BY ready_at DESC LIMIT :limit

-- name: held_groups
-- Groups with queued URLs that a limit keeps from being claimed.
SELECT * FROM groups_by_id h WHERE ready_at IS NULL AND claimed_by IS NULL AND EXISTS (
  SELECT 1 FROM sites_by_id y JOIN frontier_by_id f ON f.site_id = y.site_id WHERE y.group_id = h.group_id) LIMIT :limit
