-- Statements of the store of `crawler rup serve` (schema.sql). Times in seconds since the epoch.

-- name: application
-- The mark of the kind of file, and the number of its tables and indexes.
SELECT application_id, (SELECT count(*) FROM sqlite_master) AS objects FROM pragma_application_id

-- The document tree ----------------------------------------------------------------------------

-- name: known_files
SELECT path, mtime_ns, ctime_ns, size, sha256 FROM file

-- name: scanned_at
-- When the last scan was completed; no row before the first.
SELECT at FROM scan

-- name: put_file
INSERT OR REPLACE INTO file (path, mtime_ns, ctime_ns, size, sha256)
VALUES (:path, :mtime_ns, :ctime_ns, :size, :sha256)

-- name: delete_file
DELETE FROM file WHERE path = :path

-- name: log_change
INSERT INTO change (found_at, kind, at, path) VALUES (:found_at, :kind, :at, :path)

-- name: finish_scan
INSERT OR REPLACE INTO scan (only, at) VALUES (1, :now)

-- The modification log -------------------------------------------------------------------------

-- name: log_end
-- The number of the newest change ever logged; no row before the first change.
SELECT seq FROM sqlite_sequence WHERE name = 'change'

-- name: changes_after
SELECT id, kind, at, path FROM change WHERE id > :number ORDER BY id LIMIT :limit

-- name: count_since
-- The number of changes found since :found_at, counted up to :limit.
SELECT count(*) AS n FROM (SELECT 1 FROM change WHERE found_at >= :found_at LIMIT :limit)

-- name: changes_since
SELECT kind, at, path FROM change WHERE found_at >= :found_at ORDER BY id LIMIT :limit

-- name: forget_changes
-- Delete old changes that were reported to every registration which still receives reports.
DELETE FROM change
WHERE found_at < :before
  AND id <= coalesce((SELECT min(reported_to) FROM registration
                      WHERE key <> '' AND (confirmed OR reported_at IS NULL)),
                     (SELECT max(id) FROM change))

-- name: forget_ended
-- Delete registrations that have ended and whose last report was made before a time.
DELETE FROM registration WHERE key = '' AND coalesce(reported_at, registered_at) < :before

-- Registrations --------------------------------------------------------------------------------

-- name: registration
SELECT * FROM registration WHERE email = :email

-- name: registration_of_token
SELECT * FROM registration WHERE token = :token AND token <> ''

-- name: registrations
SELECT * FROM registration WHERE key <> ''

-- name: count_registrations
-- The number of registrations, and of the mail addresses that :client, a network address, has registered.
SELECT (SELECT count(*) FROM registration WHERE key <> '') AS n,
       (SELECT count(*) FROM registration WHERE client = :client) AS of_client

-- name: put_registration
-- Insert or replace a registration. The count of refusals is that of a key.
INSERT INTO registration (email, key, latency_count, latency_unit, registered_at, client, agent, exclude, include_only,
                          confirmed, sequence_number, reported_to, reported_at, token, accepted_at)
VALUES (:email, :key, :latency_count, :latency_unit, :registered_at, :client, :agent, :exclude, :include_only,
        :confirmed, :sequence_number, :reported_to, :reported_at, :token, :accepted_at)
ON CONFLICT (email) DO UPDATE SET
  email = excluded.email, key = excluded.key, latency_count = excluded.latency_count,
  latency_unit = excluded.latency_unit, registered_at = excluded.registered_at, client = excluded.client,
  agent = excluded.agent, exclude = excluded.exclude, include_only = excluded.include_only,
  confirmed = excluded.confirmed, sequence_number = excluded.sequence_number, reported_to = excluded.reported_to,
  reported_at = excluded.reported_at, token = excluded.token, accepted_at = excluded.accepted_at,
  refusals = CASE WHEN key = excluded.key THEN refusals ELSE 0 END

-- name: delete_mails_under_another_key
DELETE FROM mail_queue
WHERE email = :email AND EXISTS (SELECT 1 FROM registration WHERE email = :email AND key <> :key)

-- The mail queue -------------------------------------------------------------------------------

-- name: unsent
-- The number of mails to an address in the mail queue.
SELECT count(*) AS n FROM mail_queue WHERE email = :email

-- name: post
-- Put a mail into the mail queue.
INSERT INTO mail_queue (email, sequence_number, mail, made_at, next_try_at)
VALUES (:email, :sequence_number, :mail, :now, :now)

-- name: due_mails
-- Due mails, oldest first. A mail is left out while an earlier mail to the same address waits.
SELECT id, email, sequence_number, mail, made_at, tries FROM mail_queue q
WHERE next_try_at <= :now
  AND NOT EXISTS (SELECT 1 FROM mail_queue e WHERE e.email = q.email AND e.id < q.id AND e.next_try_at > :now)
ORDER BY id LIMIT :limit

-- name: next_try_at
-- When the next mail is due. Of the mails to one address, only the oldest counts.
SELECT min(next_try_at) AS at FROM mail_queue q
WHERE NOT EXISTS (SELECT 1 FROM mail_queue e WHERE e.email = q.email AND e.id < q.id)

-- name: waiting
-- The number of mails in the mail queue.
SELECT count(*) AS n FROM mail_queue

-- name: note_accepted
-- Note that the mail server accepted the mail :id to an address. The mail is no longer in the queue if the registration
-- has ended meanwhile, or was replaced; then nothing is noted for its successor.
UPDATE registration
SET refusals = 0, accepted_at = coalesce(accepted_at, :now), reported_at = coalesce(reported_at, :now)
WHERE email = :email AND (refusals > 0 OR accepted_at IS NULL)
  AND (key = '' AND reported_at IS NULL OR EXISTS (SELECT 1 FROM mail_queue WHERE id = :id))

-- name: delete_mail
DELETE FROM mail_queue WHERE id = :id

-- name: count_refusal
-- Count a refusal by an address. Returns the number of consecutive refusals; no row if it is not registered.
UPDATE registration SET refusals = refusals + 1 WHERE email = :email RETURNING refusals

-- name: postpone
-- Count an attempt, and try the mail again at :until.
UPDATE mail_queue SET tries = tries + 1, next_try_at = :until WHERE id = :id
