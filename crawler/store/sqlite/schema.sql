-- The store in one SQLite file. Times are seconds since the epoch (UTC); 0 and 1 stand for no and yes.
--
-- The number of a URL packs the number of its site and a hash of its path (crawler/store/keys.py). All URLs of a site,
-- and most links of a page, therefore stand together in the file. Two paths of one site may have the same hash: the
-- store compares the paths, and the path that came later takes the next free number.
-- site_of(), first_url_of(), last_url_of() and path_hash_of() are rendered by crawler/store/keys.py.

-- ---- runs and workers

CREATE TABLE run (                       -- one row per `crawler run` on this store
  id INTEGER PRIMARY KEY,
  started_at REAL NOT NULL,
  finished_at REAL,                      -- NULL while the run is under way, and after a crash
  crawler_version TEXT NOT NULL,
  settings TEXT NOT NULL,                -- JSON
  ended_code TEXT,                       -- EndCode in crawler/reasons.py
  ended_by TEXT,                         -- the sentence for ended_code
  worst_lag_s REAL,                      -- the longest delay of the event loop
  pages_before INTEGER NOT NULL DEFAULT 0  -- pages in the store when the run began
);

CREATE TABLE unsettled (since REAL NOT NULL);  -- one row while a run with changed options is being begun

CREATE TABLE worker (                    -- one row per process that has crawled into this store
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run(id),
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  processes TEXT,                        -- boot and PID namespace in which pid is unique; NULL if unknown
  started_at REAL NOT NULL,
  seen_at REAL NOT NULL,                 -- when the worker last renewed its lease
  lease_until REAL,                      -- the worker sends no request after this; NULL: no other worker is possible
  ended_at REAL,                         -- NULL while the worker is at work, and after a crash
  ended_code TEXT,                       -- why it ended; of a placeholder, known beforehand
  ended_by TEXT,
  commits INTEGER NOT NULL DEFAULT 0,    -- batches committed
  pages INTEGER NOT NULL DEFAULT 0,
  requests INTEGER NOT NULL DEFAULT 0,
  marked_url INTEGER,                    -- url.id of the URL that it processes, see docs/decisions/0026
  granted INTEGER NOT NULL DEFAULT 0     -- pages set aside for the worker under --max-pages
);
CREATE INDEX worker_run ON worker(run_id);
CREATE INDEX worker_live ON worker(id) WHERE ended_at IS NULL;

CREATE TABLE control (                   -- orders of the operator, appended by `crawler control` and the dashboard
  id INTEGER PRIMARY KEY AUTOINCREMENT,  -- orders apply in this sequence
  asked_at REAL NOT NULL,
  command TEXT NOT NULL,                 -- pause, resume, stop, block, unblock
  name TEXT NOT NULL DEFAULT '',         -- of block and unblock: a host or a site
  run_id INTEGER,                        -- of stop: the run to stop
  done_at REAL                           -- when a crawl had carried the order out
);

CREATE TABLE heartbeat (                 -- one row per process of the last run
  run_id INTEGER NOT NULL REFERENCES run(id),
  pid INTEGER NOT NULL,
  seen_at REAL NOT NULL,
  memory_bytes INTEGER,                  -- resident; NULL if the system does not tell
  lag_s REAL NOT NULL,                   -- the longest delay of the event loop since the last heartbeat
  PRIMARY KEY (run_id, pid)
) WITHOUT ROWID;

CREATE TABLE store_copy (                -- one row if this store is a copy of another store
  source TEXT NOT NULL,
  begun_at REAL NOT NULL,
  done_at REAL                           -- NULL until every row is copied and compared
);

-- ---- sites and robots.txt

CREATE TABLE politeness_group (          -- the unit of claiming: sites that share one pace
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  ready_at REAL,                         -- when the group's next URL may be fetched; NULL: it has no queued URL
  next_at REAL NOT NULL DEFAULT 0,
  pause_s REAL NOT NULL DEFAULT 0,
  backoff_s REAL NOT NULL DEFAULT 0,
  deaths INTEGER NOT NULL DEFAULT 0,     -- of workers that held it, since it was given back last
  wait_code TEXT NOT NULL DEFAULT 'none',
  waits_for TEXT NOT NULL DEFAULT '',
  claimed_by INTEGER REFERENCES worker(id),  -- survives a crash: the next run releases the group
  reserved_by INTEGER REFERENCES worker(id)   -- the same for one hop of a redirected robots.txt
);
CREATE INDEX group_ready ON politeness_group(ready_at) WHERE ready_at IS NOT NULL AND claimed_by IS NULL;
CREATE INDEX group_held ON politeness_group(id) WHERE claimed_by IS NOT NULL OR reserved_by IS NOT NULL;

CREATE TABLE site (                      -- scheme + host + port
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  group_id INTEGER NOT NULL REFERENCES politeness_group(id),
  robots_id INTEGER REFERENCES robots_copy(id),  -- the copy in force
  wait_until REAL NOT NULL DEFAULT 0,    -- the site's robots.txt is deferred until then
  crawl_delay_s REAL,                    -- from the last robots.txt that was received
  main_site TEXT,
  fetched INTEGER NOT NULL DEFAULT 0     -- number of pages fetched
);
CREATE INDEX site_group ON site(group_id);

CREATE TABLE robots_text (id INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, body BLOB NOT NULL);

CREATE TABLE robots_copy (               -- one row per answer to /robots.txt
  id INTEGER PRIMARY KEY,
  site_id INTEGER NOT NULL REFERENCES site(id),
  text_id INTEGER REFERENCES robots_text(id),
  action TEXT NOT NULL,
  status TEXT NOT NULL,
  fetched_at REAL NOT NULL,
  valid_from REAL NOT NULL,
  valid_until REAL NOT NULL,             -- its expiry, or the time at which a newer copy replaced it
  etag TEXT, last_modified TEXT,
  failures INTEGER NOT NULL DEFAULT 0,
  failing_since REAL, retry_at REAL,
  note TEXT NOT NULL DEFAULT '',
  run_id INTEGER,
  answered_by TEXT,                      -- the URL that answered, behind redirects
  headers TEXT                           -- JSON: the headers that decide how long the answer is valid
);
CREATE INDEX robots_copy_site ON robots_copy(site_id);

CREATE TABLE agent_server (              -- Mobile-agent-server lines in force; the last line that matches a path wins
  site_id INTEGER NOT NULL,
  line INTEGER NOT NULL,
  path TEXT NOT NULL,
  agent_server TEXT,                     -- NULL: none
  PRIMARY KEY (site_id, line)
) WITHOUT ROWID;

CREATE TABLE mirror (
  site TEXT PRIMARY KEY,
  main_site TEXT NOT NULL,
  evidence TEXT NOT NULL,                -- 'host' or 'content'
  seen_at REAL NOT NULL,
  sample INTEGER,                        -- evidence 'content': number of paths compared
  confidence REAL                        -- and the least share of equal paths, with 95 % confidence
) WITHOUT ROWID;
CREATE INDEX mirror_seen ON mirror(seen_at);

-- ---- URLs and pages

CREATE TABLE url (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL,                    -- with the query
  state TEXT NOT NULL,                   -- State in crawler/model.py
  reason_code TEXT NOT NULL DEFAULT 'new',  -- ReasonCode in crawler/reasons.py
  reason TEXT NOT NULL DEFAULT '',       -- the sentence for reason_code
  depth INTEGER NOT NULL,                -- the shortest known way from a seed
  found_on INTEGER,                      -- url.id; NULL for seeds
  target INTEGER,                        -- url.id: the target of a redirect, the main host's URL, the canonical URL
  attempts INTEGER NOT NULL DEFAULT 0,
  deaths INTEGER NOT NULL DEFAULT 0,     -- of workers that had marked it, since its last outcome
  hops INTEGER NOT NULL DEFAULT 0,       -- redirects from the URL that a page links to
  due_at REAL NOT NULL DEFAULT 0,        -- of a queued URL: 0 for now, later for a retry
  seed INTEGER NOT NULL DEFAULT 0,
  kind TEXT NOT NULL DEFAULT 'page',     -- Kind in crawler/model.py
  lastmod REAL                           -- from a sitemap
);
CREATE INDEX url_seed ON url(id, path) WHERE seed = 1;  -- covers the list of seeds
CREATE INDEX url_out ON url(state) WHERE state IN ('redirected', 'excluded', 'failed');
CREATE INDEX url_sitemap ON url(id) WHERE kind = 'sitemap';

CREATE TABLE frontier (                  -- exactly one row per queued URL
  site_id INTEGER NOT NULL,
  due_at REAL NOT NULL,                  -- a copy of url.due_at
  depth INTEGER NOT NULL,                -- a copy of url.depth: URLs near to a seed go first
  url_id INTEGER NOT NULL,
  is_revisit INTEGER NOT NULL DEFAULT 0, -- a revisit: limits on pages do not count it
  PRIMARY KEY (site_id, due_at, depth, url_id)
) WITHOUT ROWID;
CREATE INDEX frontier_revisit ON frontier(site_id, due_at) WHERE is_revisit;

CREATE TABLE page (                      -- the newest version of each page
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
  other_schemes TEXT,                    -- JSON: number of links by scheme that the crawler does not fetch
  directives TEXT,                       -- JSON: the directives of the page and its headers, with their source
  note TEXT NOT NULL DEFAULT '',
  version INTEGER NOT NULL DEFAULT 1,
  last_seen_at REAL,                     -- when a revisit last found this version; NULL: fetched once
  gone_at REAL,                          -- since when the site answers that there is no such page
  text_sha256 BLOB                       -- of the text without markup and white space; NULL: not computed
);

CREATE TABLE page_version (              -- the earlier versions of each page
  url_id INTEGER NOT NULL,
  version INTEGER NOT NULL,
  status INTEGER NOT NULL,
  content_type TEXT NOT NULL,
  charset TEXT,
  fetched_at REAL NOT NULL,
  last_seen_at REAL NOT NULL,
  title TEXT, description TEXT, keywords TEXT,  -- NULL, as body_id, once the page says NOINDEX
  noindex INTEGER NOT NULL,
  body_id INTEGER REFERENCES body(id),
  body_bytes INTEGER NOT NULL,
  text_sha256 BLOB,
  etag TEXT, last_modified TEXT,
  PRIMARY KEY (url_id, version)
) WITHOUT ROWID;

CREATE TABLE body (                      -- one row per distinct content
  id INTEGER PRIMARY KEY,
  sha256 BLOB NOT NULL UNIQUE,           -- of the decompressed content
  data BLOB NOT NULL                     -- gzip as received, or zstd; its first bytes say which
);

CREATE TABLE body_to_drop (body_id INTEGER PRIMARY KEY);  -- bodies of pages that turned NOINDEX, not yet deleted

CREATE TABLE link (
  source INTEGER NOT NULL,               -- url.id
  target INTEGER NOT NULL,               -- url.id
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
  error_kind TEXT,                       -- ErrorKind in crawler/reasons.py
  error TEXT,                            -- the sentence for error_kind
  bytes INTEGER NOT NULL,
  retry_after_s REAL,
  robots_id INTEGER,                     -- the robots_copy in force when the request was sent
  verdict_line INTEGER,
  for_site_id INTEGER,                   -- of a robots.txt requested behind a redirect: the site that it is for
  location TEXT                          -- of a redirect, as received
);

-- ---- revisits

CREATE TABLE revisit (                   -- one row per visited URL, once a run with --revisit has seen it
  url_id INTEGER PRIMARY KEY,
  due_at REAL NOT NULL,                  -- when one in three such pages has changed, or a hint says that this one has
  not_before REAL NOT NULL,              -- no hint brings the revisit forward of this time
  checked_at REAL NOT NULL,              -- the last visit that observed the page
  changes REAL NOT NULL DEFAULT 0,       -- X and T of crawler/frontier/revisit.py, faded
  watched_s REAL NOT NULL,
  failures INTEGER NOT NULL DEFAULT 0,   -- consecutive visits that found no page
  hint TEXT,                             -- the source of the newest hint, given at hinted_at
  hinted_at REAL,
  why TEXT NOT NULL DEFAULT '',          -- the reason for due_at
  state TEXT, reason_code TEXT, reason TEXT,  -- of the URL before it was queued for a revisit
  etag TEXT, last_modified TEXT,         -- of sitemaps; `page` has those of pages
  content BLOB                           -- SHA-256 of sitemaps and NOINDEX pages, whose bodies are not kept
);
CREATE INDEX revisit_due ON revisit(due_at);

CREATE TABLE revisit_budget (
  site_id INTEGER PRIMARY KEY,           -- 0: the budget of all sites together
  paid_until REAL NOT NULL               -- the part of a day's budget between now and this time is spent
);

CREATE TABLE hint_record (               -- how often the hints of a source about a site were right
  site_id INTEGER NOT NULL,
  source TEXT NOT NULL,
  tried INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  PRIMARY KEY (site_id, source)
) WITHOUT ROWID;

-- ---- the robot side of the Remote Update Protocol

CREATE TABLE rup_offer (                 -- the last /rupinfo.txt of a site
  site TEXT PRIMARY KEY,
  url TEXT NOT NULL,                     -- where it was found
  found_at REAL NOT NULL,
  cgi TEXT NOT NULL,
  authentifier TEXT NOT NULL,
  latencies TEXT NOT NULL,               -- JSON, as exclude and include_only
  exclude TEXT NOT NULL,
  include_only TEXT NOT NULL,
  max_query_span TEXT
) WITHOUT ROWID;

CREATE TABLE rup_server (                -- one row per registration; see crawler/rup/protocol/robot.py
  site TEXT PRIMARY KEY,
  cgi TEXT NOT NULL,
  key TEXT NOT NULL,                     -- a secret: no view shows it; '' while the server has not answered Register
  email TEXT NOT NULL,
  latency TEXT NOT NULL,
  registered_at REAL NOT NULL,
  units TEXT NOT NULL,                   -- JSON
  max_query_span TEXT,
  sequence_number INTEGER NOT NULL,
  digest TEXT NOT NULL,
  good_until REAL NOT NULL,
  heard_at REAL NOT NULL,
  quiet INTEGER NOT NULL,
  refused INTEGER NOT NULL,
  exclude TEXT NOT NULL,                 -- JSON: the registered patterns, as include_only
  include_only TEXT NOT NULL,
  question TEXT NOT NULL,                -- why the server must be queried at once; '' if it need not
  lost TEXT NOT NULL,                    -- why the whole site must be visited again; '' if it need not
  given_up TEXT NOT NULL,                -- why no reports are expected any more; '' if they are
  unreached TEXT NOT NULL,               -- why the server's last answer did not arrive; '' if it did
  silent_at REAL NOT NULL                -- until then no report means no change; 0 if that is in doubt
) WITHOUT ROWID;

CREATE TABLE rup_mail (                  -- the last mails read; a mail that is here already is ignored
  id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE,           -- SHA-256 of its octets
  taken_at REAL NOT NULL,
  site TEXT,                             -- of a report of a registered server; else NULL
  sequence_number INTEGER,
  verdict_code TEXT NOT NULL,            -- crawler.reasons.MailCode
  verdict TEXT NOT NULL,                 -- its sentence: taken, or why not
  changes INTEGER NOT NULL,              -- pages that the mail named and that became hints
  refused INTEGER NOT NULL               -- paths of another site, too long, or too many
);
CREATE INDEX rup_mail_site ON rup_mail(site);

-- ---- results computed from the crawl

CREATE TABLE rank (                      -- as `crawler rank` last computed it: one row per page of links_glued
  url_id INTEGER PRIMARY KEY,
  site_id INTEGER NOT NULL,              -- the site of the page; of a URL that only mirrors have: their main host
  pagerank REAL NOT NULL,                -- all rows add up to 1
  in_links INTEGER NOT NULL,             -- pages that link to the page
  in_sites INTEGER NOT NULL              -- sites of these pages, its own included
);

CREATE TABLE site_rank (
  site_id INTEGER PRIMARY KEY,
  pagerank REAL NOT NULL,                -- the sum over the site's pages
  pages INTEGER NOT NULL,
  in_links INTEGER NOT NULL,             -- pages of other sites that link to the site
  in_sites INTEGER NOT NULL              -- sites of these pages
);

CREATE TABLE sample_draw (               -- how the sample was drawn (docs/samples.md); one row or none
  method TEXT NOT NULL,                  -- 'uniform', 'stratified', 'random-walk'
  per TEXT NOT NULL,                     -- 'crawl', 'site'
  size INTEGER NOT NULL,                 -- the size that was asked for
  seed INTEGER NOT NULL,
  drawn_at REAL NOT NULL,
  frame INTEGER NOT NULL,                -- number of URLs in the sampling frame
  cut_sites INTEGER NOT NULL,            -- sites of which a limit kept URLs out of the frame
  follows INTEGER NOT NULL,              -- the target of a drawn URL's redirect belongs to the sample
  stands INTEGER NOT NULL                -- 0: seeds or settings have changed since, the sample must be drawn anew
);

CREATE TABLE sample (                    -- one row per draw: a random walk may draw a URL several times
  draw INTEGER PRIMARY KEY,
  url_id INTEGER NOT NULL,
  stratum TEXT NOT NULL,
  walk INTEGER,                          -- the number of the random walk
  probability REAL NOT NULL              -- of inclusion; of a random walk: of each visit, within its stratum
);
CREATE INDEX sample_url ON sample(url_id);

-- The search index (crawler/search), as `crawler index` last built it. The index keeps no texts: search reads them from
-- the pages that it shows. Rows are added and never changed or deleted, which would require the old texts; a row that
-- search_page does not name is stale.
CREATE VIRTUAL TABLE search_text USING fts5(
  title, anchors, description, keywords, headings, body,
  content = '', tokenize = 'unicode61 remove_diacritics 2');

CREATE TABLE search_page (               -- one row per page in the index
  row_id INTEGER PRIMARY KEY,            -- search_text.rowid
  url_id INTEGER NOT NULL UNIQUE,        -- the main address; mirrors and duplicates have no row
  digest INTEGER NOT NULL,               -- of everything that the row was made of
  in_links INTEGER NOT NULL,             -- pages that link to the page
  in_sites INTEGER NOT NULL              -- sites of these pages, its own left out
);

CREATE TABLE search_state (              -- one row, once there is an index
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL,              -- of the way in which pages are indexed; another version rebuilds the index
  last_request INTEGER NOT NULL,         -- the index covers the requests up to this request.id
  complete INTEGER NOT NULL,             -- 0 while the index is built, and if building was interrupted
  mean_inbound REAL NOT NULL             -- mean over the pages: linking pages plus ten times the other sites
);

-- ---- views for users (docs/store.md)

CREATE VIEW runs AS
  SELECT id AS run_id, started_at, finished_at, ended_code, ended_by, crawler_version, settings, worst_lag_s,
         pages_before
  FROM run;

CREATE VIEW urls AS
  SELECT s.name || u.path AS url, s.name AS site, u.state, u.reason_code, u.reason, u.depth,
         fs.name || f.path AS discovered_from,
         CASE WHEN u.state = 'queued' THEN max(u.due_at, s.wait_until, g.next_at) END AS next_at,
         ts.name || t.path AS target, u.attempts, u.seed, u.kind, u.lastmod, u.id AS url_id
  FROM url u
  LEFT JOIN site s ON s.id = site_of(u.id)
  LEFT JOIN url f ON f.id = u.found_on LEFT JOIN site fs ON fs.id = site_of(u.found_on)
  LEFT JOIN url t ON t.id = u.target LEFT JOIN site ts ON ts.id = site_of(u.target)
  LEFT JOIN politeness_group g ON g.id = s.group_id;

CREATE VIEW pages AS
  SELECT s.name || u.path AS url, p.status, p.content_type, p.fetched_at, u.depth,
         p.title, p.description, p.keywords, p.canonical_url, p.document_state,
         p.noindex, p.nofollow, nullif(lower(hex(b.sha256)), '') AS body_sha256, p.body_bytes,
         s.name AS site, p.charset, p.meta_url, p.etag, p.last_modified, p.other_schemes, p.directives, p.note,
         p.url_id, p.version, coalesce(p.last_seen_at, p.fetched_at) AS last_seen_at, p.gone_at,
         nullif(lower(hex(p.text_sha256)), '') AS text_sha256
  FROM page p JOIN url u ON u.id = p.url_id JOIN site s ON s.id = site_of(p.url_id)
  LEFT JOIN body b ON b.id = p.body_id;

CREATE VIEW page_versions AS
  SELECT s.name || u.path AS url, v.version, v.fetched_at, v.last_seen_at, v.status, v.content_type, v.charset,
         v.title, v.description, v.keywords, v.noindex, nullif(lower(hex(b.sha256)), '') AS body_sha256, v.body_bytes,
         nullif(lower(hex(v.text_sha256)), '') AS text_sha256, v.etag, v.last_modified, v.gone_at,
         s.name AS site, v.url_id
  FROM (
    SELECT url_id, version, fetched_at, last_seen_at, status, content_type, charset, title, description, keywords,
           noindex, body_id, body_bytes, text_sha256, etag, last_modified, NULL AS gone_at FROM page_version
    UNION ALL
    SELECT url_id, version, fetched_at, coalesce(last_seen_at, fetched_at), status, content_type, charset, title,
           description, keywords, noindex, body_id, body_bytes, text_sha256, etag, last_modified, gone_at FROM page) v
  JOIN url u ON u.id = v.url_id JOIN site s ON s.id = site_of(v.url_id) LEFT JOIN body b ON b.id = v.body_id;

CREATE VIEW links AS
  SELECT ss.name || su.path AS source, ts.name || tu.path AS target, l.anchor, l.rel,
         l.source AS source_id, l.target AS target_id
  FROM link l
  JOIN url su ON su.id = l.source JOIN site ss ON ss.id = site_of(l.source)
  JOIN url tu ON tu.id = l.target JOIN site ts ON ts.id = site_of(l.target);

CREATE VIEW sites AS
  SELECT s.name AS site, s.main_site, r.status AS robots_status, r.valid_until AS robots_expires_at,
         s.crawl_delay_s, g.pause_s AS delay_s, max(g.next_at, s.wait_until) AS next_at,
         (SELECT count(*) FROM frontier f WHERE f.site_id = s.id) AS queued, s.fetched,
         r.action AS robots_action, r.note AS robots_note, g.name AS politeness_group,
         CASE WHEN s.wait_until > g.next_at THEN 'robots' ELSE g.wait_code END AS wait_code,
         CASE WHEN s.wait_until > g.next_at THEN 'robots.txt: ' || r.status ELSE g.waits_for END AS waits_for
  FROM site s JOIN politeness_group g ON g.id = s.group_id LEFT JOIN robots_copy r ON r.id = s.robots_id;

-- Consecutive answers that mean the same are one version.
CREATE VIEW robots_versions AS
  WITH answer AS (
    SELECT *, row_number() OVER (PARTITION BY site_id ORDER BY id)
            - row_number() OVER (PARTITION BY site_id, action, text_id ORDER BY id) AS island
    FROM robots_copy)
  SELECT s.name AS site, nullif(lower(hex(t.sha256)), '') AS version_sha256, min(r.fetched_at) AS fetched_at,
         min(r.valid_from) AS valid_from, max(r.valid_until) AS valid_until, r.status, t.body, r.action, r.note,
         max(r.id) AS robots_copy, max(r.fetched_at) AS confirmed_at
  FROM answer r JOIN site s ON s.id = r.site_id LEFT JOIN robots_text t ON t.id = r.text_id
  GROUP BY r.site_id, r.action, r.text_id, r.island;

CREATE VIEW robots_answers AS
  SELECT s.name AS site, r.fetched_at, r.valid_from, r.valid_until, r.status, r.action,
         nullif(lower(hex(t.sha256)), '') AS version_sha256,
         r.answered_by, r.headers, r.retry_at, r.failures, r.failing_since, r.note, r.run_id, r.id AS robots_copy
  FROM robots_copy r JOIN site s ON s.id = r.site_id LEFT JOIN robots_text t ON t.id = r.text_id;

-- leads_to is the end of the chain of Host lines; NULL if the chain is a circle or longer than 16 sites.
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
  SELECT m.site, m.main_site, m.evidence, m.sample, m.confidence, e.leads_to
  FROM mirror m LEFT JOIN chain_end e ON e.site = m.site AND m.evidence = 'host';

CREATE VIEW agent_servers AS
  SELECT s.name AS site, a.path, a.agent_server, a.line FROM agent_server a JOIN site s ON s.id = a.site_id;

CREATE VIEW requests AS
  SELECT s.name || q.path AS url, s.name AS site, q.purpose, q.started_at, q.finished_at, q.status, q.error_kind,
         q.error, q.bytes, nullif(lower(hex(t.sha256)), '') AS robots_version, q.verdict_line, q.retry_after_s,
         q.run_id, q.robots_id AS robots_copy
  FROM request q JOIN site s ON s.id = q.site_id
  LEFT JOIN robots_copy r ON r.id = q.robots_id LEFT JOIN robots_text t ON t.id = r.text_id;

-- The links between contents: the main host's URL stands for a mirror's URL, the canonical URL for a duplicate, the end
-- of a chain for each of its URLs. A chain that is a circle or longer than 16 steps is left as it is. A mirror's URL
-- that was never requested is mapped by the mirror's Host line alone, if some URL of the mirror has a target: then the
-- crawl has taken up the main host.
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

CREATE VIEW samples AS
  SELECT s.name || u.path AS url, s.name AS site, a.stratum, a.probability, d.method, a.walk, u.state, u.reason_code,
         u.reason, a.draw, a.url_id
  FROM sample_draw d CROSS JOIN sample a JOIN url u ON u.id = a.url_id JOIN site s ON s.id = site_of(a.url_id);

CREATE VIEW revisits AS
  SELECT s.name || u.path AS url, r.due_at, r.checked_at, r.changes, r.watched_s, r.why, r.hint, r.hinted_at,
         r.failures, u.state, u.kind, s.name AS site, r.url_id
  FROM revisit r JOIN url u ON u.id = r.url_id JOIN site s ON s.id = site_of(r.url_id);

CREATE VIEW rup_offers AS
  SELECT site, url, found_at, cgi, authentifier, latencies, exclude, include_only, max_query_span FROM rup_offer;

CREATE VIEW rup_servers AS
  SELECT s.site, s.cgi, s.email, s.latency, s.exclude, s.include_only, s.registered_at, s.sequence_number,
         nullif(s.heard_at, 0) AS heard_at, max(s.good_until, s.registered_at) AS known_until,
         nullif(s.silent_at, 0) AS silent_at,
         CASE WHEN s.given_up <> '' THEN 'given up: ' || s.given_up
              WHEN s.key = '' THEN 'unclear: no answer to Register'
              WHEN s.unreached <> '' THEN 'not reached: ' || s.unreached
              WHEN s.question <> '' THEN 'to be asked: ' || s.question
              WHEN s.quiet > 0 THEN 'quiet' ELSE 'reports' END AS state,
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
          WHERE (g.claimed_by IS NOT NULL OR g.reserved_by IS NOT NULL) AND g.claimed_by = w.id) AS groups_held
  FROM worker w;

CREATE VIEW orders AS SELECT id AS order_id, asked_at, command, name, run_id, done_at FROM control;

-- ---- views by number
--
-- One row per row of a table, without a join: for reports over the whole crawl. They hide how numbers are packed:
-- site_id is the number of a URL's site, first_url_id and last_url_id bound the URLs of a site, and the URL of the same
-- path on another site is about first_url_id + path_hash of that site (compare the paths).

CREATE VIEW urls_by_id AS
  SELECT id AS url_id, site_of(id) AS site_id, path_hash_of(id) AS path_hash, path, state, reason_code, reason, depth,
         found_on AS found_on_id, target AS target_id, attempts, deaths, hops, due_at, seed, kind, lastmod
  FROM url;

CREATE VIEW frontier_by_id AS SELECT url_id, site_id, due_at, depth, is_revisit FROM frontier;

CREATE VIEW pages_by_id AS
  SELECT url_id, site_of(url_id) AS site_id, status, content_type, charset, fetched_at, title, description, keywords,
         canonical_url, meta_url, document_state, noindex, nofollow, body_id, body_bytes, etag, last_modified,
         other_schemes, directives, note, version, last_seen_at, gone_at, text_sha256
  FROM page;

CREATE VIEW links_by_id AS
  SELECT source AS source_id, target AS target_id, site_of(source) AS source_site_id, site_of(target) AS target_site_id,
         anchor, rel, follow
  FROM link;

CREATE VIEW requests_by_id AS
  SELECT id AS request_id, run_id, site_id, path, purpose, started_at, finished_at, status, error_kind, error, bytes,
         retry_after_s, robots_id AS robots_copy, verdict_line, for_site_id, location
  FROM request;

CREATE VIEW sites_by_id AS
  SELECT id AS site_id, name AS site, group_id, robots_id AS robots_copy, wait_until, crawl_delay_s, main_site, fetched,
         first_url_of(id) AS first_url_id, last_url_of(id) AS last_url_id
  FROM site;

CREATE VIEW groups_by_id AS
  SELECT id AS group_id, name AS politeness_group, ready_at, next_at, pause_s, backoff_s, wait_code, waits_for, claimed_by,
         reserved_by
  FROM politeness_group;

CREATE VIEW robots_by_id AS
  SELECT id AS robots_copy, site_id, text_id, action, status, fetched_at, valid_from, valid_until, etag, last_modified,
         failures, failing_since, retry_at, note, run_id, answered_by, headers
  FROM robots_copy;

CREATE VIEW robots_texts_by_id AS SELECT id AS text_id, sha256, body FROM robots_text;

CREATE VIEW bodies_by_id AS SELECT id AS body_id, sha256, data FROM body;

CREATE VIEW revisits_by_id AS
  SELECT url_id, site_of(url_id) AS site_id, due_at, not_before, checked_at, changes, watched_s, failures, hint,
         hinted_at, why, state AS state_before
  FROM revisit;

CREATE VIEW ranks_by_id AS SELECT url_id, site_id, pagerank, in_links, in_sites FROM rank;

CREATE VIEW samples_by_id AS SELECT draw, url_id, stratum, walk, probability FROM sample;

CREATE VIEW sample_draws AS
  SELECT method, per, size, seed, drawn_at, frame AS frame_size, cut_sites, follows, stands FROM sample_draw;
