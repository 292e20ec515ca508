-- Samples for research: as SQLite's 0006_samples.sql.

CREATE TABLE sample_draw (
  method text NOT NULL,
  per text NOT NULL,
  size bigint NOT NULL,
  seed bigint NOT NULL,
  drawn_at double precision NOT NULL,
  frame bigint NOT NULL,
  cut_sites bigint NOT NULL,
  follows integer NOT NULL,
  stands integer NOT NULL
);

CREATE TABLE sample (
  draw bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  url_id bigint NOT NULL,
  stratum text COLLATE "C" NOT NULL,
  walk bigint,
  probability double precision NOT NULL
);
CREATE INDEX sample_url ON sample(url_id);

CREATE VIEW samples AS
  SELECT s.name || u.path AS url, s.name AS site, a.stratum, a.probability, d.method, a.walk, u.state, u.reason,
         a.draw, a.url_id
  FROM sample_draw d CROSS JOIN sample a JOIN url u ON u.id = a.url_id JOIN site s ON s.id = a.url_id >> 39;
