-- The tables of the store in one SQLite file that PostgreSQL has in another form: see sql/schema.sql.

CREATE TABLE heartbeat (                 -- one row per process of the last run
  run_id INTEGER NOT NULL,
  pid INTEGER NOT NULL,
  seen_at REAL NOT NULL,
  memory_bytes INTEGER,                  -- resident; NULL if the system does not report it
  lag_s REAL NOT NULL,                   -- the longest delay of the event loop since the last heartbeat
  low_disk TEXT,                         -- the disk for whose free space the process pauses
  look_ups TEXT NOT NULL DEFAULT '{}',   -- look-ups of names by outcome, as JSON
  vain_claims INTEGER NOT NULL DEFAULT 0,  -- claims that brought neither a request nor the address of a host
  PRIMARY KEY (run_id, pid)
) WITHOUT ROWID;

CREATE TABLE politeness_group (          -- the unit of claiming: sites that share one pace
  id INTEGER PRIMARY KEY,
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
  claimed_by INTEGER  -- worker.id; survives a crash: the next run releases the group
);
CREATE INDEX group_ready ON politeness_group(ready_at) WHERE ready_at IS NOT NULL AND claimed_by IS NULL;
CREATE INDEX group_held ON politeness_group(id) WHERE claimed_by IS NOT NULL;

CREATE INDEX url_seed ON url(id, path) WHERE seed = 1;  -- covers the list of seeds

CREATE TRIGGER body_deleted AFTER DELETE ON body BEGIN DELETE FROM main_text WHERE body_id = OLD.id; END;

-- The search index (crawler/search), as `crawler index` last built it. The index keeps no texts: excerpts are made
-- from main_text. Rows are added and never changed or deleted, which would require the old texts; a row that
-- search_page does not name is stale.
CREATE VIRTUAL TABLE search_text USING fts5(
  title, anchors, description, keywords, headings, body,
  content = '', tokenize = 'unicode61 remove_diacritics 2');

CREATE VIRTUAL TABLE search_head USING fts5(  -- the same rows without body, for words that very many pages have
  title, anchors, description, keywords, headings,
  content = '', tokenize = 'unicode61 remove_diacritics 2');

CREATE TABLE search_word (               -- the words of search_text; FTS5 would count the rows of each anew
  term TEXT PRIMARY KEY,
  doc INTEGER NOT NULL                   -- rows that have the word
) WITHOUT ROWID;

CREATE TABLE search_page (               -- one row per page in the index
  row_id INTEGER PRIMARY KEY,            -- search_text.rowid
  url_id INTEGER NOT NULL UNIQUE,        -- the main address; mirrors and duplicates have no row
  digest INTEGER NOT NULL,               -- of everything that the row was made of
  in_links INTEGER NOT NULL,             -- pages that link to the page
  in_sites INTEGER NOT NULL,             -- sites of these pages, its own left out
  site_id INTEGER NOT NULL,
  language TEXT NOT NULL,                -- that the page states, as `en`; empty: none
  depth INTEGER NOT NULL,                -- as in url, when the index was built
  fetched_at REAL NOT NULL,              -- as in page, when the index was built
  place INTEGER NOT NULL DEFAULT 0       -- among all pages, the one with the most links first; 0 until the end
);
CREATE INDEX search_page_site ON search_page(site_id);  -- with row_id

CREATE TABLE search_anchors (            -- the anchors of links to the page that the index has, one a line
  url_id INTEGER PRIMARY KEY,
  anchors TEXT NOT NULL
);
