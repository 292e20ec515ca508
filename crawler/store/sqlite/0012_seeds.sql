-- Version 12: the list of seeds asks for `seed = 1`, as on PostgreSQL; an index on `seed` alone is none for that.

DROP INDEX url_seed;
CREATE INDEX url_seed ON url(id, path) WHERE seed = 1;
