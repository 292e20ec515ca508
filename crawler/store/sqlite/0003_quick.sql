-- Version 3: what a big store is asked when it is opened and closed, and how late the crawl's event loop has been.

DROP INDEX url_seed;
CREATE INDEX url_seed ON url(id, path) WHERE seed;      -- covers the list of seeds
CREATE INDEX url_out ON url(state) WHERE state IN ('redirected', 'excluded', 'failed');  -- the rest is queued or fetched

CREATE TABLE unsettled (since REAL NOT NULL);           -- a row while a run with changed options is being begun

ALTER TABLE run ADD COLUMN worst_lag_s REAL;            -- the longest that the loop came late to what was due
