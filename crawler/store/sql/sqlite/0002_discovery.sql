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

CREATE VIEW agent_servers AS
  SELECT s.name AS site, a.path, a.agent_server, a.line FROM agent_server a JOIN site s ON s.id = a.site_id;

DROP VIEW mirrors;
CREATE VIEW mirrors AS SELECT site, main_site, evidence, sample, confidence FROM mirror;

DROP VIEW urls;
CREATE VIEW urls AS
  SELECT s.name || u.path AS url, s.name AS site, u.state, u.reason, u.depth,
         fs.name || f.path AS discovered_from,
         CASE WHEN u.state = 'queued' THEN max(u.due_at, s.wait_until, g.next_at) END AS next_at,
         ts.name || t.path AS target, u.attempts, u.seed, u.kind, u.lastmod
  FROM url u
  LEFT JOIN site s ON s.id = u.id >> 39
  LEFT JOIN url f ON f.id = u.found_on LEFT JOIN site fs ON fs.id = u.found_on >> 39
  LEFT JOIN url t ON t.id = u.target LEFT JOIN site ts ON ts.id = u.target >> 39
  LEFT JOIN politeness_group g ON g.id = s.group_id;

-- Where a URL's content really is: a mirror's URL on its main host, a duplicate's at its canonical URL.
-- url.target says so of a fetched page (its canonical URL) and of one excluded as a mirror's; ten steps at most.
CREATE VIEW glued AS
  SELECT u.id,
    (WITH RECURSIVE way (id, n) AS (
       SELECT u.id, 0
       UNION ALL
       SELECT v.target, n + 1 FROM way JOIN url v ON v.id = way.id
       WHERE v.target IS NOT NULL AND n < 10 AND (v.state = 'fetched' OR v.reason LIKE 'mirror of%'))
     SELECT id FROM way ORDER BY n DESC LIMIT 1) AS main_id
  FROM url u;

CREATE VIEW links_glued AS
  SELECT coalesce(sm.main_site, ss.name) || su.path AS source, coalesce(tm.main_site, ts.name) || tu.path AS target,
         max(l.anchor) AS anchor, max(l.rel) AS rel
  FROM link l
  JOIN glued sg ON sg.id = l.source JOIN url su ON su.id = sg.main_id JOIN site ss ON ss.id = sg.main_id >> 39
  JOIN glued tg ON tg.id = l.target JOIN url tu ON tu.id = tg.main_id JOIN site ts ON ts.id = tg.main_id >> 39
  LEFT JOIN mirror sm ON sm.site = ss.name AND sm.evidence = 'host'
  LEFT JOIN mirror tm ON tm.site = ts.name AND tm.evidence = 'host'
  GROUP BY 1, 2;
