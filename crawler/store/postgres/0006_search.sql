-- The search index, as `crawler index` last built it.

CREATE TABLE search_page (               -- one row per page in the index
  url_id bigint PRIMARY KEY,             -- its main address; mirrors and duplicates have no row
  digest bigint NOT NULL,                -- of all that its rows were made of
  in_links bigint NOT NULL,
  in_sites bigint NOT NULL,
  size bigint NOT NULL                   -- in words
);

CREATE TABLE search_text (               -- a page's words; one row, or several for a long page
  url_id bigint NOT NULL REFERENCES search_page ON DELETE CASCADE,
  part bigint NOT NULL,
  words tsvector NOT NULL,               -- without a copy of the texts, which are read anew from the pages that are shown
  PRIMARY KEY (url_id, part)
);
CREATE INDEX search_words ON search_text USING gin(words);

CREATE TABLE search_state (              -- as in SQLite's 0004_search.sql
  id integer PRIMARY KEY CHECK (id = 1),
  version bigint NOT NULL,
  last_request bigint NOT NULL,
  complete integer NOT NULL,
  mean_inbound double precision NOT NULL
);
