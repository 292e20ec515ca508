-- name: visited_urls
-- The URLs of a site that were fetched or redirected, without those of RUP itself.
SELECT url FROM urls WHERE site = :site AND kind <> 'rup' AND state IN ('fetched', 'redirected')

-- name: count_pages
SELECT count(*) AS pages FROM urls WHERE site = :site AND kind = 'page' AND state = 'fetched'

-- name: servers
SELECT * FROM rup_servers ORDER BY site

-- name: sites_of_host
-- The sites of a host that the crawl knows.
SELECT site FROM sites_by_id WHERE host = :host
