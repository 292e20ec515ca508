-- name: count_at_work
-- The number of workers whose leases have not ended.
SELECT count(*) AS n FROM workers WHERE ended_at IS NULL AND lease_until > :now

-- name: count_waiting
-- The number of politeness groups that may not be asked yet, of those that no worker has.
SELECT count(*) AS n FROM groups_by_id WHERE claimed_by IS NULL AND ready_at > :now

-- name: sites
SELECT site FROM sites

-- name: visited
-- The URLs of which the crawl has had an answer: those that a revisit can be made of.
SELECT url FROM urls WHERE state IN ('fetched', 'redirected', 'failed')

-- name: visited_of_site
SELECT url FROM urls WHERE site = :site AND state IN ('fetched', 'redirected', 'failed')
