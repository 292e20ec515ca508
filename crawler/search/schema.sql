-- The tables of a search index: a SQLite file of its own beside the store (crawler/search/index_file.py).

CREATE TABLE search_state (              -- one row
  id INTEGER PRIMARY KEY CHECK (id = 1),
  crawl TEXT NOT NULL,                   -- names the crawl whose pages these are
  last_request INTEGER NOT NULL,         -- the index covers the requests up to this number
  complete INTEGER NOT NULL,             -- 0 while the index is built for the first time, and if that was interrupted
  under_way INTEGER NOT NULL,            -- 1 while the index is written, and if that was interrupted
  mean_inbound REAL NOT NULL,            -- mean over the pages: linking pages plus ten times the other sites
  ranked INTEGER NOT NULL,               -- pages that `crawler rank` has ranked; 0: none
  languages TEXT NOT NULL                -- of its pages, those whose word forms are found, separated by blanks
);

-- The words of the pages. The tables keep no texts: search_document has them. A row is taken out with its old texts.
CREATE VIRTUAL TABLE search_text USING fts5(
  title, anchors, headings, body,           -- headings: also the description and the keywords
  content = '', tokenize = '{tokenizer}');

CREATE VIRTUAL TABLE search_head USING fts5(  -- the same rows without body, for words that very many pages have
  title, anchors, headings,
  content = '', tokenize = '{tokenizer}');

CREATE TABLE search_word (               -- the words of search_text; FTS5 would count the rows of each anew
  term TEXT PRIMARY KEY,
  doc INTEGER NOT NULL                   -- rows that have the word
) WITHOUT ROWID;

CREATE TABLE search_page (               -- one row per page in the index
  row_id INTEGER PRIMARY KEY,            -- search_text.rowid
  url_id INTEGER NOT NULL UNIQUE,        -- the main address; mirrors and duplicates have no row
  digest INTEGER NOT NULL,               -- of everything that the row was made of
  site_id INTEGER NOT NULL,
  language TEXT NOT NULL,                -- that the page states, as `en`; empty: none
  in_links INTEGER NOT NULL,             -- pages that link to the page
  in_sites INTEGER NOT NULL,             -- sites of these pages, its own left out
  depth INTEGER NOT NULL,
  fetched_at REAL NOT NULL,
  pagerank REAL,                         -- NULL: not ranked
  cluster_id INTEGER,                    -- of its near-duplicates; NULL: it has none
  place INTEGER NOT NULL DEFAULT 0       -- among all pages, the one with the most links first; 0 until the end
);
CREATE INDEX search_page_site ON search_page(site_id);  -- with row_id
CREATE INDEX search_page_cluster ON search_page(cluster_id) WHERE cluster_id IS NOT NULL;

CREATE TABLE search_document (           -- the texts of a page, for excerpts, and to take it out
  row_id INTEGER PRIMARY KEY,
  texts BLOB NOT NULL                    -- crawler/search/document.py
);

CREATE TABLE search_site (
  site_id INTEGER PRIMARY KEY,
  site TEXT NOT NULL
);
