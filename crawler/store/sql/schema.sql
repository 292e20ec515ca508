-- The tables of a store. Times are seconds since the epoch (UTC); 0 and 1 stand for no and yes.
--
-- The words are those of SQLite; crawler/store/sql/schema.py has those of PostgreSQL, where INTEGER has eight octets and
-- INT has four. The folder of each database has the tables that are particular to it.
--
-- The number of a URL packs the number of its site and a hash of its path (crawler/store/keys.py). All URLs of a site,
-- and most links of a page, therefore stand together in the file. The hash has a random key in each store. Two paths of
-- one site may have the same hash: the store compares the paths, and the path that came later has the next free number.
-- site_of(), first_url_of(), last_url_of() and path_hash_of() are rendered by crawler/store/keys.py.

-- ---- runs and workers

CREATE TABLE run (                       -- one row per `crawler run` on this store
  id own_number(),
  started_at REAL NOT NULL,
  finished_at REAL,                      -- NULL while the run is under way, and after a crash
  crawler_version TEXT NOT NULL,
  settings TEXT NOT NULL,                -- JSON
  ended_code TEXT,                       -- EndCode in crawler/reasons.py
  ended_by TEXT,                         -- the sentence for ended_code
  worst_lag_s REAL,                      -- the longest delay of the event loop
  pages_before INTEGER NOT NULL DEFAULT 0  -- pages in the store when the run began
);

CREATE TABLE change_under_way (since REAL NOT NULL);  -- one row while a run with changed options is being begun

CREATE TABLE worker (                    -- one row per process that has crawled into this store
  id own_number(),
  run_id INTEGER NOT NULL,               -- run.id
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
  reserved INTEGER NOT NULL DEFAULT 0    -- pages reserved for the worker under --max-pages
);
CREATE INDEX worker_run ON worker(run_id);
CREATE INDEX worker_live ON worker(id) WHERE ended_at IS NULL;

CREATE TABLE heartbeat (                 -- one row per worker of the last run
  worker INTEGER PRIMARY KEY,            -- worker.id; processes on two machines may have the same pid
  run_id INTEGER NOT NULL,
  pid INTEGER NOT NULL,
  seen_at REAL NOT NULL,
  memory_bytes INTEGER,                  -- resident; NULL if the system does not report it
  lag_s REAL NOT NULL,                   -- the longest delay of the event loop since the last heartbeat
  low_disk TEXT,                         -- the disk for whose free space the process pauses
  look_ups TEXT NOT NULL DEFAULT '{}',   -- look-ups of names by outcome, as JSON
  vain_claims INTEGER NOT NULL DEFAULT 0  -- claims that brought neither a request nor the address of a host
);

CREATE TABLE control (                   -- orders of the operator, appended by `crawler control` and the dashboard
  id lasting_number(),                   -- orders apply in this sequence
  asked_at REAL NOT NULL,
  command TEXT NOT NULL,                 -- pause, resume, stop, block, unblock, queue
  name TEXT NOT NULL DEFAULT '',         -- of block and unblock: a host or a site; of queue: a URL
  run_id INTEGER,                        -- of stop: the run to stop
  done_at REAL,                          -- when a crawl had carried the order out
  because TEXT NOT NULL DEFAULT ''       -- of block: why, in the operator's words
);

CREATE TABLE store_copy (                -- one row if the store is a copy
  source TEXT NOT NULL,
  done_at REAL                           -- NULL until every row is copied and compared
);

CREATE TABLE bucket (                    -- one row if the store has a bucket of a dataset (docs/scale.md)
  number INT NOT NULL,                   -- from 0
  buckets INT NOT NULL                   -- how many the dataset has
);

CREATE TABLE outgoing (                  -- offers of URLs of other buckets, until the task has written them to the dataset
  id lasting_number(),
  bucket INT NOT NULL,                   -- the number of the bucket that requests the URL
  url TEXT NOT NULL,
  depth INTEGER NOT NULL,
  hops INT NOT NULL,
  seed INT NOT NULL,
  kind TEXT NOT NULL,
  lastmod REAL,
  by_domain INT NOT NULL
);

-- ---- sites and robots.txt

CREATE TABLE politeness_group (          -- the unit of claiming: sites that share one pace
  id INTEGER PRIMARY KEY,                -- on PostgreSQL: group_number(name)
  name TEXT NOT NULL UNIQUE,
  ready_at REAL,                         -- when the group's next URL may be fetched; NULL: it has no queued URL
  next_at REAL NOT NULL DEFAULT 0,
  pause_s REAL NOT NULL DEFAULT 0,
  backoff_s REAL NOT NULL DEFAULT 0,
  answers INTEGER NOT NULL DEFAULT 0,    -- whose times are in the averages usual_s and recent_s, in seconds
  usual_s REAL NOT NULL DEFAULT 0,
  recent_s REAL NOT NULL DEFAULT 0,
  wait_code TEXT NOT NULL DEFAULT 'none',
  waits_for TEXT NOT NULL DEFAULT '',
  claimed_by INTEGER                     -- worker.id; survives a crash: the next run releases the group
) room(70);                              -- every claim updates the row
CREATE INDEX group_ready ON politeness_group(ready_at) WHERE ready_at IS NOT NULL AND claimed_by IS NULL;
CREATE INDEX group_held ON politeness_group(id) WHERE claimed_by IS NOT NULL;

CREATE TABLE site (                      -- scheme + host + port
  id own_number(),
  name TEXT NOT NULL UNIQUE,
  host TEXT NOT NULL,
  registered_domain TEXT NOT NULL,       -- of the host, by the Public Suffix List; the host if it has none
  group_id INTEGER NOT NULL,             -- politeness_group.id
  robots_id INTEGER,                     -- robots_copy.id; the copy in force
  robots_until REAL NOT NULL DEFAULT 0,  -- until then its robots.txt is waited for, or asks for a pause
  robots_needs TEXT,                     -- what its robots.txt waits for until then, if not for an answer of its own
  crawl_delay_s REAL,                    -- from the last robots.txt that was received
  main_site TEXT,
  other_bucket INT,                      -- the number of the bucket that requests the site; NULL: this one
  walls INT NOT NULL DEFAULT 0,          -- refusals that follow each other: crawler/frontier/refusals.py
  refused INT NOT NULL DEFAULT 0,
  front_refused INT NOT NULL DEFAULT 0,
  rest_count INT NOT NULL DEFAULT 0,     -- rests since the site last answered otherwise
  rests_until REAL NOT NULL DEFAULT 0,   -- the end of the last of them
  probe INTEGER,                         -- url.id: it is requested after the rest
  closed_at REAL,                        -- since when the site is closed because of them
  fetched INTEGER NOT NULL DEFAULT 0,    -- number of pages fetched
  max_pages INTEGER                      -- the limit on them by a table [site]; NULL: that of the run
) room(80);
CREATE INDEX site_group ON site(group_id);

CREATE TABLE skipped_seed (              -- lines that were no URLs, as each list of seeds was last read
  source TEXT NOT NULL,                  -- the path of the file, or `command line` and the like
  line INTEGER NOT NULL,                 -- from 1
  text TEXT NOT NULL,
  reason TEXT NOT NULL,
  meant TEXT NOT NULL,                   -- the URLs that were perhaps meant, with blanks between
  PRIMARY KEY (source, line)
);

CREATE TABLE adopted_host (              -- hosts in scope because a seed of the same registered domain redirects to them
  host TEXT PRIMARY KEY,
  found_at REAL NOT NULL
);

CREATE TABLE robots_text (id own_number(), sha256 BLOB NOT NULL UNIQUE, body BLOB NOT NULL);

CREATE TABLE robots_copy (               -- one row per answer to /robots.txt
  id own_number(),
  site_id INTEGER NOT NULL,              -- site.id
  text_id INTEGER,                       -- robots_text.id
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
CREATE INDEX robots_copy_answered ON robots_copy(answered_by);

CREATE TABLE robots_wait (               -- sites whose robots.txt waits for a URL of another site: for the engine alone
  site_id INTEGER PRIMARY KEY,           -- the site that waits
  target_id INTEGER NOT NULL,            -- the site of the URL
  path TEXT NOT NULL,                    -- of the URL
  seen TEXT,                             -- JSON: the URLs that redirected there; NULL: the copy there decides a Host line
  hops INT NOT NULL                      -- the sites on the way to the URL
);
CREATE INDEX robots_wait_target ON robots_wait(target_id, path);

CREATE TABLE agent_server (              -- Mobile-agent-server lines in force; the last line that matches a path wins
  site_id INTEGER NOT NULL,
  line INTEGER NOT NULL,
  path TEXT NOT NULL,
  agent_server TEXT,                     -- NULL: none
  PRIMARY KEY (site_id, line)
) WITHOUT ROWID;

CREATE TABLE site_file (                 -- the last answer for each file of a site beside robots.txt and its pages
  site_id INTEGER NOT NULL,
  path TEXT NOT NULL,
  purpose TEXT NOT NULL,                 -- Purpose in crawler/model.py
  fetched_at REAL NOT NULL,
  status TEXT NOT NULL,                  -- HTTP status, or what came instead of an answer
  body BLOB NOT NULL,                    -- what is kept of it; empty: there is no file
  note TEXT NOT NULL,                    -- why the file states nothing
  valid_until REAL,                      -- when it is requested again; NULL: with robots.txt, or never
  failures INT NOT NULL,                 -- temporary failures in a row
  failing_since REAL,
  moved_to TEXT NOT NULL,                -- the target of a redirect
  PRIMARY KEY (site_id, path)
);

CREATE TABLE mirror (
  site TEXT PRIMARY KEY,
  main_site TEXT NOT NULL,
  evidence TEXT NOT NULL,                -- 'host', 'content', or 'refuted': a Host line that was contradicted
  seen_at REAL NOT NULL,
  sample INTEGER,                        -- evidence 'content': number of paths compared
  confidence REAL,                       -- and the least share of equal paths, with 95 % confidence
  contradiction TEXT                     -- evidence 'refuted': Contradiction in crawler/robots/mirrors.py
) WITHOUT ROWID;
CREATE INDEX mirror_seen ON mirror(seen_at);

-- ---- URLs and pages

CREATE TABLE hash_key (                  -- one row as soon as there is a URL
  id INTEGER PRIMARY KEY CHECK (id = 1),
  key INTEGER NOT NULL                   -- of the hashes of paths in url.id; random
);

CREATE TABLE url (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL,                    -- with the query
  state TEXT NOT NULL,                   -- State in crawler/model.py
  reason_code TEXT NOT NULL DEFAULT 'new',  -- ReasonCode in crawler/reasons.py
  reason TEXT NOT NULL DEFAULT '',       -- the sentence for reason_code
  depth INTEGER NOT NULL,                -- the shortest known way from a seed
  found_on INTEGER,                      -- url.id; NULL for seeds
  target INTEGER,                        -- url.id: the target of a redirect, the main site's URL, the canonical URL
  attempts INT NOT NULL DEFAULT 0,
  hops INT NOT NULL DEFAULT 0,           -- redirects from the URL that a page links to
  due_at REAL NOT NULL DEFAULT 0,        -- of a queued URL: 0 for now, later for a retry
  seed INT NOT NULL DEFAULT 0,
  kind TEXT NOT NULL DEFAULT 'page',     -- Kind in crawler/model.py
  lastmod REAL,                          -- from a sitemap
  by_domain INT NOT NULL DEFAULT 0       -- a seed that stands for a domain: its other addresses are tried if it is silent
) room(85);
CREATE INDEX url_out ON url(state) WHERE state IN ('redirected', 'excluded', 'failed');
CREATE INDEX url_sitemap ON url(id) WHERE kind = 'sitemap';

CREATE TABLE frontier (                  -- exactly one row per queued URL
  site_id INTEGER NOT NULL,
  due_at REAL NOT NULL,                  -- a copy of url.due_at
  depth INTEGER NOT NULL,                -- a copy of url.depth: URLs near to a seed go first
  url_id INTEGER NOT NULL,
  is_revisit INT NOT NULL DEFAULT 0,     -- a revisit: limits on pages do not count it
  PRIMARY KEY (site_id, due_at, depth, url_id)
) WITHOUT ROWID;
CREATE INDEX frontier_revisit ON frontier(site_id, due_at) WHERE is_revisit = 1;

CREATE TABLE preference_set (            -- preferences about use; most pages state none, and many the same
  id INTEGER PRIMARY KEY,                -- made from said (crawler/store/sql/contents.py)
  said TEXT NOT NULL                     -- JSON: a list of crawler.model.Preference
);

CREATE TABLE answer (                    -- what the answers that brought pages have in common
  id INTEGER PRIMARY KEY,                -- made from the rest (crawler/store/sql/contents.py)
  headers TEXT,                          -- JSON: those of store.headers, by lower-case name
  address TEXT,                          -- of the server
  tls_version TEXT
);

CREATE TABLE page (                      -- the newest version of each page
  url_id INTEGER PRIMARY KEY,
  status INT NOT NULL,
  content_type TEXT NOT NULL,
  charset TEXT,
  fetched_at REAL NOT NULL,
  title TEXT, description TEXT, keywords TEXT,
  canonical_url TEXT, meta_url TEXT, document_state TEXT,
  noindex INT NOT NULL, nofollow INT NOT NULL,
  body_id INTEGER,                       -- body.id
  body_bytes INTEGER NOT NULL,
  etag TEXT, last_modified TEXT,
  other_schemes TEXT,                    -- JSON: number of links by scheme that the crawler does not fetch
  directives TEXT,                       -- JSON: the directives of the page and its headers, with their source
  note TEXT NOT NULL DEFAULT '',
  version INTEGER NOT NULL DEFAULT 1,
  last_seen_at REAL,                     -- when a revisit last found this version; NULL: fetched once
  gone_at REAL,                          -- since when the site answers that there is no such page
  text_sha256 BLOB,                      -- of the text without markup and white space; NULL: NOINDEX, or no HTML
  preferences_id INTEGER,                -- preference_set.id: what the page and its headers state; NULL: nothing
  robots_preferences_id INTEGER,         -- what robots.txt stated for the page at its last visit
  language TEXT,                         -- as declared
  answer_id INTEGER,                     -- answer.id
  resources TEXT,                        -- JSON: a list of crawler.model.Resource with registered domains
  soft_404 INT                           -- whether it is like the answer to a path that cannot exist; NULL: not compared
);

CREATE TABLE page_version (              -- the earlier versions of each page
  url_id INTEGER NOT NULL,
  version INTEGER NOT NULL,
  status INT NOT NULL,
  content_type TEXT NOT NULL,
  charset TEXT,
  fetched_at REAL NOT NULL,
  last_seen_at REAL NOT NULL,
  title TEXT, description TEXT, keywords TEXT,  -- NULL, as body_id, once the page says NOINDEX
  noindex INT NOT NULL,
  body_id INTEGER,                       -- body.id
  body_bytes INTEGER NOT NULL,
  text_sha256 BLOB,
  etag TEXT, last_modified TEXT,
  preferences_id INTEGER, robots_preferences_id INTEGER,  -- as in page
  language TEXT, answer_id INTEGER,
  PRIMARY KEY (url_id, version)
) WITHOUT ROWID;

CREATE TABLE unread_answer (             -- answers in the request log that were not read yet: for the engine alone
  url_id INTEGER PRIMARY KEY,            -- a queued URL; its outcome deletes the row
  facts TEXT NOT NULL,                   -- of the answer, as JSON (crawler/store/sql/unread.py)
  body BLOB NOT NULL,                    -- one gzip member as received, or plain
  request BLOB,                          -- the octets of the exchange, if the crawl records them
  response BLOB
);

CREATE TABLE body (                      -- one row per distinct content
  id own_number(),
  sha256 BLOB NOT NULL UNIQUE,           -- of the decompressed content
  data BLOB                              -- gzip as received, or zstd; its first bytes say which; NULL: kept outside
);

CREATE TABLE main_text (                 -- the text of a body, read once for the search index and for near-duplicates
  body_id INTEGER PRIMARY KEY,           -- body.id; the row goes with the body
  read_as TEXT NOT NULL,                 -- the version of the reading, the charset, and the type
  data BLOB NOT NULL                     -- crawler/texts/kept.py; zstd
);

CREATE TABLE body_to_drop (body_id INTEGER PRIMARY KEY);  -- bodies of pages that turned NOINDEX, not yet deleted

CREATE TABLE body_location (             -- one row if bodies are kept outside the database
  location TEXT NOT NULL,                -- s3://bucket/prefix, or the absolute path of a folder
  store_id TEXT NOT NULL                 -- names the object stores/… by which the location knows this store
);

CREATE TABLE object_to_delete (sha256 BLOB PRIMARY KEY) WITHOUT ROWID;  -- outside bodies that no row may name any more

CREATE TABLE link (
  source INTEGER NOT NULL,               -- url.id
  target INTEGER NOT NULL,               -- url.id
  anchor TEXT NOT NULL,
  rel TEXT NOT NULL,
  follow INT NOT NULL,
  PRIMARY KEY (source, target)
) WITHOUT ROWID;

CREATE TABLE tls (                       -- what the connections of a site have in common, until its certificate changes
  id INTEGER PRIMARY KEY,                -- made from the rest (crawler/store/sql/contents.py)
  version TEXT NOT NULL,
  cipher TEXT NOT NULL,
  certificate_until REAL                 -- the end of the certificate; NULL: it was not verified
);

CREATE TABLE request (                   -- every request ever sent
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL,
  site_id INTEGER NOT NULL,
  path TEXT NOT NULL,
  purpose TEXT NOT NULL,
  started_at REAL NOT NULL,
  finished_at REAL NOT NULL,
  status INT,
  error_kind TEXT,                       -- ErrorKind in crawler/reasons.py
  error TEXT,                            -- the sentence for error_kind
  bytes INTEGER NOT NULL,
  retry_after_s REAL,
  robots_id INTEGER,                     -- the robots_copy in force when the request was sent
  verdict_line INT,
  for_site_id INTEGER,                   -- of a robots.txt requested behind a redirect: the site that it is for
  location TEXT,                         -- of a redirect, as received
  lag_s REAL NOT NULL DEFAULT 0,         -- of the own event loop, between started_at and finished_at
  tls_id INTEGER,                        -- tls.id; NULL: no TLS, or no connection
  address TEXT,                          -- of the server; NULL: no connection, or only a proxy knows it
  price TEXT                             -- of a 402: the price or the licence that it names
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

CREATE TABLE rup_server (                -- one row per registration; see crawler/rup/protocol/subscription.py
  site TEXT PRIMARY KEY,
  cgi TEXT NOT NULL,
  key TEXT NOT NULL,                     -- a secret: no view shows it; '' while the server has not answered Register
  email TEXT NOT NULL,
  latency TEXT NOT NULL,
  registered_at REAL NOT NULL,
  units TEXT NOT NULL,                   -- JSON
  max_query_span TEXT,
  sequence_number INTEGER NOT NULL,
  good_until REAL NOT NULL,
  heard_at REAL NOT NULL,
  quiet INTEGER NOT NULL,
  exclude TEXT NOT NULL,                 -- JSON: the registered patterns, as include_only
  include_only TEXT NOT NULL,
  question TEXT NOT NULL,                -- why the server must be queried at once; '' if it need not
  lost TEXT NOT NULL,                    -- why the whole site must be visited again; '' if it need not
  given_up TEXT NOT NULL,                -- why no reports are expected any more; '' if they are
  unreached TEXT NOT NULL,               -- why the server's last answer did not arrive; '' if it did
  silent_at REAL NOT NULL                -- until then no report means no change; 0 if that is in doubt
) WITHOUT ROWID;

CREATE TABLE rup_mail (                  -- the last mails read; a mail that is here already is ignored
  id own_number(),
  digest BLOB NOT NULL UNIQUE,           -- SHA-256, the same for copies of it
  taken_at REAL NOT NULL,
  site TEXT,                             -- of a report of a registered server; else NULL
  sequence_number INTEGER,
  verdict_code TEXT NOT NULL,            -- crawler.reasons.MailCode
  verdict TEXT NOT NULL,                 -- its sentence
  changes INTEGER NOT NULL,              -- pages that the mail named and that became hints
  refused INTEGER NOT NULL               -- paths of another site, too long, or too many
);
CREATE INDEX rup_mail_site ON rup_mail(site);

-- ---- results computed from the crawl

CREATE TABLE rank (                      -- as `crawler rank` last computed it: one row per page of links_glued
  url_id INTEGER PRIMARY KEY,
  site_id INTEGER NOT NULL,              -- the site of the page; of a URL that only mirrors have: their main site
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

CREATE TABLE text_signature (            -- as `crawler duplicates` last computed it: one row per text that it compares
  url_id INTEGER PRIMARY KEY,
  digest INTEGER NOT NULL,               -- of everything that the row was made of
  keys BLOB NOT NULL                     -- eight bytes each, see crawler/duplicates/texts.py; empty: too short a text
);

CREATE TABLE site_template (             -- what the texts of a site have in common; one row per site with signatures
  site_id INTEGER PRIMARY KEY,
  shingles BLOB NOT NULL                 -- hashes of eight bytes
);

CREATE TABLE near_duplicate (            -- as `crawler duplicates` last computed it: one row per page of a cluster
  url_id INTEGER PRIMARY KEY,
  cluster_id INTEGER NOT NULL,           -- the url_id of the page that represents the cluster
  similarity REAL NOT NULL               -- Jaccard similarity with that page
);
CREATE INDEX near_duplicate_cluster ON near_duplicate(cluster_id);

CREATE TABLE computation (               -- what of these was computed; one row for each
  name TEXT PRIMARY KEY,                 -- 'ranks', 'near_duplicates', 'index' (a file of its own)
  last_request INTEGER NOT NULL          -- it covers the requests up to this request.id; -1: what it was made of is no more
);

CREATE TABLE sample_draw (               -- every draw of a sample (docs/samples.md); one row at most is not discarded
  number INTEGER PRIMARY KEY,            -- from 1, in the order of the draws
  method TEXT NOT NULL,                  -- 'uniform', 'stratified', 'random-walk'
  per TEXT NOT NULL,                     -- 'crawl', 'site'
  size INTEGER NOT NULL,                 -- the size that was asked for
  seed INTEGER NOT NULL,
  drawn_at REAL NOT NULL,
  frame INTEGER NOT NULL,                -- number of URLs in the sampling frame
  cut_sites INTEGER NOT NULL,            -- sites of which a limit kept URLs out of the frame
  follows INT NOT NULL,                  -- the target of a drawn URL's redirect belongs to the sample
  missed INTEGER NOT NULL,               -- URLs nearer than held_from that were not reached: not in the frame
  missed_sites INTEGER NOT NULL,         -- the sites of these URLs
  held_from INTEGER,                     -- the depth whose pages are requested only if drawn; NULL: all are requested
  stands INT NOT NULL,                   -- 0: seeds or settings have changed since, the sample must be drawn anew
  share REAL NOT NULL,                   -- of the URLs of a stratum, no more than this share was drawn
  sites INTEGER,                         -- the number of sites to draw first; NULL: all sites
  sites_by TEXT NOT NULL,                -- the probability of each site: 'equal', 'size'
  design TEXT NOT NULL,                  -- all that decides which URLs are drawn, as JSON: see frontier.sample_design.Design
  design_sha256 TEXT NOT NULL,           -- its SHA-256, in hex
  discarded_at REAL                      -- when a later draw replaced it; NULL: sample and frame_url are of this draw
);

CREATE TABLE sample (                    -- one row per draw: a random walk may draw a URL several times
  draw own_number(),
  url_id INTEGER NOT NULL,
  stratum TEXT NOT NULL,
  walk INTEGER,                          -- the number of the random walk
  probability REAL NOT NULL,             -- of inclusion; of a random walk: of each visit, within its stratum
  site_probability REAL NOT NULL         -- with which the site was drawn; 1: no sites were drawn first
);
CREATE INDEX sample_url ON sample(url_id);

CREATE TABLE frame_url (url_id INTEGER PRIMARY KEY);  -- the sampling frame of the draw; empty if that was a list
