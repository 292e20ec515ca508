-- The store, version 1. Times are seconds since the epoch (UTC).
--
-- A URL's number is site << 39 | 39 bits of a hash of its path, so that all URLs of a site, and
-- most links of a page, stand together in the file. Two paths of a site with the same bits are
-- told apart by comparing the path, and the later one takes the next free number.

CREATE TABLE run (                       -- one row per `crawler run` on this store
  id INTEGER PRIMARY KEY,
  started_at REAL NOT NULL,
  finished_at REAL,                      -- NULL while it runs, and after a crash
  crawler_version TEXT NOT NULL,
  settings TEXT NOT NULL,                -- JSON
  ended_by TEXT
);

CREATE TABLE politeness_group (          -- what is claimed: sites that share one connection's worth of load
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  ready_at REAL,                         -- earliest time at which one of its URLs may be fetched; NULL: nothing to do
  next_at REAL NOT NULL DEFAULT 0,
  pause_s REAL NOT NULL DEFAULT 0,
  backoff_s REAL NOT NULL DEFAULT 0,
  waits_for TEXT NOT NULL DEFAULT '',
  claimed_by INTEGER REFERENCES run(id)  -- survives a crash, which is how the next run knows of it
);
CREATE INDEX group_ready ON politeness_group(ready_at) WHERE ready_at IS NOT NULL AND claimed_by IS NULL;

CREATE TABLE site (                      -- scheme + host + port
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  group_id INTEGER NOT NULL REFERENCES politeness_group(id),
  robots_id INTEGER REFERENCES robots_copy(id),
  wait_until REAL NOT NULL DEFAULT 0,    -- robots.txt deferred until then
  crawl_delay_s REAL,
  main_site TEXT,
  fetched INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX site_group ON site(group_id);

CREATE TABLE robots_text (id INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, body BLOB NOT NULL);

CREATE TABLE robots_copy (               -- what each answer to /robots.txt meant, and from when to when
  id INTEGER PRIMARY KEY,
  site_id INTEGER NOT NULL REFERENCES site(id),
  text_id INTEGER REFERENCES robots_text(id),
  action TEXT NOT NULL,
  status TEXT NOT NULL,
  fetched_at REAL NOT NULL,
  valid_from REAL NOT NULL,
  valid_until REAL NOT NULL,             -- its expiry, or the time a newer one took its place
  etag TEXT, last_modified TEXT,
  failures INTEGER NOT NULL DEFAULT 0,
  failing_since REAL, retry_at REAL,
  note TEXT NOT NULL DEFAULT ''
);
CREATE INDEX robots_copy_site ON robots_copy(site_id);

CREATE TABLE url (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL,                    -- with the query
  state TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  depth INTEGER NOT NULL,
  found_on INTEGER,                      -- url.id; NULL for seeds
  target INTEGER,                        -- url.id: where a redirect, or a mirror's main host, leads
  attempts INTEGER NOT NULL DEFAULT 0,
  hops INTEGER NOT NULL DEFAULT 0,
  due_at REAL NOT NULL DEFAULT 0,        -- of a queued URL: 0 for now, later for a retry
  seed INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX url_seed ON url(id) WHERE seed;

CREATE TABLE frontier (                  -- one row per queued URL; no row for any other
  site_id INTEGER NOT NULL,
  due_at REAL NOT NULL,                  -- as in url
  depth INTEGER NOT NULL,                -- as in url: nearer to the seeds goes first
  url_id INTEGER NOT NULL,
  PRIMARY KEY (site_id, due_at, depth, url_id)
) WITHOUT ROWID;

CREATE TABLE page (
  url_id INTEGER PRIMARY KEY,
  status INTEGER NOT NULL,
  content_type TEXT NOT NULL,
  charset TEXT,
  fetched_at REAL NOT NULL,
  title TEXT, description TEXT, keywords TEXT,
  canonical_url TEXT, meta_url TEXT, document_state TEXT,
  noindex INTEGER NOT NULL, nofollow INTEGER NOT NULL,
  body_id INTEGER REFERENCES body(id),
  body_bytes INTEGER NOT NULL,
  etag TEXT, last_modified TEXT,
  other_schemes TEXT,                    -- JSON: links left alone, counted by scheme
  directives TEXT,                       -- JSON: what the page and its headers ask, with the source
  note TEXT NOT NULL DEFAULT ''
);

CREATE TABLE body (                      -- one row per distinct content, zstd
  id INTEGER PRIMARY KEY,
  sha256 BLOB NOT NULL UNIQUE,
  data BLOB NOT NULL
);

CREATE TABLE link (
  source INTEGER NOT NULL,
  target INTEGER NOT NULL,
  anchor TEXT NOT NULL,
  rel TEXT NOT NULL,
  follow INTEGER NOT NULL,
  PRIMARY KEY (source, target)
) WITHOUT ROWID;

CREATE TABLE request (                   -- every request ever sent
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL,
  site_id INTEGER NOT NULL,
  path TEXT NOT NULL,
  purpose TEXT NOT NULL,
  started_at REAL NOT NULL,
  finished_at REAL NOT NULL,
  status INTEGER,
  error TEXT,
  bytes INTEGER NOT NULL,
  retry_after_s REAL,
  robots_id INTEGER,                     -- robots_copy in force when it was sent
  verdict_line INTEGER
);

CREATE TABLE mirror (
  site TEXT PRIMARY KEY,
  main_site TEXT NOT NULL,
  evidence TEXT NOT NULL,
  seen_at REAL NOT NULL
) WITHOUT ROWID;

CREATE VIEW urls AS
  SELECT s.name || u.path AS url, s.name AS site, u.state, u.reason, u.depth,
         fs.name || f.path AS discovered_from,
         CASE WHEN u.state = 'queued' THEN max(u.due_at, s.wait_until, g.next_at) END AS next_at,
         ts.name || t.path AS target, u.attempts, u.seed
  FROM url u
  LEFT JOIN site s ON s.id = u.id >> 39
  LEFT JOIN url f ON f.id = u.found_on LEFT JOIN site fs ON fs.id = u.found_on >> 39
  LEFT JOIN url t ON t.id = u.target LEFT JOIN site ts ON ts.id = u.target >> 39
  LEFT JOIN politeness_group g ON g.id = s.group_id;

CREATE VIEW pages AS
  SELECT s.name || u.path AS url, p.status, p.content_type, p.fetched_at, u.depth,
         p.title, p.description, p.keywords, p.canonical_url, p.document_state,
         p.noindex, p.nofollow, nullif(lower(hex(b.sha256)), '') AS body_sha256, p.body_bytes,
         s.name AS site, p.charset, p.meta_url, p.etag, p.last_modified, p.other_schemes, p.directives, p.note
  FROM page p JOIN url u ON u.id = p.url_id JOIN site s ON s.id = p.url_id >> 39 LEFT JOIN body b ON b.id = p.body_id;

CREATE VIEW links AS
  SELECT ss.name || su.path AS source, ts.name || tu.path AS target, l.anchor, l.rel
  FROM link l
  JOIN url su ON su.id = l.source JOIN site ss ON ss.id = l.source >> 39
  JOIN url tu ON tu.id = l.target JOIN site ts ON ts.id = l.target >> 39;

CREATE VIEW sites AS
  SELECT s.name AS site, s.main_site, r.status AS robots_status, r.valid_until AS robots_expires_at,
         s.crawl_delay_s, g.pause_s AS delay_s, max(g.next_at, s.wait_until) AS next_at,
         (SELECT count(*) FROM frontier f WHERE f.site_id = s.id) AS queued, s.fetched,
         r.action AS robots_action, r.note AS robots_note, g.name AS politeness_group, g.waits_for
  FROM site s JOIN politeness_group g ON g.id = s.group_id LEFT JOIN robots_copy r ON r.id = s.robots_id;

CREATE VIEW robots_versions AS
  SELECT s.name AS site, nullif(lower(hex(t.sha256)), '') AS version_sha256, r.fetched_at, r.valid_from, r.valid_until,
         r.status, t.body, r.action, r.note, r.id AS robots_copy
  FROM robots_copy r JOIN site s ON s.id = r.site_id LEFT JOIN robots_text t ON t.id = r.text_id;

CREATE VIEW mirrors AS SELECT site, main_site, evidence FROM mirror;

CREATE VIEW requests AS
  SELECT s.name || q.path AS url, s.name AS site, q.purpose, q.started_at, q.finished_at, q.status, q.error, q.bytes,
         nullif(lower(hex(t.sha256)), '') AS robots_version, q.verdict_line, q.retry_after_s, q.run_id, q.robots_id AS robots_copy
  FROM request q JOIN site s ON s.id = q.site_id
  LEFT JOIN robots_copy r ON r.id = q.robots_id LEFT JOIN robots_text t ON t.id = r.text_id;
