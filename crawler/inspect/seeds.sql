-- The ledger of the seeds, over the view of the store.

-- name: ledger
-- Every seed with what became of it.
SELECT url, site, outcome, leads_to, state, reason_code, reason, pages, failing_since, robots_problem,
  robots_attempts, next_at, registered_domain,
  leads_to_domain, source, line, meant
FROM seeds ORDER BY outcome, url_id, source, line

-- name: count_seeds
SELECT count(*) AS seeds FROM urls_by_id WHERE seed = 1

-- name: taken_links
-- Whether a URL that links led to was taken, and how many the patterns of the user left out.
SELECT (SELECT count(*) FROM urls_by_id WHERE state = 'excluded' AND reason_code = 'pattern') AS left_out,
  EXISTS (SELECT 1 FROM urls_by_id WHERE depth > 0 AND kind = 'page' AND state <> 'excluded') AS are_taken
