-- The store on PostgreSQL: the tables of the SQLite store (whose files describe them) and the very same views.
-- Texts are compared by their bytes, as SQLite does. 0 and 1 stand for no and yes, so that the same SQL asks both.
--
-- What a turn writes carries the politeness group it belongs to, as a part of every unique key, and references only
-- what the same group has: so the tables can be distributed by it (docs/scale.md). It stands last in a key, for a number
-- alone finds its row.

CREATE TABLE store_version (version integer NOT NULL);

CREATE TABLE run (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  started_at double precision NOT NULL,
  finished_at double precision,
  crawler_version text NOT NULL,
  settings text NOT NULL,
  ended_by text,
  worst_lag_s double precision,
  pages_before bigint NOT NULL DEFAULT 0
);

CREATE TABLE worker (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id bigint NOT NULL REFERENCES run(id),
  host text NOT NULL,
  pid bigint NOT NULL,
  processes text,
  started_at double precision NOT NULL,
  seen_at double precision NOT NULL,
  lease_until double precision,          -- by the clock of the database
  ended_at double precision,
  ended_by text,
  turns bigint NOT NULL DEFAULT 0,
  pages bigint NOT NULL DEFAULT 0,
  requests bigint NOT NULL DEFAULT 0,
  granted bigint NOT NULL DEFAULT 0
);
CREATE INDEX worker_run ON worker(run_id);
CREATE INDEX worker_live ON worker(id) WHERE ended_at IS NULL;

CREATE TABLE politeness_group (
  id bigint PRIMARY KEY,                 -- from its name (see group_number), so that all nodes give a name one number
  name text COLLATE "C" NOT NULL,
  ready_at double precision,
  next_at double precision NOT NULL DEFAULT 0,
  pause_s double precision NOT NULL DEFAULT 0,
  backoff_s double precision NOT NULL DEFAULT 0,
  waits_for text NOT NULL DEFAULT '',
  claimed_by bigint,
  visited_by bigint
) WITH (fillfactor = 70);                -- updated with every claim: room for the next version on the same page
CREATE INDEX group_name ON politeness_group(name);
CREATE INDEX group_ready ON politeness_group(ready_at) WHERE ready_at IS NOT NULL AND claimed_by IS NULL;
CREATE INDEX group_held ON politeness_group(id) WHERE claimed_by IS NOT NULL OR visited_by IS NOT NULL;

CREATE TABLE site (
  id bigint GENERATED ALWAYS AS IDENTITY,
  name text COLLATE "C" NOT NULL,
  group_id bigint NOT NULL REFERENCES politeness_group(id),
  robots_id bigint,
  wait_until double precision NOT NULL DEFAULT 0,
  crawl_delay_s double precision,
  main_site text COLLATE "C",
  fetched bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (id, group_id),
  UNIQUE (name, group_id)
) WITH (fillfactor = 80);
CREATE INDEX site_group ON site(group_id);

CREATE TABLE robots_text (               -- distributed by its content, as body is: many groups have the same
  id bigint GENERATED ALWAYS AS IDENTITY,
  sha256 bytea NOT NULL UNIQUE,
  body bytea NOT NULL,
  PRIMARY KEY (id, sha256)
);

CREATE TABLE robots_copy (
  group_id bigint NOT NULL,
  id bigint GENERATED ALWAYS AS IDENTITY,
  site_id bigint NOT NULL,
  text_id bigint,
  action text NOT NULL,
  status text NOT NULL,
  fetched_at double precision NOT NULL,
  valid_from double precision NOT NULL,
  valid_until double precision NOT NULL,
  etag text, last_modified text,
  failures bigint NOT NULL DEFAULT 0,
  failing_since double precision, retry_at double precision,
  note text NOT NULL DEFAULT '',
  run_id bigint,
  answered_by text,
  headers text,
  PRIMARY KEY (id, group_id)
);
CREATE INDEX robots_copy_site ON robots_copy(site_id);

CREATE TABLE url (
  group_id bigint NOT NULL,
  id bigint NOT NULL,
  path text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL DEFAULT '',
  depth bigint NOT NULL,
  found_on bigint,
  target bigint,
  attempts integer NOT NULL DEFAULT 0,
  hops integer NOT NULL DEFAULT 0,
  due_at double precision NOT NULL DEFAULT 0,
  seed integer NOT NULL DEFAULT 0,
  kind text NOT NULL DEFAULT 'page',
  lastmod double precision,
  PRIMARY KEY (id, group_id)
) WITH (fillfactor = 85);
CREATE INDEX url_seed ON url(id) WHERE seed = 1;
CREATE INDEX url_out ON url(state) WHERE state IN ('redirected', 'excluded', 'failed');

CREATE TABLE frontier (
  group_id bigint NOT NULL,
  site_id bigint NOT NULL,
  due_at double precision NOT NULL,
  depth bigint NOT NULL,
  url_id bigint NOT NULL,
  PRIMARY KEY (site_id, due_at, depth, url_id, group_id)
);

CREATE TABLE body (
  id bigint GENERATED ALWAYS AS IDENTITY,
  sha256 bytea NOT NULL UNIQUE,
  data bytea NOT NULL,
  PRIMARY KEY (id, sha256)
);
ALTER TABLE body ALTER COLUMN data SET STORAGE EXTERNAL;  -- compressed already

CREATE TABLE page (
  group_id bigint NOT NULL,
  url_id bigint NOT NULL,
  status integer NOT NULL,
  content_type text COLLATE "C" NOT NULL,
  charset text,
  fetched_at double precision NOT NULL,
  title text COLLATE "C", description text COLLATE "C", keywords text COLLATE "C",
  canonical_url text COLLATE "C", meta_url text, document_state text,
  noindex integer NOT NULL, nofollow integer NOT NULL,
  body_id bigint,
  body_bytes bigint NOT NULL,
  etag text, last_modified text,
  other_schemes text,
  directives text,
  note text NOT NULL DEFAULT '',
  PRIMARY KEY (url_id, group_id)
);

CREATE TABLE link (
  group_id bigint NOT NULL,              -- of the source
  source bigint NOT NULL,
  target bigint NOT NULL,
  anchor text COLLATE "C" NOT NULL,
  rel text COLLATE "C" NOT NULL,
  follow integer NOT NULL,
  PRIMARY KEY (source, target, group_id)
);

CREATE TABLE request (
  group_id bigint NOT NULL,
  id bigint NOT NULL,                    -- given without a gap: see request_number
  run_id bigint NOT NULL,
  site_id bigint NOT NULL,
  path text COLLATE "C" NOT NULL,
  purpose text COLLATE "C" NOT NULL,
  started_at double precision NOT NULL,
  finished_at double precision NOT NULL,
  status integer,
  error text COLLATE "C",
  bytes bigint NOT NULL,
  retry_after_s double precision,
  robots_id bigint,
  verdict_line integer,
  for_site_id bigint,
  location text,
  PRIMARY KEY (id, group_id)
);

-- What pages say of URLs of other groups: a turn leaves it here, with the group of the page, and it is carried over in
-- transactions of their own. One with a url is an offer of it, and the link to it (follow is NULL where there is none);
-- one with a target brings a known URL nearer to the seeds.
CREATE TABLE offer (
  group_id bigint NOT NULL,
  id bigint GENERATED ALWAYS AS IDENTITY,
  worker_id bigint NOT NULL,
  max_depth bigint,                      -- of the crawl, then
  depth bigint NOT NULL,
  target bigint,
  url text COLLATE "C",
  source bigint,
  source_depth bigint,
  refusal text COLLATE "C",
  hops integer NOT NULL DEFAULT 0,
  seed integer NOT NULL DEFAULT 0,
  kind text NOT NULL DEFAULT 'page',
  lastmod double precision,
  anchor text COLLATE "C", rel text COLLATE "C", follow integer,
  leads integer NOT NULL DEFAULT 0,      -- the source is redirected there, or the like
  PRIMARY KEY (id, group_id)
);

-- A sequence leaves gaps where a transaction is rolled back, and a gap in the log is what an audit looks for. One row,
-- taken last in a turn, so that others wait for it no longer than a commit takes.
CREATE TABLE request_number (last bigint NOT NULL);
INSERT INTO request_number VALUES (0);

CREATE TABLE mirror (
  site text COLLATE "C" PRIMARY KEY,
  main_site text COLLATE "C" NOT NULL,
  evidence text NOT NULL,
  seen_at double precision NOT NULL,
  sample bigint,
  confidence double precision
);
CREATE INDEX mirror_seen ON mirror(seen_at);

CREATE TABLE agent_server (
  group_id bigint NOT NULL,
  site_id bigint NOT NULL,
  line bigint NOT NULL,
  path text COLLATE "C" NOT NULL,
  agent_server text,
  PRIMARY KEY (site_id, line, group_id)
);

CREATE TABLE unsettled (since double precision NOT NULL);

CREATE TABLE store_copy (
  source text NOT NULL,
  begun_at double precision NOT NULL,
  done_at double precision
);

CREATE TABLE rank (
  url_id bigint PRIMARY KEY,
  site_id bigint NOT NULL,
  pagerank double precision NOT NULL,
  in_links bigint NOT NULL,
  in_sites bigint NOT NULL
);

CREATE TABLE site_rank (
  site_id bigint PRIMARY KEY,
  pagerank double precision NOT NULL,
  pages bigint NOT NULL,
  in_links bigint NOT NULL,
  in_sites bigint NOT NULL
);

-- What SQLite calls by other names, so that one SQL reads both.
CREATE FUNCTION hex(bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT upper(encode($1, 'hex')) $$;
CREATE FUNCTION instr(text, text) RETURNS integer LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT strpos($1, $2) $$;
-- The number of a politeness group: 62 bits of a hash of its name.
CREATE FUNCTION group_number(text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS
  $$ SELECT ('x' || left(md5($1), 16))::bit(64)::bigint & 4611686018427387903 $$;
-- Which node of a cluster has the rows of a group. One database has all; elsewhere this is to be replaced (docs/scale.md),
-- and no transaction of a turn goes beyond one node.
CREATE FUNCTION node_of(group_id bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 0::bigint $$;
-- Lists of numbers and texts come as JSON, as they do to SQLite's json_each.
CREATE FUNCTION numbers(text) RETURNS bigint[] LANGUAGE sql IMMUTABLE STRICT AS
  $$ SELECT coalesce(array_agg(value::bigint), '{}') FROM json_array_elements_text($1::json) $$;
CREATE FUNCTION texts(text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT AS
  $$ SELECT coalesce(array_agg(value), '{}') FROM json_array_elements_text($1::json) $$;
CREATE FUNCTION clock() RETURNS double precision LANGUAGE sql VOLATILE AS
  $$ SELECT extract(epoch FROM clock_timestamp())::double precision $$;

CREATE VIEW urls AS
  SELECT s.name || u.path AS url, s.name AS site, u.state, u.reason, u.depth,
         fs.name || f.path AS discovered_from,
         CASE WHEN u.state = 'queued' THEN greatest(u.due_at, s.wait_until, g.next_at) END AS next_at,
         ts.name || t.path AS target, u.attempts, u.seed, u.kind, u.lastmod, u.id AS url_id
  FROM url u
  LEFT JOIN site s ON s.id = u.id >> 39
  LEFT JOIN url f ON f.id = u.found_on LEFT JOIN site fs ON fs.id = u.found_on >> 39
  LEFT JOIN url t ON t.id = u.target LEFT JOIN site ts ON ts.id = u.target >> 39
  LEFT JOIN politeness_group g ON g.id = s.group_id;

CREATE VIEW pages AS
  SELECT s.name || u.path AS url, p.status, p.content_type, p.fetched_at, u.depth,
         p.title, p.description, p.keywords, p.canonical_url, p.document_state,
         p.noindex, p.nofollow, encode(b.sha256, 'hex') AS body_sha256, p.body_bytes,
         s.name AS site, p.charset, p.meta_url, p.etag, p.last_modified, p.other_schemes, p.directives, p.note,
         p.url_id
  FROM page p JOIN url u ON u.id = p.url_id JOIN site s ON s.id = p.url_id >> 39 LEFT JOIN body b ON b.id = p.body_id;

CREATE VIEW links AS
  SELECT ss.name || su.path AS source, ts.name || tu.path AS target, l.anchor, l.rel,
         l.source AS source_id, l.target AS target_id
  FROM link l
  JOIN url su ON su.id = l.source JOIN site ss ON ss.id = l.source >> 39
  JOIN url tu ON tu.id = l.target JOIN site ts ON ts.id = l.target >> 39;

CREATE VIEW sites AS
  SELECT s.name AS site, s.main_site, r.status AS robots_status, r.valid_until AS robots_expires_at,
         s.crawl_delay_s, g.pause_s AS delay_s, greatest(g.next_at, s.wait_until) AS next_at,
         (SELECT count(*) FROM frontier f WHERE f.site_id = s.id) AS queued, s.fetched,
         r.action AS robots_action, r.note AS robots_note, g.name AS politeness_group,
         CASE WHEN s.wait_until > g.next_at THEN 'robots.txt: ' || r.status ELSE g.waits_for END AS waits_for
  FROM site s JOIN politeness_group g ON g.id = s.group_id LEFT JOIN robots_copy r ON r.id = s.robots_id;

CREATE VIEW robots_versions AS
  WITH run_of AS (
    SELECT *, row_number() OVER (PARTITION BY site_id ORDER BY id)
            - row_number() OVER (PARTITION BY site_id, action, text_id ORDER BY id) AS island
    FROM robots_copy),
  version AS (
    SELECT site_id, text_id, min(fetched_at) AS fetched_at, min(valid_from) AS valid_from,
      max(valid_until) AS valid_until, max(id) AS last, max(fetched_at) AS confirmed_at
    FROM run_of GROUP BY site_id, action, text_id, island)
  SELECT s.name AS site, encode(t.sha256, 'hex') AS version_sha256, v.fetched_at, v.valid_from, v.valid_until,
         r.status, t.body, r.action, r.note, v.last AS robots_copy, v.confirmed_at
  FROM version v JOIN robots_copy r ON r.id = v.last JOIN site s ON s.id = v.site_id
  LEFT JOIN robots_text t ON t.id = v.text_id;

CREATE VIEW robots_answers AS
  SELECT s.name AS site, r.fetched_at, r.valid_from, r.valid_until, r.status, r.action,
         encode(t.sha256, 'hex') AS version_sha256,
         r.answered_by, r.headers, r.retry_at, r.failures, r.failing_since, r.note, r.run_id, r.id AS robots_copy
  FROM robots_copy r JOIN site s ON s.id = r.site_id LEFT JOIN robots_text t ON t.id = r.text_id;

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

CREATE VIEW agent_servers AS
  SELECT s.name AS site, a.path, a.agent_server, a.line FROM agent_server a JOIN site s ON s.id = a.site_id;

CREATE VIEW requests AS
  SELECT s.name || q.path AS url, s.name AS site, q.purpose, q.started_at, q.finished_at, q.status, q.error, q.bytes,
         encode(t.sha256, 'hex') AS robots_version, q.verdict_line, q.retry_after_s, q.run_id,
         q.robots_id AS robots_copy
  FROM request q JOIN site s ON s.id = q.site_id
  LEFT JOIN robots_copy r ON r.id = q.robots_id LEFT JOIN robots_text t ON t.id = r.text_id;

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

CREATE VIEW ranks AS
  SELECT s.name || u.path AS url, r.pagerank, r.in_links, r.in_sites, r.url_id, s.name AS site
  FROM rank r JOIN url u ON u.id = r.url_id JOIN site s ON s.id = r.site_id;

CREATE VIEW site_ranks AS
  SELECT s.name AS site, r.pagerank, r.pages, r.in_links, r.in_sites
  FROM site_rank r JOIN site s ON s.id = r.site_id;

CREATE VIEW workers AS
  SELECT w.id AS worker, w.run_id, w.host, w.pid, w.started_at, w.seen_at, w.lease_until, w.ended_at, w.ended_by,
         w.pages, w.requests,
         (SELECT count(*) FROM politeness_group g
          WHERE (g.claimed_by IS NOT NULL OR g.visited_by IS NOT NULL) AND g.claimed_by = w.id) AS groups_held
  FROM worker w;
