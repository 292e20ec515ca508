-- The statements of status and why, over the views of the store.

-- name: at_limit
-- The condition that a limit keeps all queued URLs of the site s, of the group g, from being claimed: the draw of a
-- sample, or the limit on its pages. pages_per_site is that of the last run.
(g.ready_at IS NULL AND g.claimed_by IS NULL) OR (s.fetched >= coalesce(s.max_pages, :pages_per_site)
  AND NOT EXISTS (SELECT 1 FROM frontier_by_id f WHERE f.site_id = s.site_id AND f.is_revisit = 1))

-- name: largest_sites
-- The sites that were asked for their robots.txt or have URLs queued, those with the most queued URLs first.
SELECT v.*, v.queued > 0 AND ({at_limit}) AS at_limit
FROM sites v JOIN groups_by_id g ON g.politeness_group = v.politeness_group JOIN sites_by_id s ON s.site = v.site
WHERE v.robots_status IS NOT NULL OR v.queued > 0
ORDER BY v.queued DESC, v.fetched DESC, v.site LIMIT :limit

-- name: refusing_sites
-- The sites that answer by walls or refusals: those that are closed, then those that rest.
SELECT site, rest_count, rests_until, closed_at, next_at, robots_status, robots_action FROM sites WHERE rest_count > 0 OR robots_status = 'wall'
ORDER BY CASE WHEN closed_at IS NOT NULL OR robots_action = 'given_up' THEN 0 ELSE 1 END, site LIMIT :limit

-- name: site
SELECT v.*, v.queued > 0 AND ({at_limit}) AS at_limit
FROM sites v JOIN groups_by_id g ON g.politeness_group = v.politeness_group JOIN sites_by_id s ON s.site = v.site
WHERE v.site = :site

-- name: count_asked_sites
-- The sites that were asked for their robots.txt.
SELECT count(*) AS sites FROM sites_by_id WHERE robots_copy IS NOT NULL

-- name: reasons
-- The URLs in a state by reason, the most frequent first.
SELECT reason_code, count(*) AS urls FROM urls_by_id WHERE state = :state
GROUP BY reason_code ORDER BY urls DESC, reason_code

-- name: workers
-- The workers of a run: first those at work, then those that have ended.
SELECT worker, host, pid, started_at, seen_at, lease_until, ended_at, ended_code, ended_by, pages, requests, groups_held
FROM workers WHERE run_id = :run_id ORDER BY ended_at IS NOT NULL, worker LIMIT :limit

-- name: url
SELECT v.state, v.reason_code, v.reason, v.depth, v.attempts, v.seed, u.due_at, v.kind, v.lastmod, v.target
FROM urls v JOIN urls_by_id u ON u.url_id = v.url_id WHERE v.url_id = :url_id

-- name: step
-- A URL on the way of redirects, mirrors and canonical URLs, and the next one. A URL that is requested again and has no
-- page, such as the first address of a domain whose addresses are tried again, leads nowhere yet.
SELECT v.url, v.state, v.reason_code, v.reason,
  CASE WHEN u.state = 'queued' AND p.url_id IS NULL THEN NULL ELSE u.target_id END AS target_id
FROM urls v JOIN urls_by_id u ON u.url_id = v.url_id LEFT JOIN pages_by_id p ON p.url_id = v.url_id
WHERE v.url_id = :url_id

-- name: first_links_to
-- The first links to a URL, in the order of the linking pages. No index serves this: it scans the links.
SELECT s.site || u.path AS url, l.anchor, l.rel
FROM (SELECT source_id, anchor, rel FROM links_by_id WHERE target_id = :url_id ORDER BY source_id LIMIT :limit) l
JOIN urls_by_id u ON u.url_id = l.source_id JOIN sites_by_id s ON s.site_id = u.site_id ORDER BY l.source_id

-- name: count_links_to
SELECT count(*) AS links FROM links_by_id WHERE target_id = :url_id

-- name: page
SELECT status, content_type, charset, fetched_at, title, description, keywords, canonical_url, meta_url, document_state,
  noindex, nofollow, body_bytes, etag, last_modified, other_schemes, directives, note, version, last_seen_at, gone_at,
  text_sha256
FROM pages_by_id WHERE url_id = :url_id

-- name: preferences
-- The preferences about use in a page and its headers.
SELECT scheme, category, value, source, line, text FROM preferences WHERE url_id = :url_id AND source <> 'robots.txt'

-- name: requests
SELECT purpose, started_at, finished_at, status, error_kind, error, bytes, robots_version, verdict_line
FROM requests WHERE site = :site AND url = :url ORDER BY started_at

-- name: mirror
SELECT main_site, leads_to, evidence, sample, confidence, contradiction FROM mirrors WHERE site = :site

-- name: robots
-- The robots.txt in force at a site.
SELECT t.sha256 AS version_sha256, r.fetched_at, r.valid_until, r.status, r.action, r.note, t.body
FROM sites_by_id s JOIN robots_by_id r ON r.robots_copy = s.robots_copy
LEFT JOIN robots_texts_by_id t ON t.text_id = r.text_id
WHERE s.site = :site

-- name: robots_text
-- The text of the robots.txt in force at a site, unless it has more octets than :most.
SELECT t.body
FROM sites_by_id s JOIN robots_by_id r ON r.robots_copy = s.robots_copy
JOIN robots_texts_by_id t ON t.text_id = r.text_id
WHERE s.site = :site AND length(t.body) <= :most

-- name: revisit
SELECT due_at, checked_at, changes, watched_s, failures, hint, hinted_at, why FROM revisits_by_id WHERE url_id = :url_id

-- name: versions
-- The newest versions of a page.
SELECT version, fetched_at, last_seen_at, status, body_sha256, text_sha256
FROM page_versions WHERE url_id = :url_id ORDER BY version DESC LIMIT :limit

-- name: count_revisits
-- The URLs that are revisited, how many of them are queued and how many more are due, and the time of the next revisit.
SELECT count(*) AS known, count(f.url_id) AS queued, count(*) FILTER (WHERE r.due_at <= :now AND f.url_id IS NULL) AS due,
  min(r.due_at) FILTER (WHERE f.url_id IS NULL) AS next_at
FROM revisits_by_id r LEFT JOIN frontier_by_id f ON f.url_id = r.url_id AND f.is_revisit = 1

-- name: refused_front_pages
-- The seeds and front pages that a robots.txt closed, those of one site together.
SELECT s.site, u.path FROM urls_by_id u JOIN sites_by_id s ON s.site_id = u.site_id
WHERE u.state = 'excluded' AND u.reason_code = 'robots' AND (u.seed = 1 OR u.path = '/')
ORDER BY u.url_id LIMIT :limit

-- name: frame_waits
-- The sites with URLs nearer than the pages that are held back for a sample, those with the most such URLs first.
SELECT s.site, count(*) AS urls FROM frontier_by_id f JOIN sites_by_id s ON s.site_id = f.site_id
WHERE f.depth < :held_from GROUP BY s.site ORDER BY urls DESC, s.site LIMIT :limit

-- name: count_frame_waits
SELECT count(DISTINCT site_id) AS sites FROM frontier_by_id WHERE depth < :held_from

-- name: last_answer
-- When a page or sitemap was last answered by more than a temporary failure.
SELECT max(finished_at) AS at FROM requests_by_id WHERE purpose <> 'robots' AND status < 500 AND status <> 429

-- name: runs_since_draw
-- The runs that began after the last draw, the last one first.
SELECT started_at, settings FROM runs
WHERE started_at > coalesce((SELECT max(drawn_at) FROM sample_draws), 0) ORDER BY run_id DESC

-- name: backlogs
-- The politeness groups with queued URLs that no limit holds back, those that need longest first. queued is the sum over
-- the group's sites, at most :per_site pages each, those fetched included; revisits are not limited, and count in full.
-- room is the number of pages that the limit still lets through on these sites, with URLs that are not known yet.
-- waits_until is that of the first site. If the robots.txt of every site is awaited, failing_since is that of the first.
SELECT g.politeness_group AS name, g.next_at, g.pause_s, g.usual_s, max(s.crawl_delay_s) AS crawl_delay_s,
  sum(CASE WHEN f.queued - f.revisits <= coalesce(s.max_pages, :per_site) - s.fetched THEN f.queued
    WHEN s.fetched < coalesce(s.max_pages, :per_site) THEN coalesce(s.max_pages, :per_site) - s.fetched + f.revisits
    ELSE f.revisits END) AS queued,
  sum(1.0 * (CASE WHEN s.fetched < coalesce(s.max_pages, :per_site) THEN coalesce(s.max_pages, :per_site) - s.fetched
    ELSE 0 END + f.revisits)) AS room,
  count(*) AS sites, max(f.last_due_at) AS last_due_at, min(f.first_due_at) AS first_due_at,
  min(CASE WHEN s.robots_until > s.rests_until THEN s.robots_until ELSE s.rests_until END) AS waits_until,
  CASE WHEN min(s.robots_until) > :now THEN min(coalesce(r.failing_since, r.fetched_at)) END AS failing_since,
  max(r.status) AS robots_status
FROM (SELECT site_id, count(*) AS queued, sum(is_revisit) AS revisits, max(due_at) AS last_due_at,
    min(due_at) AS first_due_at
  FROM frontier_by_id GROUP BY site_id) f
JOIN sites_by_id s ON s.site_id = f.site_id JOIN groups_by_id g ON g.group_id = s.group_id
LEFT JOIN robots_by_id r ON r.robots_copy = s.robots_copy
WHERE g.ready_at IS NOT NULL OR g.claimed_by IS NOT NULL
GROUP BY g.group_id, g.politeness_group, g.next_at, g.pause_s, g.usual_s
ORDER BY sum(f.queued) * (g.pause_s + g.usual_s + 1) + CASE WHEN g.next_at > :now THEN g.next_at - :now ELSE 0 END DESC
LIMIT :limit

-- name: urls_by_depth
-- The URLs by depth: queued, answered, and refused when their turn came, without a request. A URL that is queued for a
-- revisit was answered: its links are known.
SELECT depth, count(*) FILTER (WHERE state = 'queued' AND reason_code NOT IN ('revisit_due', 'revisit_hinted')) AS queued,
  count(*) FILTER (WHERE state IN ('fetched', 'redirected', 'failed')
    OR reason_code IN ('type', 'no_sitemap', 'revisit_due', 'revisit_hinted')) AS answered,
  count(*) FILTER (WHERE state = 'excluded' AND reason_code IN ('robots', 'mirror', 'mirror_cycle', 'preference', 'address'))
    AS refused
FROM urls_by_id GROUP BY depth

-- name: crawled_sites
-- The sites with the most pages.
SELECT site FROM sites_by_id WHERE fetched > 0 ORDER BY fetched DESC, site_id LIMIT :limit
