-- The views of both databases. `schema.py` writes out `as_hex(x)`, the bytes x as hexadecimal digits or NULL, and
-- `latest(x, y)`, the greater of times, and `elements(x)`, the elements of a JSON list as rows with the column `value`.
-- `keys.py` writes out `site_of(x)` and the like.

-- ---- views for users (docs/store.md)

CREATE VIEW runs AS
  SELECT id AS run_id, started_at, finished_at, ended_code, ended_by, crawler_version, settings, worst_lag_s,
         pages_before
  FROM run;

CREATE VIEW urls AS
  SELECT s.name || u.path AS url, s.name AS site, u.state, u.reason_code, u.reason, u.depth,
         fs.name || f.path AS discovered_from,
         CASE WHEN u.state = 'queued' THEN latest(u.due_at, s.robots_until, s.rests_until, g.next_at) END AS next_at,
         ts.name || t.path AS target, u.attempts, u.seed, u.kind, u.lastmod, u.id AS url_id
  FROM url u
  LEFT JOIN site s ON s.id = site_of(u.id)
  LEFT JOIN url f ON f.id = u.found_on LEFT JOIN site fs ON fs.id = site_of(u.found_on)
  LEFT JOIN url t ON t.id = u.target LEFT JOIN site ts ON ts.id = site_of(u.target)
  LEFT JOIN politeness_group g ON g.id = s.group_id;

CREATE VIEW pages AS
  SELECT s.name || u.path AS url, p.status, p.content_type, p.fetched_at, u.depth,
         p.title, p.description, p.keywords, p.canonical_url, p.document_state,
         p.noindex, p.nofollow, as_hex(b.sha256) AS body_sha256, p.body_bytes,
         s.name AS site, p.charset, p.meta_url, p.etag, p.last_modified, p.other_schemes, p.directives, p.note,
         p.url_id, p.version, coalesce(p.last_seen_at, p.fetched_at) AS last_seen_at, p.gone_at,
         as_hex(p.text_sha256) AS text_sha256, o.said AS preferences, r.said AS robots_preferences,
         p.language, s.host, s.registered_domain, a.headers, a.address, a.tls_version, n.cluster_id, p.soft_404
  FROM page p JOIN url u ON u.id = p.url_id JOIN site s ON s.id = site_of(p.url_id)
  LEFT JOIN body b ON b.id = p.body_id
  LEFT JOIN preference_set o ON o.id = p.preferences_id
  LEFT JOIN preference_set r ON r.id = p.robots_preferences_id
  LEFT JOIN answer a ON a.id = p.answer_id
  LEFT JOIN near_duplicate n ON n.url_id = p.url_id AND p.body_id IS NOT NULL;

-- The hosts of the scripts, images, style sheets and frames that pages name, with store.resources.
CREATE VIEW resources AS
  SELECT s.name || u.path AS url, e.value ->> 'kind' AS kind, e.value ->> 'host' AS host,
         e.value ->> 'registered_domain' AS registered_domain, CAST(e.value ->> 'times' AS INT) AS times,
         s.name AS site, p.url_id
  FROM page p JOIN url u ON u.id = p.url_id JOIN site s ON s.id = site_of(p.url_id)
  CROSS JOIN elements(p.resources) e
  WHERE p.resources IS NOT NULL;

-- The preferences about use of each page, by the page itself and by the robots.txt in force at its last visit.
CREATE VIEW preferences AS
  SELECT n.url_id, e.value ->> 'scheme' AS scheme, e.value ->> 'category' AS category, e.value ->> 'value' AS value,
         e.value ->> 'source' AS source, CAST(e.value ->> 'line' AS INT) AS line, e.value ->> 'text' AS text,
         n.said_at, s.name || u.path AS url, s.name AS site
  FROM (
    SELECT url_id, preferences_id AS set_id, coalesce(last_seen_at, fetched_at) AS said_at
    FROM page WHERE preferences_id IS NOT NULL
    UNION ALL
    SELECT url_id, robots_preferences_id, coalesce(last_seen_at, fetched_at)
    FROM page WHERE robots_preferences_id IS NOT NULL) n
  JOIN preference_set p ON p.id = n.set_id
  JOIN url u ON u.id = n.url_id JOIN site s ON s.id = site_of(n.url_id)
  CROSS JOIN elements(p.said) e;

-- The same of the earlier versions of each page.
CREATE VIEW version_preferences AS
  SELECT n.url_id, n.version, e.value ->> 'scheme' AS scheme, e.value ->> 'category' AS category,
         e.value ->> 'value' AS value, e.value ->> 'source' AS source, CAST(e.value ->> 'line' AS INT) AS line,
         e.value ->> 'text' AS text, n.said_at, s.name || u.path AS url, s.name AS site
  FROM (
    SELECT url_id, version, preferences_id AS set_id, last_seen_at AS said_at
    FROM page_version WHERE preferences_id IS NOT NULL
    UNION ALL
    SELECT url_id, version, robots_preferences_id, last_seen_at
    FROM page_version WHERE robots_preferences_id IS NOT NULL) n
  JOIN preference_set p ON p.id = n.set_id
  JOIN url u ON u.id = n.url_id JOIN site s ON s.id = site_of(n.url_id)
  CROSS JOIN elements(p.said) e;

CREATE VIEW page_versions AS
  SELECT s.name || u.path AS url, v.version, v.fetched_at, v.last_seen_at, v.status, v.content_type, v.charset,
         v.title, v.description, v.keywords, v.noindex, as_hex(b.sha256) AS body_sha256, v.body_bytes,
         as_hex(v.text_sha256) AS text_sha256, v.etag, v.last_modified, v.gone_at,
         s.name AS site, v.url_id, v.language, a.headers, a.address, a.tls_version
  FROM (
    SELECT url_id, version, fetched_at, last_seen_at, status, content_type, charset, title, description, keywords,
           noindex, body_id, body_bytes, text_sha256, etag, last_modified, CAST(NULL AS double precision) AS gone_at,
           language, answer_id
    FROM page_version
    UNION ALL
    SELECT url_id, version, fetched_at, coalesce(last_seen_at, fetched_at), status, content_type, charset, title,
           description, keywords, noindex, body_id, body_bytes, text_sha256, etag, last_modified, gone_at,
           language, answer_id
    FROM page) v
  JOIN url u ON u.id = v.url_id JOIN site s ON s.id = site_of(v.url_id) LEFT JOIN body b ON b.id = v.body_id
  LEFT JOIN answer a ON a.id = v.answer_id;

CREATE VIEW links AS
  SELECT ss.name || su.path AS source, ts.name || tu.path AS target, l.anchor, l.rel,
         l.source AS source_id, l.target AS target_id
  FROM link l
  JOIN url su ON su.id = l.source JOIN site ss ON ss.id = site_of(l.source)
  JOIN url tu ON tu.id = l.target JOIN site ts ON ts.id = site_of(l.target);

CREATE VIEW sites AS
  SELECT s.name AS site, s.main_site, r.status AS robots_status, r.valid_until AS robots_expires_at,
         s.crawl_delay_s, g.pause_s AS delay_s, latest(g.next_at, s.robots_until, s.rests_until) AS next_at,
         (SELECT count(*) FROM frontier f WHERE f.site_id = s.id) AS queued, s.fetched,
         r.action AS robots_action, r.note AS robots_note, g.name AS politeness_group,
         CASE latest(g.next_at, s.robots_until, s.rests_until) WHEN g.next_at THEN g.wait_code
           WHEN s.rests_until THEN 'wall' ELSE 'robots' END AS wait_code,
         CASE latest(g.next_at, s.robots_until, s.rests_until) WHEN g.next_at THEN g.waits_for
           WHEN s.rests_until THEN 'rest after walls or refusals' ELSE 'robots.txt: ' || coalesce(s.robots_needs, nullif(r.note, ''), r.status) END AS waits_for,
         s.host, s.registered_domain, s.rest_count,
         nullif(s.rests_until, 0) AS rests_until, s.closed_at
  FROM site s JOIN politeness_group g ON g.id = s.group_id LEFT JOIN robots_copy r ON r.id = s.robots_id;

-- Consecutive answers that mean the same are one version.
CREATE VIEW robots_versions AS
  WITH answer AS (
    SELECT *, row_number() OVER (PARTITION BY site_id ORDER BY id)
            - row_number() OVER (PARTITION BY site_id, action, text_id ORDER BY id) AS island
    FROM robots_copy),
  version AS (
    SELECT site_id, text_id, min(fetched_at) AS fetched_at, min(valid_from) AS valid_from,
      max(valid_until) AS valid_until, max(id) AS last, max(fetched_at) AS confirmed_at
    FROM answer GROUP BY site_id, action, text_id, island)
  SELECT s.name AS site, as_hex(t.sha256) AS version_sha256, v.fetched_at, v.valid_from, v.valid_until,
         r.status, t.body, r.action, r.note, v.last AS robots_copy, v.confirmed_at
  FROM version v JOIN robots_copy r ON r.id = v.last JOIN site s ON s.id = v.site_id
  LEFT JOIN robots_text t ON t.id = v.text_id;

CREATE VIEW robots_answers AS
  SELECT s.name AS site, r.fetched_at, r.valid_from, r.valid_until, r.status, r.action,
         as_hex(t.sha256) AS version_sha256,
         r.answered_by, r.headers, r.retry_at, r.failures, r.failing_since, r.note, r.run_id, r.id AS robots_copy
  FROM robots_copy r JOIN site s ON s.id = r.site_id LEFT JOIN robots_text t ON t.id = r.text_id;

-- leads_to is the end of the chain of Host lines; NULL if the chain is a circle or longer than 16 sites. A Host line that
-- was contradicted (evidence 'refuted') leads nowhere.
CREATE VIEW mirrors AS
  WITH RECURSIVE chain (site, leads_to, n) AS (
    SELECT site, main_site, 1 FROM mirror WHERE evidence = 'host'
    UNION ALL
    SELECT chain.site, m.main_site, n + 1
    FROM chain JOIN mirror m ON m.site = chain.leads_to AND m.evidence = 'host'
    WHERE n < 16),
  chain_end AS (
    SELECT site, leads_to FROM chain
    WHERE NOT EXISTS (SELECT 1 FROM mirror m WHERE m.site = chain.leads_to AND m.evidence = 'host'))
  SELECT m.site, m.main_site, m.evidence, m.sample, m.confidence, e.leads_to, m.contradiction
  FROM mirror m LEFT JOIN chain_end e ON e.site = m.site AND m.evidence = 'host';

-- The last answer for each file of a site beside robots.txt and its pages.
CREATE VIEW site_files AS
  SELECT s.name AS site, s.name || t.path AS url, t.purpose, t.fetched_at, t.valid_until, t.status, t.note,
         nullif(t.moved_to, '') AS moved_to, t.body
  FROM site_file t JOIN site s ON s.id = t.site_id;

-- Each /llms.txt and /llms-full.txt that a page, a sitemap or a redirect named. The crawler requests none for its own sake.
CREATE VIEW llms_txt AS
  SELECT s.name || u.path AS url, s.name AS site, u.state, u.reason_code, p.status, p.content_type, p.fetched_at,
         p.body_bytes, as_hex(b.sha256) AS body_sha256, u.id AS url_id
  FROM url u JOIN site s ON s.id = site_of(u.id) LEFT JOIN page p ON p.url_id = u.id LEFT JOIN body b ON b.id = p.body_id
  WHERE u.path IN ('/llms.txt', '/llms-full.txt');

CREATE VIEW agent_servers AS
  SELECT s.name AS site, a.path, a.agent_server, a.line FROM agent_server a JOIN site s ON s.id = a.site_id;

CREATE VIEW requests AS
  SELECT s.name || q.path AS url, s.name AS site, q.purpose, q.started_at, q.finished_at, q.status, q.error_kind,
         q.error, q.bytes, as_hex(t.sha256) AS robots_version, q.verdict_line, q.retry_after_s,
         q.run_id, q.robots_id AS robots_copy, q.lag_s, c.version AS tls_version, c.cipher AS tls_cipher,
         c.certificate_until, q.address, q.price, was_sent(q.error_kind) AS sent
  FROM request q JOIN site s ON s.id = q.site_id
  LEFT JOIN robots_copy r ON r.id = q.robots_id LEFT JOIN robots_text t ON t.id = r.text_id
  LEFT JOIN tls c ON c.id = q.tls_id;

-- The links between contents: the main site's URL stands for a mirror's URL, the canonical URL for a duplicate if it was
-- fetched, the end of a chain for each of its URLs. A chain that is a circle or longer than 16 steps is left as it is. A mirror's URL
-- that was never requested is mapped by the mirror's Host line alone, if some URL of the mirror has a target: then the
-- crawl knows a URL of the main site.
CREATE VIEW links_glued AS
  WITH RECURSIVE step AS MATERIALIZED (
    SELECT u.id, u.target FROM url u JOIN url t ON t.id = u.target
    WHERE u.state = 'excluded' OR (u.state = 'fetched' AND (
      t.state = 'fetched' OR (t.state = 'excluded' AND t.target IS NOT NULL)))),
  way (id, main_id, n) AS (
    SELECT id, target, 1 FROM step
    UNION ALL
    SELECT way.id, step.target, n + 1 FROM way JOIN step ON step.id = way.main_id WHERE n < 16),
  glued AS MATERIALIZED (SELECT id, main_id FROM way WHERE main_id NOT IN (SELECT id FROM step)),
  folded AS MATERIALIZED (
    SELECT s.id, m.leads_to FROM mirrors m JOIN site s ON s.name = m.site
    WHERE m.leads_to IS NOT NULL AND EXISTS (
      SELECT 1 FROM url u WHERE u.id BETWEEN first_url_of(s.id) AND last_url_of(s.id)
        AND u.state = 'excluded' AND u.target IS NOT NULL))
  SELECT coalesce(sf.leads_to, ss.name) || su.path AS source, coalesce(tf.leads_to, ts.name) || tu.path AS target,
         max(l.anchor) AS anchor, max(l.rel) AS rel
  FROM link l
  LEFT JOIN glued sg ON sg.id = l.source LEFT JOIN glued tg ON tg.id = l.target
  JOIN url su ON su.id = coalesce(sg.main_id, l.source) JOIN url tu ON tu.id = coalesce(tg.main_id, l.target)
  JOIN site ss ON ss.id = site_of(su.id) JOIN site ts ON ts.id = site_of(tu.id)
  LEFT JOIN folded sf ON sf.id = ss.id LEFT JOIN folded tf ON tf.id = ts.id
  GROUP BY 1, 2;

CREATE VIEW ranks AS
  SELECT s.name || u.path AS url, r.pagerank, r.in_links, r.in_sites, r.url_id, s.name AS site
  FROM rank r JOIN url u ON u.id = r.url_id JOIN site s ON s.id = r.site_id;

CREATE VIEW site_ranks AS
  SELECT s.name AS site, r.pagerank, r.pages, r.in_links, r.in_sites
  FROM site_rank r JOIN site s ON s.id = r.site_id;

-- As `crawler duplicates` last computed it, without pages that have no text any more.
CREATE VIEW near_duplicates AS
  SELECT s.name || u.path AS url, t.name || c.path AS representative, n.similarity, n.cluster_id, n.url_id,
         s.name AS site
  FROM near_duplicate n JOIN page p ON p.url_id = n.url_id AND p.body_id IS NOT NULL
  JOIN url u ON u.id = n.url_id JOIN site s ON s.id = site_of(n.url_id)
  JOIN url c ON c.id = n.cluster_id JOIN site t ON t.id = site_of(n.cluster_id);

-- One row per seed, with what became of it at the end of its redirects, and one per line of a list that was no URL
-- (`skipped`; url is its text). `outcome` is a code of crawler/inspect/seeds.py; leads_to is NULL if the seed leads nowhere else; pages are those of the site at the end.
CREATE VIEW seeds AS
  WITH RECURSIVE way (seed_id, end_id, n) AS (
    SELECT id, id, 0 FROM url WHERE seed = 1 AND hops = 0
    UNION ALL
    SELECT w.seed_id, u.target, w.n + 1 FROM way w JOIN url u ON u.id = w.end_id
    WHERE w.n < 16 AND u.target IS NOT NULL
      AND (u.state = 'redirected' OR u.reason_code IN ('mirror', 'refresh', 'other_address'))),
  longest AS (SELECT seed_id, max(n) AS n FROM way GROUP BY seed_id)
  SELECT ss.name || su.path AS url, ss.name AS site,
         CASE
           WHEN u.state = 'fetched' OR (u.state = 'queued' AND p.url_id IS NOT NULL) THEN
             CASE WHEN u.reason_code IN ('noindex', 'withheld', 'not_kept', 'unread') THEN 'not_kept' ELSE 'fetched' END
           WHEN u.state = 'queued' OR u.reason_code = 'frame' THEN
             CASE WHEN u.state = 'queued' AND g.ready_at IS NULL AND g.claimed_by IS NULL THEN 'held_back'
               WHEN r.action IN ('defer', 'given_up') AND r.status = 'dns_no_name' THEN 'no_such_host'
               WHEN r.action IN ('defer', 'given_up') AND r.status IN ('dns', 'dns_failed', 'dns_timeout', 'connect', 'tls', 'timeout')
                 THEN 'silent'
               WHEN r.action IN ('defer', 'given_up') AND r.status = 'wall' THEN 'walled'
               WHEN r.action = 'given_up' THEN 'bad_answer'
               WHEN r.action = 'defer' THEN 'deferred'
               WHEN u.state = 'queued' THEN 'waits'
               ELSE 'not_reached' END
           WHEN u.state = 'redirected' OR u.reason_code IN ('redirects', 'bad_redirect', 'redirect_circle', 'mirror_cycle')
             THEN 'redirects'
           WHEN u.reason_code = 'scope' AND w.n > 0 THEN 'left_scope'
           WHEN u.reason_code IN ('robots', 'preference') THEN 'closed'
           WHEN u.reason_code IN ('wall', 'refused_at_the_edge', 'payment_required') THEN 'walled'
           WHEN u.reason_code = 'type' THEN 'other_type'
           WHEN u.reason_code IN ('address', 'port', 'contact') THEN 'refused_address'
           WHEN u.reason_code = 'blocked' THEN 'blocked'
           WHEN u.reason_code = 'forgotten' THEN 'forgotten'
           WHEN u.reason_code = 'sample' THEN 'not_drawn'
           WHEN u.reason_code = 'other_bucket' THEN 'elsewhere'
           WHEN u.state = 'excluded' THEN 'out_of_scope'
           WHEN u.reason_code IN ('no_name', 'no_address') THEN 'no_such_host'
           WHEN u.reason_code = 'robots_given_up' AND r.status IN ('dns', 'dns_no_name') THEN 'no_such_host'
           WHEN u.reason_code = 'robots_given_up' AND r.status NOT IN ('dns_failed', 'dns_timeout', 'connect', 'tls', 'timeout')
             THEN 'bad_answer'
           WHEN u.reason_code IN ('tls', 'certificate') THEN 'certificate'
           WHEN u.reason_code IN ('not_found', 'gone', 'no_document') THEN 'not_found'
           WHEN u.reason_code IN ('client_error', 'server_error', 'truncated', 'protocol', 'encoding', 'too_large', 'fault')
             THEN 'bad_answer'
           ELSE 'silent'
         END AS outcome,
         CASE WHEN w.n > 0 THEN s.name || u.path END AS leads_to, u.state,
         CASE WHEN u.state = 'queued' AND r.action = 'given_up' THEN 'robots_given_up' ELSE u.reason_code END AS reason_code,
         CASE WHEN u.state = 'queued' AND r.action = 'given_up' THEN r.status ELSE u.reason END AS reason, s.fetched AS pages,
         CASE WHEN u.state IN ('failed', 'queued') OR u.reason_code = 'frame' THEN coalesce(r.failing_since, p.gone_at) END AS failing_since,
         CASE WHEN (u.state = 'queued' OR u.reason_code = 'frame') AND r.action = 'defer' THEN coalesce(nullif(r.note, ''), r.status) END
           AS robots_problem,
         CASE WHEN (u.state = 'queued' OR u.reason_code = 'frame') AND r.action = 'defer' THEN r.failures END AS robots_attempts,
         CASE WHEN u.state = 'queued' THEN latest(u.due_at, s.robots_until, s.rests_until, g.next_at) END AS next_at,
         ss.registered_domain, s.registered_domain AS leads_to_domain, w.seed_id AS url_id,
         CAST(NULL AS TEXT) AS source, CAST(NULL AS BIGINT) AS line, CAST(NULL AS TEXT) AS meant
  FROM longest l JOIN way w ON w.seed_id = l.seed_id AND w.n = l.n
  JOIN url su ON su.id = w.seed_id JOIN site ss ON ss.id = site_of(w.seed_id)
  JOIN url u ON u.id = w.end_id JOIN site s ON s.id = site_of(w.end_id)
  JOIN politeness_group g ON g.id = s.group_id
  LEFT JOIN page p ON p.url_id = w.end_id LEFT JOIN robots_copy r ON r.id = s.robots_id
  UNION ALL
  SELECT text, NULL, 'skipped', NULL, NULL, NULL, reason, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, source, line,
         nullif(meant, '')
  FROM skipped_seed;

-- For each drawn URL the URL that stands for it: if the draw follows them, that at the end of its redirects, instant refreshes
-- and other addresses of its domain. A redirect to a URL that the crawl does not fetch counts as a redirect, unless the operator has
-- blocked or forgotten it.
CREATE VIEW sample_ends_by_id AS
  WITH RECURSIVE way (url_id, end_id, n) AS (
    SELECT DISTINCT url_id, url_id, 0 FROM sample
    UNION ALL
    SELECT w.url_id, t.id, w.n + 1
    FROM way w JOIN url u ON u.id = w.end_id JOIN url t ON t.id = u.target CROSS JOIN sample_draw f
    WHERE f.discarded_at IS NULL AND f.follows = 1 AND w.n < 32 AND (u.state = 'redirected' OR u.reason_code IN ('mirror', 'mirror_cycle', 'refresh', 'other_address'))
      AND (t.state <> 'excluded'
        OR t.reason_code IN ('robots', 'mirror', 'mirror_cycle', 'type', 'other_address', 'blocked', 'forgotten'))),
  ends AS (SELECT url_id, end_id, row_number() OVER (PARTITION BY url_id ORDER BY n DESC) AS back FROM way)
  SELECT url_id, end_id FROM ends WHERE back = 1;

-- page_id is the page that answered for the drawn URL: see sample_ends_by_id.
CREATE VIEW samples AS
  SELECT s.name || u.path AS url, s.name AS site, a.stratum, a.probability, a.site_probability, d.method, a.walk, u.state, u.reason_code,
         u.reason, a.draw, a.url_id, p.url_id AS page_id
  FROM sample_draw d CROSS JOIN sample a JOIN url u ON u.id = a.url_id JOIN site s ON s.id = site_of(a.url_id)
  JOIN sample_ends_by_id e ON e.url_id = a.url_id LEFT JOIN page p ON p.url_id = e.end_id
  WHERE d.discarded_at IS NULL;

-- The sampling frame from which the last sample was drawn; empty if the frame was a list of seeds.
CREATE VIEW sample_frame AS
  SELECT s.name || u.path AS url, s.name AS site, f.url_id
  FROM frame_url f JOIN url u ON u.id = f.url_id JOIN site s ON s.id = site_of(f.url_id);

CREATE VIEW revisits AS
  SELECT s.name || u.path AS url, r.due_at, r.checked_at, r.changes, r.watched_s, r.why, r.hint, r.hinted_at,
         r.failures, u.state, u.kind, s.name AS site, r.url_id
  FROM revisit r JOIN url u ON u.id = r.url_id JOIN site s ON s.id = site_of(r.url_id);

CREATE VIEW rup_offers AS
  SELECT site, url, found_at, cgi, authentifier, latencies, exclude, include_only, max_query_span FROM rup_offer;

CREATE VIEW rup_servers AS
  SELECT s.site, s.cgi, s.email, s.latency, s.exclude, s.include_only, s.registered_at, s.sequence_number,
         nullif(s.heard_at, 0) AS heard_at, latest(s.good_until, s.registered_at) AS known_until,
         nullif(s.silent_at, 0) AS silent_at,
         CASE WHEN s.given_up <> '' THEN 'given_up' WHEN s.key = '' THEN 'unclear' WHEN s.unreached <> '' THEN 'unreached'
              WHEN s.question <> '' THEN 'to_be_asked' WHEN s.quiet > 0 THEN 'quiet' ELSE 'reports' END AS state_code,
         CASE WHEN s.given_up <> '' THEN s.given_up WHEN s.key = '' THEN ''
              WHEN s.unreached <> '' THEN s.unreached ELSE s.question END AS state_detail,
         (SELECT count(*) FROM rup_mail m WHERE m.site = s.site AND m.verdict_code = 'taken') AS reports,
         (SELECT count(*) FROM rup_mail m WHERE m.site = s.site AND m.verdict_code <> 'taken') AS ignored,
         (SELECT coalesce(sum(m.changes), 0) FROM rup_mail m WHERE m.site = s.site) AS changes,
         (SELECT coalesce(sum(m.refused), 0) FROM rup_mail m WHERE m.site = s.site) AS refused
  FROM rup_server s;

CREATE VIEW rup_mails AS SELECT taken_at, site, sequence_number, verdict_code, verdict, changes, refused FROM rup_mail;

CREATE VIEW workers AS
  SELECT w.id AS worker, w.run_id, w.host, w.pid, w.started_at, w.seen_at, w.lease_until, w.ended_at,
         w.ended_code, w.ended_by, w.pages, w.requests,
         (SELECT count(*) FROM politeness_group g
          WHERE g.claimed_by = w.id) AS groups_held
  FROM worker w;

CREATE VIEW orders AS SELECT id AS order_id, asked_at, command, name, run_id, done_at, because FROM control;

-- ---- views by number
--
-- One row per row of a table, without a join: for reports over the whole crawl. They hide how numbers are packed:
-- site_id is the number of a URL's site, first_url_id and last_url_id bound the URLs of a site, and the URL of the same
-- path on another site is about first_url_id + path_hash of that site (compare the paths).

CREATE VIEW urls_by_id AS
  SELECT id AS url_id, site_of(id) AS site_id, path_hash_of(id) AS path_hash, path, state, reason_code, reason, depth,
         found_on AS found_on_id, target AS target_id, attempts, hops, due_at, seed, kind, lastmod
  FROM url;

CREATE VIEW frontier_by_id AS SELECT url_id, site_id, due_at, depth, is_revisit FROM frontier;

CREATE VIEW pages_by_id AS
  SELECT url_id, site_of(url_id) AS site_id, status, content_type, charset, fetched_at, title, description, keywords,
         canonical_url, meta_url, document_state, noindex, nofollow, body_id, body_bytes, etag, last_modified,
         other_schemes, directives, note, version, last_seen_at, gone_at, text_sha256, preferences_id,
         robots_preferences_id, language, answer_id, resources, soft_404
  FROM page;

CREATE VIEW links_by_id AS
  SELECT source AS source_id, target AS target_id, site_of(source) AS source_site_id, site_of(target) AS target_site_id,
         anchor, rel, follow
  FROM link;

CREATE VIEW requests_by_id AS
  SELECT id AS request_id, run_id, site_id, path, purpose, started_at, finished_at, status, error_kind, error, bytes,
         retry_after_s, robots_id AS robots_copy, verdict_line, for_site_id, location, lag_s,
         address, price, was_sent(error_kind) AS sent
  FROM request;

CREATE VIEW sites_by_id AS
  SELECT id AS site_id, name AS site, group_id, robots_id AS robots_copy, robots_until, robots_needs, rests_until, crawl_delay_s, main_site, fetched,
         max_pages, first_url_of(id) AS first_url_id, last_url_of(id) AS last_url_id, host, registered_domain
  FROM site;

CREATE VIEW groups_by_id AS
  SELECT id AS group_id, name AS politeness_group, ready_at, next_at, pause_s, backoff_s, usual_s, wait_code, waits_for,
         claimed_by
  FROM politeness_group;

CREATE VIEW robots_by_id AS
  SELECT id AS robots_copy, site_id, text_id, action, status, fetched_at, valid_from, valid_until, etag, last_modified,
         failures, failing_since, retry_at, note, run_id, answered_by, headers
  FROM robots_copy;

-- The offers to other buckets of a dataset.
CREATE VIEW outgoing_by_id AS
  SELECT id AS offer_id, bucket, url, depth, hops, seed, kind, lastmod, by_domain FROM outgoing;

CREATE VIEW robots_texts_by_id AS SELECT id AS text_id, sha256, body FROM robots_text;

-- `data` is NULL for a body that is kept outside the database.
CREATE VIEW bodies_by_id AS SELECT id AS body_id, sha256, data FROM body;

CREATE VIEW main_texts_by_id AS SELECT body_id, read_as, data FROM main_text;

CREATE VIEW revisits_by_id AS
  SELECT url_id, site_of(url_id) AS site_id, due_at, not_before, checked_at, changes, watched_s, failures, hint,
         hinted_at, why, state AS state_before
  FROM revisit;

CREATE VIEW ranks_by_id AS SELECT url_id, site_id, pagerank, in_links, in_sites FROM rank;

CREATE VIEW text_signatures_by_id AS SELECT url_id, site_of(url_id) AS site_id, digest, keys FROM text_signature;

CREATE VIEW site_templates_by_id AS SELECT site_id, shingles FROM site_template;

CREATE VIEW near_duplicates_by_id AS SELECT url_id, cluster_id, similarity FROM near_duplicate;

-- The results computed from the crawl, and whether a page was requested since that had changed (304 says that it had not),
-- or pages were forgotten.
CREATE VIEW computations_by_id AS
  SELECT name, last_request, last_request < 0 OR EXISTS (
    SELECT 1 FROM request r
    WHERE r.id > c.last_request AND r.purpose = 'page' AND coalesce(r.status, 0) <> 304) AS is_behind
  FROM computation c;

CREATE VIEW samples_by_id AS SELECT draw, url_id, stratum, walk, probability, site_probability FROM sample;

CREATE VIEW sample_draws AS
  SELECT number, method, per, size, seed, drawn_at, frame AS frame_size, cut_sites, missed, missed_sites,
         follows, held_from, stands, share, sites, sites_by, design, design_sha256, discarded_at
  FROM sample_draw;
