-- The Remote Update Protocol, robot side: as SQLite's 0008_rup.sql.

CREATE TABLE rup_offer (
  site text COLLATE "C" PRIMARY KEY,
  url text NOT NULL,
  found_at double precision NOT NULL,
  cgi text NOT NULL,
  authentifier text NOT NULL,
  latencies text NOT NULL,
  exclude text NOT NULL,
  include_only text NOT NULL,
  max_query_span text
);

CREATE TABLE rup_server (
  site text COLLATE "C" PRIMARY KEY,
  cgi text NOT NULL,
  key text NOT NULL,
  email text NOT NULL,
  latency text NOT NULL,
  registered_at double precision NOT NULL,
  units text NOT NULL,
  max_query_span text,
  sequence_number bigint NOT NULL,
  digest text NOT NULL,
  good_until double precision NOT NULL,
  heard_at double precision NOT NULL,
  quiet bigint NOT NULL,
  refused bigint NOT NULL,
  exclude text NOT NULL,
  include_only text NOT NULL,
  question text NOT NULL,
  lost text NOT NULL,
  given_up text NOT NULL,
  unreached text NOT NULL,
  silent_at double precision NOT NULL
);

CREATE TABLE rup_mail (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  digest bytea NOT NULL UNIQUE,
  taken_at double precision NOT NULL,
  site text COLLATE "C",
  sequence_number bigint,
  verdict text COLLATE "C" NOT NULL,
  changes bigint NOT NULL,
  refused bigint NOT NULL
);
CREATE INDEX rup_mail_site ON rup_mail(site);

CREATE VIEW rup_offers AS
  SELECT site, url, found_at, cgi, authentifier, latencies, exclude, include_only, max_query_span FROM rup_offer;

CREATE VIEW rup_servers AS
  SELECT s.site, s.cgi, s.email, s.latency, s.exclude, s.include_only, s.registered_at, s.sequence_number,
         nullif(s.heard_at, 0) AS heard_at, greatest(s.good_until, s.registered_at) AS known_until,
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
