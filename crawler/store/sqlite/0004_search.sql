-- Version 4: the search index, as `crawler index` last built it.

-- Without content: texts are read anew from the pages that are shown. Rows are added and never changed or deleted (which
-- would take their old texts): one that search_page no longer names is stale.
CREATE VIRTUAL TABLE search_text USING fts5(
  title, anchors, description, keywords, headings, body,
  content = '', tokenize = 'unicode61 remove_diacritics 2');

CREATE TABLE search_page (               -- one row per page in the index
  row_id INTEGER PRIMARY KEY,            -- search_text.rowid
  url_id INTEGER NOT NULL UNIQUE,        -- its main address; mirrors and duplicates have no row
  digest INTEGER NOT NULL,               -- of all that its row was made of
  in_links INTEGER NOT NULL,             -- pages that link to it
  in_sites INTEGER NOT NULL              -- sites that these are on, its own left out
);

CREATE TABLE search_state (              -- one row, once there is an index
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL,              -- of how pages are read and indexed; another one begins anew
  last_request INTEGER NOT NULL,         -- request.id up to which the crawl is in it
  complete INTEGER NOT NULL,             -- 0 while it is built, and if that was cut short
  mean_inbound REAL NOT NULL             -- of a page: linking pages and ten times the other sites, on average
);
