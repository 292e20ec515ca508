-- Version 8: the Remote Update Protocol, robot side.

CREATE TABLE rup_offer (                 -- what a site's /rupinfo.txt said when it was last read
  site TEXT PRIMARY KEY,
  url TEXT NOT NULL,                     -- where it was found
  found_at REAL NOT NULL,
  cgi TEXT NOT NULL,
  authentifier TEXT NOT NULL,
  latencies TEXT NOT NULL,               -- these three: JSON
  exclude TEXT NOT NULL,
  include_only TEXT NOT NULL,
  max_query_span TEXT
) WITHOUT ROWID;

CREATE TABLE rup_server (                -- a server that we are registered with; see crawler/rup/protocol/robot.py
  site TEXT PRIMARY KEY,
  cgi TEXT NOT NULL,
  key TEXT NOT NULL,                     -- a secret: no view shows it; '' while it is not known whether we are registered
  email TEXT NOT NULL,
  latency TEXT NOT NULL,
  registered_at REAL NOT NULL,
  units TEXT NOT NULL,                   -- JSON
  max_query_span TEXT,
  sequence_number INTEGER NOT NULL,
  digest TEXT NOT NULL,
  good_until REAL NOT NULL,
  heard_at REAL NOT NULL,
  quiet INTEGER NOT NULL,
  refused INTEGER NOT NULL,
  exclude TEXT NOT NULL,                 -- JSON: the patterns registered
  include_only TEXT NOT NULL,
  question TEXT NOT NULL,                -- why the server is to be asked at once, '' if it is not
  lost TEXT NOT NULL,                    -- why the whole site is to be looked at again
  given_up TEXT NOT NULL,                -- why no reports are expected any more
  unreached TEXT NOT NULL,               -- why its last answer did not come
  silent_at REAL NOT NULL                -- until then no news is that nothing changed; 0 where that is in doubt
) WITHOUT ROWID;

CREATE TABLE rup_mail (                  -- mails read, the latest; a mail that is among them changes nothing
  id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE,           -- SHA-256 of its octets
  taken_at REAL NOT NULL,
  site TEXT,                             -- of a report of a server that we know; else NULL
  sequence_number INTEGER,
  verdict TEXT NOT NULL,                 -- taken, or why not
  changes INTEGER NOT NULL,              -- pages that it named and that were taken as hints
  refused INTEGER NOT NULL               -- paths that were not of its site, too long, or too many
);
CREATE INDEX rup_mail_site ON rup_mail(site);

CREATE VIEW rup_offers AS
  SELECT site, url, found_at, cgi, authentifier, latencies, exclude, include_only, max_query_span FROM rup_offer;

CREATE VIEW rup_servers AS
  SELECT s.site, s.cgi, s.email, s.latency, s.exclude, s.include_only, s.registered_at, s.sequence_number,
         nullif(s.heard_at, 0) AS heard_at, max(s.good_until, s.registered_at) AS known_until,
         nullif(s.silent_at, 0) AS silent_at,
         CASE WHEN s.given_up <> '' THEN 'given up: ' || s.given_up
              WHEN s.key = '' THEN 'unclear: no answer to Register'
              WHEN s.unreached <> '' THEN 'not reached: ' || s.unreached
              WHEN s.question <> '' THEN 'to be asked: ' || s.question
              WHEN s.quiet > 0 THEN 'quiet' ELSE 'reports' END AS state,
         (SELECT count(*) FROM rup_mail m WHERE m.site = s.site AND m.verdict = 'taken') AS reports,
         (SELECT count(*) FROM rup_mail m WHERE m.site = s.site AND m.verdict <> 'taken') AS ignored,
         (SELECT coalesce(sum(m.changes), 0) FROM rup_mail m WHERE m.site = s.site) AS changes,
         (SELECT coalesce(sum(m.refused), 0) FROM rup_mail m WHERE m.site = s.site) AS refused
  FROM rup_server s;

CREATE VIEW rup_mails AS SELECT taken_at, site, sequence_number, verdict, changes, refused FROM rup_mail;
