-- Version 10: several workers on one crawl, each with a lease on the groups that it has claimed.

CREATE TABLE worker (                    -- one row per process that has crawled into this store
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run(id),
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  processes TEXT,                        -- among which processes that number is its own; NULL where nothing tells
  started_at REAL NOT NULL,
  seen_at REAL NOT NULL,                 -- when it last said that it is at work
  lease_until REAL,                      -- until when it may ask sites; NULL: without end, nobody else can be at work
  ended_at REAL,                         -- NULL while it is at work, and after a crash
  ended_by TEXT,
  turns INTEGER NOT NULL DEFAULT 0,      -- that it has committed
  pages INTEGER NOT NULL DEFAULT 0,
  requests INTEGER NOT NULL DEFAULT 0,
  granted INTEGER NOT NULL DEFAULT 0     -- pages that it may still take, under a limit on them all
);
CREATE INDEX worker_run ON worker(run_id);
CREATE INDEX worker_live ON worker(id) WHERE ended_at IS NULL;

ALTER TABLE run ADD COLUMN pages_before INTEGER NOT NULL DEFAULT 0;    -- in the store when it began

-- politeness_group.claimed_by and visited_by name workers from now on.
CREATE INDEX group_held ON politeness_group(id) WHERE claimed_by IS NOT NULL OR visited_by IS NOT NULL;

CREATE INDEX mirror_seen ON mirror(seen_at);                           -- others' news

CREATE TABLE store_copy (                -- a row where this store is a copy of another one
  source TEXT NOT NULL,
  begun_at REAL NOT NULL,
  done_at REAL                           -- NULL until all of it was copied, and compared
);

CREATE VIEW workers AS
  SELECT w.id AS worker, w.run_id, w.host, w.pid, w.started_at, w.seen_at, w.lease_until, w.ended_at, w.ended_by,
         w.pages, w.requests,
         (SELECT count(*) FROM politeness_group g
          WHERE (g.claimed_by IS NOT NULL OR g.visited_by IS NOT NULL) AND g.claimed_by = w.id) AS groups_held
  FROM worker w;
