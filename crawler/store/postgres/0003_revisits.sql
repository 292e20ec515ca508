-- Revisits: as SQLite's 0007_revisits.sql.

ALTER TABLE page ADD COLUMN version bigint NOT NULL DEFAULT 1;
ALTER TABLE page ADD COLUMN last_seen_at double precision;
ALTER TABLE page ADD COLUMN gone_at double precision;
ALTER TABLE page ADD COLUMN text_sha256 bytea;

CREATE TABLE page_version (
  group_id bigint NOT NULL,
  url_id bigint NOT NULL,
  version bigint NOT NULL,
  status integer NOT NULL,
  content_type text COLLATE "C" NOT NULL,
  charset text,
  fetched_at double precision NOT NULL,
  last_seen_at double precision NOT NULL,
  title text COLLATE "C", description text COLLATE "C", keywords text COLLATE "C",
  noindex integer NOT NULL,
  body_id bigint,
  body_bytes bigint NOT NULL,
  text_sha256 bytea,
  etag text, last_modified text,
  PRIMARY KEY (url_id, version, group_id)
);

CREATE TABLE body_to_drop (body_id bigint PRIMARY KEY);
CREATE INDEX page_body ON page(body_id);                  -- looked into when a body is dropped
CREATE INDEX page_version_body ON page_version(body_id);

CREATE TABLE revisit (
  group_id bigint NOT NULL,
  url_id bigint NOT NULL,
  due_at double precision NOT NULL,
  not_before double precision NOT NULL,
  checked_at double precision NOT NULL,
  changes double precision NOT NULL DEFAULT 0,
  watched_s double precision NOT NULL,
  failures bigint NOT NULL DEFAULT 0,
  hint text,
  hinted_at double precision,
  why text NOT NULL DEFAULT '',
  state text, reason text,
  etag text, last_modified text,
  content bytea,
  PRIMARY KEY (url_id, group_id)
);
CREATE INDEX revisit_due ON revisit(due_at);

CREATE TABLE revisit_budget (
  site_id bigint PRIMARY KEY,
  paid_until double precision NOT NULL
);

CREATE TABLE hint_record (
  group_id bigint NOT NULL,
  site_id bigint NOT NULL,
  source text COLLATE "C" NOT NULL,
  tried bigint NOT NULL,
  changed bigint NOT NULL,
  PRIMARY KEY (site_id, source, group_id)
);

ALTER TABLE frontier ADD COLUMN again integer NOT NULL DEFAULT 0;
CREATE INDEX frontier_again ON frontier(site_id, due_at) WHERE again = 1;
CREATE INDEX url_sitemap ON url(id) WHERE kind = 'sitemap';

DROP VIEW pages;
CREATE VIEW pages AS
  SELECT s.name || u.path AS url, p.status, p.content_type, p.fetched_at, u.depth,
         p.title, p.description, p.keywords, p.canonical_url, p.document_state,
         p.noindex, p.nofollow, encode(b.sha256, 'hex') AS body_sha256, p.body_bytes,
         s.name AS site, p.charset, p.meta_url, p.etag, p.last_modified, p.other_schemes, p.directives, p.note,
         p.url_id, p.version, coalesce(p.last_seen_at, p.fetched_at) AS last_seen_at, p.gone_at,
         encode(p.text_sha256, 'hex') AS text_sha256
  FROM page p JOIN url u ON u.id = p.url_id JOIN site s ON s.id = p.url_id >> 39 LEFT JOIN body b ON b.id = p.body_id;

CREATE VIEW page_versions AS
  SELECT s.name || u.path AS url, v.version, v.fetched_at, v.last_seen_at, v.status, v.content_type, v.charset,
         v.title, v.description, v.keywords, v.noindex, encode(b.sha256, 'hex') AS body_sha256, v.body_bytes,
         encode(v.text_sha256, 'hex') AS text_sha256, v.etag, v.last_modified, v.gone_at,
         s.name AS site, v.url_id
  FROM (
    SELECT url_id, version, fetched_at, last_seen_at, status, content_type, charset, title, description, keywords,
           noindex, body_id, body_bytes, text_sha256, etag, last_modified, NULL::double precision AS gone_at
    FROM page_version
    UNION ALL
    SELECT url_id, version, fetched_at, coalesce(last_seen_at, fetched_at), status, content_type, charset, title,
           description, keywords, noindex, body_id, body_bytes, text_sha256, etag, last_modified, gone_at FROM page) v
  JOIN url u ON u.id = v.url_id JOIN site s ON s.id = v.url_id >> 39 LEFT JOIN body b ON b.id = v.body_id;

CREATE VIEW revisits AS
  SELECT s.name || u.path AS url, r.due_at, r.checked_at, r.changes, r.watched_s, r.why, r.hint, r.hinted_at,
         r.failures, u.state, u.kind, s.name AS site, r.url_id
  FROM revisit r JOIN url u ON u.id = r.url_id JOIN site s ON s.id = r.url_id >> 39;
