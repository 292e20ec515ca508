-- The store in one PostgreSQL database: the tables of sqlite/schema.sql, which describes them, and the same views.
-- Texts compare by their bytes, as in SQLite. 0 and 1 stand for no and yes, so that one statement reads both.
--
-- Rows that a commit writes carry the number of their politeness group, as the last column of every unique key, and
-- reference only rows of the same group. The tables can therefore be distributed by group (docs/scale.md). The group
-- stands last because the other columns find a row alone.

CREATE TABLE store_version (version integer NOT NULL);

-- ---- runs and workers

CREATE TABLE run (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  started_at double precision NOT NULL,
  finished_at double precision,
  crawler_version text NOT NULL,
  settings text NOT NULL,
  ended_code text,
  ended_by text,
  worst_lag_s double precision,
  pages_before bigint NOT NULL DEFAULT 0
);

CREATE TABLE unsettled (since double precision NOT NULL);

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
  ended_code text,
  ended_by text,
  commits bigint NOT NULL DEFAULT 0,
  pages bigint NOT NULL DEFAULT 0,
  requests bigint NOT NULL DEFAULT 0,
  marked_url bigint,
  granted bigint NOT NULL DEFAULT 0
);
CREATE INDEX worker_run ON worker(run_id);
CREATE INDEX worker_live ON worker(id) WHERE ended_at IS NULL;

CREATE TABLE control (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  asked_at double precision NOT NULL,
  command text NOT NULL,
  name text NOT NULL DEFAULT '',
  run_id bigint,
  done_at double precision
);

CREATE TABLE heartbeat (
  worker bigint PRIMARY KEY,             -- processes on two machines may have the same pid
  run_id bigint NOT NULL REFERENCES run(id),
  pid bigint NOT NULL,
  seen_at double precision NOT NULL,
  memory_bytes bigint,
  lag_s double precision NOT NULL
);

CREATE TABLE store_copy (
  source text NOT NULL,
  begun_at double precision NOT NULL,
  done_at double precision
);

-- ---- sites and robots.txt

CREATE TABLE politeness_group (
  id bigint PRIMARY KEY,                 -- group_number(name): every node gives a name the same number
  name text COLLATE "C" NOT NULL,
  ready_at double precision,
  next_at double precision NOT NULL DEFAULT 0,
  pause_s double precision NOT NULL DEFAULT 0,
  backoff_s double precision NOT NULL DEFAULT 0,
  deaths integer NOT NULL DEFAULT 0,
  wait_code text NOT NULL DEFAULT 'none',
  waits_for text NOT NULL DEFAULT '',
  claimed_by bigint,
  reserved_by bigint
) WITH (fillfactor = 70);                -- every claim updates the row: leave room for the next version on its page
CREATE INDEX group_name ON politeness_group(name);
CREATE INDEX group_ready ON politeness_group(ready_at) WHERE ready_at IS NOT NULL AND claimed_by IS NULL;
CREATE INDEX group_held ON politeness_group(id) WHERE claimed_by IS NOT NULL OR reserved_by IS NOT NULL;

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

CREATE TABLE robots_text (               -- distributed by content, as body: many groups share one text
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

CREATE TABLE agent_server (
  group_id bigint NOT NULL,
  site_id bigint NOT NULL,
  line bigint NOT NULL,
  path text COLLATE "C" NOT NULL,
  agent_server text,
  PRIMARY KEY (site_id, line, group_id)
);

CREATE TABLE mirror (
  site text COLLATE "C" PRIMARY KEY,
  main_site text COLLATE "C" NOT NULL,
  evidence text NOT NULL,
  seen_at double precision NOT NULL,
  sample bigint,
  confidence double precision
);
CREATE INDEX mirror_seen ON mirror(seen_at);

-- ---- URLs and pages

CREATE TABLE url (
  group_id bigint NOT NULL,
  id bigint NOT NULL,
  path text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  reason_code text COLLATE "C" NOT NULL DEFAULT 'new',
  reason text COLLATE "C" NOT NULL DEFAULT '',
  depth bigint NOT NULL,
  found_on bigint,
  target bigint,
  attempts integer NOT NULL DEFAULT 0,
  deaths integer NOT NULL DEFAULT 0,
  hops integer NOT NULL DEFAULT 0,
  due_at double precision NOT NULL DEFAULT 0,
  seed integer NOT NULL DEFAULT 0,
  kind text NOT NULL DEFAULT 'page',
  lastmod double precision,
  PRIMARY KEY (id, group_id)
) WITH (fillfactor = 85);
CREATE INDEX url_seed ON url(id) WHERE seed = 1;
CREATE INDEX url_out ON url(state) WHERE state IN ('redirected', 'excluded', 'failed');
CREATE INDEX url_sitemap ON url(id) WHERE kind = 'sitemap';

CREATE TABLE frontier (
  group_id bigint NOT NULL,
  site_id bigint NOT NULL,
  due_at double precision NOT NULL,
  depth bigint NOT NULL,
  url_id bigint NOT NULL,
  is_revisit integer NOT NULL DEFAULT 0,
  PRIMARY KEY (site_id, due_at, depth, url_id, group_id)
);
CREATE INDEX frontier_revisit ON frontier(site_id, due_at) WHERE is_revisit = 1;

CREATE TABLE body (
  id bigint GENERATED ALWAYS AS IDENTITY,
  sha256 bytea NOT NULL UNIQUE,
  data bytea NOT NULL,
  PRIMARY KEY (id, sha256)
);
ALTER TABLE body ALTER COLUMN data SET STORAGE EXTERNAL;  -- it is compressed already

CREATE TABLE body_to_drop (body_id bigint PRIMARY KEY);

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
  version bigint NOT NULL DEFAULT 1,
  last_seen_at double precision,
  gone_at double precision,
  text_sha256 bytea,
  PRIMARY KEY (url_id, group_id)
);
CREATE INDEX page_body ON page(body_id);                  -- for deleting bodies

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
CREATE INDEX page_version_body ON page_version(body_id);  -- for deleting bodies

CREATE TABLE link (
  group_id bigint NOT NULL,              -- the group of the source
  source bigint NOT NULL,
  target bigint NOT NULL,
  anchor text COLLATE "C" NOT NULL,
  rel text COLLATE "C" NOT NULL,
  follow integer NOT NULL,
  PRIMARY KEY (source, target, group_id)
);

-- What pages say of URLs of other groups. A commit leaves it here, with the group of the page; transactions of their own
-- carry it over. A row with a url is an offer of that URL, with the link to it (follow is NULL if there is no link). A
-- row with a target brings a known URL nearer to the seeds.
CREATE TABLE offer (
  group_id bigint NOT NULL,
  id bigint GENERATED ALWAYS AS IDENTITY,
  worker_id bigint NOT NULL,
  max_depth bigint,                      -- of the crawl when the row was left
  depth bigint NOT NULL,
  target bigint,
  url text COLLATE "C",
  source bigint,
  source_depth bigint,
  refusal_code text COLLATE "C",
  refusal text COLLATE "C",
  hops integer NOT NULL DEFAULT 0,
  seed integer NOT NULL DEFAULT 0,
  kind text NOT NULL DEFAULT 'page',
  lastmod double precision,
  anchor text COLLATE "C", rel text COLLATE "C", follow integer,
  leads integer NOT NULL DEFAULT 0,      -- url becomes the target of the source, for instance of a redirect
  PRIMARY KEY (id, group_id)
);

CREATE TABLE request (
  group_id bigint NOT NULL,
  id bigint NOT NULL,                    -- numbered without a gap by request_number
  run_id bigint NOT NULL,
  site_id bigint NOT NULL,
  path text COLLATE "C" NOT NULL,
  purpose text COLLATE "C" NOT NULL,
  started_at double precision NOT NULL,
  finished_at double precision NOT NULL,
  status integer,
  error_kind text COLLATE "C",
  error text COLLATE "C",
  bytes bigint NOT NULL,
  retry_after_s double precision,
  robots_id bigint,
  verdict_line integer,
  for_site_id bigint,
  location text,
  PRIMARY KEY (id, group_id)
);

-- A sequence leaves a gap if a transaction is rolled back, and the audit looks for gaps in the log. A commit takes this
-- row last, so that other workers wait for it only as long as a COMMIT takes.
CREATE TABLE request_number (last bigint NOT NULL);
INSERT INTO request_number VALUES (0);

-- ---- revisits

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
  state text, reason_code text, reason text,
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

-- ---- the robot side of the Remote Update Protocol

CREATE TABLE rup_offer (
  site text COLLATE "C" PRIMARY KEY,
  url text NOT NULL,
  found_at double precision NOT NULL,
  cgi text NOT NULL,
  authentifier text NOT NULL,
  latencies text NOT NULL,
  exclude text NOT NULL,
  include_only text NOT NULL,
  max_query_span text
);

CREATE TABLE rup_server (
  site text COLLATE "C" PRIMARY KEY,
  cgi text NOT NULL,
  key text NOT NULL,
  email text NOT NULL,
  latency text NOT NULL,
  registered_at double precision NOT NULL,
  units text NOT NULL,
  max_query_span text,
  sequence_number bigint NOT NULL,
  digest text NOT NULL,
  good_until double precision NOT NULL,
  heard_at double precision NOT NULL,
  quiet bigint NOT NULL,
  refused bigint NOT NULL,
  exclude text NOT NULL,
  include_only text NOT NULL,
  question text NOT NULL,
  lost text NOT NULL,
  given_up text NOT NULL,
  unreached text NOT NULL,
  silent_at double precision NOT NULL
);

CREATE TABLE rup_mail (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  digest bytea NOT NULL UNIQUE,
  taken_at double precision NOT NULL,
  site text COLLATE "C",
  sequence_number bigint,
  verdict_code text NOT NULL,
  verdict text COLLATE "C" NOT NULL,
  changes bigint NOT NULL,
  refused bigint NOT NULL
);
CREATE INDEX rup_mail_site ON rup_mail(site);

-- ---- results computed from the crawl

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

CREATE TABLE sample_draw (
  method text NOT NULL,
  per text NOT NULL,
  size bigint NOT NULL,
  seed bigint NOT NULL,
  drawn_at double precision NOT NULL,
  frame bigint NOT NULL,
  cut_sites bigint NOT NULL,
  follows integer NOT NULL,
  stands integer NOT NULL
);

CREATE TABLE sample (
  draw bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  url_id bigint NOT NULL,
  stratum text COLLATE "C" NOT NULL,
  walk bigint,
  probability double precision NOT NULL
);
CREATE INDEX sample_url ON sample(url_id);

CREATE TABLE search_page (
  url_id bigint PRIMARY KEY,
  digest bigint NOT NULL,
  in_links bigint NOT NULL,
  in_sites bigint NOT NULL,
  size bigint NOT NULL                   -- in words
);

CREATE TABLE search_text (               -- the words of a page, without its text; a long page has several rows
  url_id bigint NOT NULL REFERENCES search_page ON DELETE CASCADE,
  part bigint NOT NULL,
  words tsvector NOT NULL,
  PRIMARY KEY (url_id, part)
);
CREATE INDEX search_words ON search_text USING gin(words);

CREATE TABLE search_state (
  id integer PRIMARY KEY CHECK (id = 1),
  version bigint NOT NULL,
  last_request bigint NOT NULL,
  complete integer NOT NULL,
  mean_inbound double precision NOT NULL
);

-- ---- functions

-- Functions of SQLite, so that one statement runs on both.
CREATE FUNCTION hex(bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT upper(encode($1, 'hex')) $$;
CREATE FUNCTION instr(text, text) RETURNS integer LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT strpos($1, $2) $$;
-- The number of a politeness group: 62 bits of a hash of its name.
CREATE FUNCTION group_number(text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS
  $$ SELECT ('x' || left(md5($1), 16))::bit(64)::bigint & 4611686018427387903 $$;
-- The node of a cluster that holds the rows of a group. One database holds all groups; a cluster replaces this function
-- (docs/scale.md). No transaction of a commit goes beyond one node.
CREATE FUNCTION node_of(group_id bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 0::bigint $$;
-- Lists of numbers and of texts are parameters in JSON, as for json_each in SQLite.
CREATE FUNCTION numbers(text) RETURNS bigint[] LANGUAGE sql IMMUTABLE STRICT AS
  $$ SELECT coalesce(array_agg(value::bigint), '{}') FROM json_array_elements_text($1::json) $$;
CREATE FUNCTION texts(text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT AS
  $$ SELECT coalesce(array_agg(value), '{}') FROM json_array_elements_text($1::json) $$;
CREATE FUNCTION clock() RETURNS double precision LANGUAGE sql VOLATILE AS
  $$ SELECT extract(epoch FROM clock_timestamp())::double precision $$;
-- The first and the last text of each range in a JSON list of pairs.
CREATE FUNCTION ranges(text) RETURNS TABLE (first text, last text) LANGUAGE sql IMMUTABLE STRICT AS
  $$ SELECT (value ->> 0) COLLATE "C", (value ->> 1) COLLATE "C" FROM json_array_elements($1::json) $$;

-- ---- views for users (docs/store.md)

CREATE VIEW runs AS
  SELECT id AS run_id, started_at, finished_at, ended_code, ended_by, crawler_version, settings, worst_lag_s,
         pages_before
  FROM run;

CREATE VIEW urls AS
  SELECT s.name || u.path AS url, s.name AS site, u.state, u.reason_code, u.reason, u.depth,
         fs.name || f.path AS discovered_from,
         CASE WHEN u.state = 'queued' THEN greatest(u.due_at, s.wait_until, g.next_at) END AS next_at,
         ts.name || t.path AS target, u.attempts, u.seed, u.kind, u.lastmod, u.id AS url_id
  FROM url u
  LEFT JOIN site s ON s.id = site_of(u.id)
  LEFT JOIN url f ON f.id = u.found_on LEFT JOIN site fs ON fs.id = site_of(u.found_on)
  LEFT JOIN url t ON t.id = u.target LEFT JOIN site ts ON ts.id = site_of(u.target)
  LEFT JOIN politeness_group g ON g.id = s.group_id;

CREATE VIEW pages AS
  SELECT s.name || u.path AS url, p.status, p.content_type, p.fetched_at, u.depth,
         p.title, p.description, p.keywords, p.canonical_url, p.document_state,
         p.noindex, p.nofollow, encode(b.sha256, 'hex') AS body_sha256, p.body_bytes,
         s.name AS site, p.charset, p.meta_url, p.etag, p.last_modified, p.other_schemes, p.directives, p.note,
         p.url_id, p.version, coalesce(p.last_seen_at, p.fetched_at) AS last_seen_at, p.gone_at,
         encode(p.text_sha256, 'hex') AS text_sha256
  FROM page p JOIN url u ON u.id = p.url_id JOIN site s ON s.id = site_of(p.url_id)
  LEFT JOIN body b ON b.id = p.body_id;

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
  JOIN url u ON u.id = v.url_id JOIN site s ON s.id = site_of(v.url_id) LEFT JOIN body b ON b.id = v.body_id;

CREATE VIEW links AS
  SELECT ss.name || su.path AS source, ts.name || tu.path AS target, l.anchor, l.rel,
         l.source AS source_id, l.target AS target_id
  FROM link l
  JOIN url su ON su.id = l.source JOIN site ss ON ss.id = site_of(l.source)
  JOIN url tu ON tu.id = l.target JOIN site ts ON ts.id = site_of(l.target);

CREATE VIEW sites AS
  SELECT s.name AS site, s.main_site, r.status AS robots_status, r.valid_until AS robots_expires_at,
         s.crawl_delay_s, g.pause_s AS delay_s, greatest(g.next_at, s.wait_until) AS next_at,
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
    FROM robots_copy),
  version AS (
    SELECT site_id, text_id, min(fetched_at) AS fetched_at, min(valid_from) AS valid_from,
      max(valid_until) AS valid_until, max(id) AS last, max(fetched_at) AS confirmed_at
    FROM answer GROUP BY site_id, action, text_id, island)
  SELECT s.name AS site, encode(t.sha256, 'hex') AS version_sha256, v.fetched_at, v.valid_from, v.valid_until,
         r.status, t.body, r.action, r.note, v.last AS robots_copy, v.confirmed_at
  FROM version v JOIN robots_copy r ON r.id = v.last JOIN site s ON s.id = v.site_id
  LEFT JOIN robots_text t ON t.id = v.text_id;

CREATE VIEW robots_answers AS
  SELECT s.name AS site, r.fetched_at, r.valid_from, r.valid_until, r.status, r.action,
         encode(t.sha256, 'hex') AS version_sha256,
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
         q.error, q.bytes, encode(t.sha256, 'hex') AS robots_version, q.verdict_line, q.retry_after_s,
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
         nullif(s.heard_at, 0) AS heard_at, greatest(s.good_until, s.registered_at) AS known_until,
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
