-- Named queries of the PostgreSQL store; sqlite/queries.sql says what those of the same name are for. A query that is
-- executed for many rows takes each column as an array: one statement for any number of rows.

-- name: lock_groups
SELECT id FROM politeness_group WHERE id = ANY(numbers(:numbers)) OR name = ANY(texts(:names))
ORDER BY id FOR NO KEY UPDATE;

-- name: add_groups
-- Two names with the same hash become two groups.
INSERT INTO politeness_group (id, name)
SELECT n.id + EXISTS (SELECT 1 FROM politeness_group g WHERE g.id = n.id)::int, n.name
FROM (SELECT name, group_number(name) AS id FROM unnest(:name::text[]) AS name
  EXCEPT SELECT name, group_number(name) FROM politeness_group WHERE name = ANY(:name::text[])) AS n
ORDER BY 1 ON CONFLICT DO NOTHING;

-- name: await_lost_workers
-- A worker whose lease ran out may have its row locked in an unfinished commit. Waits until it goes on, or until
-- idle_in_transaction_session_timeout ends its connection.
SELECT id FROM worker WHERE ended_at IS NULL AND lease_until <= clock() ORDER BY id FOR UPDATE;

-- name: clock
SELECT clock() AS now;

-- name: lock
-- Until the transaction ends.
SELECT pg_advisory_xact_lock(:key);

-- name: lock_workers
-- No worker begins or ends before the end of the transaction.
LOCK TABLE worker IN SHARE MODE;

-- name: number_requests
UPDATE request_number SET last = (SELECT coalesce(max(id), 0) FROM request);

-- name: volatile_functions
-- The volatile functions among these words, in any schema.
SELECT DISTINCT proname::text AS proname FROM pg_catalog.pg_proc
WHERE provolatile = 'v' AND proname = ANY(:words::name[]) ORDER BY 1;

-- name: reader_role
-- The facts about the role :role: one row, also if there is no such role.
SELECT count(*) > 0 AS exists, coalesce(bool_or(rolsuper), false) AS is_superuser,
  coalesce(bool_or(pg_has_role(rolname, (SELECT relowner FROM pg_catalog.pg_class
    WHERE oid = 'politeness_group'::regclass), 'MEMBER')), false) AS is_owner
FROM pg_catalog.pg_roles WHERE rolname = :role::text;

-- name: make_reader
-- The statements that make the role :role.
SELECT format(template, :role::text) AS statement
FROM unnest(ARRAY[
  'CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION',
  'ALTER ROLE %I SET default_transaction_read_only = on'
]) WITH ORDINALITY AS t (template, n) ORDER BY n;

-- name: set_password
-- The statement that sets the password of the role :role.
SELECT format('ALTER ROLE %I PASSWORD %L', :role::text, :verifier::text) AS statement;

-- name: grant_reader
-- The statements that let the role :role read the store and make temporary tables, and do nothing else. The keys of
-- registrations are in rup_server; the view rup_servers has the rest of it.
SELECT format(template, :role::text, current_schema(), current_database()) AS statement
FROM unnest(ARRAY[
  'REVOKE ALL ON ALL TABLES IN SCHEMA %2$I FROM %1$I',
  'REVOKE ALL ON ALL SEQUENCES IN SCHEMA %2$I FROM %1$I',
  'REVOKE CREATE ON SCHEMA %2$I FROM %1$I, PUBLIC',
  'GRANT USAGE ON SCHEMA %2$I TO %1$I',
  'GRANT CONNECT, TEMPORARY ON DATABASE %3$I TO %1$I',
  'GRANT SELECT ON ALL TABLES IN SCHEMA %2$I TO %1$I',
  'REVOKE ALL ON %2$I.rup_server FROM %1$I'
]) WITH ORDINALITY AS t (template, n) ORDER BY n;

-- name: store_bytes
SELECT pg_database_size(current_database()) AS n;

-- name: erase_deleted
-- No-op: PostgreSQL leaves deleted rows in place until `compact`.
SELECT 1 AS done;

-- name: empty_log
SELECT 0 AS busy;

-- name: compact
VACUUM (FULL, ANALYZE);

-- name: insert_urls
-- Returns the numbers that no other worker has inserted since. In the order of the numbers, as locked_urls.
INSERT INTO url (id, path, state, reason_code, reason, depth, found_on, hops, seed, kind, lastmod, by_domain)
SELECT * FROM given(:id bigint, :path text, :state text, :reason_code text, :reason text, :depth bigint, :found_on bigint,
  :hops int, :seed int, :kind text, :lastmod float8, :by_domain int)
ORDER BY id ON CONFLICT DO NOTHING RETURNING id;

-- name: insert_requests
-- The requests get the numbers that follow the last one. Other workers wait for the end of the transaction.
WITH numbered AS (UPDATE request_number SET last = last + cardinality(:site_id::bigint[])
  RETURNING last - cardinality(:site_id::bigint[]) AS before)
INSERT INTO request (id, site_id, path, purpose, started_at, finished_at, status, bytes, retry_after_s, robots_id,
  verdict_line, for_site_id, location, lag_s, address, price, run_id, tls_id, error_kind, error)
SELECT numbered.before + t.n, t.site_id, path, purpose, started_at, finished_at, status, bytes, retry_after_s, robots_id,
  verdict_line, for_site_id, location, lag_s, address, price, run_id, tls_id, error_kind, error
FROM numbered CROSS JOIN unnest(:site_id::bigint[], :path::text[], :purpose::text[], :started_at::float8[],
  :finished_at::float8[], :status::int[], :bytes::bigint[], :retry_after_s::float8[], :robots_id::bigint[],
  :verdict_line::int[], :for_site_id::bigint[], :location::text[], :lag_s::float8[], :address::text[], :price::text[],
  :run_id::bigint[], :tls_id::bigint[], :error_kind::text[], :error::text[]) WITH ORDINALITY AS t (site_id, path, purpose,
  started_at, finished_at, status, bytes, retry_after_s, robots_id, verdict_line, for_site_id, location, lag_s, address,
  price, run_id, tls_id, error_kind, error, n);
