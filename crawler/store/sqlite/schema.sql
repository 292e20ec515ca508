-- The tables of the store in one SQLite file that PostgreSQL has in another form: see sql/schema.sql.

CREATE INDEX url_seed ON url(id, path) WHERE seed = 1;  -- covers the list of seeds

CREATE TRIGGER body_deleted AFTER DELETE ON body BEGIN DELETE FROM main_text WHERE body_id = OLD.id; END;
