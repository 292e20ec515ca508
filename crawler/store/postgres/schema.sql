-- The store in one PostgreSQL database: the tables of sqlite/schema.sql, which describes them.
-- Texts compare by their bytes, as in SQLite. 0 and 1 stand for no and yes, so that one statement reads both.

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
  reserved bigint NOT NULL DEFAULT 0
);
CREATE INDEX worker_run ON worker(run_id);
CREATE INDEX worker_live ON worker(id) WHERE ended_at IS NULL;

CREATE TABLE control (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  asked_at double precision NOT NULL,
  command text NOT NULL,
  name text NOT NULL DEFAULT '',
  run_id bigint,
  done_at double precision,
  because text NOT NULL DEFAULT ''
);

CREATE TABLE heartbeat (
  worker bigint PRIMARY KEY,             -- processes on two machines may have the same pid
  run_id bigint NOT NULL REFERENCES run(id),
  pid bigint NOT NULL,
  seen_at double precision NOT NULL,
  memory_bytes bigint,
  lag_s double precision NOT NULL,
  low_disk text,
  look_ups text NOT NULL DEFAULT '{}'
);

CREATE TABLE store_copy (
  source text NOT NULL,
  done_at double precision
);

-- ---- sites and robots.txt

CREATE TABLE politeness_group (
  id bigint PRIMARY KEY,                 -- group_number(name)
  name text COLLATE "C" NOT NULL,
  ready_at double precision,
  next_at double precision NOT NULL DEFAULT 0,
  pause_s double precision NOT NULL DEFAULT 0,
  backoff_s double precision NOT NULL DEFAULT 0,
  answers bigint NOT NULL DEFAULT 0,     -- whose times are in the averages usual_s and recent_s, in seconds
  usual_s double precision NOT NULL DEFAULT 0,
  recent_s double precision NOT NULL DEFAULT 0,
  wait_code text NOT NULL DEFAULT 'none',
  waits_for text NOT NULL DEFAULT '',
  claimed_by bigint
) WITH (fillfactor = 70);                -- every claim updates the row: leave room for the next version on its page
CREATE INDEX group_name ON politeness_group(name);
CREATE INDEX group_ready ON politeness_group(ready_at) WHERE ready_at IS NOT NULL AND claimed_by IS NULL;
CREATE INDEX group_held ON politeness_group(id) WHERE claimed_by IS NOT NULL;

CREATE TABLE part (
  number integer PRIMARY KEY,
  db text COLLATE "C" NOT NULL,
  is_own integer NOT NULL,
  taken bigint NOT NULL DEFAULT 0
);

CREATE TABLE outgoing (
  id bigint GENERATED ALWAYS AS IDENTITY,
  part integer NOT NULL,
  url text COLLATE "C" NOT NULL,
  depth bigint NOT NULL,
  hops integer NOT NULL,
  seed integer NOT NULL,
  kind text COLLATE "C" NOT NULL,
  lastmod double precision,
  by_domain integer NOT NULL,
  PRIMARY KEY (part, id)
);

CREATE TABLE site (
  id bigint GENERATED ALWAYS AS IDENTITY,
  name text COLLATE "C" NOT NULL,
  host text COLLATE "C" NOT NULL,
  registered_domain text COLLATE "C" NOT NULL,
  group_id bigint NOT NULL REFERENCES politeness_group(id),
  robots_id bigint,
  wait_until double precision NOT NULL DEFAULT 0,
  crawl_delay_s double precision,
  main_site text COLLATE "C",
  other_part integer,
  fetched bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (id),
  UNIQUE (name)
) WITH (fillfactor = 80);
CREATE INDEX site_group ON site(group_id);

CREATE TABLE robots_text (
  id bigint GENERATED ALWAYS AS IDENTITY,
  sha256 bytea NOT NULL UNIQUE,
  body bytea NOT NULL,
  PRIMARY KEY (id)
);

CREATE TABLE robots_copy (
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
  PRIMARY KEY (id)
);
CREATE INDEX robots_copy_site ON robots_copy(site_id);
CREATE INDEX robots_copy_answered ON robots_copy(answered_by);

CREATE TABLE robots_wait (
  site_id bigint PRIMARY KEY,
  target_id bigint NOT NULL,
  path text COLLATE "C" NOT NULL,
  seen text,
  hops integer NOT NULL
);
CREATE INDEX robots_wait_target ON robots_wait(target_id, path);

CREATE TABLE agent_server (
  site_id bigint NOT NULL,
  line bigint NOT NULL,
  path text COLLATE "C" NOT NULL,
  agent_server text,
  PRIMARY KEY (site_id, line)
);

CREATE TABLE tdmrep_file (
  site_id bigint NOT NULL,
  fetched_at double precision NOT NULL,
  status text NOT NULL,
  body bytea NOT NULL,
  note text NOT NULL,
  PRIMARY KEY (site_id)
);

CREATE TABLE mirror (
  site text COLLATE "C" PRIMARY KEY,
  main_site text COLLATE "C" NOT NULL,
  evidence text NOT NULL,
  seen_at double precision NOT NULL,
  sample bigint,
  confidence double precision,
  contradiction text
);
CREATE INDEX mirror_seen ON mirror(seen_at);

-- ---- URLs and pages

CREATE TABLE hash_key (id bigint PRIMARY KEY CHECK (id = 1), key bigint NOT NULL);

CREATE TABLE url (
  id bigint NOT NULL,
  path text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  reason_code text COLLATE "C" NOT NULL DEFAULT 'new',
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
  by_domain integer NOT NULL DEFAULT 0,
  PRIMARY KEY (id)
) WITH (fillfactor = 85);
CREATE INDEX url_seed ON url(id) WHERE seed = 1;
CREATE INDEX url_out ON url(state) WHERE state IN ('redirected', 'excluded', 'failed');
CREATE INDEX url_sitemap ON url(id) WHERE kind = 'sitemap';

CREATE TABLE frontier (
  site_id bigint NOT NULL,
  due_at double precision NOT NULL,
  depth bigint NOT NULL,
  url_id bigint NOT NULL,
  is_revisit integer NOT NULL DEFAULT 0,
  PRIMARY KEY (site_id, due_at, depth, url_id)
);
CREATE INDEX frontier_revisit ON frontier(site_id, due_at) WHERE is_revisit = 1;

CREATE TABLE unread_answer (
  url_id bigint PRIMARY KEY,
  facts text NOT NULL,
  body bytea NOT NULL,
  request bytea,
  response bytea
);

CREATE TABLE body (
  id bigint GENERATED ALWAYS AS IDENTITY,
  sha256 bytea NOT NULL UNIQUE,
  data bytea,
  PRIMARY KEY (id)
);
ALTER TABLE body ALTER COLUMN data SET STORAGE EXTERNAL;  -- it is compressed already

CREATE TABLE main_text (
  body_id bigint PRIMARY KEY REFERENCES body ON DELETE CASCADE,
  read_as text COLLATE "C" NOT NULL,
  data bytea NOT NULL
);
ALTER TABLE main_text ALTER COLUMN data SET STORAGE EXTERNAL;  -- it is compressed already

CREATE TABLE body_to_drop (body_id bigint PRIMARY KEY);

CREATE TABLE body_place (
  place text NOT NULL,
  store_id text NOT NULL
);

CREATE TABLE object_to_delete (sha256 bytea PRIMARY KEY);

CREATE TABLE preference_set (
  id bigint PRIMARY KEY,
  said text NOT NULL
);

CREATE TABLE answer (
  id bigint PRIMARY KEY,
  headers text,
  address text COLLATE "C",
  tls_version text
);

CREATE TABLE page (
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
  preferences_id bigint,
  robots_preferences_id bigint,
  language text COLLATE "C",
  answer_id bigint,
  resources text,
  PRIMARY KEY (url_id)
);
CREATE INDEX page_body ON page(body_id);                  -- for deleting bodies

CREATE TABLE page_version (
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
  preferences_id bigint, robots_preferences_id bigint,
  language text COLLATE "C", answer_id bigint,
  PRIMARY KEY (url_id, version)
);
CREATE INDEX page_version_body ON page_version(body_id);  -- for deleting bodies

CREATE TABLE link (
  source bigint NOT NULL,
  target bigint NOT NULL,
  anchor text COLLATE "C" NOT NULL,
  rel text COLLATE "C" NOT NULL,
  follow integer NOT NULL,
  PRIMARY KEY (source, target)
);

-- Offers of URLs of other groups. A commit leaves them here; transactions of their own carry them over. A row with a
-- url is an offer of that URL, with the link to it (follow is NULL if there is no link). A row with a target brings a
-- known URL nearer to the seeds.
CREATE TABLE offer (
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
  by_domain integer NOT NULL DEFAULT 0,
  PRIMARY KEY (id)
);

CREATE TABLE tls (
  id bigint PRIMARY KEY,
  version text NOT NULL,
  cipher text NOT NULL,
  certificate_until double precision
);

CREATE TABLE request (
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
  lag_s double precision NOT NULL DEFAULT 0,
  tls_id bigint,
  address text COLLATE "C",
  PRIMARY KEY (id)
);

-- A sequence leaves a gap if a transaction is rolled back, and the audit looks for gaps in the log. A commit takes this
-- row last, so that other workers wait for it only as long as a COMMIT takes.
CREATE TABLE request_number (last bigint NOT NULL);
INSERT INTO request_number VALUES (0);

-- ---- revisits

CREATE TABLE revisit (
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
  PRIMARY KEY (url_id)
);
CREATE INDEX revisit_due ON revisit(due_at);

CREATE TABLE revisit_budget (
  site_id bigint PRIMARY KEY,
  paid_until double precision NOT NULL
);

CREATE TABLE hint_record (
  site_id bigint NOT NULL,
  source text COLLATE "C" NOT NULL,
  tried bigint NOT NULL,
  changed bigint NOT NULL,
  PRIMARY KEY (site_id, source)
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

CREATE TABLE text_signature (
  url_id bigint PRIMARY KEY,
  digest bigint NOT NULL,
  keys bytea NOT NULL
);

CREATE TABLE site_template (
  site_id bigint PRIMARY KEY,
  shingles bytea NOT NULL
);

CREATE TABLE near_duplicate (
  url_id bigint PRIMARY KEY,
  cluster_id bigint NOT NULL,
  similarity double precision NOT NULL
);
CREATE INDEX near_duplicate_cluster ON near_duplicate(cluster_id);

CREATE TABLE computation (
  name text PRIMARY KEY,
  last_request bigint NOT NULL
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
  missed bigint NOT NULL,
  missed_sites bigint NOT NULL,
  held_from bigint,
  stands integer NOT NULL,
  share double precision NOT NULL,
  sites bigint,
  sites_by text NOT NULL
);

CREATE TABLE sample (
  draw bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  url_id bigint NOT NULL,
  stratum text COLLATE "C" NOT NULL,
  walk bigint,
  probability double precision NOT NULL,
  site_probability double precision NOT NULL
);
CREATE INDEX sample_url ON sample(url_id);

CREATE TABLE frame_url (url_id bigint PRIMARY KEY);

CREATE TABLE search_page (
  url_id bigint PRIMARY KEY,
  digest bigint NOT NULL,
  in_links bigint NOT NULL,
  in_sites bigint NOT NULL,
  size bigint NOT NULL,                  -- in words
  site_id bigint NOT NULL,
  language text COLLATE "C" NOT NULL,
  depth bigint NOT NULL,
  fetched_at double precision NOT NULL
);

CREATE TABLE search_anchors (
  url_id bigint PRIMARY KEY REFERENCES search_page ON DELETE CASCADE,
  anchors text NOT NULL
);

CREATE TABLE search_text (               -- the words of a page, without its text; a long page has several rows
  url_id bigint NOT NULL REFERENCES search_page ON DELETE CASCADE,
  part bigint NOT NULL,
  words tsvector NOT NULL,
  PRIMARY KEY (url_id, part)
);
CREATE INDEX search_words ON search_text USING gin(words);

CREATE TABLE search_word (               -- the words of the index; FTS5 has them anyway
  term text COLLATE "C" PRIMARY KEY,
  doc bigint NOT NULL
);

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
