-- The ledger of the seeds, over the view of the store.

-- name: ledger
-- Every seed with what became of it.
SELECT url, site, outcome, leads_to, state, reason_code, reason, pages, failing_since, next_at, registered_domain,
  leads_to_domain
FROM seeds ORDER BY outcome, url_id

-- name: count_seeds
SELECT count(*) AS seeds FROM urls_by_id WHERE seed = 1
