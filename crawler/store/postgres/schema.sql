-- The tables of the store in one PostgreSQL database that SQLite has in another form, or not: see sql/schema.sql.

CREATE TABLE store_version (version integer NOT NULL);

CREATE INDEX url_seed ON url(id) WHERE seed = 1;
ALTER TABLE body ALTER COLUMN data SET STORAGE EXTERNAL;  -- it is compressed already
ALTER TABLE main_text ALTER COLUMN data SET STORAGE EXTERNAL;  -- it is compressed already
ALTER TABLE main_text ADD FOREIGN KEY (body_id) REFERENCES body ON DELETE CASCADE;
CREATE INDEX page_body ON page(body_id);                  -- for deleting bodies
CREATE INDEX page_version_body ON page_version(body_id);  -- for deleting bodies

-- A sequence leaves a gap if a transaction is rolled back, and the audit searches for gaps in the log. A commit locks this
-- row last, so that other workers wait for it only as long as a COMMIT takes.
CREATE TABLE request_number (last bigint NOT NULL);
INSERT INTO request_number VALUES (0);

-- ---- functions

-- Functions of SQLite, so that one statement runs on both.
CREATE FUNCTION hex(bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT upper(encode($1, 'hex')) $$;
CREATE FUNCTION instr(text, text) RETURNS integer LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT strpos($1, $2) $$;
-- The number of a politeness group: 62 bits of a hash of its name.
CREATE FUNCTION group_number(text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS
  $$ SELECT ('x' || left(md5($1), 16))::bit(64)::bigint & 4611686018427387903 $$;
-- Lists of numbers and of texts are parameters in JSON, as for json_each in SQLite.
CREATE FUNCTION numbers(text) RETURNS bigint[] LANGUAGE sql IMMUTABLE STRICT AS
  $$ SELECT coalesce(array_agg(value::bigint), '{}') FROM json_array_elements_text($1::json) $$;
CREATE FUNCTION texts(text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT AS
  $$ SELECT coalesce(array_agg(value), '{}') FROM json_array_elements_text($1::json) $$;
CREATE FUNCTION clock() RETURNS double precision LANGUAGE sql VOLATILE AS
  $$ SELECT extract(epoch FROM clock_timestamp())::double precision $$;
-- The first and the last text of each range in a JSON list of pairs.
CREATE FUNCTION ranges(text) RETURNS TABLE (first text, last text) LANGUAGE sql IMMUTABLE STRICT AS
  $$ SELECT (value ->> 0) COLLATE "C", (value ->> 1) COLLATE "C" FROM json_array_elements($1::json) $$;
