-- Version 3: what a big store is asked when it is opened and closed.

DROP INDEX url_seed;
CREATE INDEX url_seed ON url(id, path) WHERE seed;      -- covers the list of seeds
CREATE INDEX url_out ON url(state) WHERE state IN ('redirected', 'excluded', 'failed');  -- the rest is queued or fetched
