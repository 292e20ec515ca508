-- Version 7: revisits. `page` has the newest version of a page; what it was before is in `page_version`.

ALTER TABLE page ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE page ADD COLUMN last_seen_at REAL;     -- when a visit last found it so; NULL: only when it was fetched
ALTER TABLE page ADD COLUMN gone_at REAL;          -- since when the site says that there is no such page
ALTER TABLE page ADD COLUMN text_sha256 BLOB;      -- of the text without mark-up and blanks; NULL: not reckoned

CREATE TABLE page_version (
  url_id INTEGER NOT NULL,
  version INTEGER NOT NULL,
  status INTEGER NOT NULL,
  content_type TEXT NOT NULL,
  charset TEXT,
  fetched_at REAL NOT NULL,
  last_seen_at REAL NOT NULL,
  title TEXT, description TEXT, keywords TEXT,     -- these and body_id are NULL once the page says NOINDEX
  noindex INTEGER NOT NULL,
  body_id INTEGER REFERENCES body(id),
  body_bytes INTEGER NOT NULL,
  text_sha256 BLOB,
  etag TEXT, last_modified TEXT,
  PRIMARY KEY (url_id, version)
) WITHOUT ROWID;

CREATE TABLE body_to_drop (body_id INTEGER PRIMARY KEY);  -- of pages that turned NOINDEX; swept when a run begins or ends

CREATE TABLE revisit (                   -- a URL that has been visited, once a run with --revisit has taken it up
  url_id INTEGER PRIMARY KEY,
  due_at REAL NOT NULL,                  -- when one in three such pages has changed, or a hint says that it has
  not_before REAL NOT NULL,              -- no hint brings it forward of this
  checked_at REAL NOT NULL,              -- the last visit that could tell what it is like
  changes REAL NOT NULL DEFAULT 0,       -- X and T of frontier/revisit.py, faded
  watched_s REAL NOT NULL,
  failures INTEGER NOT NULL DEFAULT 0,   -- visits in a row that found no page
  hint TEXT,                             -- who says that it changed since, at hinted_at
  hinted_at REAL,
  why TEXT NOT NULL DEFAULT '',          -- what due_at rests on
  state TEXT, reason TEXT,               -- of the URL, as they were before it was queued again
  etag TEXT, last_modified TEXT,         -- of sitemaps; pages have theirs in `page`
  content BLOB                           -- SHA-256 of sitemaps and NOINDEX pages, whose bodies are not kept
);
CREATE INDEX revisit_due ON revisit(due_at);

CREATE TABLE revisit_budget (            -- of a site, or of all: 0
  site_id INTEGER PRIMARY KEY,
  paid_until REAL NOT NULL               -- the part of a day's budget between now and then is spent
);

CREATE TABLE hint_record (               -- how often a site's hints were right
  site_id INTEGER NOT NULL,
  source TEXT NOT NULL,
  tried INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  PRIMARY KEY (site_id, source)
) WITHOUT ROWID;

ALTER TABLE frontier ADD COLUMN again INTEGER NOT NULL DEFAULT 0;  -- a revisit: limits on pages are not about it
CREATE INDEX frontier_again ON frontier(site_id, due_at) WHERE again;
CREATE INDEX url_sitemap ON url(id) WHERE kind = 'sitemap';

DROP VIEW pages;
CREATE VIEW pages AS
  SELECT s.name || u.path AS url, p.status, p.content_type, p.fetched_at, u.depth,
         p.title, p.description, p.keywords, p.canonical_url, p.document_state,
         p.noindex, p.nofollow, nullif(lower(hex(b.sha256)), '') AS body_sha256, p.body_bytes,
         s.name AS site, p.charset, p.meta_url, p.etag, p.last_modified, p.other_schemes, p.directives, p.note,
         p.url_id, p.version, coalesce(p.last_seen_at, p.fetched_at) AS last_seen_at, p.gone_at,
         nullif(lower(hex(p.text_sha256)), '') AS text_sha256
  FROM page p JOIN url u ON u.id = p.url_id JOIN site s ON s.id = p.url_id >> 39 LEFT JOIN body b ON b.id = p.body_id;

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
  JOIN url u ON u.id = v.url_id JOIN site s ON s.id = v.url_id >> 39 LEFT JOIN body b ON b.id = v.body_id;

CREATE VIEW revisits AS
  SELECT s.name || u.path AS url, r.due_at, r.checked_at, r.changes, r.watched_s, r.why, r.hint, r.hinted_at,
         r.failures, u.state, u.kind, s.name AS site, r.url_id
  FROM revisit r JOIN url u ON u.id = r.url_id JOIN site s ON s.id = r.url_id >> 39;
