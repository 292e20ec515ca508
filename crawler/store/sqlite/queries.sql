-- Named queries of the SQLite store. A line "-- name: N" starts a query; a comment below it says what the query is for.
-- Parameters are named; a list is a parameter in JSON.

-- name: add_groups
INSERT INTO politeness_group (name) VALUES (:name) ON CONFLICT DO NOTHING;

-- name: end_all_workers
UPDATE worker SET ended_at = :now, ended_code = :ended_code, ended_by = :ended_by WHERE ended_at IS NULL;

-- name: erase_deleted
-- From now on overwrite what this connection deletes.
PRAGMA secure_delete = ON;

-- name: store_bytes
SELECT page_count * page_size AS n FROM pragma_page_count(), pragma_page_size();

-- name: empty_log
-- busy is 1 if a reader kept the write-ahead log from being emptied.
PRAGMA wal_checkpoint(TRUNCATE);

-- name: compact
VACUUM;

-- name: lock_workers
-- No-op: SQLite has one writer.
SELECT 1 AS done;
