-- `payloads.sqlite` in a folder of WARC files: the archived payloads.

-- name: open
-- SQLite does not wait for the disk: payloads lost in a power cut are archived again.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS payload (digest TEXT PRIMARY KEY, url TEXT, date TEXT) WITHOUT ROWID;

-- name: find
SELECT digest, url, date FROM payload WHERE digest = :digest

-- name: add
INSERT OR IGNORE INTO payload (digest, url, date) VALUES (:digest, :url, :date)
