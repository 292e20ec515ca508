-- What the operator asks of a crawl, and signs of life: as SQLite's 0011_control.sql.

CREATE TABLE control (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  asked_at double precision NOT NULL,
  command text NOT NULL,
  name text NOT NULL DEFAULT '',
  run_id bigint,
  done_at double precision
);

CREATE TABLE heartbeat (
  worker bigint PRIMARY KEY,             -- not its process, whose number another machine's may have too
  run_id bigint NOT NULL REFERENCES run(id),
  pid bigint NOT NULL,
  seen_at double precision NOT NULL,
  memory_bytes bigint,
  lag_s double precision NOT NULL
);

-- The first and last of each range in a JSON list of pairs.
CREATE FUNCTION ranges(text) RETURNS TABLE (first text, last text) LANGUAGE sql IMMUTABLE STRICT AS
  $$ SELECT (value ->> 0) COLLATE "C", (value ->> 1) COLLATE "C" FROM json_array_elements($1::json) $$;
