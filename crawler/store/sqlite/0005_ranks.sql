-- Link popularity, as `crawler rank` last reckoned it: replaced whole, in one transaction.

CREATE TABLE rank (                      -- one row per page of the glued graph (view links_glued)
  url_id INTEGER PRIMARY KEY,
  site_id INTEGER NOT NULL,              -- under which the page stands: for a URL that only mirrors have, their main host
  pagerank REAL NOT NULL,                -- all rows together: 1
  in_links INTEGER NOT NULL,             -- pages that link to it
  in_sites INTEGER NOT NULL              -- sites that these are on, its own included
);

CREATE TABLE site_rank (
  site_id INTEGER PRIMARY KEY,
  pagerank REAL NOT NULL,                -- the sum of its pages'
  pages INTEGER NOT NULL,
  in_links INTEGER NOT NULL,             -- pages of other sites that link to it
  in_sites INTEGER NOT NULL              -- other sites that link to it
);

CREATE VIEW ranks AS
  SELECT s.name || u.path AS url, r.pagerank, r.in_links, r.in_sites, r.url_id, s.name AS site
  FROM rank r JOIN url u ON u.id = r.url_id JOIN site s ON s.id = r.site_id;

CREATE VIEW site_ranks AS
  SELECT s.name AS site, r.pagerank, r.pages, r.in_links, r.in_sites
  FROM site_rank r JOIN site s ON s.id = r.site_id;
