-- name: count_at_work
-- The number of workers whose leases have not ended.
SELECT count(*) AS n FROM workers WHERE ended_at IS NULL AND lease_until > :now

-- name: sites
SELECT site FROM sites
