-- The tables of the store in one SQLite file that PostgreSQL has in another form: see sql/schema.sql.

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
