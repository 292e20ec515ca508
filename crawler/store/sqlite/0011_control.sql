-- Version 11: what the operator asks of a crawl, and a sign of life of each process that crawls.

CREATE TABLE control (                   -- appended to by `crawler control` and the dashboard beside the running crawl
  id INTEGER PRIMARY KEY AUTOINCREMENT,  -- orders hold in this sequence
  asked_at REAL NOT NULL,
  command TEXT NOT NULL,                 -- pause, resume, stop, block, unblock
  name TEXT NOT NULL DEFAULT '',         -- of (un)block: a host, or a site
  run_id INTEGER,                        -- of stop: the run that is to end
  done_at REAL                           -- when a crawl had carried it out
);

CREATE TABLE heartbeat (                 -- a row for each process of the last run
  run_id INTEGER NOT NULL REFERENCES run(id),
  pid INTEGER NOT NULL,
  seen_at REAL NOT NULL,
  memory_bytes INTEGER,                  -- resident; NULL where the system does not tell
  lag_s REAL NOT NULL,                   -- by how much its event loop came late at worst, since the beat before
  PRIMARY KEY (run_id, pid)
) WITHOUT ROWID;
