-- The store of `crawler rup serve`: see docs/rup-server.md. Times in seconds since the epoch, UTC.

-- name: settings
-- Of each connection.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA busy_timeout = 10000;

-- name: tables
-- All or nothing of them is made, in an empty file. The number marks the file as such a store: "RUP1".
BEGIN IMMEDIATE;
PRAGMA application_id = 0x52555031;

-- The document tree at the last scan.
CREATE TABLE file (
  path TEXT PRIMARY KEY,      -- path of its URL, percent-encoded
  mtime_ns INTEGER NOT NULL,  -- 0: changed just before the scan, so the next scan reads it again
  ctime_ns INTEGER NOT NULL,
  size INTEGER NOT NULL,
  sha256 BLOB NOT NULL
) WITHOUT ROWID;

-- The last complete scan; one row.
CREATE TABLE scan (only INTEGER PRIMARY KEY CHECK (only = 1), at REAL NOT NULL);

-- The modification log. AUTOINCREMENT never reuses a number, so registration.reported_to stays valid.
CREATE TABLE change (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  found_at REAL NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('New', 'Change', 'Delete')),
  at REAL NOT NULL,
  path TEXT NOT NULL
);
CREATE INDEX change_found_at ON change (found_at);

-- A registration that has ended stays for a while, with an empty key, so that its address gets no new first report.
CREATE TABLE registration (
  email TEXT PRIMARY KEY COLLATE NOCASE,
  key TEXT NOT NULL,
  latency_count INTEGER NOT NULL,
  latency_unit TEXT NOT NULL,
  registered_at REAL NOT NULL,
  client TEXT NOT NULL,       -- the network address that sent Register
  agent TEXT NOT NULL,        -- product token, for robots.txt
  exclude TEXT NOT NULL,      -- patterns, separated by blanks
  include_only TEXT NOT NULL,
  confirmed INTEGER NOT NULL,
  sequence_number INTEGER NOT NULL,
  reported_to INTEGER NOT NULL,  -- change.id
  reported_at REAL,
  refusals INTEGER NOT NULL DEFAULT 0, -- consecutive mails that the mail server refused permanently
  token TEXT NOT NULL DEFAULT '',      -- a secret that only mails to the address contain
  accepted_at REAL                        -- when the mail server first accepted a report to this address
);
CREATE INDEX registration_client ON registration (client);
CREATE INDEX registration_token ON registration (token);

-- Complete mails that the mail server has not accepted yet.
CREATE TABLE mail_queue (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  email TEXT NOT NULL COLLATE NOCASE,
  sequence_number INTEGER NOT NULL,
  mail BLOB NOT NULL,
  made_at REAL NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  next_try_at REAL NOT NULL
);
CREATE INDEX mail_queue_email ON mail_queue (email);
CREATE INDEX mail_queue_next_try_at ON mail_queue (next_try_at);

COMMIT;
