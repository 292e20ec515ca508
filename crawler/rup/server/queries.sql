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
  AND id <= coalesce((SELECT min(reported_to) FROM registration WHERE confirmed OR reported_at IS NULL),
                     (SELECT max(id) FROM change))

-- name: forget_mailed
DELETE FROM mailed WHERE reported_at < :before

-- Registrations --------------------------------------------------------------------------------

-- name: registration
SELECT * FROM registration WHERE email = :email

-- name: registration_of_token
SELECT * FROM registration WHERE token = :token AND token <> ''

-- name: registrations
SELECT * FROM registration

-- name: count_registrations
-- The number of registrations, and of the mail addresses that :client, a network address, has registered or used before.
SELECT (SELECT count(*) FROM registration) AS n,
       (SELECT count(*) FROM (SELECT email FROM registration WHERE client = :client
                              UNION SELECT email FROM mailed WHERE client = :client)) AS of_client

-- name: mail_history
SELECT reported_at, accepted_at FROM mailed WHERE email = :email

-- name: put_registration
-- Insert or replace a registration. The count of refusals stays as it is.
INSERT INTO registration (email, key, latency_count, latency_unit, registered_at, client, agent, exclude, include_only,
                          confirmed, sequence_number, reported_to, reported_at, token, accepted_at)
VALUES (:email, :key, :latency_count, :latency_unit, :registered_at, :client, :agent, :exclude, :include_only,
        :confirmed, :sequence_number, :reported_to, :reported_at, :token, :accepted_at)
ON CONFLICT (email) DO UPDATE SET
  email = excluded.email, key = excluded.key, latency_count = excluded.latency_count,
  latency_unit = excluded.latency_unit, registered_at = excluded.registered_at, client = excluded.client,
  agent = excluded.agent, exclude = excluded.exclude, include_only = excluded.include_only,
  confirmed = excluded.confirmed, sequence_number = excluded.sequence_number, reported_to = excluded.reported_to,
  reported_at = excluded.reported_at, token = excluded.token, accepted_at = excluded.accepted_at

-- name: keep_mail_history
-- Keep the mail history of a registration before it is deleted, if the mail server has accepted a report to its address.
INSERT OR REPLACE INTO mailed (email, client, reported_at, accepted_at)
SELECT email, client, reported_at, accepted_at FROM registration WHERE email = :email AND accepted_at IS NOT NULL

-- name: delete_registration
DELETE FROM registration WHERE email = :email

-- name: refuse_address
-- Note that an address left, which bars it from registering until its mail history has expired.
INSERT OR REPLACE INTO mailed (email, client, reported_at, accepted_at) VALUES (:email, :client, :now, NULL)

-- The mail queue -------------------------------------------------------------------------------

-- name: unsent
-- The number of mails to an address in the mail queue.
SELECT count(*) AS n FROM mail_queue WHERE email = :email

-- name: post
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

-- name: hasten
UPDATE mail_queue SET next_try_at = :now WHERE next_try_at > :now

-- name: waiting
SELECT count(*) AS n FROM mail_queue

-- name: note_accepted
-- Note that the mail server accepted the mail :id to a registration. The mail is no longer in the queue if the
-- registration was replaced meanwhile; then nothing is noted.
UPDATE registration SET refusals = 0, accepted_at = coalesce(accepted_at, :now)
WHERE email = :email AND (refusals > 0 OR accepted_at IS NULL) AND EXISTS (SELECT 1 FROM mail_queue WHERE id = :id)

-- name: note_accepted_late
-- Note that the mail server accepted a mail to an address, if the address has no registration any more.
INSERT OR IGNORE INTO mailed (email, client, reported_at, accepted_at)
SELECT :email, '', :now, :now WHERE NOT EXISTS (SELECT 1 FROM registration WHERE email = :email)

-- name: delete_mail
DELETE FROM mail_queue WHERE id = :id

-- name: delete_mails_to
DELETE FROM mail_queue WHERE email = :email

-- name: count_refusal
-- Count a refusal by an address. Returns the number of consecutive refusals; no row if it is not registered.
UPDATE registration SET refusals = refusals + 1 WHERE email = :email RETURNING refusals

-- name: postpone
UPDATE mail_queue SET tries = tries + 1, next_try_at = :until WHERE id = :id

-- name: postpone_due
UPDATE mail_queue SET next_try_at = :until WHERE next_try_at <= :now
