-- Version 2: sitemaps, mobile agents, mirrors found by content, and the link graph with duplicates folded.

ALTER TABLE url ADD COLUMN kind TEXT NOT NULL DEFAULT 'page';  -- or 'sitemap'
ALTER TABLE url ADD COLUMN lastmod REAL;                       -- as a sitemap says

CREATE TABLE agent_server (              -- Mobile-agent-server lines in force; the last that matches a path wins
  site_id INTEGER NOT NULL,
  line INTEGER NOT NULL,
  path TEXT NOT NULL,
  agent_server TEXT,                     -- NULL: none
  PRIMARY KEY (site_id, line)
) WITHOUT ROWID;

ALTER TABLE mirror ADD COLUMN sample INTEGER;     -- of evidence 'content': paths compared
ALTER TABLE mirror ADD COLUMN confidence REAL;    -- and the share that is alike at least, with 95 % confidence

ALTER TABLE politeness_group ADD COLUMN visited_by INTEGER;    -- as claimed_by, for one hop of a redirected robots.txt

ALTER TABLE robots_copy ADD COLUMN run_id INTEGER;
ALTER TABLE robots_copy ADD COLUMN answered_by TEXT;           -- the URL that gave the answer, behind redirects
ALTER TABLE robots_copy ADD COLUMN headers TEXT;               -- JSON: those of the answer that say how long it holds

ALTER TABLE request ADD COLUMN for_site_id INTEGER;            -- of a robots.txt asked behind a redirect: for which site
ALTER TABLE request ADD COLUMN location TEXT;                  -- of a redirect, as received

CREATE VIEW agent_servers AS
  SELECT s.name AS site, a.path, a.agent_server, a.line FROM agent_server a JOIN site s ON s.id = a.site_id;

DROP VIEW mirrors;
-- `leads_to` is where the chain of Host lines ends; NULL where it goes round, or on for more than 16 sites.
CREATE VIEW mirrors AS
  WITH RECURSIVE way (site, leads_to, n) AS (
    SELECT site, main_site, 1 FROM mirror WHERE evidence = 'host'
    UNION ALL
    SELECT way.site, m.main_site, n + 1 FROM way JOIN mirror m ON m.site = way.leads_to AND m.evidence = 'host'
    WHERE n < 16),
  ended AS (
    SELECT site, leads_to FROM way
    WHERE NOT EXISTS (SELECT 1 FROM mirror m WHERE m.site = way.leads_to AND m.evidence = 'host'))
  SELECT m.site, m.main_site, m.evidence, m.sample, m.confidence, e.leads_to
  FROM mirror m LEFT JOIN ended e ON e.site = m.site AND m.evidence = 'host';

-- Every answer about robots.txt is a row of robots_copy; answers in a row that mean the same are one version.
DROP VIEW robots_versions;
CREATE VIEW robots_versions AS
  WITH run_of AS (
    SELECT *, row_number() OVER (PARTITION BY site_id ORDER BY id)
            - row_number() OVER (PARTITION BY site_id, action, text_id ORDER BY id) AS island
    FROM robots_copy)
  SELECT s.name AS site, nullif(lower(hex(t.sha256)), '') AS version_sha256, min(r.fetched_at) AS fetched_at,
         min(r.valid_from) AS valid_from, max(r.valid_until) AS valid_until, r.status, t.body, r.action, r.note,
         max(r.id) AS robots_copy, max(r.fetched_at) AS confirmed_at
  FROM run_of r JOIN site s ON s.id = r.site_id LEFT JOIN robots_text t ON t.id = r.text_id
  GROUP BY r.site_id, r.action, r.text_id, r.island;

CREATE VIEW robots_answers AS
  SELECT s.name AS site, r.fetched_at, r.valid_from, r.valid_until, r.status, r.action, nullif(lower(hex(t.sha256)), '') AS version_sha256,
         r.answered_by, r.headers, r.retry_at, r.failures, r.failing_since, r.note, r.run_id, r.id AS robots_copy
  FROM robots_copy r JOIN site s ON s.id = r.site_id LEFT JOIN robots_text t ON t.id = r.text_id;

DROP VIEW urls;
CREATE VIEW urls AS
  SELECT s.name || u.path AS url, s.name AS site, u.state, u.reason, u.depth,
         fs.name || f.path AS discovered_from,
         CASE WHEN u.state = 'queued' THEN max(u.due_at, s.wait_until, g.next_at) END AS next_at,
         ts.name || t.path AS target, u.attempts, u.seed, u.kind, u.lastmod, u.id AS url_id
  FROM url u
  LEFT JOIN site s ON s.id = u.id >> 39
  LEFT JOIN url f ON f.id = u.found_on LEFT JOIN site fs ON fs.id = u.found_on >> 39
  LEFT JOIN url t ON t.id = u.target LEFT JOIN site ts ON ts.id = u.target >> 39
  LEFT JOIN politeness_group g ON g.id = s.group_id;

-- The numbers of URLs stand in the views too: joins on them are fast, joins on the texts are not.
DROP VIEW links;
CREATE VIEW links AS
  SELECT ss.name || su.path AS source, ts.name || tu.path AS target, l.anchor, l.rel,
         l.source AS source_id, l.target AS target_id
  FROM link l
  JOIN url su ON su.id = l.source JOIN site ss ON ss.id = l.source >> 39
  JOIN url tu ON tu.id = l.target JOIN site ts ON ts.id = l.target >> 39;

DROP VIEW pages;
CREATE VIEW pages AS
  SELECT s.name || u.path AS url, p.status, p.content_type, p.fetched_at, u.depth,
         p.title, p.description, p.keywords, p.canonical_url, p.document_state,
         p.noindex, p.nofollow, nullif(lower(hex(b.sha256)), '') AS body_sha256, p.body_bytes,
         s.name AS site, p.charset, p.meta_url, p.etag, p.last_modified, p.other_schemes, p.directives, p.note,
         p.url_id
  FROM page p JOIN url u ON u.id = p.url_id JOIN site s ON s.id = p.url_id >> 39 LEFT JOIN body b ON b.id = p.body_id;

DROP VIEW sites;
CREATE VIEW sites AS
  SELECT s.name AS site, s.main_site, r.status AS robots_status, r.valid_until AS robots_expires_at,
         s.crawl_delay_s, g.pause_s AS delay_s, max(g.next_at, s.wait_until) AS next_at,
         (SELECT count(*) FROM frontier f WHERE f.site_id = s.id) AS queued, s.fetched,
         r.action AS robots_action, r.note AS robots_note, g.name AS politeness_group,
         CASE WHEN s.wait_until > g.next_at THEN 'robots.txt: ' || r.status ELSE g.waits_for END AS waits_for
  FROM site s JOIN politeness_group g ON g.id = s.group_id LEFT JOIN robots_copy r ON r.id = s.robots_id;

-- The links between contents: a mirror's URL stands for its main host's, a duplicate for its canonical URL, a chain of
-- these for its end. One that goes round, or on for more than 16 steps, says nothing. url.target says where to of a
-- fetched page (its canonical URL) and of a URL excluded as a mirror's. A mirror's URLs that were never asked for are
-- folded by its Host line alone, if the crawl has taken up its main host: then some URL of it has a target.
CREATE VIEW links_glued AS
  WITH RECURSIVE way (id, main_id, n) AS (
    SELECT id, target, 1 FROM url WHERE target IS NOT NULL AND state IN ('fetched', 'excluded')
    UNION ALL
    SELECT way.id, u.target, n + 1 FROM way JOIN url u ON u.id = way.main_id
    WHERE n < 16 AND u.target IS NOT NULL AND u.state IN ('fetched', 'excluded')),
  glued AS MATERIALIZED (
    SELECT way.id, way.main_id FROM way JOIN url u ON u.id = way.main_id
    WHERE u.target IS NULL OR u.state NOT IN ('fetched', 'excluded')),
  folded AS MATERIALIZED (
    SELECT s.id, m.leads_to FROM mirrors m JOIN site s ON s.name = m.site
    WHERE m.leads_to IS NOT NULL AND EXISTS (
      SELECT 1 FROM url u WHERE u.id BETWEEN s.id << 39 AND (s.id + 1 << 39) - 1
        AND u.state = 'excluded' AND u.target IS NOT NULL))
  SELECT coalesce(sf.leads_to, ss.name) || su.path AS source, coalesce(tf.leads_to, ts.name) || tu.path AS target,
         max(l.anchor) AS anchor, max(l.rel) AS rel
  FROM link l
  LEFT JOIN glued sg ON sg.id = l.source LEFT JOIN glued tg ON tg.id = l.target
  JOIN url su ON su.id = coalesce(sg.main_id, l.source) JOIN url tu ON tu.id = coalesce(tg.main_id, l.target)
  JOIN site ss ON ss.id = su.id >> 39 JOIN site ts ON ts.id = tu.id >> 39
  LEFT JOIN folded sf ON sf.id = ss.id LEFT JOIN folded tf ON tf.id = ts.id
  GROUP BY 1, 2;
