-- Samples for research (docs/samples.md): how the last one was drawn, and what was drawn.

CREATE TABLE sample_draw (               -- one row, or none
  method TEXT NOT NULL,                  -- 'uniform', 'stratified', 'random-walk'
  per TEXT NOT NULL,                     -- 'crawl', 'site'
  size INTEGER NOT NULL,                 -- as asked for
  seed INTEGER NOT NULL,
  drawn_at REAL NOT NULL,
  frame INTEGER NOT NULL,                -- URLs that it was drawn of
  cut_sites INTEGER NOT NULL,            -- sites of which the frame has only what a limit let the crawl ask for
  follows INTEGER NOT NULL,              -- what a drawn URL redirects to counts as its own
  stands INTEGER NOT NULL                -- 0: seeds or settings have changed since, it is drawn anew
);

CREATE TABLE sample (                    -- one row for each draw: a random walk may come to a URL again
  draw INTEGER PRIMARY KEY,
  url_id INTEGER NOT NULL,
  stratum TEXT NOT NULL,
  walk INTEGER,                          -- of a random walk: which one
  probability REAL NOT NULL              -- of being in the sample; of a random walk: of each visit, within its stratum
);
CREATE INDEX sample_url ON sample(url_id);

CREATE VIEW samples AS
  SELECT s.name || u.path AS url, s.name AS site, a.stratum, a.probability, d.method, a.walk, u.state, u.reason,
         a.draw, a.url_id
  FROM sample_draw d CROSS JOIN sample a JOIN url u ON u.id = a.url_id JOIN site s ON s.id = a.url_id >> 39;
